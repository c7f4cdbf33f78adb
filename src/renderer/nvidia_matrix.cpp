#include "renderer/nvidia_matrix.h"

#include <bit>

#include <fmt/format.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer {
namespace {

constexpr int64_t piece = 16;  ///< bytes: a row of a core matrix
constexpr int rows_bit = 3;    ///< it has eight of them

struct Factor {
  const TensorCore::Layout& layout;
  DType dtype;
  bool is_first;

  Factor(const TensorCore& core, int number)
      : layout(number == 0 ? core.a : core.b), dtype(number == 0 ? core.a_type : core.b_type), is_first(number == 0) {}
  const std::vector<TensorCore::Bit>& along_k() const { return is_first ? layout.column : layout.row; }
  const std::vector<TensorCore::Bit>& across() const { return is_first ? layout.row : layout.column; }
  bool lies_along_k() const { return along_k()[0].n == 0; }
  /// From an element to the one whose number has this bit, too.
  int64_t bytes_to(TensorCore::Bit bit) const { return layout.place_of(int64_t{1} << bit.n) * int64_t(itemsize(dtype)); }
};

}  // namespace

std::string_view element_name(DType d, bool is_factor) {
  switch (d) {
    case DType::int8: return "s8";
    case DType::uint8: return "u8";
    case DType::int32: return "s32";
    case DType::fp8e4m3: return "e4m3";
    case DType::fp8e5m2: return "e5m2";
    case DType::float16: return "f16";
    case DType::bfloat16: return "bf16";
    case DType::float32: return is_factor ? "tf32" : "f32";
    case DType::float64: return "f64";
    default: throw InternalError(fmt::format("NVIDIA: no tensor core has elements of {}", repr(d)));
  }
}

// Without swizzling both offsets are those of core matrices: the leading one of the next along k, the stride one of the next across it.
uint64_t matrix_descriptor(const TensorCore& core, int factor) {
  const Factor f(core, factor);
  const auto piece_bit = size_t(std::bit_width(size_t(piece) / itemsize(f.dtype)) - 1);
  const int64_t leading = f.bytes_to(f.along_k()[f.lies_along_k() ? piece_bit : rows_bit]);
  const int64_t stride = f.bytes_to(f.across()[f.lies_along_k() ? rows_bit : piece_bit]);
  return uint64_t(leading / piece) << 16 | uint64_t(stride / piece) << 32;
}

std::string wgmma_instruction(const TensorCore& core, std::string_view d, std::string_view a, std::string_view b, std::string_view adds) {
  std::string modifiers;
  if (is_float(core.a_type)) modifiers += ", 1, 1";  // neither is negated
  const auto transposed = [&](int factor) { return fmt::format(", {}", Factor(core, factor).lies_along_k() ? 0 : 1); };
  if (itemsize(core.a_type) == 2) modifiers += (core.a.in_memory ? transposed(0) : "") + transposed(1);
  return fmt::format("wgmma.mma_async.sync.aligned.m{}n{}k{}.{}.{}.{} {}, {}, {}, {}{};", core.m, core.n, core.k,
                     element_name(core.out, false), element_name(core.a_type, true), element_name(core.b_type, true), d, a, b, adds,
                     modifiers);
}

}  // namespace tinygrad::renderer

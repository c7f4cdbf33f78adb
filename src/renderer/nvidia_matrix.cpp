#include "renderer/nvidia_matrix.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "kernel/kernel_info.h"
#include "uop/build.h"

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
// Swizzled, the stride one is that of eight rows, and the leading one, of what does not lie along k, of the next columns.
uint64_t matrix_descriptor(const TensorCore& core, int factor) {
  const Factor f(core, factor);
  if (f.layout.swizzle > 1) {
    constexpr uint64_t swizzles_32 = 3, swizzles_128 = 1;
    const auto& rows = f.lies_along_k() ? f.across() : f.along_k();
    const size_t row_elements = size_t(f.layout.swizzle) * size_t(piece) / itemsize(f.dtype),
                 next = size_t(std::bit_width(row_elements) - 1);
    const bool has_next = !f.lies_along_k() && next < f.across().size();
    const int64_t leading = has_next ? f.bytes_to(f.across()[next]) : piece;
    return uint64_t(leading / piece) << 16 | uint64_t(f.bytes_to(rows[rows_bit]) / piece) << 32 |
           (f.layout.swizzle == 2 ? swizzles_32 : swizzles_128) << 62;
  }
  const auto piece_bit = size_t(std::bit_width(size_t(piece) / itemsize(f.dtype)) - 1);
  const int64_t leading = f.bytes_to(f.along_k()[f.lies_along_k() ? piece_bit : rows_bit]);
  const int64_t stride = f.bytes_to(f.across()[f.lies_along_k() ? rows_bit : piece_bit]);
  const uint64_t version = core.tensor_memory ? 1 : 0;
  return uint64_t(leading / piece) << 16 | uint64_t(stride / piece) << 32 | version << 46;
}

bool is_zero(const UOp& sums) {
  if (sums.is(Op::EXPAND)) return is_zero(sums.src(0));
  return sums.is(Op::STACK) ? std::ranges::all_of(sums.src(), is_zero) : is_const(sums, 0);
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

std::string tcgen05_instruction(const TensorCore& core, std::string_view d, std::string_view a, std::string_view b,
                                std::string_view description, std::string_view adds) {
  const bool is_integer = !is_float(core.a_type);
  const std::string_view kind = is_integer ? "i8" : itemsize(core.a_type) == 1 ? "f8f6f4" : core.a_type == DType::float32 ? "tf32" : "f16";
  return fmt::format("tcgen05.mma.cta_group::1.kind::{} [{}], {}, {}, {}, {};", kind, d, a, b, description, adds);
}

uint32_t tcgen05_description(const TensorCore& core) {
  const auto element = [](DType d) -> uint32_t {
    return d == DType::float32 ? 2 : d == DType::bfloat16 || d == DType::int8 || d == DType::fp8e5m2 ? 1 : 0;
  };
  const uint32_t sums = core.out == DType::int32 ? 2 : 1;
  const auto transposed = [&](int factor) -> uint32_t { return Factor(core, factor).lies_along_k() ? 0 : 1; };
  return sums << 4 | element(core.a_type) << 7 | element(core.b_type) << 10 | transposed(0) << 15 | transposed(1) << 16 |
         uint32_t(core.n / 8) << 17 | uint32_t(core.m / 16) << 24;
}

int32_t tensor_memory_parts(const KernelInfo& info) {
  int64_t items = 1;
  for (const IndexExpr& n : info.local) {
    if (!n.is_constant()) throw CompileError(fmt::format("CUDA: groups of kernel {} that use tcgen05 must have a known size", info.name));
    items *= n.evaluate({});
  }
  return int32_t((items + 127) / 128);
}

int32_t tensor_memory_columns(const KernelInfo& info, int32_t used) {
  constexpr int32_t least = 32, most = 512;
  const int32_t all = tensor_memory_parts(info) * used;
  if (all > most)
    throw CompileError(fmt::format(
        "CUDA: the sums of kernel {} take {} columns of the tensor cores' memory, there are {}; use smaller tiles", info.name, all, most));
  return int32_t(std::bit_ceil(unsigned(std::max(all, least))));
}

}  // namespace tinygrad::renderer

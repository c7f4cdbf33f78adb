#include "renderer/cstyle/amd_matrix_product.h"

#include <algorithm>

#include <fmt/format.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::cstyle {
namespace {

/// What a builtin takes besides the matrices.
enum class Form {
  mfma,  ///< how operands are broadcast: not at all
  wmma,
  signed_bytes,
  unsigned_bytes,
  fnuz,  ///< as mfma, of bytes with an exponent that is one less
};

struct Builtin {
  std::string_view core, name;
  std::string_view element;  ///< of what it takes a and b as
  int elements;              ///< 1: a scalar
  Form form;
};

constexpr Builtin kBuiltins[] = {
    {"mfma_f32_32x32x8_f16", "mfma_f32_32x32x8f16", "__fp16", 4, Form::mfma},
    {"mfma_f32_16x16x16_f16", "mfma_f32_16x16x16f16", "__fp16", 4, Form::mfma},
    {"mfma_f32_32x32x8_bf16", "mfma_f32_32x32x8bf16_1k", "short", 4, Form::mfma},
    {"mfma_f32_16x16x16_bf16", "mfma_f32_16x16x16bf16_1k", "short", 4, Form::mfma},
    {"mfma_f32_32x32x2_f32", "mfma_f32_32x32x2f32", "float", 1, Form::mfma},
    {"mfma_f32_16x16x4_f32", "mfma_f32_16x16x4f32", "float", 1, Form::mfma},
    {"mfma_f64_16x16x4_f64", "mfma_f64_16x16x4f64", "double", 1, Form::mfma},
    {"mfma_i32_32x32x8_i8", "mfma_i32_32x32x8i8", "int", 1, Form::mfma},
    {"mfma_i32_16x16x16_i8", "mfma_i32_16x16x16i8", "int", 1, Form::mfma},
    {"mfma_i32_32x32x16_i8", "mfma_i32_32x32x16_i8", "long", 1, Form::mfma},
    {"mfma_i32_16x16x32_i8", "mfma_i32_16x16x32_i8", "long", 1, Form::mfma},
    {"mfma_f32_32x32x16_fp8", "mfma_f32_32x32x16_fp8_fp8", "long", 1, Form::fnuz},
    {"mfma_f32_16x16x32_fp8", "mfma_f32_16x16x32_fp8_fp8", "long", 1, Form::fnuz},
    {"wmma_f32_16x16x16_f16", "wmma_f32_16x16x16_f16_w32", "half", 16, Form::wmma},
    {"wmma_f32_16x16x16_bf16", "wmma_f32_16x16x16_bf16_w32", "short", 16, Form::wmma},
    {"wmma_i32_16x16x16_i8", "wmma_i32_16x16x16_iu8_w32", "int", 4, Form::signed_bytes},
    {"wmma_i32_16x16x16_u8", "wmma_i32_16x16x16_iu8_w32", "int", 4, Form::unsigned_bytes},
    {"wmma_gfx12_f32_16x16x16_f16", "wmma_f32_16x16x16_f16_w32_gfx12", "half", 8, Form::wmma},
    {"wmma_gfx12_f32_16x16x16_bf16", "wmma_f32_16x16x16_bf16_w32_gfx12", "short", 8, Form::wmma},
    {"wmma_gfx12_f16_16x16x16_f16", "wmma_f16_16x16x16_f16_w32_gfx12", "half", 8, Form::wmma},
    {"wmma_gfx12_i32_16x16x16_i8", "wmma_i32_16x16x16_iu8_w32_gfx12", "int", 2, Form::signed_bytes},
    {"wmma_gfx12_i32_16x16x16_u8", "wmma_i32_16x16x16_iu8_w32_gfx12", "int", 2, Form::unsigned_bytes},
    {"wmma_gfx12_f32_16x16x16_fp8", "wmma_f32_16x16x16_fp8_fp8_w32_gfx12", "int", 2, Form::wmma},
    {"wmma_gfx12_f32_16x16x16_bf8", "wmma_f32_16x16x16_bf8_bf8_w32_gfx12", "int", 2, Form::wmma},
    {"wmma_gfx12_f32_16x16x16_fp8_bf8", "wmma_f32_16x16x16_fp8_bf8_w32_gfx12", "int", 2, Form::wmma},
    {"wmma_gfx12_f32_16x16x16_bf8_fp8", "wmma_f32_16x16x16_bf8_fp8_w32_gfx12", "int", 2, Form::wmma},
};

/// MI300's bytes stand for half of what OCP's do, -0 is its NaN and OCP's NaN a number. Of eight in a long, those that are 0 lose their
/// sign, and those that are NaN become 0x80.
constexpr std::string_view kToFnuz =
    "long to_fnuz(long x) {\n"
    "  const ulong bits = x & 0x7f7f7f7f7f7f7f7ful, top = 0x8080808080808080ul;\n"
    "  const ulong nonzero = (bits + 0x7f7f7f7f7f7f7f7ful) & top, nan = (bits + 0x0101010101010101ul) & top;\n"
    "  return ((bits | (x & nonzero)) & ~((nan >> 7) * 0xff)) | nan;\n"
    "}";

std::string call(const Builtin& b, std::string_view builtin, std::string_view sum) {
  switch (b.form) {
    case Form::wmma: return fmt::format("{}(p, q, c)", builtin);
    case Form::signed_bytes: return fmt::format("{}(true, p, true, q, c, false)", builtin);
    case Form::unsigned_bytes: return fmt::format("{}(false, p, false, q, c, false)", builtin);
    case Form::fnuz: return fmt::format("c + 4.0f * {}(to_fnuz(p), to_fnuz(q), {}(0.0f), 0, 0, 0)", builtin, sum);
    default: return fmt::format("{}(p, q, c, 0, 0, 0)", builtin);
  }
}

}  // namespace

Expr amd_matrix_product(Prelude& prelude, const WmmaArg& arg, const Value& a, const Value& b, const Value& c) {
  const auto found = std::ranges::find(kBuiltins, arg.name.str(), &Builtin::core);
  if (found == std::end(kBuiltins)) throw InternalError(fmt::format("HIP: there is no tensor core {}", arg.name.str()));
  prelude.word(found->element);
  if (found->form == Form::fnuz) {
    prelude.word("ulong");
    prelude.function(std::string(kToFnuz));
  }
  const std::string factor = prelude.type(a.dtype, a.lanes), sum = prelude.type(c.dtype, c.lanes);
  const std::string held = found->elements == 1 ? "" : fmt::format(" __attribute__((ext_vector_type({})))", found->elements);
  prelude.function(
      fmt::format("{0} {1}({2} a, {2} b, {0} c) {{\n"
                  "  typedef {3} held{4};\n"
                  "  const held p = __builtin_bit_cast(held, a), q = __builtin_bit_cast(held, b);\n"
                  "  return {5};\n}}",
                  sum, found->core, factor, found->element, held, call(*found, fmt::format("__builtin_amdgcn_{}", found->name), sum)));
  return {fmt::format("{}({}, {}, {})", found->core, a.expr.text, b.expr.text, c.expr.text)};
}

}  // namespace tinygrad::renderer::cstyle

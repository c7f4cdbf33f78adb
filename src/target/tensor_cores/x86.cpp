#include "target/tensor_cores/families.h"
#include "target/tensor_cores/tile_products.h"

namespace tinygrad::tensor_core_families {
namespace {

TensorCore words(Symbol name, int lanes) { return dot_product(name, lanes, 2, DType::int16, DType::int16, DType::int32); }

/// AMX: tiles of 16 rows of 64 bytes, in registers of their own. A row of the first factor holds neighbours along k; of the second one a
/// row holds, for each column, the two or four neighbours along k that are added up in one step (VNNI order). Lanes are columns of the
/// sums, whose rows are elements.
TensorCore tile_product(Symbol name, DType a, DType b, DType out) {
  const bool of_bytes = itemsize(a) == 1;
  return {.name = name,
          .m = 16,
          .n = 16,
          .k = of_bytes ? 64 : 32,
          .a_type = a,
          .b_type = b,
          .out = out,
          .items = 16,
          .tensor_memory = true,
          .a = {bits(of_bytes ? "e6 e7 e8 e9" : "e5 e6 e7 e8"), bits(of_bytes ? "e0 e1 e2 e3 e4 e5" : "e0 e1 e2 e3 e4"), true},
          .b = {bits(of_bytes ? "e0 e1 e6 e7 e8 e9" : "e0 e5 e6 e7 e8"), bits(of_bytes ? "e2 e3 e4 e5" : "e1 e2 e3 e4"), true},
          .c = {bits("e0 e1 e2 e3"), bits("i0 i1 i2 i3")}};
}

std::vector<TensorCore> tile_products() {
  const DType s8 = DType::int8, u8 = DType::uint8, s32 = DType::int32;
  return {tile_product("tdpbf16ps", DType::bfloat16, DType::bfloat16, DType::float32), tile_product("tdpbssd", s8, s8, s32),
          tile_product("tdpbsud", s8, u8, s32), tile_product("tdpbusd", u8, s8, s32), tile_product("tdpbuud", u8, u8, s32)};
}

std::vector<TensorCore> tile_products_with_halves() {
  std::vector<TensorCore> all = tile_products();
  all.push_back(tile_product("tdpfp16ps", DType::float16, DType::float16, DType::float32));
  return all;
}

/// VPDPBUSD, whose one factor is unsigned and the other one signed.
TensorCore bytes_of_both_signs(Symbol name, int lanes, DType a) {
  return dot_product(name, lanes, 4, a, a == DType::int8 ? DType::uint8 : DType::int8, DType::int32);
}

}  // namespace

std::vector<Family> x86() {
  const TensorCore bytes[] = {bytes_of_both_signs("vpdpbusd_u8_s8", 16, DType::uint8),
                              bytes_of_both_signs("vpdpbusd_s8_u8", 16, DType::int8)};
  const TensorCore floats = dot_product("vdpbf16ps", 16, 2, DType::bfloat16, DType::bfloat16, DType::float32);
  const std::vector<TensorCore> short_bytes{bytes_of_both_signs("vpdpbusd_u8_s8_256", 8, DType::uint8),
                                            bytes_of_both_signs("vpdpbusd_s8_u8_256", 8, DType::int8), words("vpdpwssd_256", 8)};
  std::vector<TensorCore> bytes_of_any_sign{dot_product("vpdpbssd_256", 8, 4, DType::int8, DType::int8, DType::int32),
                                            dot_product("vpdpbuud_256", 8, 4, DType::uint8, DType::uint8, DType::int32)};
  bytes_of_any_sign.insert(bytes_of_any_sign.end(), short_bytes.begin(), short_bytes.end());
  return {{"avx2", {words("vpmaddwd_256", 8)}},
          {"avx_vnni", short_bytes},
          {"avx_vnni_int8", bytes_of_any_sign},
          {"avx512", {words("vpmaddwd_512", 16)}},
          {"avx512_vnni", {bytes[0], bytes[1], words("vpdpwssd", 16)}},
          {"avx512_bf16", {floats, bytes[0], bytes[1], words("vpdpwssd", 16)}},
          {"amx", tile_products()},
          {"amx_fp16", tile_products_with_halves()}};
}

}  // namespace tinygrad::tensor_core_families

namespace tinygrad {

bool multiplies_tiles(const TensorCore& core) {
  const std::string_view name = core.name.str();
  return name.starts_with("tdpb") || name == "tdpfp16ps";
}

}  // namespace tinygrad

#pragma once
/// Tensors of model files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::formats {

/// How a block of a QuantizedTensor holds its elements. Names and layouts are those of GGML (ggml-common.h of llama.cpp).
enum class BlockFormat : uint8_t {
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q8_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ1_S,
  IQ1_M,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
  Q1_0,
  Q2_0
};

struct BlockLayout {
  std::string_view name;
  int32_t elements = 0;  ///< that a block holds, consecutive along the last axis
  int32_t bytes = 0;     ///< of a block
};

TINYGRAD_EXPORT const BlockLayout& layout_of(BlockFormat format);
TINYGRAD_EXPORT std::optional<BlockFormat> block_format_named(std::string_view name);

/// A tensor whose elements are packed in blocks with common scales, to be dequantized in the kernels that use it.
struct TINYGRAD_EXPORT QuantizedTensor {
  BlockFormat format = BlockFormat::Q8_0;
  Sizes shape = {};  ///< in elements; a multiple of a block's along the last axis
  Tensor blocks;     ///< uint8: the axes of `shape`, the last in blocks, and one of a block's bytes

  /// The elements, as operations that fuse into what uses them; bit for bit GGML's in float32. ShapeError as check().
  Tensor dequantize(DType to = DType::float32) const;
  /// Throws ShapeError, naming `operation`, unless `blocks` are uint8 in the shape that they must have.
  void check(std::string_view operation) const;
};

/// The values of a tensor in blocks: Q8_0, Q4_0, Q4_K, Q6_K and MXFP4, byte for byte as GGML makes them without an importance matrix.
/// Computed at once, on the host. Throws ValueError for other formats and for values that are not finite, ShapeError where the last axis is
/// no multiple of a block.
TINYGRAD_EXPORT QuantizedTensor quantize(const Tensor& values, BlockFormat format);
/// Whether it makes blocks of this format.
TINYGRAD_EXPORT bool can_quantize(BlockFormat format);

}  // namespace tinygrad::formats

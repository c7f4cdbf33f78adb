#pragma once
/// Model files of any format: what is in them, and their tensors.
///
/// Files are mapped and tensors are lazy: of a file only the pages that are used are read. It must not shrink while tensors of it live.
/// Reading gives what the file holds or throws: IoError for what the system refuses, FormatError, which names the file, the field and the
/// offset in bytes, for what does not follow the format, before anything of the size that it claims is allocated.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/state.h>
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

/// The values of a tensor in blocks: Q8_0, Q4_0, Q4_K, Q6_K and MXFP4, byte for byte as GGML makes them without an importance matrix; so
/// blocks of values so small that their scale is 0 as a float16, below some 1e-6, become zeros. Computed at once, on the host. Throws
/// ValueError for other formats and for values that are not finite or too large for a block's scales, ShapeError where the last axis is no
/// multiple of a block.
TINYGRAD_EXPORT QuantizedTensor quantize(const Tensor& values, BlockFormat format);
/// Whether it makes blocks of this format.
TINYGRAD_EXPORT bool can_quantize(BlockFormat format);

/// What a file says of one of its tensors.
struct TensorInfo {
  std::string name = {};
  std::string type = {};            ///< as the format names it: "F32", "Q4_K", "<f4"
  std::optional<DType> dtype = {};  ///< of the Tensor that it is read as; nothing where there is none
  Sizes shape = {};
  int64_t offset = -1;  ///< of the first byte in its file; -1 where elements do not lie there as they are
  int64_t bytes = 0;    ///< in the file
};

/// A value beside the tensors.
struct MetadataValue;
struct MetadataEntry;
using Metadata = std::vector<MetadataEntry>;  ///< in the order of the file
struct MetadataValue {
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, std::vector<MetadataValue>, Metadata> value;
};
/// A name and its value. No std::pair, which asks what a value can do while vectors of it are still being defined.
struct MetadataEntry {
  std::string first = {};
  MetadataValue second = {};
};
/// As a line of JSON; text that is no UTF-8 with marks in place of the bytes that are none, and of a name that occurs twice the last value.
TINYGRAD_EXPORT std::string to_json(const MetadataValue& value);

/// An open model file, or several that belong together.
class TINYGRAD_EXPORT Reader {
 public:
  virtual ~Reader() = default;
  /// "safetensors", "gguf", "onnx", "torch", "torch-legacy", "torch.export", "npy", "npz".
  virtual std::string_view format() const = 0;
  virtual const Metadata& metadata() const = 0;
  /// In the order of the file.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  /// The tensor at this place of tensors(), on the CPU, dequantized where it is in blocks. Throws IndexError for a place that there is not,
  /// FormatError for a tensor of a type that there is no dtype of.
  virtual Tensor tensor(size_t place) const = 0;
  /// The same as it is in the file; nothing where it is not in blocks.
  virtual std::optional<QuantizedTensor> quantized(size_t place) const;

 protected:
  /// Throws IndexError.
  const TensorInfo& tensors_at(size_t place) const;
};

/// A tensor that is to be written.
struct NamedTensor {
  std::string name = {};
  std::variant<Tensor, QuantizedTensor> value;
};

/// Writes a GGUF file of version 3, which takes its name only when it is complete. Of the metadata, uint64_t becomes uint32 or uint64,
/// int64_t int32 or int64 and double float32 or float64, the narrower one where it holds the value, and for a list where it holds all;
/// readers of GGML ask for uint32 where a number is a size, and for float32, so that 1e-5 is written as double(1e-5f). "general.alignment"
/// is taken from there; it is 32 otherwise. A tensor of shape () gets one axis. Throws ValueError for what a list or an object holds that
/// GGUF does not, for names that occur twice and for those of tensors beyond 63 bytes, DTypeError for dtypes that GGUF lacks, ShapeError
/// for more than four axes.
TINYGRAD_EXPORT void gguf_save(std::span<const NamedTensor> tensors, const std::string& path, const Metadata& metadata = {});
TINYGRAD_EXPORT void gguf_save(const nn::state::StateDict& tensors, const std::string& path, const Metadata& metadata = {});

/// Writes a tensor as a file of NumPy (.npy), which takes its name only when it is complete. Throws DTypeError for dtypes that NumPy lacks:
/// bfloat16, those of 8-bit floats, and `index`.
TINYGRAD_EXPORT void npy_save(const Tensor& tensor, const std::string& path);
/// Writes tensors as an archive of such files (.npz), each NAME.npy, without packing them; elements are aligned to 64 bytes. Throws
/// ValueError for a name that occurs twice, or of more than 65000 bytes.
TINYGRAD_EXPORT void npz_save(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& path);
TINYGRAD_EXPORT void npz_save(const nn::state::StateDict& tensors, const std::string& path);

/// Opens a model file: safetensors or the index of several such files, GGUF, the weights of an ONNX model, a checkpoint or an exported
/// program of PyTorch, an array or an archive of NumPy. Which of them it is, its content tells. Throws FormatError for everything else,
/// naming what it is where that is known.
TINYGRAD_EXPORT std::unique_ptr<Reader> open(const std::string& path);
/// The same from a file's bytes, a vector of uint8; of several files that belong together none can be opened so.
TINYGRAD_EXPORT std::unique_ptr<Reader> open(const Tensor& bytes);
/// All of its tensors by name. FormatError, too, for one of a type that there is no dtype of.
TINYGRAD_EXPORT nn::state::StateDict load(const std::string& path);

struct ConvertOptions {
  /// To GGUF alone: floats of at least two axes, whose last one is a multiple of a block's elements, become blocks of this format, one of
  /// those of quantize(); what else there is stays as it is.
  std::optional<BlockFormat> quantize = {};
  /// Called in front of each tensor. What it throws ends the conversion, and no file is left.
  std::function<void(const TensorInfo&)> progress = {};
};
struct ConvertReport {
  size_t tensors = 0, quantized = 0;
  int64_t bytes = 0;  ///< of the tensors in the new file
};
/// Writes what is in a file as another one, whose format the end of its name says: .safetensors, .gguf or .npz. It takes its name only when
/// it is complete, and no more than one tensor at a time is in memory. Values stay what they are: what is in blocks is dequantized to
/// float32 unless the new file is GGUF, too, and dtypes that a format lacks become wider ones. Metadata goes along, but not to .npz: nested
/// names are joined by dots, and what a format does not hold becomes JSON. Throws ValueError for another ending, for `quantize` where it is
/// not meant or fits no tensor, FormatError for tensors that there is no dtype of, and what gguf_save(), npz_save() and safe_save() throw.
TINYGRAD_EXPORT ConvertReport convert(const Reader& file, const std::string& path, const ConvertOptions& options = {});

}  // namespace tinygrad::formats

namespace tinygrad::nn::state {

/// The metadata and the tensors of a GGUF file, or of the first of several that belong together with all of them: those in blocks lazily
/// dequantized to float32, the others views of the mapped file. Throws IoError and FormatError.
TINYGRAD_EXPORT std::pair<formats::Metadata, StateDict> gguf_load(const std::string& path);
/// The same from a file's bytes, a vector of uint8.
TINYGRAD_EXPORT std::pair<formats::Metadata, StateDict> gguf_load(const Tensor& bytes);

}  // namespace tinygrad::nn::state

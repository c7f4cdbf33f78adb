#pragma once
/// The tensors of modules by name: taken, given, and kept in files.
///
/// Whatever a file holds, reading it gives tensors or throws: IoError for what the system refuses, FormatError for bytes that do not follow
/// the format, before anything of the size that they claim is allocated.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/module.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn::state {

using StateDict = std::map<std::string, Tensor>;

/// The tensors of a module by name. They are the module's own: assigning to one changes the module.
TINYGRAD_EXPORT StateDict get_state_dict(const Module& module, std::string_view prefix = "");
/// The tensors of a module in the order of its fields.
TINYGRAD_EXPORT std::vector<Tensor> get_parameters(const Module& module);

struct LoadOptions {
  bool strict = true;    ///< every tensor of the module must be in the dict, with its shape
  bool verbose = true;   ///< a progress bar on standard error
  bool consume = false;  ///< what was loaded leaves the dict; on the same device, its memory becomes the module's where that has none
  bool realize = true;
};

/// What load_state_dict did.
struct TINYGRAD_EXPORT LoadReport {
  struct Mismatch {
    std::string name;
    Sizes in_module = {}, in_state = {};
  };
  std::vector<Tensor> loaded;           ///< tensors of the module
  std::vector<std::string> missing;     ///< names that only the module has
  std::vector<std::string> unexpected;  ///< names that only the dict has
  std::vector<Mismatch> mismatched;     ///< shapes that differ; (1) and () do not
  /// All of it in a line.
  std::string to_string() const;
};

/// Gives the tensors of a module the values and dtypes of a dict, moved to the module's devices. A tensor that is in memory and has the
/// dtype of its value is written to, so that views of it and captured calls see the value; any other one becomes the value, which without
/// `consume` is a copy. If strict, throws ValueError for names that are missing and ShapeError for shapes that differ; else these tensors
/// stay as they are. An error leaves every tensor of the module as it was, and so the dict, but for large tensors that had been moved
/// already when memory ran out while `consume` is on.
TINYGRAD_EXPORT LoadReport load_state_dict(const Module& module, StateDict& state, const LoadOptions& options = {});
/// The same; the dict itself stays whole.
TINYGRAD_EXPORT LoadReport load_state_dict(const Module& module, const StateDict& state, const LoadOptions& options = {});

/// The header of a safetensors file.
struct SafeMetadata {
  struct Entry {
    DType dtype = DType::void_;  ///< void_ for a type that there is no dtype of
    Sizes shape = {};
    int64_t begin = 0, end = 0;  ///< bytes, counted from data_start
    std::string type = {};       ///< as the file names it: "F32", "F8_E8M0"
  };
  int64_t data_start = 0;  ///< in bytes
  std::map<std::string, std::string> metadata = {};
  std::map<std::string, Entry> tensors = {};
  std::vector<std::string> names = {};  ///< the tensors' names in the order of the header; empty to write them in their own order
};

/// Reads only the header, and checks that the tensors fill the rest of the file without gaps or overlaps.
TINYGRAD_EXPORT SafeMetadata safe_load_metadata(const std::string& path);
/// The same from a file's bytes, a vector of uint8.
TINYGRAD_EXPORT SafeMetadata safe_load_metadata(const Tensor& bytes);
/// The tensors of a safetensors file, on the CPU. The file is mapped, not read: its pages are loaded as they are used, and assigning to a
/// tensor does not change it. It must not shrink while the tensors live; replacing it, as safe_save does, is fine. FormatError for a
/// tensor that there is no dtype of: formats::open() gives the others.
TINYGRAD_EXPORT StateDict safe_load(const std::string& path);
/// The same from a file's bytes. From Tensor::from_file() it gives tensors that stay in the file until they are copied to a device,
/// straight to where they are wanted; IoError if the file has become shorter by then.
TINYGRAD_EXPORT StateDict safe_load(const Tensor& bytes);
/// Writes tensors as a safetensors file, which takes its name only when it is complete. The widest elements come first, so that all are
/// aligned. Throws ValueError for a name that is not UTF-8 or that is "__metadata__", DTypeError for `index`.
TINYGRAD_EXPORT void safe_save(const StateDict& tensors, const std::string& path, const std::map<std::string, std::string>& metadata = {});
/// The same in an order of one's own, which the header keeps. Throws ValueError for a name that occurs twice.
TINYGRAD_EXPORT void safe_save(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& path,
                               const std::map<std::string, std::string>& metadata = {});

/// The tensors of a checkpoint of PyTorch, on the CPU, by their paths in the object that was saved: "model.layer.weight". Of a file only
/// the pages that are used are read; assigning to a tensor does not change it. Nothing in it is executed; a file with more than tensors and
/// plain values is a FormatError, and so is a tensor that there is no Tensor for: frontends that want the others use formats::open().
TINYGRAD_EXPORT StateDict torch_load(const std::string& path);
/// The same from a file's bytes, a vector of uint8.
TINYGRAD_EXPORT StateDict torch_load(const Tensor& bytes);

struct ExtractOptions {
  int64_t max_bytes = int64_t{1} << 34;  ///< FormatError for an archive that unpacks to more
};

/// The files of a zip archive as vectors of uint8 on the CPU. What is stored is the archive's own memory; what is deflated is unpacked and
/// its checksum compared.
TINYGRAD_EXPORT StateDict zip_extract(const std::string& path, const ExtractOptions& options = {});
TINYGRAD_EXPORT StateDict zip_extract(const Tensor& bytes, const ExtractOptions& options = {});
/// The regular files of a tar archive (ustar, pax or GNU), which may be packed by gzip. Of files with one name the last counts.
TINYGRAD_EXPORT StateDict tar_extract(const std::string& path, const ExtractOptions& options = {});
TINYGRAD_EXPORT StateDict tar_extract(const Tensor& bytes, const ExtractOptions& options = {});

}  // namespace tinygrad::nn::state

#pragma once
/// What is in a .pt2 archive: programs, and their tensors.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tinygrad/formats.h>

#include "base/archive/zip.h"
#include "frontend/file_bytes.h"
#include "frontend/torch_export/schema.h"

namespace tinygrad::torch_export {

/// A tensor of a model's weights or constants.
struct Payload {
  std::string name, path;
  bool is_param = false, is_pickled = false;
  TensorMeta meta;
};

class Archive {
 public:
  /// FormatError for what is no such archive.
  explicit Archive(frontend::FileBytes file);

  /// The names of the programs in it.
  const std::vector<std::string>& models() const { return models_; }
  /// Files that are compiled for a machine, which are not run.
  const std::vector<std::string>& compiled() const { return compiled_; }
  const std::string& name() const { return file_.name; }

  /// FormatError for a model that is not there.
  ExportedProgram program(const std::string& model) const;
  std::vector<Payload> payloads(const std::string& model) const;
  /// On the CPU; tensors that share a storage share its memory. FormatError for one that is not inside of its file, or of a type that there
  /// is no dtype of.
  Tensor tensor(const Payload& payload) const;
  formats::TensorInfo describe(const Payload& payload) const;

 private:
  [[noreturn]] void fail(std::string_view why) const;
  const archive::ZipFile* find(const std::string& name) const;
  const archive::ZipFile& expect(const std::string& name) const;
  std::string text(const std::string& name) const;
  void add_payloads(const std::string& folder, const std::string& model, const std::string& kind, std::vector<Payload>& out) const;
  std::span<std::byte> bytes_of(const archive::ZipFile& member) const;
  Tensor vector_of(const archive::ZipFile& member, DType dtype) const;

  frontend::FileBytes file_;
  std::vector<archive::ZipFile> members_;
  std::string root_;
  std::map<std::string, const archive::ZipFile*> by_name_;
  std::vector<std::string> models_, compiled_;
  mutable std::map<std::pair<const archive::ZipFile*, DType>, Tensor> vectors_;
  mutable std::map<const archive::ZipFile*, std::vector<std::byte>> unpacked_;
};

/// Whether an archive with these members is one of torch.export: it names its format.
bool is_pt2(const std::vector<archive::ZipFile>& members);
/// Lists its tensors.
std::unique_ptr<formats::Reader> open_pt2(const frontend::FileBytes& file);

}  // namespace tinygrad::torch_export

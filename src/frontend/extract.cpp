// The files of archives as tensors.
#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/state.h>

#include "base/archive/gzip.h"
#include "base/archive/tar.h"
#include "base/archive/zip.h"
#include "frontend/file_bytes.h"

namespace tinygrad::nn::state {

using frontend::FileBytes;

namespace {

/// Unpacked bytes as a file in memory.
FileBytes in_memory(std::vector<std::byte> bytes, const std::string& name) {
  const auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return {owner, *owner, name};
}

Tensor bytes_tensor(const FileBytes& file, std::span<const std::byte> bytes) {
  // A part of file.bytes, which may be written to.
  std::span<std::byte> part;
  if (!bytes.empty()) part = file.bytes.subspan(static_cast<size_t>(bytes.data() - file.bytes.data()), bytes.size());
  return frontend::tensor_over(file, part, DType::uint8, {static_cast<int64_t>(bytes.size())});
}

size_t limit_of(const ExtractOptions& options) {
  if (options.max_bytes < 0) throw ValueError(fmt::format("extract: max_bytes is {}, expects at least 0", options.max_bytes));
  return static_cast<size_t>(options.max_bytes);
}

StateDict extract_zip(const FileBytes& file, const ExtractOptions& options) {
  size_t left = limit_of(options);
  StateDict out;
  for (const archive::ZipFile& f : archive::read_zip(file.bytes, file.name)) {
    if (f.size > left) throw FormatError(fmt::format("{}: more than {} bytes when unpacked", file.name, options.max_bytes));
    left -= f.size;
    if (!f.is_deflated) f.check_stored(file.name);
    const FileBytes unpacked = f.is_deflated ? in_memory(f.unpack(file.name), f.name) : file;
    out.emplace(f.name, bytes_tensor(unpacked, f.is_deflated ? std::span<const std::byte>(unpacked.bytes) : f.packed));
  }
  return out;
}

StateDict extract_tar(const FileBytes& file, const ExtractOptions& options) {
  const bool packed = archive::is_gzip(file.bytes);
  const FileBytes plain = packed ? in_memory(archive::gunzip(file.bytes, file.name, limit_of(options)), file.name) : file;
  StateDict out;
  for (const archive::TarFile& f : archive::read_tar(plain.bytes, file.name)) out.insert_or_assign(f.name, bytes_tensor(plain, f.bytes));
  return out;
}

}  // namespace

StateDict zip_extract(const std::string& path, const ExtractOptions& options) { return extract_zip(FileBytes::map(path), options); }
StateDict zip_extract(const Tensor& bytes, const ExtractOptions& options) { return extract_zip(FileBytes::of(bytes), options); }
StateDict tar_extract(const std::string& path, const ExtractOptions& options) { return extract_tar(FileBytes::map(path), options); }
StateDict tar_extract(const Tensor& bytes, const ExtractOptions& options) { return extract_tar(FileBytes::of(bytes), options); }

}  // namespace tinygrad::nn::state

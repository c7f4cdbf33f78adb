// What a model file is, told from its content.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "base/archive/zip.h"
#include "frontend/file_bytes.h"
#include "frontend/gguf/gguf.h"
#include "frontend/npy/header.h"
#include "frontend/npy/npy.h"
#include "frontend/onnx/reader.h"
#include "frontend/safetensors/reader.h"
#include "frontend/torch/torch.h"
#include "frontend/torch_export/archive.h"

namespace tinygrad::formats {

using frontend::FileBytes;

namespace {

using namespace std::string_view_literals;

[[noreturn]] void refuse(const FileBytes& file, std::string_view what) {
  throw FormatError(fmt::format(
      "{}: {}; the model files that are read: safetensors, GGUF, ONNX, checkpoints and exported programs of PyTorch, .npy and .npz",
      file.name, what));
}

/// Files that are not read, by a text at a place.
struct Unread {
  size_t at;
  std::string_view text, what;
};
constexpr auto unread = std::to_array<Unread>({
    {257, "ustar"sv, "a tar archive, as PyTorch before 0.1.12 wrote checkpoints; load it there and save it again"sv},
    {0, "\x89HDF\r\n\x1a\n"sv, "HDF5, as Keras writes it; save its weights as safetensors or .npz"sv},
    {0, "\x1f\x8b"sv, "packed by gzip; unpack it"sv},
    {4, "TFL3"sv, "a TensorFlow Lite model"sv},
    {0, "tjgg"sv, "a GGML file of before GGUF; convert it by llama.cpp"sv},
    {0, "version https://git-lfs"sv, "a pointer of Git LFS; `git lfs pull` gets the file"sv},
    {0, "\x80"sv, "a pickle, but not as torch.save writes it"sv},
});

bool begins_with(std::span<const std::byte> bytes, std::string_view text, size_t at = 0) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

/// Of the archives that model files are, each has files that the others do not have.
std::unique_ptr<Reader> open_zip(const FileBytes& file) {
  const std::vector<archive::ZipFile> members = archive::read_zip(file.bytes, file.name);
  const auto has = [&](auto is) { return std::ranges::any_of(members, is, &archive::ZipFile::name); };
  if (torch_export::is_pt2(members)) return torch_export::open_pt2(file);
  if (has([](std::string_view name) {
        const std::string_view last = name.substr(name.rfind('/') + 1);
        return last == "data.pkl" || last == "constants.pkl";
      }))
    return frontend::open_torch(file);
  if (members.empty() || has([](std::string_view name) { return name.ends_with(".npy"); })) return frontend::open_npz(file);
  refuse(file, fmt::format("a zip archive of other files, as '{}', which zip_extract() gives", members[0].name));
}

/// One file, but for GGUF and indexes, which have neighbours. External data of ONNX lies in `folder`.
std::unique_ptr<Reader> open_alone(const FileBytes& file, const std::string& folder) {
  if (frontend::is_safetensors(file.bytes)) return frontend::open_safetensors(file);
  if (begins_with(file.bytes, "PK")) return open_zip(file);
  if (frontend::is_npy(file.bytes)) return frontend::open_npy(file);
  if (frontend::is_torch_stream(file.bytes)) return frontend::open_torch(file);
  for (const Unread& u : unread)
    if (begins_with(file.bytes, u.text, u.at)) refuse(file, u.what);
  if (frontend::is_onnx(file.bytes)) return frontend::open_onnx(file, folder);
  refuse(file, file.bytes.empty() ? "an empty file" : "no model file of a known format");
}

}  // namespace

std::unique_ptr<Reader> open(const std::string& path) {
  const FileBytes file = FileBytes::map(path);
  if (frontend::is_gguf(file.bytes)) return frontend::open_gguf(path);
  if (frontend::is_json_object(file.bytes) && !frontend::is_safetensors(file.bytes)) return frontend::open_safetensors_index(file);
  return open_alone(file, std::filesystem::absolute(path).parent_path().string());
}

std::unique_ptr<Reader> open(const Tensor& bytes) {
  const FileBytes file = FileBytes::of(bytes);
  if (frontend::is_gguf(file.bytes)) return frontend::open_gguf(file);
  if (frontend::is_json_object(file.bytes) && !frontend::is_safetensors(file.bytes))
    refuse(file, "an index of several files, which is opened by its path");
  return open_alone(file, {});
}

nn::state::StateDict load(const std::string& path) {
  const std::unique_ptr<Reader> reader = open(path);
  nn::state::StateDict out;
  for (size_t i = 0; i < reader->tensors().size(); ++i)
    if (!out.emplace(reader->tensors()[i].name, reader->tensor(i)).second)
      throw FormatError(fmt::format("{}: the name '{}' occurs twice", path, reader->tensors()[i].name));
  return out;
}

}  // namespace tinygrad::formats

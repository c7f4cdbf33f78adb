// MNIST, Fashion-MNIST and CIFAR-10: where their files are found, and what they become.
#include <tinygrad/datasets.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/progress.h>

#include "base/archive/gzip.h"
#include "base/archive/tar.h"
#include "base/download.h"
#include "base/file.h"
#include "nn/datasets/idx.h"

namespace tinygrad::nn::datasets {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr size_t most_unpacked = size_t{1} << 28;  // bytes of a file

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Into a file that appears when it is complete and its checksum is right.
void download_to(const fs::path& path, const std::string& url, const std::string& md5, bool verbose) {
  ProgressBar bar({.description = "downloading " + url, .unit = "B", .disable = !verbose});
  const std::string bytes = download(url, most_unpacked, [&](int64_t count) { bar.update(count); });
  if (const std::string got = md5_of(bytes); got != md5)
    throw FormatError(fmt::format("{}: MD5 {}, expected {}; the file was not kept", url, got, md5));
  write_file_atomic(path.string(), bytes);
}

void make_folder(const fs::path& folder, const std::string& name) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(fmt::format("{}: cannot make the folder {}: {}", name, folder.string(), error.message()));
}

Bytes read_maybe_packed(const fs::path& path) {
  const MappedFile file(path.string());
  if (archive::is_gzip(file.bytes())) return archive::gunzip(file.bytes(), path.string(), most_unpacked);
  return {file.bytes().begin(), file.bytes().end()};
}

Tensor bytes_tensor(std::span<const std::byte> bytes, const Sizes& shape, const std::string& device) {
  return Tensor(bytes, DType::uint8, shape, {.device = device}).is_param_(false);
}

// MNIST.

struct Source {
  std::string name, url;
  struct File {
    std::string name, md5;  ///< of the gzip file
  };
  std::array<File, 4> files;  ///< images and labels for training, then for the test
};

const Source& mnist_source(bool fashion) {
  static const auto& digits = *new Source{"mnist",
                                          "https://storage.googleapis.com/cvdf-datasets/mnist/",
                                          {{{"train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
                                            {"train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"},
                                            {"t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"},
                                            {"t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"}}}};
  static const auto& clothes = *new Source{"fashion-mnist",
                                           "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                                           {{{"train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                                             {"train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"},
                                             {"t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"},
                                             {"t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"}}}};
  return fashion ? clothes : digits;
}

/// The path of a file or of its gzip form; empty if there is neither.
fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const fs::path& path : {folder / name, folder / (name + ".gz")})
    if (is_file(path)) return path;
  return {};
}

[[noreturn]] void throw_missing(const Source& s, const std::string& why, const fs::path& folder) {
  std::vector<std::string> names;
  for (const Source::File& f : s.files) names.push_back(f.name);
  throw IoError(fmt::format("{}: {}; put the files {} (plain or .gz) into {}", s.name, why, fmt::join(names, ", "), folder.string()));
}

void download_missing(const Source& s, const fs::path& folder, bool verbose) {
  make_folder(folder, s.name);
  for (const Source::File& f : s.files) {
    if (!find_file(folder, f.name).empty()) continue;
    try {
      download_to(folder / (f.name + ".gz"), s.url + f.name + ".gz", f.md5, verbose);
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& e) {
      throw_missing(s, e.what(), folder);
    }
  }
}

// CIFAR-10.

constexpr const char* cifar_archive = "cifar-10-binary.tar.gz";
constexpr const char* cifar_url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
constexpr const char* cifar_md5 = "c32a1d4ab5d03f1284b67883e8d87530";
constexpr std::array<const char*, 6> cifar_files{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

/// The files' bytes, from the folder or from the archive in it; nothing if neither is there.
std::optional<std::array<Bytes, 6>> find_cifar(const fs::path& folder) {
  std::array<Bytes, 6> out;
  if (std::all_of(cifar_files.begin(), cifar_files.end(), [&](const char* name) { return is_file(folder / name); })) {
    for (size_t i = 0; i < cifar_files.size(); ++i) out[i] = read_maybe_packed(folder / cifar_files[i]);
    return out;
  }
  const fs::path path = folder / cifar_archive;
  if (!is_file(path)) return {};
  const Bytes tar = read_maybe_packed(path);
  const std::vector<archive::TarFile> files = archive::read_tar(tar, path.string());
  for (size_t i = 0; i < cifar_files.size(); ++i) {
    const auto f = std::find_if(files.begin(), files.end(), [&](const auto& t) { return fs::path(t.name).filename() == cifar_files[i]; });
    if (f == files.end()) throw FormatError(fmt::format("{}: has no {}", path.string(), cifar_files[i]));
    out[i].assign(f->bytes.begin(), f->bytes.end());
  }
  return out;
}

/// Pictures and labels of several files.
std::pair<Tensor, Tensor> join_cifar(std::span<const Bytes> files, std::span<const char* const> names, const std::string& device) {
  int64_t count = 0;
  for (size_t i = 0; i < files.size(); ++i) count += check_cifar(files[i], names[i]);
  Bytes pixels, labels;
  pixels.reserve(static_cast<size_t>(count * (cifar_record - 1)));
  for (const Bytes& file : files) {
    for (size_t at = 0; at < file.size(); at += cifar_record) {
      labels.push_back(file[at]);
      pixels.insert(pixels.end(), file.begin() + static_cast<std::ptrdiff_t>(at + 1),
                    file.begin() + static_cast<std::ptrdiff_t>(at + cifar_record));
    }
  }
  return {bytes_tensor(pixels, {count, 3, 32, 32}, device), bytes_tensor(labels, {count}, device)};
}

}  // namespace

LabelledImages mnist(const MnistOptions& options) {
  if (!options.device.empty()) canonical_device(options.device);  // an unknown one before anything is downloaded
  const Source& s = mnist_source(options.fashion);
  const fs::path folder = options.folder.empty() ? cache_folder(s.name) : options.folder;
  if (options.folder.empty()) download_missing(s, folder, options.verbose);
  std::array<fs::path, 4> paths;
  std::array<Bytes, 4> bytes;
  std::array<IdxView, 4> views;
  for (size_t i = 0; i < 4; ++i) {
    paths[i] = find_file(folder, s.files[i].name);
    if (paths[i].empty()) throw_missing(s, fmt::format("no {}", s.files[i].name), folder);
    bytes[i] = read_maybe_packed(paths[i]);
    views[i] = parse_idx(bytes[i], paths[i].string());
  }
  constexpr int64_t side = 28;
  for (size_t i : {0, 2}) check_images(views[i], paths[i].string(), views[i + 1], paths[i + 1].string(), side, side);
  const auto images = [&](size_t i) { return bytes_tensor(views[i].elements, {views[i].shape[0], 1, side, side}, options.device); };
  const auto labels = [&](size_t i) { return bytes_tensor(views[i].elements, views[i].shape, options.device); };
  return {images(0), labels(1), images(2), labels(3)};
}

LabelledImages cifar(const CifarOptions& options) {
  if (!options.device.empty()) canonical_device(options.device);
  const fs::path folder = options.folder.empty() ? cache_folder("cifar-10") : options.folder;
  std::optional<std::array<Bytes, 6>> files = find_cifar(folder);
  const auto missing = [&](const std::string& why) {
    return IoError(
        fmt::format("cifar-10: {}; put {}, or the files {}, into {}", why, cifar_archive, fmt::join(cifar_files, ", "), folder.string()));
  };
  if (!files && options.folder.empty()) {
    make_folder(folder, "cifar-10");
    try {
      download_to(folder / cifar_archive, cifar_url, cifar_md5, options.verbose);
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& e) {
      throw missing(e.what());
    }
    files = find_cifar(folder);
  }
  if (!files) throw missing("no files");
  const auto [x_train, y_train] = join_cifar(std::span(*files).first(5), std::span(cifar_files).first(5), options.device);
  const auto [x_test, y_test] = join_cifar(std::span(*files).last(1), std::span(cifar_files).last(1), options.device);
  return {x_train, y_train, x_test, y_test};
}

}  // namespace tinygrad::nn::datasets

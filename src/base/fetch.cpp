#include <fmt/core.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include <filesystem>

#include "base/archive/gzip.h"
#include "base/download.h"
#include "base/file.h"
#include "base/hash.h"

namespace tinygrad {

namespace fs = std::filesystem;

namespace {

fs::path path_of(const std::string& url, const FetchOptions& options) {
  if (options.name.find('/') != std::string::npos) return options.name;
  const std::string name = options.name.empty() ? fmt::format("{:016x}{}", hash_value(url), options.gunzip ? ".gunzip" : "") : options.name;
  return fs::path(cache_folder("downloads")) / options.subdir / name;
}

}  // namespace

std::string fetch(const std::string& url, const FetchOptions& options) {
  if (url.starts_with("/") || url.starts_with(".")) return url;
  const fs::path path = path_of(url, options);
  std::error_code error;
  if (options.allow_caching && fs::is_regular_file(path, error)) return path;
  const std::string bytes = download(url, options.limit);
  fs::create_directories(path.parent_path(), error);
  if (error) throw IoError(fmt::format("fetch: cannot make the folder {}: {}", path.parent_path().string(), error.message()));
  if (options.gunzip) {
    const std::vector<std::byte> plain = archive::gunzip(std::as_bytes(std::span(bytes)), url, options.limit);
    write_file_atomic(path, {reinterpret_cast<const char*>(plain.data()), plain.size()});
  } else {
    write_file_atomic(path, bytes);
  }
  return path;
}

}  // namespace tinygrad

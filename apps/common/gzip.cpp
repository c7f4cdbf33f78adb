#include "common/gzip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

std::string read_gzip(const std::string& path, size_t limit) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    throw IoError(fmt::format("{}: is a folder, expected a file", path));
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw IoError(fmt::format("{}: {}", path, std::strerror(errno ? errno : ENOMEM)));
  std::string bytes;
  constexpr size_t piece = size_t{1} << 16;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + piece);
    const int got = gzread(file.get(), bytes.data() + before, piece);
    bytes.resize(before + static_cast<size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* what = gzerror(file.get(), &code);
    if (got < 0 && code == Z_ERRNO) throw IoError(fmt::format("{}: {}", path, std::strerror(errno)));
    if (got < 0 || code == Z_BUF_ERROR) throw FormatError(fmt::format("{}: damaged or cut-off gzip data: {}", path, what));
    if (bytes.size() > limit) throw FormatError(fmt::format("{}: more than {} bytes when unpacked", path, limit));
    if (got == 0) return bytes;
  }
}

}  // namespace tinygrad::apps

#include "base/temporary_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/file.h"

namespace tinygrad {

TemporaryFolder::TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "tinygrad-XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) throw IoError(fmt::format("cannot make a folder {}: {}", path_, std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

std::string TemporaryFolder::put(std::string_view name, std::string_view bytes) const {
  write_file_atomic(file(name), bytes);
  return file(name);
}

std::string TemporaryFolder::put_program(std::string_view name, std::string_view bytes) const {
  std::string path = put(name, bytes);
  if (::chmod(path.c_str(), S_IRWXU) != 0) throw IoError(fmt::format("cannot make {} a program: {}", path, std::strerror(errno)));
  return path;
}

}  // namespace tinygrad

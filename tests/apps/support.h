#pragma once
/// Running the program tg, and files for it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::test {

/// A folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tg_test_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name = "") const { return (path_ / name).string(); }
  /// Writes a file; returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Ran {
  int status = -1;
  std::string out, err;

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (size_t at = 0; at < out.size();) {
      const size_t end = std::min(out.find('\n', at), out.size());
      all.push_back(out.substr(at, end - at));
      at = end + 1;
    }
    return all;
  }
};

/// Runs `ENVIRONMENT tg ARGUMENTS` by the shell.
inline Ran run_tg(const std::string& arguments, const std::string& environment = "") {
  const TempFolder folder;
  const std::string command = environment + " '" TG_PROGRAM "' >'" + folder.path("out") + "' 2>'" + folder.path("err") + "' " + arguments;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder.path("out")), read_text(folder.path("err"))};
}

}  // namespace tinygrad::test

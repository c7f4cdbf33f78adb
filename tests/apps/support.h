#pragma once
/// Running the program tg, and files for it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_folder.h"

namespace tinygrad::test {

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

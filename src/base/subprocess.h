#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad {

/// What a program left behind.
struct ProcessResult {
  int exit_code = 0;  ///< minus the signal's number where one ended it; 0, too, where the process ignores SIGCHLD and nobody learns it
  std::string out, err;
};

/// Runs a program with a text as its standard input, and waits for it. The program is a path or a name to be looked up in PATH. Throws
/// DeviceError if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, std::string_view input);

/// The path of a program in PATH; empty if there is none.
std::string find_program(std::string_view name);

}  // namespace tinygrad

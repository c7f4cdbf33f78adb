#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/spawn_actions.h"

extern char** environ;

namespace tinygrad {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view program, int error) {
  throw DeviceError(fmt::format("{}: {} failed: {}", program, what, std::strerror(error)));
}

/// A file without a name. Unlike a pipe it never fills up and does not care whether the other end is still there.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view program) : program_(program), descriptor_(::memfd_create("tinygrad", MFD_CLOEXEC)) {
    if (descriptor_ < 0) refuse("making a file for its output", program_, errno);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void write(std::string_view text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) refuse("writing its input", program_, errno);
      if (n > 0) done += static_cast<size_t>(n);
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }

  std::string read() {
    const off_t size = ::lseek(descriptor_, 0, SEEK_END);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) refuse("reading its output", program_, errno);
      done += static_cast<size_t>(n);
    }
    return text;
  }

 private:
  const std::string program_;
  int descriptor_;
};

/// Waits until the child has ended, and ends it when the caller is cancelled. An old system lacks the call; the child is then waited for.
void wait_or_end(pid_t child) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) return;
  try {
    pollfd p{.fd = handle, .events = POLLIN, .revents = 0};
    for (int n = 0; n == 0 || (n < 0 && errno == EINTR); n = ::poll(&p, 1, 20)) check_interrupt();
  } catch (...) {
    ::close(handle);
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
    throw;
  }
  ::close(handle);
}

int wait_for(pid_t child, std::string_view program) {
  int status = 0;
  wait_or_end(child);
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == ECHILD) return 0;  // it has ended, and the system has thrown away how
    if (errno != EINTR) refuse("waiting for it", program, errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, std::string_view input) {
  const std::string& program = command.at(0);
  MemoryFile in(program), out(program), err(program);
  in.write(input);
  SpawnActions actions;
  actions.use(in.descriptor(), STDIN_FILENO);
  actions.use(out.descriptor(), STDOUT_FILENO);
  actions.use(err.descriptor(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, program.c_str(), actions.get(), nullptr, arguments.data(), environ);
  if (error != 0) refuse("starting it", program, error);
  ProcessResult result;
  result.exit_code = wait_for(child, program);
  result.out = out.read();
  result.err = err.read();
  return result;
}

std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin"; !rest.empty();) {
    const size_t colon = rest.find(':');
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
  return {};
}

}  // namespace tinygrad

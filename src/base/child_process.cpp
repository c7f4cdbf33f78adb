#include "base/child_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/spawn_actions.h"

extern char** environ;

namespace tinygrad {
namespace {

class Attributes {
 public:
  Attributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

enum class Child { running, ended, reaped };

/// Only for a child that has not been reaped does its number stay its own.
Child state_of(pid_t process) {
  siginfo_t info = {};
  if (::waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return Child::reaped;
  return info.si_pid == 0 ? Child::running : Child::ended;
}

pid_t spawn(const std::vector<std::string>& command, int socket, int memory_file) {
  SpawnActions actions;
  actions.use(socket, 0);
  actions.discard(1);
  actions.discard(2);
  actions.use(memory_file, 3);
  const Attributes attributes;
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  if (const int error = ::posix_spawn(&process, arguments[0], actions.get(), attributes.get(), arguments.data(), environ))
    throw DeviceError(fmt::format("{} cannot be started: {}", command[0], std::strerror(error)));
  return process;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, int memory_file) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw DeviceError(fmt::format("no socket: {}", std::strerror(errno)));
  socket_ = sockets[0];
  try {
    process_ = spawn(command, sockets[1], memory_file);
  } catch (...) {
    ::close(sockets[1]);
    end();
    throw;
  }
  ::close(sockets[1]);
}

void ChildProcess::wait(double seconds) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (state_of(process_) == Child::running && std::chrono::steady_clock::now() < until) ::usleep(200);
}

std::optional<int> ChildProcess::end() noexcept {
  std::optional<int> ended_with;
  if (process_ > 0 && state_of(process_) != Child::reaped) {
    ::kill(process_, SIGKILL);
    int status = 0;
    pid_t reaped = -1;
    do reaped = ::waitpid(process_, &status, 0);
    while (reaped < 0 && errno == EINTR);
    if (reaped == process_) ended_with = status;
  }
  if (socket_ >= 0) ::close(socket_);
  process_ = socket_ = -1;
  return ended_with;
}

}  // namespace tinygrad

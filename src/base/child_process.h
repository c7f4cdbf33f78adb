#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tinygrad {

/// A child process with a socket to it; killed with the object.
class ChildProcess {
 public:
  /// A program's path and its arguments. Its standard input is the other end of the socket, its descriptor 3 the memory file; it has a
  /// process group of its own, so that an interrupt from the terminal is ours to handle, is silent and has no signal blocked. Throws
  /// DeviceError.
  ChildProcess(const std::vector<std::string>& command, int memory_file);
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool alive() const { return process_ > 0; }
  int socket() const { return socket_; }

  /// Until it has ended by itself, but not for longer.
  void wait(double seconds) const;
  /// Kills it unless it has ended. The status it ended with; none if that is not known, since the program reaps its children elsewhere.
  std::optional<int> end() noexcept;

 private:
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace tinygrad

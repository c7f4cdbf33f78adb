#include "search/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include <tinygrad/errors.h>

extern char** environ;

namespace tinygrad::search {
namespace {

constexpr double start_seconds = 60;  // to fill its buffers, on a busy machine
constexpr double grace_seconds = 2;   // a worker ends itself in time; this is for one that cannot

class Deadline {
 public:
  explicit Deadline(double seconds)
      : at_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  int milliseconds() const {
    return int(std::clamp<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count(), 0, 1 << 30));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_;
};

/// Waits until the socket can be read or written; false when the deadline has passed.
bool wait_for(int socket, short events, const Deadline& deadline) {
  for (;;) {
    pollfd p{.fd = socket, .events = events, .revents = 0};
    const int n = ::poll(&p, 1, deadline.milliseconds());
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

enum class Outcome { done, closed, late };

Outcome send_all(int socket, std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(size_t(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, deadline)) return Outcome::late;
    } else if (errno != EINTR) {
      return Outcome::closed;
    }
  }
  return Outcome::done;
}

Outcome receive_all(int socket, std::string& bytes, const Deadline& deadline) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::recv(socket, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    if (n > 0) {
      done += size_t(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLIN, deadline)) return Outcome::late;
    } else if (n == 0 || errno != EINTR) {
      return Outcome::closed;
    }
  }
  return Outcome::done;
}

/// A copy of a descriptor above those that a worker gets, which would take their places one after another.
class HighDescriptor {
 public:
  explicit HighDescriptor(int of) : descriptor_(::fcntl(of, F_DUPFD_CLOEXEC, 16)) {}
  ~HighDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  HighDescriptor(const HighDescriptor&) = delete;
  HighDescriptor& operator=(const HighDescriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Of its own process group, so that an interrupt from the terminal is the search's to handle; silent; with no signal blocked.
int spawn(pid_t& process, const std::string& program, int socket, int memory_file) {
  const HighDescriptor high_socket(socket), high_memory(memory_file);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, high_socket.get(), 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, high_memory.get(), 3);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  const int error = ::posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Worker::Worker(const std::string& program, int memory_file, const WorkerSetup& setup) {
  start(program, memory_file);
  const WorkerResult ready = ask(encode(setup), start_seconds);
  if (ready.ran()) return;
  end();
  throw DeviceError(fmt::format("search: {} does not work: {}", program, ready.error));
}

Worker::~Worker() { end(); }

void Worker::start(const std::string& program, int memory_file) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw DeviceError(fmt::format("search: no socket: {}", std::strerror(errno)));
  socket_ = sockets[0];
  const int error = spawn(process_, program, sockets[1], memory_file);
  ::close(sockets[1]);
  if (error == 0) return;
  process_ = -1;
  end();
  throw DeviceError(fmt::format("search: {} cannot be started: {}", program, std::strerror(error)));
}

/// The status that the process ended with, 0 if that is not known.
int Worker::end() noexcept {
  int status = 0;
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status, 0) < 0)
      if (errno != EINTR) break;
  }
  if (socket_ >= 0) ::close(socket_);
  process_ = socket_ = -1;
  return status;
}

WorkerResult Worker::gone(bool in_time) {
  if (in_time) {
    // It ends by itself: killing it at once would hide why.
    const Deadline deadline(grace_seconds);
    siginfo_t info = {};
    while (deadline.milliseconds() > 0 && ::waitid(P_PID, id_t(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
      ::usleep(200);
  }
  const int status = end();
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (!in_time || signal == SIGALRM) return {.kind = WorkerResult::Kind::endless, .seconds = {}, .error = "it did not end in time"};
  return {.kind = WorkerResult::Kind::crashed,
          .seconds = {},
          .error = signal ? fmt::format("signal {} ended it", signal) : fmt::format("it ended with status {}", WEXITSTATUS(status))};
}

WorkerResult Worker::ask(std::string_view frame, double seconds) {
  const Deadline deadline(seconds);
  if (const Outcome sent = send_all(socket_, frame, deadline); sent != Outcome::done) return gone(sent == Outcome::closed);
  std::string head(frame_header_bytes, '\0');
  if (const Outcome got = receive_all(socket_, head, deadline); got != Outcome::done) return gone(got == Outcome::closed);
  try {
    const FrameHeader header = decode_header(head);
    if (header.kind != FrameKind::reply) throw FormatError("tg-worker: an answer of another kind");
    std::string payload(header.bytes, '\0');
    if (const Outcome got = receive_all(socket_, payload, deadline); got != Outcome::done) return gone(got == Outcome::closed);
    WorkerReply reply = decode_reply(payload);
    if (!reply.error.empty()) return {.kind = WorkerResult::Kind::refused, .seconds = {}, .error = std::move(reply.error)};
    return {.kind = WorkerResult::Kind::ran, .seconds = std::move(reply.seconds), .error = {}};
  } catch (const FormatError& e) {
    end();
    return {.kind = WorkerResult::Kind::crashed, .seconds = {}, .error = e.what()};
  }
}

WorkerResult Worker::run(const WorkerRequest& request) {
  if (!alive()) return {.kind = WorkerResult::Kind::crashed, .seconds = {}, .error = "there is no worker"};
  WorkerResult result = ask(encode(request), request.limit_s + grace_seconds);
  const auto is_time = [](double s) { return s >= 0 && s < 1e9; };
  if (result.ran() && (result.seconds.empty() || !std::all_of(result.seconds.begin(), result.seconds.end(), is_time))) {
    end();
    return {.kind = WorkerResult::Kind::crashed, .seconds = {}, .error = "it answered with no times"};
  }
  return result;
}

std::string find_worker(const std::string& worker_path, std::string& why) {
  namespace fs = std::filesystem;
  if (!worker_path.empty()) {
    if (is_program(worker_path)) return worker_path;
    why = fmt::format("WORKER_PATH: {} is no program", worker_path);
    return {};
  }
  std::vector<fs::path> folders;
  std::error_code ignored;
  if (Dl_info info;
      ::dladdr(reinterpret_cast<void*>(&find_worker), &info) != 0 && info.dli_fname && fs::path(info.dli_fname).is_absolute()) {
    const fs::path beside = fs::path(info.dli_fname).parent_path();
    folders = {beside, beside / "../bin", beside / "../../bin"};  // lib/x86_64-linux-gnu
  }
  if (const fs::path self = fs::read_symlink("/proc/self/exe", ignored); !self.empty()) folders.push_back(self.parent_path());
  for (const fs::path& folder : folders)
    if (is_program(folder / "tg-worker")) return (folder / "tg-worker").lexically_normal().string();
  why = "tg-worker was looked for in";
  for (const fs::path& folder : folders) why += " " + folder.lexically_normal().string();
  return {};
}

}  // namespace tinygrad::search

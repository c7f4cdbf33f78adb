#include "search/worker.h"

#include <dlfcn.h>
#include <poll.h>
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
#include <tinygrad/helpers.h>

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

constexpr int kPollMs = 50;

/// Waits until the socket can be read or written; false when the deadline has passed.
bool wait_for(int socket, short events, const Deadline& deadline) {
  for (;;) {
    pollfd p{.fd = socket, .events = events, .revents = 0};
    const int left = deadline.milliseconds(), n = ::poll(&p, 1, std::min(left, kPollMs));
    check_interrupt();
    if (n > 0) return true;
    if (n == 0 && left > kPollMs) continue;
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

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Worker::Worker(const std::string& program, int memory_file, const WorkerSetup& setup) : process_({program}, memory_file) {
  if (const WorkerResult ready = ask(encode(setup), start_seconds); !ready.ran())
    throw DeviceError(fmt::format("search: {} does not work: {}", program, ready.error));
}

WorkerResult Worker::gone(bool in_time) {
  if (in_time) process_.wait(grace_seconds);  // killing it at once would hide why it ends
  const std::optional<int> status = process_.end();
  const int signal = status && WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  if (!in_time || signal == SIGALRM) return {.kind = WorkerResult::Kind::endless, .seconds = {}, .error = "it did not end in time"};
  if (!status) return dismiss("it has ended");
  return dismiss(signal ? fmt::format("signal {} ended it", signal) : fmt::format("it ended with status {}", WEXITSTATUS(*status)));
}

WorkerResult Worker::dismiss(std::string why) {
  process_.end();
  return {.kind = WorkerResult::Kind::crashed, .seconds = {}, .error = std::move(why)};
}

/// Whatever goes wrong on the way, there is no worker then that would answer the next question with what it has left of this one.
WorkerResult Worker::ask(std::string_view frame, double seconds) {
  try {
    return answer(seconds, frame);
  } catch (const FormatError& e) {
    return dismiss(e.what());
  } catch (...) {
    process_.end();
    throw;
  }
}

WorkerResult Worker::answer(double seconds, std::string_view frame) {
  const Deadline deadline(seconds);
  const int socket = process_.socket();
  if (const Outcome sent = send_all(socket, frame, deadline); sent == Outcome::late) return gone(false);
  std::string head(frame_header_bytes, '\0');
  if (const Outcome got = receive_all(socket, head, deadline); got != Outcome::done) return gone(got == Outcome::closed);
  const FrameHeader header = decode_header(head);
  if (header.kind != FrameKind::reply) throw FormatError("tg-worker: an answer of another kind");
  std::string payload(header.bytes, '\0');
  if (const Outcome got = receive_all(socket, payload, deadline); got != Outcome::done) return gone(got == Outcome::closed);
  WorkerReply reply = decode_reply(payload);
  if (!reply.error.empty()) return {.kind = WorkerResult::Kind::refused, .seconds = {}, .error = std::move(reply.error)};
  return {.kind = WorkerResult::Kind::ran, .seconds = std::move(reply.seconds), .error = {}};
}

WorkerResult Worker::run(const WorkerRequest& request) {
  if (!alive()) return dismiss("there is no worker");
  WorkerResult result = ask(encode(request), request.limit_s + grace_seconds);
  const auto is_time = [](double s) { return s >= 0 && s < 1e9; };
  if (result.ran() && (result.seconds.empty() || !std::all_of(result.seconds.begin(), result.seconds.end(), is_time)))
    return dismiss("it answered with no times");
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

#include "search/worker_serve.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <tinygrad/errors.h>

#include "base/memory_file.h"
#include "search/worker_bench.h"
#include "search/worker_protocol.h"
#include "target/host_tiles.h"

namespace tinygrad::search {
namespace {

/// False at the end of the stream.
bool receive(int socket, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, to, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= size_t(n);
  }
  return true;
}

void send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw IoError("tg-worker: the search is gone");
    bytes.remove_prefix(size_t(n));
  }
}

void send_last(int socket, const char* error) noexcept {
  try {
    send(socket, encode(WorkerReply{.error = error}));
  } catch (const std::exception&) {}
}

/// Ends the process when a request takes too long, also where nobody is left to do it.
class Limit {
 public:
  explicit Limit(double seconds) { set(std::clamp(seconds, 0.001, 86400.0)); }
  ~Limit() { set(0); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  static void set(double seconds) {
    itimerval timer = {};
    timer.it_value.tv_sec = time_t(seconds);
    timer.it_value.tv_usec = suseconds_t((seconds - double(timer.it_value.tv_sec)) * 1e6);
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
};

WorkerReply answer(FrameKind kind, std::string_view payload, const MemoryFile& shared, std::unique_ptr<WorkerBench>& bench) {
  WorkerReply reply;
  try {
    if (kind == FrameKind::setup && !bench) {
      bench = std::make_unique<WorkerBench>(decode_setup(payload), shared);
    } else if (kind == FrameKind::request && bench) {
      const WorkerRequest request = decode_request(payload);
      const Limit limit(request.limit_s);
      reply.seconds = bench->run(request);
    } else {
      throw FormatError("tg-worker: a message at the wrong time");
    }
  } catch (const std::exception& e) {
    reply.error = e.what();
  }
  return reply;
}

}  // namespace

int serve_worker(int socket, int memory_file) {
  request_tiles();  // kernels may need them
  try {
    const MemoryFile shared = MemoryFile::opened(memory_file);
    std::unique_ptr<WorkerBench> bench;
    for (char head[frame_header_bytes]; receive(socket, head, sizeof head);) {
      const FrameHeader header = decode_header({head, sizeof head});
      std::string payload(header.bytes, '\0');
      if (!receive(socket, payload.data(), payload.size())) return 1;
      send(socket, encode(answer(header.kind, payload, shared, bench)));
    }
    return 0;
  } catch (const FormatError& e) {
    send_last(socket, e.what());     // its header tells strangers who is here
  } catch (const std::exception&) {  // the search sees the end of the stream
  }
  return 1;
}

}  // namespace tinygrad::search

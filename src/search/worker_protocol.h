#pragma once
/// What a search and its tg-worker say to each other through a socket: frames of a kind and bytes. Neither trusts what it reads.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::search {

/// A buffer of the kernels that a worker runs. Offsets are into the memory file, which both map.
struct WorkerBuffer {
  uint64_t bytes = 0;
  uint64_t content = 0;  ///< what it holds before each kernel
  bool written = false;
  uint64_t result = 0;  ///< where what the first run has left of a written one goes
  friend bool operator==(const WorkerBuffer&, const WorkerBuffer&) = default;
};

/// The first message: all that the kernels of this worker have in common.
struct WorkerSetup {
  uint32_t threads = 1;
  uint64_t cold_bytes = 0;                 ///< read by each thread before each run, as other kernels would have done
  std::vector<WorkerBuffer> buffers = {};  ///< by slot
  friend bool operator==(const WorkerSetup&, const WorkerSetup&) = default;
};

/// A kernel to run and time.
struct WorkerRequest {
  std::string symbol = {}, object = {};
  std::vector<int64_t> variables = {};
  int64_t chunks = 1;
  uint64_t scratch_bytes = 0;  ///< in each thread
  uint32_t repetitions = 1;    ///< at most, after the first run
  double enough_s = 0;         ///< no more than three repetitions once they took this long
  double hopeless_s = 0;       ///< two runs slower than this, or one much slower, are the last
  double limit_s = 1;          ///< the worker ends itself if it has not answered by then
  friend bool operator==(const WorkerRequest&, const WorkerRequest&) = default;
};

/// The answer to either.
struct WorkerReply {
  std::string error = {};            ///< empty: none
  std::vector<double> seconds = {};  ///< of each run, the first one first
  friend bool operator==(const WorkerReply&, const WorkerReply&) = default;
};

enum class FrameKind : uint32_t { setup = 1, request, reply };
struct FrameHeader {
  uint64_t peer = 0;  ///< protocol_id() of who sends it
  FrameKind kind = FrameKind::reply;
  uint64_t bytes = 0;
};
inline constexpr size_t frame_header_bytes = 20;
inline constexpr uint64_t most_frame_bytes = uint64_t{1} << 28, most_reply_bytes = uint64_t{1} << 20;

/// The same in builds that understand each other's messages and run each other's kernels.
uint64_t protocol_id();

std::string encode(const WorkerSetup& setup);
std::string encode(const WorkerRequest& request);
std::string encode(const WorkerReply& reply);

/// Each throws FormatError for bytes that it cannot be, decode_header() also for those of a stranger.
FrameHeader decode_header(std::string_view bytes);
WorkerSetup decode_setup(std::string_view payload);
WorkerRequest decode_request(std::string_view payload);
WorkerReply decode_reply(std::string_view payload);

}  // namespace tinygrad::search

#pragma once
/// The search's end of a tg-worker.

#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "search/worker_protocol.h"

namespace tinygrad::search {

/// What became of a kernel.
struct WorkerResult {
  enum class Kind { ran, refused, crashed, endless };
  Kind kind = Kind::crashed;
  std::vector<double> seconds;  ///< of each run, the first one first
  std::string error;            ///< what a worker said that refused, or why it is gone

  bool ran() const { return kind == Kind::ran; }
};

/// A running tg-worker; killed with the object.
class Worker {
 public:
  /// Throws DeviceError if the program cannot be started, or is of another build of the library.
  Worker(const std::string& program, int memory_file, const WorkerSetup& setup);

  /// Runs a kernel. One that crashes or does not come back in time takes the worker with it: alive() is false from then on.
  WorkerResult run(const WorkerRequest& request);
  bool alive() const { return process_.alive(); }

 private:
  WorkerResult ask(std::string_view frame, double seconds);
  WorkerResult answer(double seconds, std::string_view frame);
  WorkerResult gone(bool in_time);
  WorkerResult dismiss(std::string why);

  ChildProcess process_;
};

/// The path of tg-worker: the option WORKER_PATH, or the one beside the library, in a folder bin beside the library's, or beside the
/// program that runs. Empty if there is none; `why` then says where it was looked for.
std::string find_worker(const std::string& worker_path, std::string& why);

}  // namespace tinygrad::search

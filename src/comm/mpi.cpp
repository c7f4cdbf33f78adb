#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "comm/group.h"
#include "comm/watch.h"

namespace tinygrad::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_bytes = size_t(1) << 30;  ///< of one message: MPI counts with an int
constexpr int funneled = 1;                     ///< MPI_THREAD_FUNNELED
constexpr int serialized = 2;                   ///< MPI_THREAD_SERIALIZED
constexpr int success = 0;
constexpr int any_tag = -1;

/// Handles of OpenMPI are addresses of variables of its library.
using Handle = void*;

/// MPI_Status of OpenMPI.
struct Status {
  int source, tag, error, cancelled;
  size_t count;
};

/// What is used of the library.
struct Functions {
  const DynamicLibrary& library;
  int (*init_thread)(int*, char***, int, int*);
  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*finalize)();
  int (*comm_rank)(Handle, int*);
  int (*comm_size)(Handle, int*);
  int (*comm_dup)(Handle, Handle*);
  int (*set_errhandler)(Handle, Handle);
  int (*processor_name)(char*, int*);
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
  int (*test)(Handle*, int*, Status*);
  int (*iprobe)(int, int, Handle, int*, Status*);
  int (*error_string)(int, char*, int*);
  Handle world, byte, errors_return;

  explicit Functions(const DynamicLibrary& lib) : library(lib) {
    const auto find = [&](auto*& function, const char* name) {
      function = lib.symbol<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    };
    find(init_thread, "MPI_Init_thread");
    find(initialized, "MPI_Initialized");
    find(finalized, "MPI_Finalized");
    find(finalize, "MPI_Finalize");
    find(comm_rank, "MPI_Comm_rank");
    find(comm_size, "MPI_Comm_size");
    find(comm_dup, "MPI_Comm_dup");
    find(set_errhandler, "MPI_Comm_set_errhandler");
    find(processor_name, "MPI_Get_processor_name");
    find(isend, "MPI_Isend");
    find(irecv, "MPI_Irecv");
    find(test, "MPI_Test");
    find(iprobe, "MPI_Iprobe");
    find(error_string, "MPI_Error_string");
    world = lib.symbol<char>("ompi_mpi_comm_world");
    byte = lib.symbol<char>("ompi_mpi_byte");
    errors_return = lib.symbol<char>("ompi_mpi_errors_return");
  }
};

const Functions& functions() {
  static const Functions& f = *[] {
    try {
      return new Functions(keep_open(DynamicLibrary::open({"libmpi.so.40", "libmpi.so"})));
    } catch (const DeviceError& e) {
      throw CommError(fmt::format("this process was started by mpirun, but OpenMPI's library is not there: {}", e.what()));
    }
  }();
  return f;
}

std::atomic<bool> has_failed{false};
/// That of the group, which stays as long as the process.
std::atomic<Watch*> opened_watch{nullptr};

/// Who fails, or cannot reach others any more, does not wait for them in MPI_Finalize: mpirun ends them then.
void finalize_at_exit(int status, void* process) {
  const Functions& f = functions();
  int is_finalized = 0;
  f.finalized(&is_finalized);
  if (status != 0 || has_failed || is_finalized || reinterpret_cast<intptr_t>(process) != ::getpid()) return;
  // MPI_Finalize waits for ranks that will not come, if one of them has failed.
  Watch* const watch = opened_watch;
  if (watch) watch->leave();
  if (!watch || watch->wait_for_all()) f.finalize();
}

class Mpi final : public Group {
 public:
  Mpi() : mpi_(functions()) {
    int is_initialized = 0, level = 0;
    check(mpi_.initialized(&is_initialized), "MPI_Initialized");
    if (!is_initialized) {
      check(mpi_.init_thread(nullptr, nullptr, serialized, &level), "MPI_Init_thread");
      if (level < funneled) throw CommError("OpenMPI was built without threads");
      ::on_exit(finalize_at_exit, reinterpret_cast<void*>(intptr_t(::getpid())));
    }
    check(mpi_.comm_dup(mpi_.world, &comm_), "MPI_Comm_dup");  // messages of its own
    check(mpi_.set_errhandler(comm_, mpi_.errors_return), "MPI_Comm_set_errhandler");
    check(mpi_.comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(mpi_.comm_size(comm_, &size_), "MPI_Comm_size");
    hosts_.resize(size_t(size_));
    int length = 0;
    check(mpi_.processor_name(hosts_[size_t(rank_)].data(), &length), "MPI_Get_processor_name");
    std::vector<Message> names;
    for (int r = 0; r < size_; ++r)
      for (const bool is_sent : {true, false})
        if (r != rank_) names.push_back({r, is_sent, std::as_writable_bytes(std::span(hosts_[size_t(is_sent ? rank_ : r)]))});
    exchange(names, 0, "start", start_timeout_s);
    open_watch();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int rank) const override { return hosts_[size_t(rank)].data(); }

  void exchange(std::span<const Message> messages, int kind, std::string_view phase, double timeout_s) override {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw CommError(failure_);
    std::vector<Pending> pending;
    for (const Message& m : messages) {
      for (size_t at = 0; at < m.bytes.size(); at += most_bytes) {
        const size_t bytes = std::min(most_bytes, m.bytes.size() - at);
        Pending& p = pending.emplace_back(Pending{m.peer, m.is_sent, bytes, nullptr});
        const int error = m.is_sent ? mpi_.isend(m.bytes.data() + at, int(bytes), mpi_.byte, m.peer, kind, comm_, &p.request)
                                    : mpi_.irecv(m.bytes.data() + at, int(bytes), mpi_.byte, m.peer, kind, comm_, &p.request);
        if (error != success) fail(error, m.peer, phase);
      }
    }
    const auto start = Clock::now();
    auto next_look = start + look_after;
    auto last_progress = start;
    int looks = 0;
    for (int tries = 0; !pending.empty();) {
      const size_t before = pending.size();
      std::erase_if(pending, [&](Pending& p) {
        int is_done = 0;
        if (const int error = mpi_.test(&p.request, &is_done, nullptr); error != success) fail(error, p.peer, phase);
        return is_done != 0;
      });
      if (pending.size() < before) tries = 0;
      if (++tries < busy_tries) continue;
      const auto now = Clock::now();
      if (tries == busy_tries) last_progress = now;
      if (now - last_progress < rest_after)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(rest);
      if (now >= next_look) {
        next_look = now + look_after;
        for (const Pending& p : pending) look_for_other_kind(p.peer, kind, phase);
        look_for_ended(pending, phase, looks);
      }
      if (std::chrono::duration<double>(now - start).count() > timeout_s) time_out(pending, phase, timeout_s);
    }
  }

 private:
  static constexpr double start_timeout_s = 120;
  static constexpr int busy_tries = 256;  ///< before others get the processor
  static constexpr auto look_after = std::chrono::milliseconds(200);
  static constexpr int looks_behind_end = 5;
  static constexpr auto rest_after = std::chrono::milliseconds(20);  ///< of waiting without progress
  static constexpr auto rest = std::chrono::microseconds(50);
  struct Pending {
    int peer;
    bool is_sent;
    size_t bytes;
    Handle request;
  };

  std::string text_of(int error) const {
    std::array<char, 512> text{};
    int length = 0;
    mpi_.error_string(error, text.data(), &length);
    return text.data();
  }
  void check(int error, const char* what) const {
    if (error != success) throw CommError(fmt::format("{}: {}", what, text_of(error)));
  }
  std::string name_of(int rank) const { return fmt::format("rank {} on {}", rank, host(rank)); }

  // What is under way cannot be taken back, and what comes next would meet it: a group that failed once stays so.
  // The others are told whose fault it is, so that they do not take this rank for the one that was lost.
  [[noreturn]] void fail_for_good(int culprit, std::string why) {
    has_failed = true;
    watch_.leave(culprit);
    failure_ = std::move(why);
    throw CommError(failure_);
  }
  [[noreturn]] void fail(int error, int peer, std::string_view phase) {
    fail_for_good(peer, fmt::format("{}: {} of {}: {}", name_of(rank_), phase, name_of(peer), text_of(error)));
  }
  /// Ports and a key go the way of all messages.
  void open_watch() {
    struct Said {
      uint64_t key;
      uint16_t port;
    };
    std::vector<Said> said(hosts_.size());
    said[size_t(rank_)] = {std::random_device()() | uint64_t(std::random_device()()) << 32, watch_.listen(size_)};
    std::vector<Message> messages;
    for (int r = 0; r < size_; ++r)
      for (const bool is_sent : {true, false})
        if (r != rank_) messages.push_back({r, is_sent, std::as_writable_bytes(std::span(&said[size_t(is_sent ? rank_ : r)], 1))});
    exchange(messages, 0, "start", start_timeout_s);
    std::vector<std::string> hosts;
    std::vector<uint16_t> ports;
    for (int r = 0; r < size_; ++r) {
      hosts.push_back(host(r));
      ports.push_back(said[size_t(r)].port);
    }
    watch_.connect(rank_, hosts, ports, said[0].key);
    opened_watch = &watch_;
  }
  /// What one has sent before it left may be on its way for a while.
  void look_for_ended(std::span<const Pending> pending, std::string_view phase, int& looks) {
    if (const auto lost = watch_.lost()) fail_for_good(*lost, fmt::format("{}: {}: {} has ended", name_of(rank_), phase, name_of(*lost)));
    const auto gone = std::ranges::find_if(pending, [&](const Pending& p) { return watch_.state_of(p.peer) == Watch::State::left; });
    if (gone == pending.end() || ++looks <= looks_behind_end) return;
    const int peer = gone->peer, culprit = watch_.given_up_by(peer).value_or(peer);
    fail_for_good(culprit, fmt::format("{}: {}: {} has ended{}", name_of(rank_), phase, name_of(peer),
                                       culprit == peer ? "" : fmt::format(", as it gave up {}", name_of(culprit))));
  }
  void look_for_other_kind(int peer, int kind, std::string_view phase) {
    int is_there = 0;
    Status status{};
    if (mpi_.iprobe(peer, any_tag, comm_, &is_there, &status) != success || !is_there || status.tag == kind) return;
    fail_for_good(peer, fmt::format("{}: {}: {} is at another place of its program", name_of(rank_), phase, name_of(peer)));
  }
  [[noreturn]] void time_out(std::span<const Pending> pending, std::string_view phase, double timeout_s) {
    std::string names;
    std::vector<int> peers;
    for (const Pending& p : pending) peers.push_back(p.peer);
    std::ranges::sort(peers);
    peers.erase(std::ranges::unique(peers).begin(), peers.end());
    for (const int p : peers) names += (names.empty() ? "" : ", ") + name_of(p);
    fail_for_good(peers[0], fmt::format("{}: {}: nothing from {} within {} s (COMM_TIMEOUT)", name_of(rank_), phase, names, timeout_s));
  }

  const Functions& mpi_;
  Handle comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::vector<std::array<char, 256>> hosts_;
  std::mutex mutex_;
  std::string failure_;
  Watch watch_;
};

}  // namespace

std::unique_ptr<Group> open_mpi() { return std::make_unique<Mpi>(); }

}  // namespace tinygrad::comm

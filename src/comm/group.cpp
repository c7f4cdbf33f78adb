#include "comm/group.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include <fmt/core.h>
#include <tinygrad/comm.h>
#include <tinygrad/errors.h>

#include "base/hash.h"
#include "base/per_process.h"

namespace tinygrad::comm {

Group::~Group() = default;

namespace {

class Alone final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string host(int) const override { return "localhost"; }
  void exchange(std::span<const Message>, int, std::string_view, double) override {}
};

/// Of a child that a rank has forked: the library that its parent talks to others by is not to be used there.
class Forked final : public Group {
 public:
  explicit Forked(const Group& parent) : rank_(parent.rank()), size_(parent.size()) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int) const override { return "localhost"; }
  void exchange(std::span<const Message>, int, std::string_view phase, double) override {
    throw CommError(fmt::format("{}: this process was forked by rank {}, and cannot reach the others", phase, rank_));
  }

 private:
  const int rank_, size_;
};

bool has_environment(const char* name) { return std::getenv(name) != nullptr; }
bool is_more_than_one(const char* name) {
  const char* text = std::getenv(name);
  return text && std::atoi(text) > 1;
}

std::unique_ptr<Group> open_group() {
  if (has_environment("OMPI_COMM_WORLD_SIZE") || has_environment("PMIX_RANK")) return open_mpi();
  if (is_more_than_one("PMI_SIZE"))
    throw CommError(
        "this process is one of several that were started by MPICH or by srun without PMIx; OpenMPI's mpirun, or srun --mpi=pmix, are "
        "supported");
  return alone();
}

/// The group that this process has opened, or the one that it was forked from.
std::atomic<const Group*> opened{nullptr};

std::unique_ptr<Group> open_or_fork() {
  const Group* parent = opened.load();
  std::unique_ptr<Group> made = parent && parent->size() > 1 ? std::make_unique<Forked>(*parent) : parent ? alone() : open_group();
  if (!parent) opened.store(made.get());
  return made;
}

struct Own {
  std::unique_ptr<Group> group = open_or_fork();
};

}  // namespace

std::unique_ptr<Group> alone() { return std::make_unique<Alone>(); }

Group& group() {
  static std::mutex& mutex = *new std::mutex;  // all ranks meet when one is opened, and threads must not open two
  const std::lock_guard lock(mutex);
  return *tinygrad::detail::PerProcess<Own>::get().group;
}

uint64_t seed() {
  uint64_t of_job = 0;
  bool is_rank = false;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    const char* text = std::getenv(name);
    is_rank = is_rank || (text && std::string_view(name).starts_with("PMIX"));
    of_job = hash_all(of_job, std::string_view(text ? text : ""));
  }
  return is_rank ? of_job : uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
}

}  // namespace tinygrad::comm

namespace tinygrad {

int rank() { return comm::group().rank(); }
int world_size() { return comm::group().size(); }

}  // namespace tinygrad

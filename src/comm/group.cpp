#include "comm/group.h"

#include <atomic>
#include <chrono>
#include <cstdlib>

#include <fmt/core.h>
#include <tinygrad/comm.h>
#include <tinygrad/errors.h>

#include "base/per_process.h"

namespace tinygrad::comm {

Group::~Group() = default;

namespace {

uint64_t seed_of_now() { return uint64_t(std::chrono::system_clock::now().time_since_epoch().count()); }

class Alone final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  uint64_t seed() const override { return seed_; }
  std::string host(int) const override { return "localhost"; }
  void exchange(std::span<const Message>, int, std::string_view, double) override {}

 private:
  const uint64_t seed_ = seed_of_now();
};

/// Of a child that a rank has forked: the library that its parent talks to others by is not to be used there.
class Forked final : public Group {
 public:
  explicit Forked(const Group& parent) : rank_(parent.rank()), size_(parent.size()), seed_(parent.seed()) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t seed() const override { return seed_; }
  std::string host(int) const override { return "localhost"; }
  void exchange(std::span<const Message>, int, std::string_view phase, double) override {
    throw CommError(fmt::format("{}: this process was forked by rank {}, and cannot reach the others", phase, rank_));
  }

 private:
  const int rank_, size_;
  const uint64_t seed_;
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

Group& group() { return *tinygrad::detail::PerProcess<Own>::get().group; }

}  // namespace tinygrad::comm

namespace tinygrad {

int rank() { return comm::group().rank(); }
int world_size() { return comm::group().size(); }

}  // namespace tinygrad

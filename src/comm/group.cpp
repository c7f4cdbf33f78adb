#include "comm/group.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include <tinygrad/comm.h>
#include <tinygrad/errors.h>

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

struct Opened {
  std::unique_ptr<Group> group;
  explicit Opened(std::unique_ptr<Group> g) : group(std::move(g)) {}
};

}  // namespace

std::unique_ptr<Group> alone() { return std::make_unique<Alone>(); }

Group& group() {
  // A child has no part in what its parent's library does.
  static const pid_t first = ::getpid();
  return *tinygrad::detail::PerProcess<Opened>::get([] { return ::getpid() == first ? open_group() : alone(); }).group;
}

}  // namespace tinygrad::comm

namespace tinygrad {

int rank() { return comm::group().rank(); }
int world_size() { return comm::group().size(); }

}  // namespace tinygrad

#include "base/spawn_actions.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

void check(int error) {
  if (error != 0) throw DeviceError(fmt::format("starting a process: its files cannot be passed on: {}", std::strerror(error)));
}

}  // namespace

SpawnActions::SpawnActions() { check(::posix_spawn_file_actions_init(&actions_)); }

SpawnActions::~SpawnActions() {
  ::posix_spawn_file_actions_destroy(&actions_);
  for (const int copy : copies_) ::close(copy);
}

void SpawnActions::use(int descriptor, int as) {
  // Above those that the child gets, which would take their places one after another.
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  if (copy < 0) check(errno);
  copies_.push_back(copy);
  check(::posix_spawn_file_actions_adddup2(&actions_, copy, as));
}

void SpawnActions::discard(int as) { check(::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_WRONLY, 0)); }

}  // namespace tinygrad

#pragma once
#include <spawn.h>

#include <vector>

namespace tinygrad {

/// What posix_spawn does with the descriptors of a child. Throws DeviceError where the system refuses.
class SpawnActions {
 public:
  SpawnActions();
  ~SpawnActions();
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  /// The child has `descriptor` as `as`, below 16, whichever of the others it is here.
  void use(int descriptor, int as);
  /// What the child writes to `as` is lost.
  void discard(int as);
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  std::vector<int> copies_;
};

}  // namespace tinygrad

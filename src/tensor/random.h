#pragma once
/// The process's sequence of random words.

#include <array>
#include <cstdint>

namespace tinygrad::tensor {

/// Where a draw begins, as kernels read it: seed, then position, low words first.
using DrawState = std::array<uint32_t, 4>;

/// Takes the next `words` words.
DrawState next_draw(int64_t words);

/// While it lives, this thread draws from a sequence of its own, which begins with this seed, and the process's sequence stays where it is.
class OwnSequence {
 public:
  explicit OwnSequence(uint64_t seed);
  ~OwnSequence();
  OwnSequence(const OwnSequence&) = delete;
  OwnSequence& operator=(const OwnSequence&) = delete;

 private:
  friend DrawState next_draw(int64_t words);
  const uint64_t seed_;
  uint64_t drawn_ = 0;  // words
  OwnSequence* const before_;
};

}  // namespace tinygrad::tensor

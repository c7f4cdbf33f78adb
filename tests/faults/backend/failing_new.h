#pragma once
/// Allocations and writes that can be made to fail. In this executable they replace the libraries'.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tinygrad::test {

/// Allocations of the thread that armed it until one fails; the one that does, and nothing else, throws std::bad_alloc.
class FailingNew {
 public:
  /// The allocation of this number from now, from 0, fails; a negative number only counts.
  explicit FailingNew(int64_t number);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  static int64_t count();  ///< allocations while one was armed last
  static bool failed();    ///< whether one has failed
};

/// The largest allocation of the thread that it makes while this lives.
class LargestNew {
 public:
  LargestNew();
  ~LargestNew();
  LargestNew(const LargestNew&) = delete;
  LargestNew& operator=(const LargestNew&) = delete;

  static size_t bytes();
};

/// The same of posix_memalign, which memory of the CPU comes from; the call after the one that fails, its second try, fails too.
class FailingMemalign {
 public:
  explicit FailingMemalign(int64_t number);
  ~FailingMemalign();
  FailingMemalign(const FailingMemalign&) = delete;
  FailingMemalign& operator=(const FailingMemalign&) = delete;

  static bool failed();
};

/// A disk with room for so many bytes: pwrite() writes less than it should, then nothing (ENOSPC).
class FullDisk {
 public:
  explicit FullDisk(int64_t room);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
};

}  // namespace tinygrad::test

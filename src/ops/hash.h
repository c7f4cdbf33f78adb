#pragma once
/// Hashes of bytes, as graphs of 64-bit integer operations.

#include <string_view>

#include "ops/operand.h"

namespace tinygrad::ops {

/// A sponge over Keccak-f[1600] (FIPS 202): the bytes of a block, the bits that follow the message, the bytes that come out.
struct KeccakConfig {
  int64_t rate = 136;
  uint8_t suffix = 0x06;
  int64_t digest = 32;

  /// The configuration as tinygrad has it: the digest has half the size of the capacity.
  static KeccakConfig of(int64_t rate, uint8_t suffix) { return {rate, suffix, (200 - rate) / 2}; }
  /// "sha3_224", "sha3_256", "sha3_384", "sha3_512", "shake_128" (16 bytes), "shake_256" (32 bytes); ValueError for others.
  static KeccakConfig named(std::string_view name);
};

/// The hash of the last axis' bytes: (..., n) to uint8 (..., digest). Other dtypes are taken as their bytes in memory. n must be known.
/// 24 kernels for each block of `rate` bytes. Integers have no gradient.
UOp keccak(const UOp& x, const KeccakConfig& config = {});

/// 16 bytes, uint8, from all bytes of x: pieces of 1 MiB (the last one filled with zeros) are hashed by shake_128 in 256 messages of 4096
/// bytes and then their digests; the results are hashed in the same way until one is left.
UOp hash(const UOp& x);

}  // namespace tinygrad::ops

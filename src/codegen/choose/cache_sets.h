#pragma once
/// How the lines of an array spread over the sets of a cache.

#include <cstdint>
#include <span>

namespace tinygrad::codegen {

struct CacheShape {
  int64_t bytes = 0;
  int ways = 1;             ///< lines that a set holds
  int64_t line_bytes = 64;  ///< of memory, which a cache holds whole
};

/// Elements that are used together along an axis of an array: so many, each `bytes` from the one before.
struct AlongAxis {
  double bytes, count;
};

/// The factor by which elements that are used together take more of a cache than their bytes, at least 1. The address of a line, modulo the
/// bytes of one way, says which set it may lie in. Rows that are a multiple of a large power of two apart fall into few sets, where they
/// evict each other while all others are free. A cache then is as good as one of
///
///   ways * (bytes of a way that the lines fall to)
///
/// That counts only where the lines fill more than half of these sets' ways.
double crowding(const CacheShape& cache, std::span<const AlongAxis> axes);

}  // namespace tinygrad::codegen

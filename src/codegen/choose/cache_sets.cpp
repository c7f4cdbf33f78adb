#include "codegen/choose/cache_sets.h"

#include <algorithm>
#include <numeric>

#include "base/small_vector.h"

namespace tinygrad::codegen {

double crowding(const CacheShape& cache, std::span<const AlongAxis> axes) {
  const double line = double(cache.line_bytes), ways = std::max(cache.ways, 1), way = double(cache.bytes) / ways;
  if (way < line) return 1;
  SmallVector<AlongAxis, 8> steps;
  for (const AlongAxis& a : axes)
    if (a.bytes > 0 && a.count > 1) steps.push_back(a);
  std::ranges::sort(steps, {}, &AlongAxis::bytes);
  double run = line, taken = line;  // contiguous bytes, then the part of a way that they fall to; bytes of all lines
  for (const auto& [bytes, count] : steps) {
    if (bytes <= run) {
      const double longer = run > line ? run + bytes * (count - 1) : std::max(line, bytes * count);
      taken *= longer / run;
      run = longer;
      continue;
    }
    // Rows begin at multiples of `apart` in a way. When all of these places are taken, further rows fall to them again.
    const double apart = double(std::gcd(int64_t(bytes), int64_t(way))), places = way / apart;
    run = count < places ? run * count : std::max(run, places * std::min(run, apart));
    taken *= count;
  }
  const double held = ways * std::min(run, way);
  return 2 * taken <= held ? 1 : double(cache.bytes) / held;
}

}  // namespace tinygrad::codegen

#include "nn/named.h"

#include <algorithm>

#include "base/rethrow.h"

namespace tinygrad::nn {

void rethrow_named(std::string_view path, std::string_view kind, std::string_view sizes) {
  rethrow_as([&](std::string_view what) {
    std::string out(path);
    if (!path.empty()) out += ": ";
    if (!path.empty() && what.starts_with(out)) return std::string(what);  // a layer inside of this one
    if (!(what.starts_with(kind) && what.substr(kind.size()).starts_with(": "))) out.append(kind).append("(").append(sizes).append("): ");
    return out.append(what);
  });
}

std::string joined(const Sizes& sizes, std::string_view between) {
  std::string out;
  for (const int64_t s : sizes) (out.empty() ? out : out.append(between)) += std::to_string(s);
  return out;
}

std::string sizes_of(const Tensor& t) { return t.defined() ? joined(t.max_shape(), ", ") : ""; }

std::string in_and_out(const Tensor& weight, int in, int out) {
  if (!weight.defined() || weight.ndim() <= std::max(in, out)) return sizes_of(weight);
  const Sizes sizes = weight.max_shape();
  return std::to_string(sizes[size_t(in)]) + " -> " + std::to_string(sizes[size_t(out)]);
}

}  // namespace tinygrad::nn

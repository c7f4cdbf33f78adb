#include "nn/named.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace tinygrad::nn {

void rethrow_named(std::string_view path, std::string_view kind, std::string_view sizes) {
  const auto text = [&](const Error& e) {
    const std::string_view what = e.what();
    const std::string where = path.empty() ? "" : fmt::format("{}: ", path);
    if (!where.empty() && what.starts_with(where)) return std::string(what);  // a layer inside of this one
    return what.starts_with(fmt::format("{}: ", kind)) ? fmt::format("{}{}", where, what)
                                                       : fmt::format("{}{}({}): {}", where, kind, sizes, what);
  };
  try {
    throw;
  } catch (const ShapeError& e) {
    throw ShapeError(text(e));
  } catch (const DTypeError& e) {
    throw DTypeError(text(e));
  } catch (const ValueError& e) {
    throw ValueError(text(e));
  } catch (const IndexError& e) {
    throw IndexError(text(e));
  } catch (const DeviceError& e) {
    throw DeviceError(text(e));
  }
}

std::string sizes_of(const Tensor& t) { return t.defined() ? fmt::format("{}", fmt::join(t.max_shape(), ", ")) : ""; }

std::string in_and_out(const Tensor& weight, int in, int out) {
  if (!weight.defined() || weight.ndim() <= std::max(in, out)) return sizes_of(weight);
  const Sizes sizes = weight.max_shape();
  return fmt::format("{} -> {}", sizes[size_t(in)], sizes[size_t(out)]);
}

}  // namespace tinygrad::nn

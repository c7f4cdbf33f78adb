#pragma once
/// Errors of layers that say which layer of a network it is.

#include <string>
#include <string_view>
#include <utility>

#include <tinygrad/errors.h>
#include <tinygrad/module.h>

namespace tinygrad::nn {

/// Throws the error that is being handled again, as the same type: "blocks.4.up: Linear(32 -> 128): ...". Messages that begin with the
/// layer's kind, as those of its own checks do, are not told it twice.
[[noreturn]] void rethrow_named(std::string_view path, std::string_view kind, std::string_view sizes);

/// What a layer computes. `kind` and `sizes`, called for an error only, describe it: "Linear", "32 -> 128".
template <class Sizes, class Compute>
auto named(const Module& layer, std::string_view kind, const Sizes& sizes, const Compute& compute) {
  try {
    return compute();
  } catch (const Error&) {
    rethrow_named(layer.path(), kind, sizes());
  }
}

/// "32, 128" with ", " between.
std::string joined(const Sizes& sizes, std::string_view between);
/// The sizes of a tensor, "32, 128", or "" for none.
std::string sizes_of(const Tensor& t);
/// "32 -> 128", of a weight with these axes for what goes in and out.
std::string in_and_out(const Tensor& weight, int in, int out);

}  // namespace tinygrad::nn

#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renderer/ptx/emitter.h"
#include "renderer/ptx/memory.h"
#include "target/target.h"
#include "uop/arg.h"

namespace tinygrad::renderer::ptx {

/// mma.sync: what an item holds of the result, given what it holds of the factors (a narrow float may come as its bits) and of the sum.
std::vector<std::string> emit_mma(Emitter& out, const WmmaArg& core, const std::vector<std::string>& a, const std::vector<std::string>& b,
                                  const std::vector<std::string>& c);

/// A product under way: the registers that it is in, and what names its sums once it is done. Two sums of 16 bits are in one register.
struct Product {
  std::vector<std::string> registers, sums;
};

/// A factor: where it is in shared memory, or what an item holds.
struct Factor {
  std::optional<Place> place;
  std::vector<std::string> held = {};
};

/// What tells a core where a factor is, in a register.
std::string matrix_place(Emitter& out, const TensorCore& core, int factor, const Place& place);

/// wgmma.mma_async: adds to what is in the registers, or to the sums of `before`, which it goes on with.
Product begin_product(Emitter& out, const TensorCore& core, const Factor& a, const Factor& b, const std::vector<std::string>& c,
                      const Product* before);
/// Waits for all that were begun.
void end_products(Emitter& out, std::span<const Product> products);

}  // namespace tinygrad::renderer::ptx

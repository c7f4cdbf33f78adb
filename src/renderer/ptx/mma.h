#pragma once
#include <string>
#include <vector>

#include "renderer/ptx/emitter.h"
#include "uop/arg.h"

namespace tinygrad::renderer::ptx {

/// mma.sync: what an item holds of the result, given what it holds of the factors (a narrow float may come as its bits) and of the sum.
std::vector<std::string> emit_mma(Emitter& out, const WmmaArg& core, const std::vector<std::string>& a, const std::vector<std::string>& b,
                                  const std::vector<std::string>& c);

}  // namespace tinygrad::renderer::ptx

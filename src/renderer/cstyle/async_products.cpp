#include "renderer/cstyle/async_products.h"

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "uop/graph.h"

namespace tinygrad::renderer::cstyle {
namespace {

[[noreturn]] void no_tensor_memory(const UOp& tile) {
  throw InternalError(fmt::format("C: these tensor cores have no tensor memory for {}", print_expr(tile)));
}

}  // namespace

void AsyncProducts::add_tile(const UOp& tile) { no_tensor_memory(tile); }
AsyncProducts::Lines AsyncProducts::clear(const UOp& tile) { no_tensor_memory(tile); }
Value AsyncProducts::load(const UOp& tile, Lines&) { no_tensor_memory(tile); }
void AsyncProducts::surround(KernelText&, int64_t) {}

}  // namespace tinygrad::renderer::cstyle

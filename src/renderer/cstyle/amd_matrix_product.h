#pragma once
#include "renderer/cstyle/prelude.h"
#include "renderer/cstyle/value.h"

namespace tinygrad::renderer::cstyle {

/// A call of a helper function, named after the tensor core, that AMD's builtin is in. Throws InternalError for a core that AMD does not
/// have.
Expr amd_matrix_product(Prelude& prelude, const WmmaArg& arg, const Value& a, const Value& b, const Value& c);

}  // namespace tinygrad::renderer::cstyle

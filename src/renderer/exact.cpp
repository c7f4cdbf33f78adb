#include "renderer/exact.h"

#include "symbolic/bounds.h"

namespace tinygrad::renderer {

bool is_exact(const UOp& u) {
  if (!is_int(u.dtype()) || !is_signed(u.dtype())) return false;
  const symbolic::Bounds known = symbolic::bounds(u);
  return known.has_min() && known.has_max() && (known.min > min_value(u.dtype()).as_int() || known.max < max_value(u.dtype()).as_int());
}

}  // namespace tinygrad::renderer

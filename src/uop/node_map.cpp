#include "uop/node_map.h"

#ifdef TG_CHECK_BORROWED_KEYS

#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "uop/graph.h"

namespace tinygrad::detail {

void Borrowed::end_for_dropped_key(const UOp& key) {
  fmt::print(stderr,
             "a NodeMap has a key that nobody else holds: {}\nWhat is made of it should be a NodeCache, or something should hold its keys "
             "for as long.\n",
             print_expr(key));
  std::abort();
}

}  // namespace tinygrad::detail

#endif

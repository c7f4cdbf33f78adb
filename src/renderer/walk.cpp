#include "renderer/walk.h"

#include <algorithm>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::renderer {

void Walk::walk() {
  for (size_t i = 0; i < linear_.src_count(); ++i) step(linear_.src(i), i);
  if (!open_.empty()) throw InternalError(fmt::format("{}: a block of kernel {} has no end", language_, info_.name));
}

void Walk::visit(const UOp& u) {
  switch (u.op()) {
    case Op::PARAM: return parameter(u);
    case Op::VAR: return variable(u);
    case Op::CONST:
      // Constants of dtype index are the sizes and lane numbers inside other instructions.
      if (u.dtype() != DType::index) constant(u, u.arg_as<ConstArg>().value);
      return;
    case Op::SPECIAL: return special(u);
    case Op::BUFFER: return own_memory(u);
    case Op::RANGE: open_.push_back(Op::RANGE); return open_loop(u);
    case Op::END:
      for (size_t i = 1; i < u.src_count(); ++i) close(u, Op::RANGE);
      return;
    case Op::IF: open_.push_back(Op::IF); return open_if(u);
    case Op::ENDIF: return close(u, Op::IF);
    case Op::INDEX: return is_address(u) ? address(u) : lanes(u, known_number(u, 1), known_number(u, 1) + 1);
    case Op::SHRINK: return lanes(u, known_number(u, 1), known_number(u, 2));
    case Op::LOAD: return load(u);
    case Op::STORE: return store(u);
    case Op::PREFETCH: return prefetch(u);
    case Op::EXPAND: return expand(u, known_number(u, 1));
    case Op::STACK: return stack(u);
    case Op::BARRIER: return barrier(u);
    case Op::FETCH: return fetch(u);
    case Op::COMMIT: return commit(u);
    case Op::WAIT: return wait(u, u.arg_as<WaitArg>().pending);
    case Op::WMMA: return is_asynchronous(u) ? begin_product(u) : product(u);
    case Op::WMMA_WAIT: return wait_for_products(u);
    case Op::GROUP:
    case Op::SINK: return;
    default: return u.in(Group::elementwise) ? elementwise(u) : has_none(u);
  }
}

void Walk::close(const UOp& u, Op opener) {
  if (open_.empty() || open_.back() != opener) fail(u, "ends a block that is not the innermost one");
  open_.pop_back();
  opener == Op::RANGE ? close_loop() : close_if();
}

int64_t Walk::known_number(const UOp& u, size_t source) const {
  const Scalar* c = const_value(u.src(source));
  if (!c) fail(u, "has no known number of lanes");
  return c->as_int();
}

void Walk::fail(const UOp& u, std::string_view what) const {
  throw InternalError(fmt::format("{}: {} in kernel {}: {}", language_, print_expr(u), info_.name, what));
}

void Walk::has_none(const UOp& u) const { fail(u, fmt::format("there is no {}", name(u.op()))); }

const KernelParam& Walk::parameter_of(const UOp& u) const {
  const auto p = std::ranges::find(info_.params, u.arg_as<ParamArg>().slot, &KernelParam::slot);
  if (p == info_.params.end()) fail(u, "is not described");
  return *p;
}

size_t Walk::place_of_variable(const UOp& u) const {
  const auto at = std::ranges::find(info_.variables, u.arg_as<VarArg>().name);
  if (at == info_.variables.end()) fail(u, "is not described");
  return size_t(at - info_.variables.begin());
}

void no_result_of(const UOp& u) { throw InternalError(fmt::format("{} is used before it stands in the list", print_expr(u))); }

}  // namespace tinygrad::renderer

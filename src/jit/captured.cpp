#include "jit/captured.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/options.h"
#include "device/device.h"
#include "jit/captured_builder.h"
#include "shape/device.h"
#include "symbolic/simplify.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "tensor/realize.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::jitted {

using namespace tensor;

using engine::Capture;

namespace {

uint64_t id_of(const UOp& memory) { return parts_of(memory)[0].arg_as<BufferArg>().id; }

/// The name of an option that graphs or kernels depend on and that differs; empty if none does.
std::string_view changed_option(const Options& a, const Options& b) {
#define TG_OPTION(type, field, name, default_value, rule, affects_code, ...)                                                  \
  if constexpr (affects_code || std::string_view(#field) == "training" || std::string_view(#field).starts_with("default_") || \
                std::string_view(#field) == "dev")                                                                            \
    if (a.field != b.field) return name;
#include <tinygrad/options.def>
#undef TG_OPTION
  return {};
}

void add_variable(std::vector<std::pair<Symbol, int64_t>>& variables, Symbol name, int64_t value) {
  for (const auto& [known, other] : variables)
    if (known == name) {
      if (other != value) throw JitError(fmt::format("jit: variable {} is bound to both {} and {}", name.str(), other, value));
      return;
    }
  variables.emplace_back(name, value);
}

/// An argument with memory; computed if it is not.
CallArguments::Value prepare_argument(const Tensor& t) {
  if (!t.defined()) return {};
  CallArguments::Value out{.node = t.uop(), .buffer = {}, .is_param = t.is_param()};
  out.buffer = whole_memory(out.node);
  if (out.buffer) return out;
  const Shape& shape = shape_of(out.node);
  if (is_empty(shape)) return out;
  if (!all_known(shape)) {
    out.buffer = state_of_view(out.node);
    return out;
  }
  out.copied_from = state_of_view(out.node);
  out.node = wrap(UOp(Op::CONTIGUOUS, out.node.dtype(), {out.node})).realize().uop();
  out.buffer = whole_memory(out.node);
  return out;
}

}  // namespace

namespace {

/// The view with a PARAM as memory, and without the values of these variables; null for all of a buffer.
UOp view_form(const UOp& node, const UOp& buffer, std::span<const Symbol> variables) {
  if (whole_buffer(node)) return {};
  NodeMap<UOp> map;
  map[buffer] = param(buffer.dtype(), buffers_of(buffer)[0]->size(), {.slot = 0});
  const UOp view = plain_view(node);
  for (const UOp& u : toposort(view))
    if (u.is(Op::BIND) && std::find(variables.begin(), variables.end(), u.src(0).arg_as<VarArg>().name) != variables.end())
      map[u] = u.src(0);
  return substitute(view, map);
}

}  // namespace

CallForm form_of(const CallArguments& arguments) {
  std::vector<Symbol> variables;
  for (const auto& v : arguments.variables) variables.push_back(v.first);
  CallForm out;
  for (const CallArguments::Value& v : arguments.values) {
    CallForm::Value& f = out.values.emplace_back();
    if (!v.node) continue;
    f.dtype = v.node.dtype();
    if (v.buffer) {
      f.device = devices_of(v.buffer).first();
      f.view = view_form(v.node, v.buffer, variables);
    }
    if (!f.view) f.shape = shape_of(v.node);
  }
  return out;
}

CallArguments prepare_arguments(const detail::JitArguments& arguments) {
  std::vector<Tensor> lazy;
  for (const Tensor& t : arguments.tensors)
    if (t.defined() && !is_plain_memory(state_of_view(t.uop()))) lazy.push_back(t);
  if (!lazy.empty()) Tensor::realize(lazy);
  CallArguments out{.values = {}, .variables = {}, .layout = arguments.layout};
  for (const Variable& v : arguments.variables) add_variable(out.variables, Symbol(v.name()), v.value().value());
  for (const Tensor& t : arguments.tensors) {
    CallArguments::Value& value = out.values.emplace_back(prepare_argument(t));
    if (!value.node || all_known(shape_of(value.node))) continue;
    for (const UOp& u : toposort(value.node))
      if (u.is(Op::BIND)) add_variable(out.variables, u.src(0).arg_as<VarArg>().name, const_value(u)->as_int());
  }
  std::sort(out.variables.begin(), out.variables.end());
  return out;
}

CapturedCall::CapturedCall(Recorder& recorder, const CallArguments& arguments, const detail::JitResults& results, const void* result_type,
                           bool prune)
    : options_(Context::current()), layout_(arguments.layout), result_type_(result_type), skeleton_(results.skeleton) {
  form_ = jitted::form_of(arguments);
  Builder(*this, recorder, prune).build(arguments, results);
  for (size_t s : state_slots_) slots_[s].buffer->watch(2);  // of slots_ here and in the capture
}

CapturedCall::~CapturedCall() {
  for (size_t s : state_slots_) slots_[s].buffer->unwatch(2);
}

UOp CapturedCall::form_of(const UOp& node, const UOp& buffer) const { return view_form(node, buffer, variables_); }

UOp CapturedCall::node_of(const UOp& form, const UOp& buffer, const Shape& shape, const CallArguments& arguments) const {
  if (!form) return shape.size() == 1 ? buffer : reshape(buffer, shape);
  NodeMap<UOp> map;
  for (const UOp& u : toposort(form)) {
    if (u.is(Op::PARAM)) map[u] = buffer;
    if (u.is(Op::VAR))
      for (const auto& [name, value] : arguments.variables)
        if (name == u.arg_as<VarArg>().name) map[u] = bind(u, value);
  }
  return substitute(form, map);
}

void CapturedCall::check_argument(size_t i, const CallArguments::Value& value) const {
  const Argument& a = arguments_[i];
  if (a.slots.empty()) return;
  if (value.copied_from && is_written(a))
    throw JitError(
        fmt::format("jit: the function assigns to argument {}, which is a view of a part of a tensor's memory; pass the whole tensor, "
                    "or a clone()",
                    i));
  const auto parts = buffers_of(value.buffer);
  for (size_t p = 0; p < a.slots.size(); ++p) {
    const auto address = reinterpret_cast<uintptr_t>(parts[p]->handle());
    if (const uint16_t alignment = capture_->alignment(a.slots[p]); address % alignment != 0)
      throw JitError(
          fmt::format("jit: argument {} is at the address {:#x}, the captured call expects one aligned to {} bytes; pass a clone()", i,
                      address, alignment));
  }
}

bool CapturedCall::is_written(const Argument& a) const {
  return std::ranges::any_of(a.slots, [&](size_t s) { return capture_->written(s); });
}

void CapturedCall::check_aliases(const CallArguments& arguments) const {
  const auto memory = [](const Buffer& b) { return &b.origin(); };
  const auto is_part = [&](const Buffer* whose, const UOp& of) {
    return of && std::ranges::any_of(buffers_of(of), [&](const Buffer* b) { return memory(*b) == whose; });
  };
  const auto is_in = [&](const Buffer* whose, size_t i) {
    const CallArguments::Value& v = arguments.values[i];
    return is_part(whose, v.buffer) || is_part(whose, v.copied_from);
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].slots.empty()) continue;
    const auto mine = buffers_of(arguments.values[i].buffer);
    const auto shares = [&](size_t j) { return std::ranges::any_of(mine, [&](const Buffer* b) { return is_in(memory(*b), j); }); };
    const bool written = is_written(arguments_[i]);
    for (size_t j = 0; j < arguments_.size(); ++j)
      if (written && j != i && !arguments_[j].slots.empty() && shares(j))
        throw JitError(fmt::format("jit: arguments {} and {} share memory, and the function assigns to one of them; pass a clone()", i, j));
    for (size_t s : fixed_slots_)
      if ((written || capture_->written(s)) && is_in(memory(*slots_[s].buffer), i))
        throw JitError(
            fmt::format("jit: argument {} shares memory with a tensor that the function finds outside of its arguments, and one of "
                        "them is assigned to; pass a clone()",
                        i));
  }
}

void CapturedCall::check_surroundings(const CallArguments& arguments, const void* result_type) const {
  if (arguments.layout != layout_ || result_type != result_type_)
    throw JitError(
        fmt::format("jit: called with ({}), captured with ({}); numbers, strings and objects among the arguments are part of what "
                    "was captured. Use another jit, reset(), a tensor or a bound Variable",
                    arguments.layout, layout_));
  const Options& now = current_options();
  if (&now != options_.get())
    if (const std::string_view option = changed_option(*options_, now); !option.empty())
      throw JitError(fmt::format("jit: {} is not what it was when the function was captured; use another jit, or reset()", option));
}

void CapturedCall::check(const CallArguments& arguments, const void* result_type) const {
  check_surroundings(arguments, result_type);
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].defined) check_argument(i, arguments.values[i]);
  if (!std::equal(variables_.begin(), variables_.end(), arguments.variables.begin(), arguments.variables.end(),
                  [](Symbol name, const auto& v) { return name == v.first; }))
    throw JitError("jit: the arguments have other variables than in the captured call");
  check_aliases(arguments);
  if (!limits_.empty()) check_limits(arguments);
}

std::optional<int64_t> CapturedCall::value_of(const UOp& expression, const CallArguments& arguments) const {
  if (expression.is(Op::CONST)) return const_value(expression)->as_int();
  NodeMap<UOp> values;
  const auto bind = [&](const UOp& variable) {
    const Symbol name = variable.arg_as<VarArg>().name;
    for (const auto& [known, value] : bound_)
      if (known == name && value) values[variable] = index_const(*value);
    for (const auto& [known, value] : arguments.variables)
      if (known == name) values[variable] = index_const(value);
  };
  for (const UOp& u : toposort(expression))
    if (u.is(Op::VAR)) bind(u);
  const UOp result = symbolic::simplify_index(substitute(expression, values));
  return result.is(Op::CONST) ? std::optional(const_value(result)->as_int()) : std::nullopt;
}

void CapturedCall::check_limits(const CallArguments& arguments) const {
  for (const UOp& room : limits_)
    if (const auto left = value_of(room, arguments); left && *left < 0)
      throw JitError(fmt::format("jit: with these values of the variables a view reaches beyond its axis, or sizes do not fit: {} is {}",
                                 print_expr(room), *left));
}

std::vector<uint32_t> CapturedCall::looked_at() const {
  std::vector<uint32_t> out;
  for (const Check& c : checks_) out.push_back(c.slot);
  return out;
}

void CapturedCall::look(const Check& check, Buffer& largest, const CallArguments& arguments) const {
  uint64_t found = 0;
  largest.copyout(std::as_writable_bytes(std::span(&found, 1)).first(largest.nbytes()));
  check.what.look(found, [&](const UOp& expression) {
    if (const auto value = value_of(expression, arguments)) return *value;
    throw JitError(fmt::format("jit: the size {} has no value", print_expr(expression)));
  });
}

bool CapturedCall::Found::is_same() const {
  const detail::CellPtr alive = cell.lock();
  if (!alive) return false;
  if (alive->version() == version) return true;
  if (!buffer_id) return false;
  const UOp state = state_of_view(alive->node());
  return state && id_of(buffer_of_state(state)) == *buffer_id;
}

bool CapturedCall::is_current() const {
  return std::all_of(found_.begin(), found_.end(), [](const Found& f) { return f.is_same(); }) &&
         std::all_of(state_slots_.begin(), state_slots_.end(), [&](size_t s) { return slots_[s].buffer->is_used(); });
}

void CapturedCall::check_readable(const CallArguments& arguments) const {
  for (size_t s : fixed_slots_)
    if (capture_->read(s)) slots_[s].buffer->check_readable();
  for (size_t i = 0; i < arguments_.size(); ++i)
    for (size_t p = 0; p < arguments_[i].slots.size(); ++p)
      if (capture_->read(arguments_[i].slots[p])) buffers_of(arguments.values[i].buffer)[p]->check_readable();
}

Tensor CapturedCall::result(const Result& r, std::span<const BufferPtr> made, const CallArguments& arguments) const {
  UOp memory;
  switch (r.kind) {
    case Result::Kind::undefined: return {};
    case Result::Kind::empty: return wrap_view(make_memory(r.shape, r.dtype, r.device, r.weak)).is_param_(r.is_param);
    case Result::Kind::argument: memory = arguments.values[r.number].buffer; break;
    case Result::Kind::fixed:
    case Result::Kind::made: {
      UOps parts;
      for (size_t p = 0; p < r.slots.size(); ++p) {
        const BufferPtr& b = r.kind == Result::Kind::made ? made[r.slots[p]] : slots_[r.slots[p]].buffer;
        const uint64_t id = r.kind == Result::Kind::made ? next_buffer_id() : r.ids[p];
        parts.push_back(buffer(r.dtype, {.id = id, .size = b->size(), .device = b->device().name(), .resource = b, .weak = r.weak}));
      }
      memory = r.parts.are_several() ? UOp(Op::MSTACK, r.dtype, parts, ShardingArg{r.parts, {}}) : parts[0];
    }
  }
  return wrap_view(node_of(r.form, memory, r.shape, arguments)).is_param_(r.is_param);
}

void CapturedCall::find_uses() {
  for (size_t s : fixed_slots_) uses_.add(*slots_[s].buffer, capture_->written(s));
  writes_any_ = uses_.writes_any() || std::ranges::any_of(arguments_, [&](const Argument& a) { return is_written(a); });
}

detail::JitResults CapturedCall::replay(const CallArguments& arguments) {
  check_interrupt();  // before it takes random positions
  Claims used;
  used.add(uses_);
  for (size_t i = 0; i < arguments_.size() && writes_any_; ++i)
    for (size_t p = 0; p < arguments_[i].slots.size(); ++p)
      used.add(*buffers_of(arguments.values[i].buffer)[p], capture_->written(arguments_[i].slots[p]));
  const Claims held = settle(std::move(used));
  engine::CommandList::Failed failed;
  try {
    return run(arguments, failed);
  } catch (const IndexError&) {  // it says all
    throw;
  } catch (const Error&) {
    rethrow_failed(failed);
  }
}

void CapturedCall::rethrow_failed(const engine::CommandList::Failed& failed) const {
  const auto& parts = recording_.schedules;  // none of a call from a file
  const std::string kernel = failed.kernel.empty() ? "" : ", kernel " + failed.kernel;
  rethrow_in_replay(kernel, parts.empty() ? Computed() : failed.part ? parts[failed.part - 1].computed : parts.back().computed);
}

detail::JitResults CapturedCall::run(const CallArguments& arguments, engine::CommandList::Failed& failed) {
  std::vector<Buffer*> buffers(slots_.size());
  for (size_t i = 0; i < arguments_.size(); ++i)
    for (size_t p = 0; p < arguments_[i].slots.size(); ++p) buffers[arguments_[i].slots[p]] = buffers_of(arguments.values[i].buffer)[p];
  std::vector<BufferPtr> made(slots_.size());
  for (size_t s : made_slots_) {
    made[s] = Buffer::make(capture_->device(s), slots_[s].size, slots_[s].dtype);
    made[s]->ensure_allocated();
    buffers[s] = made[s].get();
  }
  check_readable(arguments);
  struct Leased {
    Capture& capture;
    std::unique_ptr<Capture::Lease> lease;
    ~Leased() { capture.give_back(std::move(lease)); }
  } leased{*capture_, capture_->lease()};
  for (const Draw& d : draws_) {
    const DrawState state = next_draw(d.words);
    if (d.slot) Capture::buffer(*leased.lease, *d.slot).copyin(std::as_bytes(std::span(state)));
  }
  SmallVector<int64_t, 4> values;
  for (const auto& v : arguments.variables) values.push_back(v.second);
  try {
    capture_->run(*leased.lease, buffers, values,
                  [&](size_t i) { look(checks_[i], Capture::buffer(*leased.lease, checks_[i].slot), arguments); });
  } catch (...) {
    failed = capture_->failed(*leased.lease);
    throw;
  }
  detail::JitResults out{.tensors = {}, .skeleton = skeleton_};
  for (const Result& r : results_) out.tensors.push_back(result(r, made, arguments));
  return out;
}

}  // namespace tinygrad::jitted

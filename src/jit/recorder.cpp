#include "jit/recorder.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "schedule/normalize.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::jitted {

using namespace tensor;

namespace {

uint64_t id_of(const UOp& memory) { return parts_of(memory)[0].arg_as<BufferArg>().id; }

bool is_part_of(const UOp& buffer, const UOp& memory) {
  return memory && std::ranges::find(parts_of(memory), buffer) != parts_of(memory).end();
}

RecordedBuffer describe(const UOp& buffer, Origin origin, size_t number) {
  const auto& b = buffer.arg_as<BufferArg>();
  return {.origin = origin, .number = number, .id = b.id, .size = b.size, .dtype = buffer.dtype(), .device = b.device};
}

}  // namespace

void Recording::drop_memory() {
  for (RecordedBuffer& b : buffers) {
    b.buffer = {};
    b.bytes = {};
  }
}

Recorder::Recorder(std::vector<RecordedArgument> arguments, std::vector<Symbol> variables, bool strict)
    : arguments_(std::move(arguments)), variables_(std::move(variables)), strict_(strict) {
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (const UOp& memory = arguments_[i].buffer)
      for (const UOp& part : parts_of(memory)) known_[id_of(part)] = describe(part, Origin::argument, i);
}

void Recorder::made(const UOp& buffer) { made_.insert(id_of(buffer)); }

void Recorder::uploaded(const UOp& buffer, std::span<const std::byte> bytes) {
  RecordedBuffer b = describe(buffer, Origin::upload, 0);
  b.buffer = BufferPtr(&buffer_of(buffer));
  b.content = content_key(bytes.data(), bytes.size());
  b.bytes.assign(bytes.begin(), bytes.end());
  known_[b.id] = std::move(b);
}

void Recorder::drew(const UOp& buffer, int64_t words) {
  known_[id_of(buffer)] = describe(buffer, Origin::random, recording_.draws.size());
  recording_.draws.push_back({words, buffer.arg_as<BufferArg>().device});
}

void Recorder::created(detail::TensorCell& cell) {
  created_.insert(cell.number);
  changed(cell);
}

void Recorder::reads(detail::TensorCell& cell) {
  if (created_.contains(cell.number)) return;
  auto& entry = read_[cell.number];
  if (entry.expired()) entry = cell.weak_from_this();
}

void Recorder::changed(detail::TensorCell& cell) {
  auto& entry = changed_[cell.number];
  if (entry.expired()) entry = cell.weak_from_this();
}

void Recorder::used_host(const char* what, const char* instead) {
  if (strict_) throw JitError(fmt::format("jit: the function calls {}; a replay runs only kernels and would not do it. {}", what, instead));
  recording_.host_use = what;
}

UOp Recorder::original_of(const UOp& buffer) const {
  for (const RecordedArgument& a : arguments_)
    if (a.buffer && a.buffer == buffer) return a.original;
  return {};
}

std::vector<detail::CellPtr> Recorder::alive(const Cells& some) {
  std::vector<detail::CellPtr> cells;
  for (const auto& [number, weak] : some)
    if (detail::CellPtr cell = weak.lock()) cells.push_back(std::move(cell));
  return cells;
}
std::vector<detail::CellPtr> Recorder::changed_cells() const { return alive(changed_); }
std::vector<detail::CellPtr> Recorder::read_cells() const { return alive(read_); }

void Recorder::check(const UOp& sink) {
  NodeSet written;
  std::vector<UOp> buffers;
  for (const UOp& u : toposort(sink)) {
    if (u.is(Op::BUFFER)) buffers.push_back(u);
    if (!u.is(Op::STORE)) continue;
    const UOp state = state_of_view(u.src(0));
    if (!state) continue;
    const UOp memory = buffer_of_state(state);
    for (const UOp& part : parts_of(memory)) {
      written.insert(part);
      stored_to_.insert(id_of(part));
    }
  }
  const auto note_access = [&](const UOp& memory, const UOp& as, bool is_written) {
    Access& access = accesses_.try_emplace(&buffer_of(memory).origin(), Access{id_of(as)}).first->second;
    access.several = access.several || access.first_id != id_of(as);
    access.written = access.written || is_written;
    if (access.several && access.written)
      throw JitError(
          "jit: the function writes memory that it reaches in two ways: two arguments share it, or it also finds the argument outside of "
          "its arguments. Pass it once, or a clone()");
  };
  for (const UOp& b : buffers) {
    // Only memory that was there before can be reached twice.
    if (made_in_call(id_of(b))) continue;
    note_access(b, b, written.contains(b));
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!is_part_of(b, arguments_[i].buffer) || !arguments_[i].copied_from) continue;
      for (const UOp& part : parts_of(arguments_[i].copied_from)) note_access(part, b, false);
      if (written.contains(b))
        throw JitError(
            fmt::format("jit: the function assigns to argument {}, which is a view of a part of a tensor's memory; pass the whole "
                        "tensor, or a clone()",
                        i));
    }
  }
}

uint32_t Recorder::place_of(const UOp& buffer) {
  const auto [it, is_new] = places_.try_emplace(id_of(buffer), uint32_t(recording_.buffers.size()));
  if (!is_new) return it->second;
  RecordedBuffer b;
  if (const auto found = known_.find(id_of(buffer)); found != known_.end()) {
    b = std::move(found->second);
  } else {
    b = describe(buffer, made_.contains(id_of(buffer)) ? Origin::made : Origin::state, 0);
    if (b.origin == Origin::state) b.buffer = BufferPtr(&buffer_of(buffer));
  }
  recording_.buffers.push_back(std::move(b));
  return it->second;
}

void Recorder::ran(const UOp& sink, const schedule::Schedule& s) {
  RecordedSchedule out{.graph = {}, .plan = s.plan, .inputs = {}, .computed = Computed(sink)};
  NodeMap<UOp> canonical;
  for (const UOp& b : s.inputs) {
    const uint32_t place = place_of(b);
    out.inputs.push_back(place);
    const auto& arg = b.arg_as<BufferArg>();
    canonical[b] = param(b.dtype(), arg.size, {.slot = int32_t(place), .device = arg.device});
  }
  const UOp plain = schedule::inline_calls(sink);  // how a FUNCTION is differentiated is nothing that ran
  for (const UOp& u : toposort(plain))
    if (u.is(Op::BIND)) canonical[u] = u.src(0);
  for (const auto& [variable, value] : s.variables) {
    const Symbol name = variable.arg_as<VarArg>().name;
    if (std::find(variables_.begin(), variables_.end(), name) == variables_.end()) recording_.variables[name] = value;
  }
  out.graph = substitute(plain, canonical);
  recording_.schedules.push_back(std::move(out));
}

namespace {

std::string describe(const RecordedBuffer& b) { return fmt::format("{} of {} elements on {}", repr(b.dtype), b.size, b.device.str()); }

std::string difference(const UOp& before, const UOp& now) {
  const std::vector<UOp> a = toposort(before), b = toposort(now);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool same = a[i].op() == b[i].op() && a[i].dtype() == b[i].dtype() && a[i].arg() == b[i].arg();
    if (same) continue;
    if (a[i].is(Op::CONST) && b[i].is(Op::CONST)) return fmt::format("the constant {} became {}", print_expr(a[i]), print_expr(b[i]));
    return fmt::format("{} became {}", print_expr(a[i]), print_expr(b[i]));
  }
  return fmt::format("a graph of {} nodes became one of {}", a.size(), b.size());
}

std::string difference(const RecordedBuffer& a, const RecordedBuffer& b) {
  if (a.origin == Origin::state && b.origin == Origin::state && a.id != b.id)
    return fmt::format(
        "a tensor that it finds outside of its arguments ({}) was replaced by another ({}); assign() to it, or make it an argument",
        describe(a), describe(b));
  if (a.origin == Origin::upload && b.origin == Origin::upload && a.content != b.content)
    return fmt::format("the values of a tensor that it makes from host values ({}) changed", describe(b));
  const bool same = a.origin == b.origin && a.number == b.number && a.size == b.size && a.dtype == b.dtype && a.device == b.device;
  if (!same) return fmt::format("it uses {} where it used {}", describe(b), describe(a));
  return {};
}

}  // namespace

std::string difference(const Recording& before, const Recording& now) {
  for (size_t i = 0; i < std::min(before.schedules.size(), now.schedules.size()); ++i) {
    if (before.schedules[i].graph == now.schedules[i].graph) continue;
    return difference(before.schedules[i].graph, now.schedules[i].graph);
  }
  if (before.schedules.size() != now.schedules.size())
    return fmt::format("it realizes {} times, before {} times", now.schedules.size(), before.schedules.size());
  if (before.buffers.size() != now.buffers.size())
    return fmt::format("it uses {} pieces of memory, before {}", now.buffers.size(), before.buffers.size());
  for (size_t i = 0; i < now.buffers.size(); ++i)
    if (std::string d = difference(before.buffers[i], now.buffers[i]); !d.empty()) return d;
  for (const auto& [name, value] : now.variables) {
    const auto other = before.variables.find(name);
    if (other == before.variables.end() || other->second != value)
      return fmt::format("variable {} is bound to another value by the function; make it an argument", name.str());
  }
  const auto same_draw = [](const RecordedDraw& a, const RecordedDraw& b) { return a.words == b.words && a.device == b.device; };
  if (!std::equal(before.draws.begin(), before.draws.end(), now.draws.begin(), now.draws.end(), same_draw))
    return "it draws other random tensors";
  return {};
}

}  // namespace tinygrad::jitted

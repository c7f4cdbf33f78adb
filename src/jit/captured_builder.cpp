#include "jit/captured_builder.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "device/device.h"
#include "shape/device.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::jitted {

using namespace tensor;

using detail::TensorCell;
using engine::CapturedSlot;
using engine::SlotKind;
using engine::written_arguments;

namespace {

uint64_t id_of(const UOp& memory) { return parts_of(memory)[0].arg_as<BufferArg>().id; }

/// Handles that the call has on each cell: the results twice, in the list here and as the function gave them.
std::unordered_map<const TensorCell*, uint32_t> count_handles(const detail::JitResults& results) {
  std::unordered_map<const TensorCell*, uint32_t> counts;
  for (const Tensor& t : results.tensors)
    if (t.defined()) counts[&detail::cell_of(t)] += 2;
  return counts;
}

}  // namespace

void CapturedCall::Builder::build(const CallArguments& arguments, const detail::JitResults& results) {
  find_kept(results);
  add_arguments(arguments);
  add_results(results);
  add_slots();
  add_checks();
  add_uploads();
  add_calls();
  add_result_copies();
  add_found();
  finish();
}

/// Memory of the call that tensors have which are not results, or which somebody has beside the results.
void CapturedCall::Builder::find_kept(const detail::JitResults& results) {
  const auto handles = count_handles(results);
  for (const detail::CellPtr& cell : detail::live_cells()) {
    const UOp state = state_of_view(cell->node());
    if (!is_plain_memory(state)) continue;
    const auto of_call = handles.find(cell.get());
    const bool is_kept = cell->handles() > (of_call == handles.end() ? 0 : of_call->second);
    for (size_t i = 0; i < recorder_.arguments().size(); ++i)
      if (is_kept && recorder_.arguments()[i].buffer == state)
        throw JitError(fmt::format("jit: something keeps argument {} after the call, where a replay would not put it; keep a clone()", i));
    if (!recorder_.made_in_call(id_of(state)) || !is_kept) continue;
    for (const UOp& part : parts_of(state)) {
      kept_[id_of(part)] = BufferPtr(&buffer_of(part));
      recorder_.place_of(part);
    }
  }
}

void CapturedCall::Builder::add_arguments(const CallArguments& arguments) {
  for (const auto& v : arguments.variables) out_.variables_.push_back(v.first);
  for (const CallArguments::Value& v : arguments.values) out_.arguments_.push_back({.slots = {}, .defined = bool(v.node)});
  for (size_t i = 0; i < out_.arguments_.size(); ++i)
    if (const UOp& memory = recorder_.arguments()[i].buffer)
      for (const UOp& part : parts_of(memory)) out_.arguments_[i].slots.push_back(recorder_.place_of(part));
}

CapturedCall::Result CapturedCall::Builder::result_of(const Tensor& t) {
  Result r;
  if (!t.defined()) return r;
  const UOp node = t.uop();
  r.shape = shape_of(node);
  r.dtype = node.dtype();
  r.is_param = t.is_param();
  r.weak = node.is_weak();
  const UOp memory = state_of_view(node);
  if (!is_plain_memory(memory)) {
    if (!is_empty(r.shape)) throw InternalError("jit: a result of the function has no memory");
    r.kind = Result::Kind::empty;
    const Symbol device = devices_of(node).first();
    r.device = device.empty() ? Device::default_name() : device;
    return r;
  }
  r.form = out_.form_of(node, memory);
  r.device = devices_of(memory).first();
  r.parts = devices_of(memory);
  for (const UOp& part : parts_of(memory)) {
    r.ids.push_back(id_of(part));
    r.slots.push_back(recorder_.place_of(part));
  }
  const RecordedBuffer& b = recorder_.recording().buffers[r.slots[0]];
  r.kind = b.origin == Origin::argument ? Result::Kind::argument : b.origin == Origin::state ? Result::Kind::fixed : Result::Kind::made;
  if (r.kind == Result::Kind::argument) r.number = b.number;
  if (r.kind == Result::Kind::made) returned_.insert(r.ids.begin(), r.ids.end());
  return r;
}

void CapturedCall::Builder::add_results(const detail::JitResults& results) {
  for (const Tensor& t : results.tensors) out_.results_.push_back(result_of(t));
}

CapturedSlot CapturedCall::Builder::slot_of(const RecordedBuffer& b) {
  CapturedSlot s{.dtype = b.dtype, .size = b.size, .device = b.device};
  const auto fixed = [&](const BufferPtr& buffer) {
    s.kind = SlotKind::fixed;
    s.buffer = buffer;
    return s;
  };
  if (b.origin == Origin::state) return fixed(b.buffer);
  if (b.origin == Origin::random) {
    s.kind = SlotKind::lease;
    return s;
  }
  if (const auto kept = kept_.find(b.id); kept != kept_.end()) return fixed(kept->second);
  const bool returned = returned_.contains(b.id);
  if (b.origin == Origin::upload && !returned && !recorder_.stored_to(b.id)) return fixed(b.buffer);
  if (b.origin == Origin::argument || returned) s.kind = SlotKind::call;
  return s;
}

void CapturedCall::Builder::add_slots() {
  for (const RecordedBuffer& b : recorder_.recording().buffers) {
    const size_t place = out_.slots_.size();
    out_.slots_.push_back(slot_of(b));
    if (b.origin == Origin::state) out_.state_slots_.push_back(place);
    if (out_.slots_.back().kind == SlotKind::call && b.origin != Origin::argument) out_.made_slots_.push_back(place);
    if (out_.slots_.back().kind == SlotKind::fixed) out_.fixed_slots_.push_back(place);
  }
}

/// What is looked at is in memory of each lease. Sizes depend on the variables of each call.
void CapturedCall::Builder::add_checks() {
  const auto unbound = [](const UOp& expression) {
    NodeMap<UOp> variables;
    for (const UOp& u : toposort(expression))
      if (u.is(Op::BIND)) variables[u] = u.src(0);
    return substitute(expression, variables);
  };
  for (const IndexCheck& c : recorder_.checks()) {
    Check& check = out_.checks_.emplace_back(Check{recorder_.place_of(c.largest), c});
    check.what = {.dtype = c.dtype,
                  .wraps = c.wraps,
                  .size = unbound(c.size),
                  .count = unbound(c.count),
                  .axis = c.axis,
                  .operation = c.operation,
                  .subject = c.subject};
    out_.slots_[check.slot].kind = SlotKind::lease;
  }
}

uint32_t CapturedCall::Builder::add_slot(CapturedSlot slot) {
  out_.slots_.push_back(std::move(slot));
  return uint32_t(out_.slots_.size() - 1);
}

void CapturedCall::Builder::add_copy(uint32_t to, uint32_t from) {
  const CapturedSlot& s = out_.slots_[from];
  const UOp source = param(s.dtype, s.size, {.slot = 1, .device = s.device});
  calls_.push_back({UOp(Op::COPY, s.dtype, {source}, DeviceArg{out_.slots_[to].device}), {to, from}});
}

/// Values from the host that the call changes or gives away are put there anew for each replay.
void CapturedCall::Builder::add_uploads() {
  const auto& buffers = recorder_.recording().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const RecordedBuffer& b = buffers[i];
    if (b.origin != Origin::upload || !(recorder_.stored_to(b.id) || kept_.contains(b.id) || returned_.contains(b.id))) continue;
    CapturedSlot values{.kind = SlotKind::fixed, .dtype = b.dtype, .size = b.size, .device = b.device};
    values.buffer = Buffer::make(Device::get(b.device.str()), b.size, b.dtype);
    values.buffer->copyin(b.bytes);
    add_copy(uint32_t(i), add_slot(std::move(values)));
  }
}

void CapturedCall::Builder::add_calls() {
  uint32_t part = 0;
  for (const RecordedSchedule& s : recorder_.recording().schedules) {
    ++part;
    std::vector<uint32_t> slots = s.inputs;
    for (const schedule::Temporary& t : s.plan->temporaries)
      slots.push_back(add_slot({.dtype = t.dtype, .size = t.size, .device = s.plan->arenas[t.arena].device}));
    for (const UOp& call : s.plan->linear.src()) {
      engine::RecordedCall& out = calls_.emplace_back(engine::RecordedCall{.body = call.src(0), .slots = {}, .bound = {}, .part = part});
      for (const UOp& a : call.src().subspan(1)) {
        if (a.is(Op::PARAM)) out.slots.push_back(slots[size_t(a.arg_as<ParamArg>().slot)]);
        if (a.is(Op::BIND)) out.bound.push_back(a);
      }
    }
  }
}

/// A result that something else keeps too has memory of its own.
void CapturedCall::Builder::add_result_copies() {
  std::unordered_map<uint64_t, uint32_t> copies;
  for (Result& r : out_.results_) {
    if (r.kind != Result::Kind::made) continue;
    for (size_t p = 0; p < r.slots.size(); ++p) {
      if (!kept_.contains(r.ids[p])) continue;
      auto [copy, is_new] = copies.try_emplace(r.ids[p], 0);
      if (is_new) {
        const CapturedSlot& kept = out_.slots_[r.slots[p]];
        const auto from = uint32_t(r.slots[p]);
        copy->second = add_slot({.kind = SlotKind::call, .dtype = kept.dtype, .size = kept.size, .device = kept.device});
        out_.made_slots_.push_back(copy->second);
        add_copy(copy->second, from);
      }
      r.slots[p] = copy->second;
    }
  }
}

void CapturedCall::Builder::add_found() {
  for (const detail::CellPtr& c : recorder_.read_cells()) {
    Found& f = out_.found_.emplace_back(Found{c, {}, c->version()});
    const UOp state = state_of_view(c->node());
    if (state) f.buffer_id = id_of(buffer_of_state(state));
  }
}

namespace {

/// Whether a kernel's work depends on a variable that each call brings.
bool has_variable(const UOp& body, std::span<const Symbol> variables) {
  for (const UOp& u : toposort(body))
    if (u.is(Op::VAR) && std::find(variables.begin(), variables.end(), u.arg_as<VarArg>().name) != variables.end()) return true;
  return false;
}

}  // namespace

/// Runs the calls that only read what is the same in each call, and takes them out. What they have computed stays.
void CapturedCall::Builder::prune(const Variables& variables) {
  std::vector<bool> varying(out_.slots_.size()), varies(calls_.size());
  std::vector<int> writers(out_.slots_.size());
  for (size_t i = 0; i < varying.size(); ++i) varying[i] = out_.slots_[i].kind == SlotKind::call || out_.slots_[i].kind == SlotKind::lease;
  std::vector<std::vector<bool>> written;
  for (size_t i = 0; i < calls_.size(); ++i) {
    written.push_back(written_arguments(calls_[i]));
    varies[i] = calls_[i].body.is(Op::SINK) && has_variable(calls_[i].body, out_.variables_);
    for (size_t k = 0; k < written[i].size(); ++k) {
      if (!written[i][k]) continue;
      const uint32_t slot = calls_[i].slots[k];
      ++writers[slot];
      if (out_.slots_[slot].kind == SlotKind::fixed) varying[slot] = true;  // state that changes
    }
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const auto& slots = calls_[i].slots;
      varies[i] = varies[i] || std::any_of(slots.begin(), slots.end(), [&](uint32_t s) { return varying[s]; });
      // What is written several times may be read between.
      for (size_t k = 0; varies[i] && k < slots.size(); ++k)
        if ((written[i][k] || writers[slots[k]] > 1) && !varying[slots[k]]) varying[slots[k]] = more = true;
    }
  }
  std::vector<engine::RecordedCall> once, again;
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (varies[i]) {
      again.push_back(calls_[i]);
      continue;
    }
    once.push_back(calls_[i]);
    for (size_t k = 0; k < written[i].size(); ++k) {
      CapturedSlot& s = out_.slots_[calls_[i].slots[k]];
      if (!written[i][k] || s.kind == SlotKind::fixed) continue;
      s.kind = SlotKind::fixed;
      s.buffer = Buffer::make(Device::get(s.device.str()), s.size, s.dtype);
      s.buffer->ensure_allocated();
    }
  }
  if (once.empty()) return;
  Options options = current_options();
  options.pack_memory = 0;  // it runs once
  engine::Capture capture(out_.slots_, once, variables, options);
  auto lease = capture.lease();
  const std::vector<Buffer*> none(out_.slots_.size());
  const std::vector<int64_t> values(out_.variables_.size());
  capture.run(*lease, none, values);
  calls_ = std::move(again);
}

namespace {

/// What keeps the views in these graphs within their axes, where the bounds of the variables do not, and what was assumed of sizes when
/// the graphs were built.
std::vector<UOp> limits_of(const std::vector<RecordedSchedule>& schedules, const SizeAssumptions& assumed) {
  std::vector<UOp> out;
  for (const UOp& difference : assumed.not_negative()) {
    NodeMap<UOp> variables;
    for (const UOp& u : toposort(difference))
      if (u.is(Op::BIND)) variables[u] = u.src(0);
    out.push_back(substitute(difference, variables));
  }
  const auto keep = [&](const SInt& low, const SInt& high) {
    if (surely_not_greater(low, high)) return;
    const UOp room = (high - low).uop();
    if (std::find(out.begin(), out.end(), room) == out.end()) out.push_back(room);
  };
  for (const RecordedSchedule& s : schedules)
    for (const UOp& u : toposort(s.graph)) {
      if (!u.is(Op::SHRINK)) continue;
      const Shape& in = shape_of(u.src(0));
      for (size_t i = 0; i < in.size(); ++i) {
        const SInt begin(u.src(1 + 2 * i)), end(u.src(2 + 2 * i));
        keep(0, begin);
        keep(begin, end);
        keep(end, in[i]);
      }
    }
  return out;
}

}  // namespace

void CapturedCall::Builder::finish() {
  Recording& recording = recorder_.recording();
  out_.limits_ = limits_of(recording.schedules, recorder_.assumptions());
  for (const RecordedDraw& d : recording.draws) out_.draws_.push_back({d.words, {}});
  for (size_t i = 0; i < recording.buffers.size(); ++i)
    if (recording.buffers[i].origin == Origin::random) out_.draws_[recording.buffers[i].number].slot = i;
  Variables variables;
  for (Symbol v : out_.variables_) variables.emplace_back(v, std::nullopt);
  for (const auto& [name, value] : recording.variables) variables.emplace_back(name, value);
  if (prune_) prune(variables);
  out_.capture_ = std::make_unique<engine::Capture>(out_.slots_, calls_, variables, current_options(), out_.looked_at());
  out_.capture_->note_made(out_.made_slots_);
  out_.calls_ = calls_;
  out_.bound_ = std::move(variables);
  if (out_.capture_->linear().src_count() == 0 && out_.results_.empty() && !prune_)
    throw JitError("jit: the function computes nothing; there is nothing to capture");
  out_.find_uses();
  recording.drop_memory();
  out_.recording_ = std::move(recording);
}

}  // namespace tinygrad::jitted

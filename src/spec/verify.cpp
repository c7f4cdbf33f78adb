#include "spec/verify.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "shape/ranges.h"
#include "shape/shape.h"
#include "spec/border.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::spec {

rewrite::OpSet ops(std::initializer_list<Op> list) {
  rewrite::OpSet out;
  for (Op op : list) out.set(size_t(op));
  return out;
}
rewrite::OpSet ops(Group group) {
  rewrite::OpSet out;
  for (int op = 0; op < op_count; ++op) out.set(size_t(op), in_group(Op(op), group));
  return out;
}
rewrite::Pat any_of(const rewrite::OpSet& set) { return rewrite::Pat(set, std::nullopt, false); }
rewrite::Pat any_but(const rewrite::OpSet& set) { return any_of(~set); }
rewrite::Pat any_node() { return any_of(rewrite::OpSet().set()); }

std::string describe_value(const UOp& u) { return fmt::format("{} of shape {}", repr(u.dtype()), to_string(shape_of(u))); }

Graph::Graph(const UOp& r) : root(r) {
  for (const UOp& u : toposort(r)) own.insert(u);
}

void Graph::enter(const UOp& u) {
  if (u.is(Op::BUFFER) || u.is(Op::MSTACK) || (u.is(Op::PARAM) && u.src_count() > 0)) {
    memory[u] = u;
  } else if (u.in(Group::movement) || u.is(Op::AFTER) || u.is(Op::REALIZED)) {
    if (const UOp base = memory_of(u.src(0))) memory[u] = base;
  }
}

UOp Graph::memory_of(const UOp& u) const {
  const UOp* found = memory.find(u.is(Op::INDEX) ? u.src(0) : u);
  return found ? *found : UOp();
}

namespace {

void join(SmallVector<uint64_t, 2>& all, const SmallVector<uint64_t, 2>& more) {
  while (all.size() < more.size()) all.push_back(0);
  for (size_t i = 0; i < more.size(); ++i) all[i] |= more[i];
}

bool is_optimized(const UOp& sink) {
  const auto* kernel = std::get_if<KernelArg>(&sink.arg());
  return kernel && kernel->optimized;
}
}  // namespace

KernelGraph::KernelGraph(const UOp& r) : Graph(r), optimized(is_optimized(r)) {}

UOps KernelGraph::reduces_in(std::span<const UOp> values) const {
  Bits all;
  for (const UOp& v : values)
    if (const Bits* bits = inside_.find(v)) join(all, *bits);
  UOps out;
  for (size_t i = 0; i < reduces_.size(); ++i)
    if (i / 64 < all.size() && (all[i / 64] >> (i % 64) & 1)) out.push_back(reduces_[i]);
  return out;
}

void KernelGraph::enter(const UOp& u) {
  Graph::enter(u);
  Bits bits;
  for (const UOp& s : u.src())
    if (const Bits* below = inside_.find(s)) join(bits, *below);
  if (u.is(Op::REDUCE)) {
    const size_t n = reduces_.size();
    reduces_.push_back(u);
    while (bits.size() <= n / 64) bits.push_back(0);
    bits[n / 64] |= uint64_t{1} << (n % 64);
  }
  if (!bits.empty()) inside_[u] = bits;
}

bool Program::in_scope(const UOp& u) const {
  const size_t* block = block_of_.find(u);
  return block && is_open_[*block];
}

void Program::enter(const UOp& u) {
  if (u.is(Op::RANGE) || u.is(Op::IF)) {
    blocks_.push_back({u, is_open_.size()});
    is_open_.push_back(true);
  } else if (u.is(Op::END) || u.is(Op::ENDIF)) {
    is_open_[blocks_.back().number] = false;
    blocks_.pop_back();
  }
  block_of_[u] = blocks_.back().number;
  if (u.is(Op::RANGE)) has_threads = has_threads || u.arg_as<RangeArg>().kind == AxisKind::thread;
  if (is_asynchronous(u)) return enter_product(u);
  if (u.is(Op::WMMA_WAIT)) under_way_ = NodeSet();
  if (std::ranges::any_of(u.src(), [&](const UOp& s) { return is_under_way(s); })) under_way_.insert(u);
}

void Program::enter_product(const UOp& u) {
  const UOp& sums = u.src(2);
  if (sums.is(Op::WMMA) && is_under_way(sums)) overwritten_.insert(sums);
  under_way_.insert(u);
  if (is_tensor_memory(sums)) under_way_.insert(sums.src(0));
}

namespace {

/// The node on one line, cut; it may be malformed.
std::string brief(const UOp& u) {
  constexpr size_t most = 300;
  std::string sources;
  for (const UOp& s : u.src()) {
    if (sources.size() > most) break;
    sources += fmt::format("{}{} {}", sources.empty() ? "" : ", ", name(s.op()), name(s.dtype()));
  }
  const std::string arg = to_string(u.arg());
  std::string out = fmt::format("{} {}({}{}{})", name(u.op()), name(u.dtype()), sources, arg.empty() ? "" : "; ", arg);
  try {
    out += " = " + print_expr(u);
  } catch (const InternalError&) {  // a source with an arg of another op
  }
  if (out.size() <= 2 * most) return out;
  return out.substr(0, 2 * most) + "...";
}

[[noreturn]] void fail(std::string_view border, std::string_view rule, const UOp& u, const Violation& v) {
  throw InternalError(fmt::format("verify {}: rule '{}' is broken at {}: got {}, expects {}", border, rule, brief(u), v.got, v.expects));
}

template <class Ctx>
void check(std::string_view border, const UOp& u, const BorderRules<Ctx>& rules, void* ctx) {
  Verdict found;
  if (const auto* rule = rules.table().apply(u, ctx, &found, nullptr)) fail(border, rule->info.name, u, *found);
}
void check_typed(std::string_view border, const UOp& u) { check(border, u, typed_rules(), nullptr); }
void check_effects(std::string_view border, const UOp& u, Graph& graph) { check(border, u, effect_rules(), &graph); }

template <class Graph, class Ctx>
void check_graph(std::string_view border, std::span<const UOp> nodes, Graph& graph, const BorderRules<Ctx>& rules) {
  for (const UOp& u : nodes) {
    check_typed(border, u);
    check_effects(border, u, graph);
    check(border, u, rules, &graph);
    graph.enter(u);
  }
}

/// The mark of REALIZEDs with a history that keeps all rules; 0 if there are no more marks.
uint8_t verified_mark() {
  static const uint8_t mark = rewrite::detail::RuleTable({}, true).normal_mark();
  return mark;
}

/// The histories of realized values below `sink` that were not verified yet, and then the sink itself: nodes of a tensor graph, sources
/// first. Each realize adds to a history, so that walking all of it each time would take the square of its length.
std::vector<UOp> unverified_nodes(const UOp& sink) {
  struct Frame {
    const UOp* node;
    std::span<const UOp> sources;
  };
  std::vector<UOp> out;
  std::vector<Frame> stack;
  NodeSet seen;
  const auto visit = [&](const UOp& u) {
    if (seen.insert(u)) stack.push_back({&u, u.is(Op::REALIZED) && u->is_normal(verified_mark()) ? scope_sources(u) : u.src()});
  };
  visit(sink);
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.sources.empty()) {
      out.push_back(*f.node);
      stack.pop_back();
    } else {
      const UOp& next = f.sources.front();
      f.sources = f.sources.subspan(1);
      visit(next);
    }
  }
  return out;
}

}  // namespace

void verify_tensor_graph(const UOp& sink) {
  TensorGraph graph(sink);
  const std::vector<UOp> nodes = unverified_nodes(sink);
  check_graph("tensor graph", nodes, graph, tensor_rules());
  for (const UOp& u : nodes)
    if (u.is(Op::REALIZED)) u->set_normal(verified_mark());
}

void verify_kernel(const UOp& sink) {
  KernelGraph graph(sink);
  check_graph("kernel", toposort(sink, Scopes::enter), graph, kernel_rules());
}

void verify_linear(const UOp& linear, const std::function<bool(const UOp&)>& supports) {
  constexpr std::string_view border = "linear program";
  const auto* kind = std::get_if<LinearArg>(&linear.arg());
  if (!linear.is(Op::LINEAR) || !kind || kind->kind != 1)
    fail(border, "root", linear, {to_string(linear.arg()), "a LINEAR of a kernel's instructions"});
  Program program(supports);
  for (const UOp& u : linear.src()) {
    check_typed(border, u);
    check(border, u, linear_rules(), &program);
    program.enter(u);
  }
  if (program.depth() > 0)
    fail(border, "every block ends", program.innermost(), {"the end of the list inside it", "an END or ENDIF of it"});
}

void verify_between(const UOp& sink, std::string_view step) {
  Graph graph(sink);
  for (const UOp& u : toposort(sink, Scopes::enter)) {
    check_typed(step, u);
    check_effects(step, u, graph);
    graph.enter(u);
  }
}

namespace {

/// The calls of a schedule, with the loops around them.
class ScheduleCheck {
 public:
  explicit ScheduleCheck(std::string_view step) : step_(step) {}

  void list(const UOp& linear) {
    const auto* kind = std::get_if<LinearArg>(&linear.arg());
    if (!linear.is(Op::LINEAR) || !kind || kind->kind != 0) fail(step_, "list", linear, {to_string(linear.arg()), "a LINEAR of calls"});
    for (const UOp& s : linear.src()) {
      if (s.is(Op::END))
        loop(s);
      else
        call(s);
    }
  }

 private:
  void loop(const UOp& end) {
    check_typed(step_, end);
    const UOp& range = end.src(1);
    const bool is_new = range.is(Op::RANGE) && std::ranges::find(open_, range) == open_.end();
    if (end.src_count() != 2 || !is_new) fail(step_, "loop", end, {print_expr(range), "END(LINEAR, RANGE) of a range of its own"});
    open_.push_back(range);
    list(end.src(0));
    open_.pop_back();
  }

  void call(const UOp& call) {
    if (!call.is(Op::CALL) || call.src_count() == 0 ||
        !(call.src(0).is(Op::SINK) || call.src(0).is(Op::COPY) || call.src(0).is(Op::COLLECTIVE)))
      fail(step_, "step", call, {print_expr(call), "a CALL of a kernel or a transfer, or a loop around such"});
    for (const UOp& a : call.src().subspan(1))
      if (!is_argument(a)) fail(step_, "argument", call, {print_expr(a), "memory, a variable, or one with a value or an open loop"});
    if (bodies_.insert(call.src(0)) && call.src(0).is(Op::SINK)) verify_between(call.src(0), step_);
  }

  bool is_argument(const UOp& a) const {
    if (!a.is(Op::BIND)) return a.is(Op::PARAM) || a.is(Op::BUFFER) || a.is(Op::VAR);
    return a.src(0).is(Op::VAR) && (a.src(1).is(Op::CONST) || std::ranges::find(open_, a.src(1)) != open_.end());
  }

  const std::string_view step_;
  std::vector<UOp> open_;
  NodeSet bodies_;
};

}  // namespace

void verify_schedule(const UOp& linear, std::string_view step) { ScheduleCheck(step).list(linear); }

}  // namespace tinygrad::spec

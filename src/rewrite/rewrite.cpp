#include "rewrite/rewrite.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::rewrite {

namespace {

std::atomic<RewriteObserver*> current_observer{nullptr};

/// The mark of nodes that stay as they are; 0 if the table keeps none, or this is not a rewrite to its normal form.
uint8_t mark_of(const detail::RuleTable& table, const RewriteOptions& options) {
  return options.single_walk || options.enter_bodies ? uint8_t(0) : table.normal_mark();
}

/// One rewrite. The memo maps a node to its final form, or to nullptr while that is being found; what the roots do not hold is kept
/// alive in `kept_`, so addresses are not reused meanwhile.
class Engine {
 public:
  Engine(const detail::RuleTable& table, void* ctx, const RewriteOptions& options)
      : table_(table),
        ctx_(ctx),
        options_(options),
        observer_(current_observer.load(std::memory_order_acquire)),
        mark_(mark_of(table, options)),
        counts_(table.rules().size()) {}
  ~Engine() { table_.record(counts_); }

  UOp rewrite(const UOp& root) {
    require(root.get());
    for (size_t n = 1; !stack_.empty(); ++n) {
      if (n % 1024 == 0) check_interrupt();
      advance();
    }
    return UOp::share(final_of(root.get()));
  }

 private:
  /// A node whose final form is being found. It passes through the stages in order.
  enum class Stage : uint8_t {
    start,    ///< nothing done
    sources,  ///< its sources are being rewritten
    waiting,  ///< it became `next`, whose final form will be its own
  };
  struct Frame {
    const Node* node;
    const Node* next = nullptr;
    const detail::CompiledRule* rule = nullptr;  ///< that made `next`, if a rule did
    uint32_t source = 0;                         ///< sources before this one are final
    Stage stage = Stage::start;
  };
  static constexpr size_t max_chain = 100'000;

  /// The final form of a node if known; else nullptr, and a frame that finds it is on the stack.
  const Node* require(const Node* node) {
    if (is_normal(node)) return node;
    auto [value, fresh] = memo_.insert(node, nullptr);
    if (fresh) {
      stack_.push_back({node});
      return nullptr;
    }
    if (!*value) throw_loop(node);
    return *value;
  }

  bool is_normal(const Node* node) const { return mark_ && node->is_normal(mark_); }

  /// The result for a node that require() has given.
  const Node* final_of(const Node* node) { return is_normal(node) ? node : *memo_.find(node); }

  void finish(const Node* result) {
    *memo_.find(stack_.back().node) = result;
    stack_.pop_back();
  }

  const Node* keep(UOp u) {
    kept_.push_back(std::move(u));
    return kept_.back().get();
  }

  /// What a rule makes of the node, kept alive; nullptr if none applies.
  const Node* apply_rules(const Node* node, const detail::CompiledRule*& rule) {
    if (!table_.has_rules_for(node->op)) return nullptr;
    const UOp u = UOp::share(node);
    UOp result;
    rule = table_.apply(u, ctx_, &result, counts_.data());
    if (!rule) return nullptr;
    if (observer_) observer_->step(rule->info, u, result);
    return keep(std::move(result));
  }

  size_t first_source(const Node* node) const {
    if (options_.enter_bodies) return 0;
    switch (node->op) {
      case Op::CALL: return 1;
      case Op::FUNCTION: return node->source_count;
      default: return 0;
    }
  }

  /// The node with final sources; itself if none changed.
  const Node* rebuild(const Node* node) {
    const std::span<const UOp> sources = node->sources();
    const size_t first = first_source(node);
    size_t i = first;
    while (i < sources.size() && final_of(sources[i].get()) == sources[i].get()) ++i;
    if (i == sources.size()) return node;
    UOps fresh(sources.begin(), sources.begin() + std::ptrdiff_t(i));
    fresh.reserve(sources.size());
    for (; i < sources.size(); ++i) fresh.push_back(UOp::share(final_of(sources[i].get())));
    return keep(UOp(node->op, node->dtype, fresh, node->arg));
  }

  void advance() {
    Frame& f = stack_.back();
    if (f.stage == Stage::start) {
      if (options_.order == Order::top_down && replaced(f)) return;
      f.source = uint32_t(first_source(f.node));
      f.stage = Stage::sources;
    }
    if (f.stage == Stage::waiting) return finish(final_of(f.next));
    const std::span<const UOp> sources = f.node->sources();
    while (f.source < sources.size())
      if (!require(sources[f.source++].get())) return;  // `f` is no longer valid: a frame was pushed
    const Node* rebuilt = rebuild(f.node);
    if (options_.single_walk) {
      const detail::CompiledRule* rule = nullptr;
      const Node* result = options_.order == Order::bottom_up ? apply_rules(rebuilt, rule) : nullptr;
      return finish(result ? result : rebuilt);
    }
    if (rebuilt != f.node) return become(f, rebuilt, nullptr);
    if (options_.order == Order::bottom_up && replaced(f)) return;
    if (mark_) f.node->set_normal(mark_);
    finish(f.node);
  }

  /// Applies a rule to the frame's node; true if one did.
  bool replaced(Frame& f) {
    const detail::CompiledRule* rule = nullptr;
    const Node* result = apply_rules(f.node, rule);
    if (!result) return false;
    if (options_.single_walk)
      finish(result);
    else
      become(f, result, rule);
    return true;
  }

  /// The frame's node became another, whose final form is needed first.
  void become(Frame& f, const Node* next, const detail::CompiledRule* rule) {
    f.next = next;
    f.rule = rule;
    f.stage = Stage::waiting;
    if (rule && ++chain_ > max_chain && stack_is_chain()) throw_loop(next);
    if (const Node* known = require(next)) finish(known);
  }

  /// True if the topmost frames only wait for one another, too many in a row: rules that grow a node for ever.
  bool stack_is_chain() {
    chain_ = 0;
    if (stack_.size() < max_chain) return false;
    return std::all_of(stack_.end() - std::ptrdiff_t(max_chain), stack_.end(), [](const Frame& f) { return f.stage == Stage::waiting; });
  }

  [[noreturn]] void throw_loop(const Node* node) {
    std::vector<std::string> names;
    for (auto f = stack_.rbegin(); f != stack_.rend() && names.size() < 8; ++f) {
      if (f->rule && std::ranges::find(names, f->rule->info.name) == names.end()) names.push_back(f->rule->info.name);
      if (f->node == node) break;
    }
    std::ranges::reverse(names);
    throw InternalError(fmt::format("graph_rewrite {}: rules lead from a node back to it, or on for ever: {}; the node is {}",
                                    options_.name, fmt::join(names, ", "), print_expr(UOp::share(node))));
  }

  const detail::RuleTable& table_;
  void* const ctx_;
  const RewriteOptions options_;
  RewriteObserver* const observer_;
  const uint8_t mark_;  ///< of nodes in normal form, or 0
  std::vector<detail::RuleCount> counts_;
  NodeMap<const Node*> memo_;
  std::vector<Frame> stack_;
  std::vector<UOp> kept_;
  size_t chain_ = 0;  ///< rule applications since the stack was last looked at
};

}  // namespace

RewriteObserver* rewrite_observer() { return current_observer.load(std::memory_order_acquire); }
RewriteObserver* set_rewrite_observer(RewriteObserver* observer) { return current_observer.exchange(observer, std::memory_order_acq_rel); }

std::vector<UOp> detail::run(std::span<const UOp> roots, const RuleTable& table, void* ctx, const RewriteOptions& options) {
  RewriteObserver* observer = current_observer.load(std::memory_order_acquire);
  if (observer) observer->begin(options.name, roots);
  const uint8_t mark = mark_of(table, options);
  if (mark && std::ranges::all_of(roots, [&](const UOp& r) { return r->is_normal(mark); })) {
    std::vector<UOp> same(roots.begin(), roots.end());
    if (observer) observer->end(options.name, roots, same);
    return same;
  }
  Engine engine(table, ctx, options);
  std::vector<UOp> out;
  out.reserve(roots.size());
  for (const UOp& r : roots) out.push_back(engine.rewrite(r));
  if (observer) observer->end(options.name, roots, out);
  return out;
}

}  // namespace tinygrad::rewrite

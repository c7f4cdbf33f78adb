#pragma once
/// Rewriting a graph with a rule table.

#include <span>
#include <vector>

#include "rewrite/rules.h"

namespace tinygrad::rewrite {

enum class Order : uint8_t {
  bottom_up,  ///< a node is matched after its sources were rewritten
  top_down,   ///< a node is matched before, and again when its sources have changed
};

struct RewriteOptions {
  Order order = Order::bottom_up;
  /// What traces and error messages call it; must outlive the call (a literal).
  const char* name = "rewrite";
  /// Each node of the graph is matched once and a rule's result is taken as it is: no fixed point, so a rule may wrap the node it
  /// matched. Bottom-up, a node is matched with its new sources; top-down, only outermost matches are replaced and nothing below them.
  bool single_walk = false;
  /// Also rewrite inside the bodies of FUNCTION and CALL.
  bool enter_bodies = false;
};

/// Sees every rewrite of the process while it is set: for traces and for checking each step. Called on the thread that rewrites.
class RewriteObserver {
 public:
  virtual ~RewriteObserver() = default;
  virtual void begin(const char* name, std::span<const UOp> roots) { (void)name, (void)roots; }
  virtual void step(const RuleInfo& rule, const UOp& before, const UOp& after) { (void)rule, (void)before, (void)after; }
  virtual void end(const char* name, std::span<const UOp> before, std::span<const UOp> after) { (void)name, (void)before, (void)after; }
  /// A step of a pipeline (pipeline.h) has ended.
  virtual void stage(const char* pipeline, const char* step, const UOp& before, const UOp& after) {
    (void)pipeline, (void)step, (void)before, (void)after;
  }
};
/// Sets the observer (nullptr: none) and returns the one before. The caller keeps it alive until it is replaced and no rewrite runs.
RewriteObserver* set_rewrite_observer(RewriteObserver* observer);
/// The one that is set, or nullptr.
RewriteObserver* rewrite_observer();

namespace detail {
std::vector<UOp> run(std::span<const UOp> roots, const RuleTable& table, void* ctx, const RewriteOptions& options);
}

/// The graph after rules have been applied until none applies to any node of it; the *same* node if none ever did. Equal nodes are
/// rewritten once, so a rule's result may depend on the node and on things in `ctx` that do not change meanwhile. Closed bodies are
/// left alone unless asked. No recursion; time is linear in nodes visited. Rules that undo each other, or grow a node for ever, are
/// found: InternalError with their names.
template <class Ctx>
UOp graph_rewrite(const UOp& root, const Rules<Ctx>& rules, Ctx& ctx, const RewriteOptions& options = {}) {
  return std::move(detail::run(std::span(&root, 1), rules.table(), Rules<Ctx>::erase(&ctx), options)[0]);
}
inline UOp graph_rewrite(const UOp& root, const Rules<void>& rules, const RewriteOptions& options = {}) {
  return std::move(detail::run(std::span(&root, 1), rules.table(), nullptr, options)[0]);
}
/// The same over several roots with one memo.
template <class Ctx>
std::vector<UOp> graph_rewrite(std::span<const UOp> roots, const Rules<Ctx>& rules, Ctx& ctx, const RewriteOptions& options = {}) {
  return detail::run(roots, rules.table(), Rules<Ctx>::erase(&ctx), options);
}
inline std::vector<UOp> graph_rewrite(std::span<const UOp> roots, const Rules<void>& rules, const RewriteOptions& options = {}) {
  return detail::run(roots, rules.table(), nullptr, options);
}

}  // namespace tinygrad::rewrite

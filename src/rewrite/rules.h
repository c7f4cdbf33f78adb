#pragma once
/// Rule tables: pattern -> captureless function.

#include <atomic>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "rewrite/matcher.h"

namespace tinygrad::rewrite {

/// One rule of a table, as it is kept for statistics and traces.
struct RuleInfo {
  std::string name;  ///< as given, or "file:line"
  std::source_location location;
  mutable std::atomic<uint64_t> hits = 0, tries = 0, nanoseconds = 0;
};

struct RuleStatistics {
  std::string name;
  std::string location;
  uint64_t hits = 0;         ///< times it gave a result
  uint64_t tries = 0;        ///< times its pattern was run on a node
  uint64_t nanoseconds = 0;  ///< spent in it while set_rule_timing(true)
};
/// Every rule of every table made so far, in the order they were made; a rule that several tables share is listed once.
std::vector<RuleStatistics> rule_statistics();
void reset_rule_statistics();
/// Turns measuring of each rule's time on or off (off at first); it slows rewriting.
void set_rule_timing(bool on);
bool rule_timing();

namespace detail {

using AnyFunction = void (*)();
/// Calls `function` with its right type; true if it gave a result, which is then in `*result`.
using Invoke = bool (*)(AnyFunction function, const Match& m, void* ctx, void* result);

struct CompiledRule {
  CompiledPattern pattern;
  AnyFunction function = nullptr;
  Invoke invoke = nullptr;
  std::optional<Capture> capture;  ///< the result, instead of a function
  RuleInfo info;
  mutable std::atomic<bool> registered{false};

  CompiledRule(const Pat& p, AnyFunction f, Invoke i, std::optional<Capture> c, std::string name, std::source_location where);
};

/// How often each rule of a table was tried and gave a result, in one rewrite.
struct RuleCount {
  uint32_t hits = 0, tries = 0;
};

/// The rules of one table, bucketed by the op of the root.
class RuleTable {
 public:
  explicit RuleTable(std::vector<std::shared_ptr<const CompiledRule>> rules, bool remembers = false);

  const std::vector<std::shared_ptr<const CompiledRule>>& rules() const { return rules_; }
  bool has_rules_for(Op op) const { return !buckets_[size_t(op)].empty(); }
  /// Tries the rules in table order; the first that gives a result, or nullptr. `counts`, if given, has a place for each rule.
  const CompiledRule* apply(const UOp& u, void* ctx, void* result, RuleCount* counts) const;
  /// The mark of nodes that no rule changes, nor anything below them; 0 if the table has none.
  uint8_t normal_mark() const { return normal_mark_; }
  /// Adds the counts to the rules' statistics.
  void record(const std::vector<RuleCount>& counts) const;

 private:
  struct Entry {
    OpSet required;
    uint32_t rule;
  };

  std::vector<std::shared_ptr<const CompiledRule>> rules_;
  std::array<std::vector<Entry>, op_count> buckets_;
  uint8_t normal_mark_ = 0;
};

inline bool store_result(UOp value, const UOp& root, void* result) {
  if (!value || value == root) return false;
  *static_cast<UOp*>(result) = std::move(value);
  return true;
}
template <class R>
bool store_result(std::optional<R> value, const UOp&, void* result) {
  if (!value) return false;
  *static_cast<std::optional<R>*>(result) = std::move(value);
  return true;
}

template <class R>
using Returned = std::conditional_t<std::is_same_v<R, UOp>, UOp, std::optional<R>>;

/// Calls a rule's function: a function pointer, or a captureless lambda, which is made anew.
template <class F, class Ctx, class R>
bool invoke(AnyFunction function, const Match& m, void* ctx, void* result) {
  const F f = [&] {
    if constexpr (std::is_pointer_v<F>)
      return reinterpret_cast<F>(function);
    else
      return F{};
  }();
  if constexpr (std::is_invocable_v<F, const Match&>)
    return store_result(Returned<R>(f(m)), m.root(), result);
  else
    return store_result(Returned<R>(f(m, *static_cast<Ctx*>(ctx))), m.root(), result);
}

}  // namespace detail

/// A table of rules {pattern, function[, name]}, tried in order. The function is a captureless lambda taking `const Match&`, or also
/// `Ctx&`; where only a capture is given, the result is what it bound. A null UOp, or the matched node itself, means "does not
/// apply": then other orders of commutative sources are tried, then the next rule. `Rules<void>` composes with any context.
///
/// With another result type R a table is a dispatch by pattern (a verifier, a renderer): rules return std::optional<R>, and apply()
/// gives the first result. Only tables of UOp can be given to graph_rewrite.
template <class Ctx = void, class R = UOp>
class Rules {
 public:
  class Rule {
   public:
    template <class F>
      requires(!std::is_same_v<F, Capture>)
    Rule(const Pat& p, F f, const char* name = "", std::source_location where = std::source_location::current()) {
      detail::AnyFunction function = nullptr;
      if constexpr (std::is_pointer_v<F>)
        function = reinterpret_cast<detail::AnyFunction>(f);
      else
        static_assert(std::is_empty_v<F>, "a rule's function may not capture: state goes through the context");
      compiled_ = std::make_shared<detail::CompiledRule>(p, function, &detail::invoke<F, Ctx, R>, std::nullopt, name, where);
    }
    Rule(const Pat& p, Capture result, const char* name = "", std::source_location where = std::source_location::current())
      requires std::is_same_v<R, UOp>
        : compiled_(std::make_shared<detail::CompiledRule>(p, nullptr, nullptr, result, name, where)) {}

   private:
    friend class Rules;
    std::shared_ptr<const detail::CompiledRule> compiled_;
  };

  Rules() : Rules(std::make_shared<const detail::RuleTable>(std::vector<std::shared_ptr<const detail::CompiledRule>>{})) {}
  Rules(std::initializer_list<Rule> rules) {
    std::vector<std::shared_ptr<const detail::CompiledRule>> all;
    for (const Rule& r : rules) all.push_back(r.compiled_);
    table_ = std::make_shared<const detail::RuleTable>(std::move(all));
  }
  /// Rules without a context serve under any.
  Rules(const Rules<void, R>& plain)
    requires(!std::is_void_v<Ctx>)
      : table_(plain.table_) {}

  /// The first result of a rule for this one node; a null UOp (or an empty optional) if none applies.
  auto apply(const UOp& u) const
    requires std::is_void_v<Ctx>
  {
    detail::Returned<R> result{};
    table_->apply(u, nullptr, &result, nullptr);
    return result;
  }
  template <class C>
    requires(!std::is_void_v<Ctx> && std::is_convertible_v<C*, Ctx*>)
  auto apply(const UOp& u, C& ctx) const {
    detail::Returned<R> result{};
    table_->apply(u, erase(static_cast<Ctx*>(&ctx)), &result, nullptr);
    return result;
  }

  /// The rules of `a`, then those of `b`.
  friend Rules operator+(const Rules& a, const Rules& b) {
    auto all = a.table_->rules();
    all.insert(all.end(), b.table_->rules().begin(), b.table_->rules().end());
    return Rules(std::make_shared<const detail::RuleTable>(std::move(all)));
  }

  /// The same rules; nodes remember that they are in the normal form of this table, so that rewriting them again costs nothing. At most
  /// eight tables of a process can have that; the others stay as they are.
  Rules remembered() const
    requires std::is_void_v<Ctx>
  {
    return Rules(std::make_shared<const detail::RuleTable>(table_->rules(), true));
  }

  size_t size() const { return table_->rules().size(); }
  const detail::RuleTable& table() const { return *table_; }

  template <class T>
  static void* erase(T* ctx) {
    return const_cast<void*>(static_cast<const void*>(ctx));
  }

 private:
  template <class, class>
  friend class Rules;
  explicit Rules(std::shared_ptr<const detail::RuleTable> table) : table_(std::move(table)) {}

  std::shared_ptr<const detail::RuleTable> table_;
};

}  // namespace tinygrad::rewrite

#include "rewrite/rules.h"

#include <chrono>
#include <mutex>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::rewrite {

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string location_text(const std::source_location& l) { return fmt::format("{}:{}", file_name(l.file_name()), l.line()); }

/// All rules made, kept for statistics. Never destroyed: tables are static objects of other files.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<const detail::CompiledRule>> rules;

  static Registry& instance() {
    static Registry* registry = new Registry;
    return *registry;
  }
  void add(const std::vector<std::shared_ptr<const detail::CompiledRule>>& added) {
    std::lock_guard lock(mutex);
    for (auto& r : added)
      if (!r->registered.exchange(true)) rules.push_back(r);
  }
};

std::atomic<bool> timing{false};

}  // namespace

std::vector<RuleStatistics> rule_statistics() {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<RuleStatistics> out;
  for (auto& weak : registry.rules)
    if (auto r = weak.lock()) {
      const RuleInfo& i = r->info;
      out.push_back({i.name, location_text(i.location), i.hits.load(), i.tries.load(), i.nanoseconds.load()});
    }
  return out;
}

void reset_rule_statistics() {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  for (auto& weak : registry.rules)
    if (auto r = weak.lock()) r->info.hits = r->info.tries = r->info.nanoseconds = 0;
}

void set_rule_timing(bool on) { timing.store(on, std::memory_order_relaxed); }
bool rule_timing() { return timing.load(std::memory_order_relaxed); }

namespace detail {

CompiledRule::CompiledRule(const Pat& p, AnyFunction f, Invoke i, std::optional<Capture> c, std::string name, std::source_location where)
    : pattern(p), function(f), invoke(i), capture(c) {
  info.name = name.empty() ? location_text(where) : std::move(name);
  info.location = where;
  if (c && !pattern.binds(*c))
    throw InternalError(fmt::format("rewrite rule {}: its result, capture {}, is not in its pattern", info.name, c->id));
}

namespace {

uint8_t next_mark() {
  static std::atomic<uint32_t> made{0};
  const uint32_t n = made.fetch_add(1, std::memory_order_relaxed);
  return n < 8 ? uint8_t(1u << n) : uint8_t(0);
}

}  // namespace

RuleTable::RuleTable(std::vector<std::shared_ptr<const CompiledRule>> rules, bool remembers)
    : rules_(std::move(rules)), normal_mark_(remembers ? next_mark() : uint8_t(0)) {
  for (size_t i = 0; i < rules_.size(); ++i) {
    const CompiledPattern& p = rules_[i]->pattern;
    for (size_t op = 0; op < size_t(op_count); ++op)
      if (p.root_ops().test(op)) buckets_[op].push_back({p.required_source_ops(), uint32_t(i)});
  }
  Registry::instance().add(rules_);
}

const CompiledRule* RuleTable::apply(const UOp& u, void* ctx, void* result, RuleCount* counts) const {
  const std::vector<Entry>& bucket = buckets_[size_t(u.op())];
  if (bucket.empty()) return nullptr;
  OpSet present;
  for (const UOp& s : u.src()) present.set(size_t(s.op()));
  const bool timed = rule_timing();
  for (const Entry& e : bucket) {
    if ((e.required & ~present).any()) continue;
    const CompiledRule& r = *rules_[e.rule];
    const auto start = timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    const bool hit = r.pattern.match(u, [&](const Match& m) {
      if (r.invoke) return r.invoke(r.function, m, ctx, result);
      return store_result(m[*r.capture], u, result);
    });
    if (timed) r.info.nanoseconds += uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    if (counts) {
      ++counts[e.rule].tries;
      counts[e.rule].hits += hit;
    }
    if (hit) return &r;
  }
  return nullptr;
}

void RuleTable::record(const std::vector<RuleCount>& counts) const {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].tries) rules_[i]->info.tries.fetch_add(counts[i].tries, std::memory_order_relaxed);
    if (counts[i].hits) rules_[i]->info.hits.fetch_add(counts[i].hits, std::memory_order_relaxed);
  }
}

}  // namespace detail

}  // namespace tinygrad::rewrite

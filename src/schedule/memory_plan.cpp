#include "schedule/memory_plan.h"

#include <algorithm>
#include <map>

#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

constexpr int64_t alignment = 64;

struct Life {
  size_t first = SIZE_MAX, last = 0;
  int64_t bytes = 0;
};

/// Free bytes of one arena that grows as needed: best fit, neighbours joined.
class Space {
 public:
  int64_t take(int64_t bytes) {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second >= bytes && (best == free_.end() || it->second < best->second)) best = it;
    if (best == free_.end()) return grow(bytes);
    const auto [at, size] = *best;
    free_.erase(best);
    if (size > bytes) free_[at + bytes] = size - bytes;
    return at;
  }
  void give(int64_t at, int64_t bytes) {
    auto [it, _] = free_.emplace(at, bytes);
    if (auto next = std::next(it); next != free_.end() && at + bytes == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == at) {
        before->second += it->second;
        free_.erase(it);
      }
    }
  }
  int64_t size() const { return end_; }

 private:
  int64_t grow(int64_t bytes) {
    int64_t at = end_;
    if (!free_.empty()) {
      auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        at = last->first;
        free_.erase(last);
      }
    }
    end_ = at + bytes;
    return at;
  }

  std::map<int64_t, int64_t> free_;
  int64_t end_ = 0;
};

}  // namespace

void plan_memory(std::span<const UOp> calls, std::span<const UOp> temporaries, int32_t first, bool reuse, Plan& plan) {
  std::vector<Life> lives(temporaries.size());
  for (size_t i = 0; i < calls.size(); ++i)
    for (const UOp& a : calls[i].src().subspan(1))
      if (a.is(Op::PARAM) && a.arg_as<ParamArg>().slot >= first) {
        Life& life = lives[size_t(a.arg_as<ParamArg>().slot - first)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
  std::vector<std::vector<size_t>> starts(calls.size()), ends(calls.size());
  for (size_t t = 0; t < lives.size(); ++t) {
    if (lives[t].first == SIZE_MAX) continue;
    starts[lives[t].first].push_back(t);
    ends[lives[t].last].push_back(t);
  }

  std::vector<Space> spaces;
  auto arena_of = [&](Symbol device) {
    for (size_t i = 0; i < plan.arenas.size(); ++i)
      if (plan.arenas[i].device == device) return i;
    plan.arenas.push_back({device, 0});
    spaces.emplace_back();
    return plan.arenas.size() - 1;
  };
  plan.temporaries.resize(temporaries.size());
  for (size_t t = 0; t < temporaries.size(); ++t) {
    const int64_t size = const_value(temporaries[t].src(0))->as_int();
    lives[t].bytes = (size * itemsize(temporaries[t].dtype()) + alignment - 1) / alignment * alignment;
    plan.temporaries[t] = {temporaries[t].dtype(), size, arena_of(temporaries[t].arg_as<ParamArg>().device), 0};
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    for (size_t t : starts[i]) plan.temporaries[t].offset = spaces[plan.temporaries[t].arena].take(lives[t].bytes);
    if (reuse)
      for (size_t t : ends[i]) spaces[plan.temporaries[t].arena].give(plan.temporaries[t].offset, lives[t].bytes);
  }
  for (size_t i = 0; i < spaces.size(); ++i) plan.arenas[i].bytes = spaces[i].size();
}

}  // namespace tinygrad::schedule

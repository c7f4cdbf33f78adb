#include "schedule/memory_plan.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

constexpr int64_t alignment = 64;

struct Life {
  size_t first = SIZE_MAX, last = 0;
  int64_t bytes = 0;
};

bool meet(const Life& a, const Life& b) { return a.first <= b.last && b.first <= a.last; }

/// The bytes of one arena. What is largest is placed first: it has the fewest places to choose from.
class Space {
 public:
  /// The first place that is free all the time from the first kernel to the last.
  int64_t place(const Life& life) {
    int64_t at = 0;
    for (const Placed& p : placed_) {
      if (!meet(p.life, life)) continue;
      if (p.at >= at + life.bytes) break;
      at = std::max(at, p.at + p.life.bytes);
    }
    placed_.insert(std::ranges::upper_bound(placed_, at, std::less(), &Placed::at), {at, life});
    bytes_ = std::max(bytes_, at + life.bytes);
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Placed {
    int64_t at;
    Life life;
  };
  std::vector<Placed> placed_;  ///< by place
  int64_t bytes_ = 0;
};

/// From the kernel that first has each temporary to the last that does.
std::vector<Life> lives_of(std::span<const UOp> calls, std::span<const UOp> temporaries, int32_t first) {
  std::vector<Life> lives(temporaries.size());
  for (size_t i = 0; i < calls.size(); ++i)
    for (const UOp& a : calls[i].src().subspan(1))
      if (a.is(Op::PARAM) && a.arg_as<ParamArg>().slot >= first) {
        Life& life = lives[size_t(a.arg_as<ParamArg>().slot - first)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
  return lives;
}

size_t arena_of(Symbol device, Plan& plan) {
  const auto at = size_t(std::ranges::find(plan.arenas, device, &Arena::device) - plan.arenas.begin());
  if (at == plan.arenas.size()) plan.arenas.push_back({device, 0});
  return at;
}

}  // namespace

void plan_memory(std::span<const UOp> calls, std::span<const UOp> temporaries, int32_t first, bool reuse, Plan& plan) {
  std::vector<Life> lives = lives_of(calls, temporaries, first);
  plan.temporaries.resize(temporaries.size());
  std::vector<size_t> order;
  for (size_t t = 0; t < temporaries.size(); ++t) {
    const int64_t size = const_value(temporaries[t].src(0))->as_int();
    lives[t].bytes = (size * itemsize(temporaries[t].dtype()) + alignment - 1) / alignment * alignment;
    plan.temporaries[t] = {temporaries[t].dtype(), size, arena_of(temporaries[t].arg_as<ParamArg>().device.only(), plan), 0};
    if (lives[t].first == SIZE_MAX) continue;
    if (!reuse) lives[t].first = 0, lives[t].last = calls.size();
    order.push_back(t);
  }
  std::ranges::stable_sort(order, std::greater(), [&](size_t t) { return lives[t].bytes; });
  std::vector<Space> spaces(plan.arenas.size());
  for (size_t t : order) plan.temporaries[t].offset = spaces[plan.temporaries[t].arena].place(lives[t]);
  for (size_t i = 0; i < spaces.size(); ++i) plan.arenas[i].bytes = spaces[i].bytes();
}

}  // namespace tinygrad::schedule

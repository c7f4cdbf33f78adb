#include "schedule/gather_again.h"

#include <algorithm>
#include <vector>

#include "schedule/kernel_calls.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

namespace {

constexpr int64_t most_kept = 3;  ///< times the largest

int32_t slot_of(const UOp& memory) { return memory.arg_as<ParamArg>().slot; }
int64_t bytes_of(const UOp& memory) { return const_value(memory.src(0))->as_int() * int64_t(itemsize(memory.dtype())); }
/// A transient gather of what stays in memory.
bool is_of_memory(const UOp& call, int32_t first_temporary) {
  if (!call.src(0).is(Op::COLLECTIVE) || !call.src(0).arg_as<CollectiveArg>().is_transient) return false;
  return slot_of(copied_from(call)) < first_temporary && slot_of(copied_to(call)) >= first_temporary;
}

/// The arguments that a call writes to.
std::vector<UOp> written_by(const UOp& call) {
  if (is_copy(call)) return {copied_to(call)};
  std::vector<UOp> out;
  for (const UOp& u : toposort(call.src(0)))
    if (u.is(Op::STORE) && stored_to(u).is(Op::PARAM)) out.push_back(call.src(size_t(slot_of(stored_to(u))) + 1));
  return out;
}

class Gatherer {
 public:
  Gatherer(const UOp& linear, int32_t first_temporary) : next_slot_(first_temporary) {
    for (const UOp& t : temporaries_of(linear, first_temporary)) next_slot_ = std::max(next_slot_, slot_of(t) + 1);
    NodeMap<size_t> number;
    const std::span<const UOp> calls = linear.src();
    for (size_t i = 0; i < calls.size(); ++i) {
      if (is_of_memory(calls[i], first_temporary)) {
        number[copied_to(calls[i])] = gathers_.size();
        gathers_.push_back({calls[i]});
        most_bytes_ = std::max(most_bytes_, most_kept * bytes_of(copied_to(calls[i])));
      }
      std::vector<size_t>& read = read_.emplace_back();
      for (const UOp& a : calls[i].src().subspan(1))
        if (const size_t* g = number.find(a); g && calls[i] != gathers_[*g].call) {
          read.push_back(*g);
          gathers_[*g].last_read = i;
        }
    }
  }

  UOp done(const UOp& linear) {
    if (gathers_.empty()) return linear;
    const std::span<const UOp> calls = linear.src();
    size_t known = 0;  // gathers that could have been made already
    for (size_t i = 0; i < calls.size(); ++i) {
      if (known < gathers_.size() && calls[i] == gathers_[known].call) {
        ++known;
        continue;
      }
      keep_what_is_written_over(calls[i], i, known);
      add(calls[i], i);
    }
    return linear_of(calls_);
  }

 private:
  struct Gather {
    UOp call;
    UOp here = {};         ///< where it is; null if nowhere
    size_t last_read = 0;  ///< the number of a call
    size_t used = 0;       ///< by the last call so far
    bool is_kept = false;  ///< it could not be made again
    bool was_made = false;
  };

  void keep_what_is_written_over(const UOp& call, size_t at, size_t known) {
    for (const UOp& w : written_by(call))
      for (size_t g = 0; g < known; ++g) {
        Gather& gather = gathers_[g];
        const UOp& source = copied_from(gather.call);
        const int32_t first = slot_of(source), parts = int32_t(source.arg_as<ParamArg>().device.part_count());
        if (gather.is_kept || gather.last_read < at || slot_of(w) < first || slot_of(w) >= first + parts) continue;
        make(gather);
        gather.is_kept = true;
      }
  }

  void add(const UOp& call, size_t at) {
    UOps sources(call.src());
    for (const size_t g : read_[at]) {
      Gather& gather = gathers_[g];
      make(gather);
      gather.used = at;
      for (size_t i = 1; i < sources.size(); ++i)
        if (sources[i] == copied_to(gather.call)) sources[i] = gather.here;
    }
    if (!read_[at].empty()) forget(at);
    calls_.push_back(call.with_src(sources));
  }

  void make(Gather& gather) {
    if (gather.here) return;
    gather.here = copied_to(gather.call);
    if (gather.was_made) {
      ParamArg arg = gather.here.arg_as<ParamArg>();
      arg.slot = next_slot_++;
      gather.here = UOp(Op::PARAM, gather.here.dtype(), gather.here.src(), arg);
    }
    gather.was_made = true;
    UOps sources(gather.call.src());
    sources[1] = gather.here;
    calls_.push_back(gather.call.with_src(sources));
  }

  /// What was not used for longest, as long as there is too much.
  void forget(size_t at) {
    std::vector<Gather*> here;
    int64_t bytes = 0;
    for (Gather& g : gathers_) {
      if (!g.here || g.is_kept || g.last_read <= at) continue;
      here.push_back(&g);
      bytes += bytes_of(g.here);
    }
    std::ranges::sort(here, {}, &Gather::used);
    for (Gather* g : here) {
      if (bytes <= most_bytes_ || g->used == at) break;
      bytes -= bytes_of(g->here);
      g->here = {};
    }
  }

  int32_t next_slot_;
  int64_t most_bytes_ = 0;
  std::vector<Gather> gathers_;
  std::vector<std::vector<size_t>> read_;  ///< gathers, by call
  std::vector<UOp> calls_;
};

}  // namespace

UOp gather_again(const UOp& linear, int32_t first_temporary) { return Gatherer(linear, first_temporary).done(linear); }

}  // namespace tinygrad::schedule

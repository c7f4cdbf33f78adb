#include "schedule/explanation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "schedule/cost.h"
#include "schedule/kernel_calls.h"
#include "schedule/repeat_kernels.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

// Words.

const UOp& without_views(const UOp& u) {
  const UOp* x = &u;
  while (x->in(Group::movement)) x = &x->src(0);
  return *x;
}

std::string op_text(const UOp& u) {
  if (u.is(Op::PARAM) || u.is(Op::AFTER)) return "an input";
  const UOp& source = u.src_count() > 0 ? without_views(u.src(0)) : u;
  if (u.is(Op::REDUCE)) return fmt::format("REDUCE({}) of {}", name(u.arg_as<ReduceArg>().op), name(source.op()));
  const bool is_wrapped = u.is(Op::CONTIGUOUS) || is_transfer(u) || u.is(Op::CAST);
  return is_wrapped ? fmt::format("{} of {}", name(u.op()), op_text(source)) : std::string(name(u.op()));
}

std::string value_text(const UOp& stored) {
  const UOp& u = stored.is(Op::STORE) ? stored.src(1) : stored;
  return fmt::format("{} {} {}", repr(u.dtype()).substr(std::string_view("dtypes.").size()), to_string(shape_of(u)),
                     op_text(without_views(u)));
}

/// "1.3e6"
std::string number_text(double n) {
  if (n < 10000) return fmt::format("{:.3g}", n);
  const int exponent = int(std::floor(std::log10(n)));
  return fmt::format("{:.1f}e{}", n / std::pow(10, exponent), exponent);
}

std::string reason_text(const ValueNote& note) {
  switch (note.decision.reason) {
    case Reason::result: return "it is a result";
    case Reason::asked_for: return is_transfer(note.value) ? "it moves to another device" : "contiguous() asks for it";
    case Reason::long_reduce: return "a long reduction is cut into chunks, which run side by side";
    case Reason::overwritten: return "what it is made of is written over before all of its users have run";
    case Reason::overlap: return "the kernel would read elements that it has written over";
    case Reason::arguments: return "without it a kernel would have more arguments than the device takes";
    case Reason::circle: return "without it kernels would wait for each other in a circle";
    case Reason::full_kernel: return "the kernel that needs it would take too long to compile with more in it";
    case Reason::many_uses: return fmt::format("more than {} places need it", most_uses);
    case Reason::inner_loop: return "in the loops of its user each element would be computed by itself, not in a tile";
    case Reason::few_outputs: return "its user has few outputs, which would leave most of the machine idle";
    case Reason::cheaper_stored:
      return fmt::format("to compute it again would cost {} operations, to store and read it costs as much as {}",
                         number_text(note.decision.computing), number_text(note.decision.storing));
    case Reason::cheaper_computed:
      return fmt::format("that costs {} operations, to store and read it would cost as much as {}", number_text(note.decision.computing),
                         number_text(note.decision.storing));
    case Reason::at_hand: return "loops have it at hand";
    case Reason::carried: return "a loop of the kernel carries it along";
    case Reason::used_once: return "each element is needed once";
    case Reason::padding: return "what is inside of its padding is stored";
  }
  return {};
}

std::string reason_text(const MergeNote& note) {
  switch (note.reason) {
    case Merge::takes_result: return "it reads at each place what the other one writes there";
    case Merge::same_memory: return "both write the same elements";
    case Merge::shared_reads: return "both read the same elements";
    case Merge::small: return "a launch costs more than they do";
    case Merge::other_loops: return "their loops differ";
    case Merge::between: return "another kernel runs between them";
    case Merge::two_products: return "both reduce, and one of them uses each element for several outputs, as a matrix product does";
    case Merge::product_behind: return "a matrix product does not stand behind another store";
    case Merge::other_writes: return "both write the same memory, at different places";
    case Merge::other_places: return "an iteration reads what other iterations write";
    case Merge::nothing_saved: return "they share no reads";
    case Merge::arguments: return fmt::format("together they have {:.0f} arguments, the device takes {:.0f}", note.number, note.most);
    case Merge::weight: return fmt::format("together they weigh {:.0f}, and take long to compile from {:.0f} on", note.number, note.most);
  }
  return {};
}

/// What is stored, and what is computed more than once for lack of it, if that costs as much as a launch. The rest of a graph is simply
/// part of a kernel.
bool is_told(const ValueNote& note) {
  if (note.decision.stores) return true;
  switch (note.decision.reason) {
    case Reason::padding: return true;
    case Reason::cheaper_computed: return note.decision.computing >= general_costs().memory.launch;
    case Reason::carried: return note.value.is(Op::REDUCE);
    default: return false;
  }
}

class Text {
 public:
  explicit Text(const Explanation& e) : e_(e) {}

  std::string of_all() {
    const size_t n = e_.kernels.size();
    std::string out = fmt::format("schedule of {} kernel{}", n, n == 1 ? "" : "s");
    for (size_t k = 0; k < n; ++k) out += of_kernel(int(k));
    return out;
  }

 private:
  std::string of_kernel(int k) {
    lines_.clear();
    for (const ValueNote& v : e_.values)
      if (v.decision.stores && v.kernel == k) add(v.is_handed_on ? "hands on" : "stores", value_text(v.value) + users(v), reason_text(v));
    for (const ValueNote& v : e_.values)
      if (!v.decision.stores && contains(v.users, k)) add("computes", value_text(v.value) + evaluations(v), reason_text(v));
    for (const MergeNote& m : e_.merges)
      if (m.kernel == k && are_merged(m.reason))
        add("merges", fmt::format("{} and {}", value_text(m.value_before), value_text(m.value)), reason_text(m));
    for (const MergeNote& m : e_.merges)
      if (m.kernel == k && !are_merged(m.reason)) add("apart", "from " + heading(m.before), reason_text(m));
    std::string out = fmt::format("\n {}{}", heading(k), details(e_.kernels[size_t(k)]));
    for (const auto& [text, times] : lines_) out += text + (times > 1 ? fmt::format(" ({} such)", times) : "");
    return out;
  }

  void add(std::string_view what, std::string_view of, std::string_view why) {
    std::string text = fmt::format("\n    {:<9} {}: {}", what, of, why);
    const auto same = std::ranges::find(lines_, text, &std::pair<std::string, int>::first);
    if (same == lines_.end())
      lines_.emplace_back(std::move(text), 1);
    else
      ++same->second;
  }
  std::string heading(int k) const { return fmt::format("{} {}", k + 1, e_.kernels[size_t(k)].name.str()); }
  static std::string details(const KernelNote& k) {
    std::string out;
    if (k.nests > 1) out += fmt::format(" ({} loop nests: each is small beside a launch)", k.nests);
    if (k.is_in_loop)
      out += fmt::format(" (called {} times in a loop around kernels: what they pass on stays in cache)", k.calls);
    else if (k.calls > 1)
      out += fmt::format(" (called {} times)", k.calls);
    return out;
  }
  std::string users(const ValueNote& v) const {
    std::vector<int> numbers;
    for (int k : v.users)
      if (k != v.kernel) numbers.push_back(k + 1);
    return numbers.empty() ? "" : fmt::format(" for {}", fmt::join(numbers, ", "));
  }
  static std::string evaluations(const ValueNote& v) {
    const double times = v.evaluations / std::max(most_elements(v.value), 1.0);
    return times > 1 ? fmt::format(" {} times", number_text(times)) : "";
  }
  static bool contains(const std::vector<int>& all, int k) { return std::ranges::find(all, k) != all.end(); }

  const Explanation& e_;
  std::vector<std::pair<std::string, int>> lines_;  ///< of a kernel, with how often each is there
};

// Which kernels became which.

bool is_of_loop(const UOp& u) { return u.is(Op::BIND) && u.src(0).arg_as<VarArg>().name.str().starts_with(loop_variable); }

/// The call as it is in each iteration of the loops around it.
UOp in_any_iteration(const UOp& call) {
  UOps sources(call.src());
  for (UOp& s : sources)
    if (is_of_loop(s)) s = UOp(s.src(0));
  return call.with_src(sources);
}

KernelNote note_of(const UOp& call) {
  const UOp& body = call.src(0);
  if (!body.is(Op::SINK)) return {.name = "copy"};
  return {.name = body.arg_as<KernelArg>().name, .nests = body.src_count(), .is_in_loop = std::ranges::any_of(call.src(), is_of_loop)};
}

/// The slots of the PARAMs that a call writes.
std::vector<int32_t> written_slots(const UOp& call) {
  const auto slot = [&](int32_t argument) { return call.src(size_t(argument) + 1).arg_as<ParamArg>().slot; };
  if (!call.src(0).is(Op::SINK)) return {slot(0)};
  std::vector<int32_t> out;
  for (const UOp& u : toposort(call.src(0)))
    if (u.is(Op::STORE)) out.push_back(slot(u.src(0).src(0).arg_as<ParamArg>().slot));
  return out;
}

}  // namespace

std::string Explanation::text() const { return Text(*this).of_all(); }

void Explainer::placed(Kernels kernels, const std::vector<int>& order) {
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    place[size_t(order[i])] = int(i);
    roots_.push_back(kernels.kernels[size_t(order[i])].root);
  }
  values_ = std::move(kernels.notes);
  for (ValueNote& note : values_) {
    if (note.kernel) note.kernel = place[size_t(*note.kernel)];
    for (int& user : note.users) user = place[size_t(user)];
  }
}

void Explainer::compared(MergeNote note) {
  note.value_before = roots_[size_t(note.before)];
  note.value = roots_[size_t(note.kernel)];
  merges_.push_back(std::move(note));
}

Explanation Explainer::explain(const UOp& linear) const {
  Explanation out;
  NodeMap<int> numbers;
  std::map<int32_t, std::vector<int>> writers;  // of a slot, each once
  std::vector<UOp> held;
  for (const UOp& call : linear.src()) {
    held.push_back(in_any_iteration(call));
    const auto [number, is_new] = numbers.insert(held.back(), int(out.kernels.size()));
    if (is_new)
      out.kernels.push_back(note_of(call));
    else
      ++out.kernels[size_t(*number)].calls;
    for (int32_t slot : written_slots(call))
      if (std::vector<int>& all = writers[slot]; std::ranges::find(all, *number) == all.end()) all.push_back(*number);
  }
  std::map<int, int> now;            // the kernel that one of rangeify is part of
  std::map<int32_t, size_t> before;  // groups that wrote a slot
  std::set<int> handed_on;
  for (const Group& g : groups_) {
    handed_on.insert(g.handed_on.begin(), g.handed_on.end());
    std::optional<int> home;
    for (const UOp& target : g.targets) {
      const auto w = writers.find(target.arg_as<ParamArg>().slot);
      const size_t earlier = before[target.arg_as<ParamArg>().slot]++;
      if (!home && w != writers.end()) home = w->second[std::min(earlier, w->second.size() - 1)];
    }
    if (home)
      for (int k : g.kernels) now[k] = *home;
  }
  for (ValueNote note : values_) {
    if (!is_told(note) || (note.kernel && !now.contains(*note.kernel))) continue;
    note.is_handed_on = note.kernel && handed_on.contains(*note.kernel);
    if (note.kernel) note.kernel = now[*note.kernel];
    if (note.decision.reason == Reason::asked_for && std::ranges::find(cuts, note.value) != cuts.end())
      note.decision.reason = Reason::long_reduce;
    std::vector<int> users;
    for (int k : note.users)
      if (const auto user = now.find(k); user != now.end() && std::ranges::find(users, user->second) == users.end())
        users.push_back(user->second);
    std::ranges::sort(users);
    note.users = std::move(users);
    out.values.push_back(std::move(note));
  }
  for (MergeNote note : merges_) {
    if (!now.contains(note.before) || !now.contains(note.kernel)) continue;
    note.before = now[note.before];
    note.kernel = now[note.kernel];
    const bool is_one = note.before == note.kernel;
    if (is_one == are_merged(note.reason) && std::ranges::find(out.merges, note) == out.merges.end()) out.merges.push_back(std::move(note));
  }
  return out;
}

}  // namespace tinygrad::schedule

#include "schedule/share_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "schedule/kernel_calls.h"
#include "symbolic/build.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr size_t fewest_kernels = 4;   ///< that become one
constexpr size_t most_variables = 16;  ///< of a kernel
constexpr int64_t widest_access = 16;  ///< bytes, of a work-item
constexpr std::string_view variable_name = "number";

/// A number that may differ between kernels: what is added to the index of an access, in elements, or the bits of a float.
struct Number {
  UOp node;  ///< the INDEX, or the CONST
  int64_t value = 0;
};

/// One that does differ: `factor` times a variable, and a constant.
struct Place {
  UOp variable;  ///< null where all kernels have the same number
  int64_t factor = 1, rest = 0;
  bool is_shared = false;  ///< with a place before
};

bool is_offset_known(const UOp& at) { return at.is(Op::CONST) || (at.is(Op::ADD) && at.src(1).is(Op::CONST)); }
int64_t offset_of(const UOp& at) { return is_offset_known(at) ? const_value(at.is(Op::CONST) ? at : at.src(1))->as_int() : 0; }

/// A factor or summand of floats. What simplifies to less stays a constant.
bool is_operand(const UOp& u, const UOp& user) {
  const bool may_differ = u.is(Op::CONST) && u.dtype() == DType::float32 && (user.is(Op::ADD) || user.is(Op::MUL));
  return may_differ && !is_const(u, 0) && !is_const(u, 1) && !is_const(u, -1);
}

/// The numbers of a kernel that may differ, in its walking order.
std::vector<Number> numbers_of(const UOp& body) {
  const std::vector<UOp> order = toposort(body);
  NodeSet operands, others;
  for (const UOp& u : order)
    for (const UOp& s : u.src()) (is_operand(s, u) ? operands : others).insert(s);
  std::vector<Number> out;
  for (const UOp& u : order) {
    if (u.is(Op::INDEX)) out.push_back({u, offset_of(u.src(1))});
    if (operands.contains(u) && !others.contains(u))
      out.push_back({u, int64_t(int32_t(uint32_t(u.arg_as<ConstArg>().value.storage_bits())))});
  }
  return out;
}

UOp value_of(const Number& n, const Place& p) {
  UOp value = symbolic::sym_add(symbolic::sym_mul(p.variable, p.factor), p.rest);
  if (n.node.is(Op::CONST)) return UOp(Op::BITCAST, n.node.dtype(), {cast(value, DType::int32)});
  return value;
}

/// The kernel with variables in the places of numbers.
UOp with_variables(const UOp& body, const std::vector<Number>& numbers, const std::vector<Place>& places) {
  NodeMap<size_t> number(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    if (places[i].variable) number[numbers[i].node] = i;
  NodeMap<UOp> done;
  for (const UOp& u : toposort(body)) {
    UOps sources(u.src());
    for (UOp& s : sources)
      if (const UOp* d = done.find(s)) s = *d;
    const size_t* i = number.find(u);
    if (!i) {
      done[u] = u.with_src(sources);
      continue;
    }
    const UOp value = value_of(numbers[*i], places[*i]);
    if (u.is(Op::INDEX)) {
      const UOp& at = u.src(1);
      const UOp rest = at.is(Op::CONST) ? UOp() : is_offset_known(at) ? done[at.src(0)] : sources[1];
      sources[1] = rest ? rest + value : value;
    }
    done[u] = u.is(Op::INDEX) ? u.with_src(sources) : value;
  }
  return done[body];
}

UOp numbered(size_t i, int64_t min, int64_t max) { return variable(Symbol(fmt::format("{}{}", variable_name, i)), min, max); }

/// Kernels that differ in numbers alone have equal forms.
UOp form_of(const UOp& body, const std::vector<Number>& numbers) {
  std::vector<Place> places;
  for (size_t i = 0; i < numbers.size(); ++i) places.push_back({numbered(i, 0, std::numeric_limits<int32_t>::max())});
  return with_variables(body, numbers, places);
}

struct Group {
  std::vector<UOp> bodies;
  std::vector<std::vector<Number>> numbers;  ///< of each
  bool has_items = false;                    ///< runs as work-items somewhere
};

/// True if two numbers are as far apart in all kernels: offsets, or floats that are the same.
bool moves_along(const Group& g, size_t a, size_t b) {
  const bool is_float = g.numbers[0][a].node.is(Op::CONST);
  const int64_t apart = g.numbers[0][a].value - g.numbers[0][b].value;
  if (is_float != g.numbers[0][b].node.is(Op::CONST) || (is_float && apart != 0)) return false;
  return std::ranges::all_of(g.numbers, [&](const auto& n) { return n[a].value - n[b].value == apart; });
}

/// The variables for what differs.
std::vector<Place> places_of(const Group& g) {
  std::vector<Place> out(g.numbers[0].size());
  std::vector<size_t> apart;  // places with variables of their own
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t min = std::numeric_limits<int64_t>::max(), max = std::numeric_limits<int64_t>::min(), factor = 0;
    for (const auto& numbers : g.numbers) {
      min = std::min(min, numbers[i].value);
      max = std::max(max, numbers[i].value);
      factor = std::gcd(factor, numbers[i].value);
    }
    if (min == max) continue;
    const auto same = std::ranges::find_if(apart, [&](size_t k) { return moves_along(g, i, k); });
    if (same != apart.end()) {
      out[i] = {out[*same].variable, out[*same].factor, g.numbers[0][i].value - g.numbers[0][*same].value, true};
      continue;
    }
    if (g.numbers[0][i].node.is(Op::CONST)) factor = 1;
    out[i] = {numbered(apart.size(), min / factor, max / factor), factor};
    apart.push_back(i);
  }
  return out;
}

/// Whether accesses are as wide with the variables as with the numbers: those of a work-item need offsets that are known to be multiples of
/// their size.
bool keeps_widths(const Group& g, const std::vector<Place>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    const UOp& u = g.numbers[0][i].node;
    if (places[i].variable && u.is(Op::INDEX) && places[i].factor * itemsize(u.src(0).dtype()) % widest_access != 0) return false;
  }
  return true;
}

/// Variables are the last arguments of a call, in the order of their names.
UOp call_of(const UOp& call, const UOp& body, const std::vector<Number>& numbers, const std::vector<Place>& places) {
  UOps sources{body};
  std::vector<UOp> variables;
  for (const UOp& s : call.src().subspan(1)) {
    if (s.is(Op::VAR) || s.is(Op::BIND))
      variables.push_back(s);
    else
      sources.push_back(s);
  }
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].variable && !places[i].is_shared) variables.push_back(bind(places[i].variable, numbers[i].value / places[i].factor));
  std::ranges::stable_sort(variables, StructuralLess(), [](const UOp& v) { return v.is(Op::BIND) ? v.src(0) : v; });
  sources.append(variables.begin(), variables.end());
  return call.with_src(sources);
}

/// Not where a variable of the user's has a name that ours would have.
bool may_share(const UOp& call) {
  const auto is_ours = [](const UOp& s) {
    return (s.is(Op::VAR) || s.is(Op::BIND)) && (s.is(Op::BIND) ? s.src(0) : s).arg_as<VarArg>().name.str().starts_with(variable_name);
  };
  return call.src(0).is(Op::SINK) && std::ranges::none_of(call.src(), is_ours);
}

}  // namespace

UOp share_kernels(const UOp& linear, const TargetOf& target_of) {
  std::vector<UOp> calls(linear.src().begin(), linear.src().end());
  NodeMap<size_t> group_of, member;  // by the form, and then by the kernel; of the group
  std::vector<Group> groups;
  std::vector<UOp> forms;
  for (const UOp& c : calls) {
    const UOp& body = c.src(0);
    if (!may_share(c)) continue;
    const bool has_items = target_of(c.src(1).arg_as<ParamArg>().device.first()).has_groups;
    if (const size_t* known = group_of.find(body)) {
      groups[*known].has_items = groups[*known].has_items || has_items;
      continue;
    }
    std::vector<Number> numbers = numbers_of(body);
    const UOp& form = forms.emplace_back(form_of(body, numbers));
    const size_t g = *group_of.insert(form, groups.size()).first;
    if (g == groups.size()) groups.emplace_back();
    group_of[body] = g;
    groups[g].has_items = groups[g].has_items || has_items;
    member[body] = groups[g].bodies.size();
    groups[g].bodies.push_back(body);
    groups[g].numbers.push_back(std::move(numbers));
  }
  std::vector<std::vector<Place>> places;
  std::vector<UOp> shared;
  for (const Group& g : groups) {
    places.push_back(g.bodies.size() < fewest_kernels ? std::vector<Place>() : places_of(g));
    const auto variables = size_t(std::ranges::count_if(places.back(), [](const Place& p) { return p.variable && !p.is_shared; }));
    if (variables == 0 || variables > most_variables || (g.has_items && !keeps_widths(g, places.back()))) places.back().clear();
    shared.push_back(places.back().empty() ? UOp() : with_variables(g.bodies[0], g.numbers[0], places.back()));
  }
  for (UOp& c : calls) {
    const size_t* g = c.src(0).is(Op::SINK) ? group_of.find(c.src(0)) : nullptr;
    if (!g || !shared[*g]) continue;
    c = call_of(c, shared[*g], groups[*g].numbers[member[c.src(0)]], places[*g]);
  }
  return linear_of(calls);
}

}  // namespace tinygrad::schedule

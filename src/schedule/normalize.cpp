#include "schedule/normalize.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include <tinygrad/errors.h>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

bool is_function_call(const UOp& u) { return u.is(Op::CALL) && u.src(0).is(Op::FUNCTION); }
/// What only tells who asks for gradients more about its source.
bool is_known_tensor(const UOp& u) { return u.is(Op::TENSOR) || u.is(Op::REALIZED); }

/// What it is in a schedule: without what only tells when it is to run.
UOp with_sources(const UOp& u, std::span<const UOp> sources) {
  return u.is(Op::AFTER) ? UOp(Op::AFTER, u.dtype(), sources) : u.with_src(sources);
}

/// Replaces calls of functions by what they compute, those inside of bodies first, and TENSORs by their values.
class Inliner {
 public:
  UOp of(const UOp& root) {
    if (const UOp* known = done_.find(root)) return *known;
    for (const UOp& u : toposort(root))
      if (!done_.contains(u)) done_[u] = inlined(u);
    return done_[root];
  }

 private:
  UOp inlined(const UOp& u) {
    if (is_known_tensor(u)) return done_[u.src(0)];
    if (is_function_call(u) && !u.src(0).src(0).is(Op::TUPLE)) return body_of(u);
    if (u.is(Op::GETTUPLE) && is_function_call(u.src(0))) return body_of(u.src(0)).src(size_t(u.arg_as<TupleArg>().index));
    UOps sources;
    for (const UOp& s : u.src())
      if (const UOp* done = done_.find(s))
        sources.push_back(*done);
      else
        sources.push_back(s);  // what the node is made of, not a value of this graph
    return with_sources(u, sources);
  }

  /// With the arguments in the places of its PARAMs.
  UOp body_of(const UOp& call) {
    if (const UOp* known = bodies_.find(call)) return *known;
    const UOp body = of(call.src(0).src(0));
    NodeMap<UOp> bound;
    for (const UOp& u : toposort(body))
      if (u.is(Op::PARAM)) bound[u] = done_[call.src(1 + size_t(u.arg_as<ParamArg>().slot))];
    return bodies_[call] = substitute(body, bound);
  }

  NodeMap<UOp> done_, bodies_;
};

constexpr size_t most_open = 16;  ///< launches have room for some
constexpr std::string_view open_name = "given";

/// A float, of 32 bits or narrower, as a variable that holds the bits of it as a float32.
struct OpenNumber {
  UOp variable, value;
  int64_t bits = 0;
};

OpenNumber opened(const UOp& number, size_t i) {
  using Limits = std::numeric_limits<int32_t>;
  const UOp bits = variable(Symbol(fmt::format("{}{}", open_name, i)), Limits::min(), Limits::max());
  const UOp value = cast(UOp(Op::BITCAST, DType::float32, {cast(bits, DType::int32)}), number.dtype());
  return {bits, value, int64_t(int32_t(uint32_t(const_value(number)->cast(DType::float32).storage_bits())))};
}
bool is_open_number(const std::pair<UOp, int64_t>& v) { return v.first.arg_as<VarArg>().name.str().starts_with(open_name); }

/// The last node of a walk, with what the map has in the places of its keys, and without TENSORs.
UOp plain(std::span<const UOp* const> order, const NodeMap<UOp>& map) {
  NodeMap<UOp> changed(order.size());
  const auto now = [&](const UOp& u) -> const UOp& {
    const UOp* c = changed.find(u);
    return c ? *c : u;
  };
  for (const UOp* u : order) {
    if (const UOp* replacement = map.find(*u)) {
      changed[*u] = *replacement;
    } else if (is_known_tensor(*u)) {
      changed[*u] = now(u->src(0));
    } else if (u->is(Op::AFTER) || std::ranges::any_of(u->src(), [&](const UOp& s) { return now(s) != s; })) {
      UOps sources;
      for (const UOp& s : u->src()) sources.push_back(now(s));
      changed[*u] = with_sources(*u, sources);
    }
  }
  return now(*order.back());
}

}  // namespace

UOp inline_calls(const UOp& sink) { return Inliner().of(sink); }

Normalized normalize(const UOp& given, bool open_numbers) {
  Normalized n;
  NodeMap<UOp> map;
  std::vector<UOp> numbers;
  const std::vector<const UOp*> order = borrowed_toposort(given);
  for (const UOp* node : order) {
    const UOp& u = *node;
    if (is_function_call(u)) return normalize(inline_calls(given), open_numbers);
    if (u.is(Op::CONST) && u.arg_as<ConstArg>().given) {
      numbers.push_back(u);
    } else if (u.is(Op::BUFFER)) {
      const auto& b = u.arg_as<BufferArg>();
      map[u] = param(u.dtype(), b.size, {.slot = int32_t(n.inputs.size()), .device = b.device});
      n.inputs.push_back(u);
    } else if (u.is(Op::BIND)) {
      map[u] = u.src(0);
      n.variables.emplace_back(u.src(0), const_value(u)->as_int());
    }
  }
  const bool opens = open_numbers && numbers.size() <= most_open && std::ranges::none_of(n.variables, is_open_number);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!opens) {
      map[numbers[i]] = constant(*const_value(numbers[i]));
      continue;
    }
    const OpenNumber open = opened(numbers[i], i);
    map[numbers[i]] = open.value;
    n.variables.emplace_back(open.variable, open.bits);
  }
  std::sort(n.variables.begin(), n.variables.end(), [](const auto& a, const auto& b) {
    const auto c = compare(a.first, b.first);
    return c != 0 ? c < 0 : a.second < b.second;
  });
  n.variables.erase(std::unique(n.variables.begin(), n.variables.end()), n.variables.end());
  for (size_t i = 1; i < n.variables.size(); ++i) {
    if (n.variables[i].first.arg_as<VarArg>().name != n.variables[i - 1].first.arg_as<VarArg>().name) continue;
    if (n.variables[i].first != n.variables[i - 1].first)
      throw ValueError(fmt::format("realize: two variables have the name {} and other bounds; give one another name",
                                   n.variables[i].first.arg_as<VarArg>().name.str()));
    throw ValueError(fmt::format("realize: variable {} is bound to both {} and {}; one call can have one value only",
                                 n.variables[i].first.arg_as<VarArg>().name.str(), n.variables[i - 1].second, n.variables[i].second));
  }
  n.sink = plain(order, map);
  return n;
}

}  // namespace tinygrad::schedule

#include "schedule/traffic.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

int64_t floored(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int64_t apply(const UOp& u, int64_t a, int64_t b, int64_t c) {
  switch (u.op()) {
    case Op::ADD: return u.dtype() == DType::bool_ ? a | b : a + b;
    case Op::SUB: return a - b;
    case Op::MUL: return a * b;
    case Op::NEG: return -a;
    case Op::FLOORDIV: return floored(a, b);
    case Op::FLOORMOD: return a - floored(a, b) * b;
    case Op::CDIV: return b == 0 ? 0 : a / b;
    case Op::CMOD: return b == 0 ? 0 : a % b;
    case Op::MAX: return std::max(a, b);
    case Op::CMPLT: return a < b;
    case Op::CMPNE: return a != b;
    case Op::CMPEQ: return a == b;
    case Op::AND: return a & b;
    case Op::OR: return a | b;
    case Op::XOR: return a ^ b;
    case Op::WHERE: return a ? b : c;
    case Op::CAST: return a;
    default: throw std::runtime_error("index expression with " + std::string(name(u.op())));
  }
}

int64_t size_of(const UOp& range) { return const_value(range.src(0))->as_int(); }

/// An index expression for every value of the ranges in it, row by row.
class Places {
 public:
  explicit Places(const UOp& index) {
    const UOps sources(index.src().begin() + 1, index.src().end());
    nodes_ = toposort(sources);
    for (const UOp& u : nodes_) {
      data_ = data_ || u.is(Op::LOAD);
      if (u.is(Op::RANGE)) ranges_.push_back(u);
    }
    for (const UOp& r : ranges_) count_ *= size_of(r);
    at_ = index.src(1);
    if (index.src_count() > 2) valid_ = index.src(2);
  }
  bool depends_on_data() const { return data_; }
  int64_t count() const { return count_; }

  void mark(std::vector<bool>& seen) const {
    const int64_t inner = ranges_.empty() ? 1 : size_of(ranges_.back());
    std::vector<std::vector<int64_t>> values(nodes_.size(), std::vector<int64_t>(size_t(inner)));
    NodeMap<size_t> number;
    for (size_t i = 0; i < nodes_.size(); ++i) number[nodes_[i]] = i;
    for (int64_t outer = 0; outer < count_ / inner; ++outer) {
      for (size_t n = 0; n < nodes_.size(); ++n) fill(nodes_[n], outer, number, values);
      const auto& at = values[number[at_]];
      for (size_t i = 0; i < size_t(inner); ++i)
        if (!valid_ || values[number[valid_]][i]) seen.at(size_t(at[i])) = true;
    }
  }

 private:
  void fill(const UOp& u, int64_t outer, NodeMap<size_t>& number, std::vector<std::vector<int64_t>>& values) const {
    auto& out = values[number[u]];
    if (u.is(Op::CONST)) {
      std::fill(out.begin(), out.end(), const_value(u)->as_int());
    } else if (u.is(Op::RANGE)) {
      if (u == ranges_.back()) {
        for (size_t i = 0; i < out.size(); ++i) out[i] = int64_t(i);
        return;
      }
      int64_t rest = outer;
      for (size_t r = ranges_.size() - 1; r-- > 0; rest /= size_of(ranges_[r]))
        if (ranges_[r] == u) std::fill(out.begin(), out.end(), rest % size_of(u));
    } else {
      const std::vector<int64_t>* source[3] = {&out, &out, &out};
      for (size_t i = 0; i < u.src_count(); ++i) source[i] = &values[number[u.src(i)]];
      for (size_t i = 0; i < out.size(); ++i) out[i] = apply(u, (*source[0])[i], (*source[1])[i], (*source[2])[i]);
    }
  }

  std::vector<UOp> nodes_, ranges_;
  UOp at_, valid_;
  int64_t count_ = 1;
  bool data_ = false;
};

struct Touched {
  std::vector<bool> elements;
  int64_t by_data = 0;
};

void touch(std::map<int32_t, Touched>& all, const UOp& index) {
  const UOp* memory = &index.src(0);
  while (memory->is(Op::AFTER)) memory = &memory->src(0);
  const int64_t size = const_value(memory->src(0))->as_int();
  Touched& t = all[memory->arg_as<ParamArg>().slot];
  t.elements.resize(size_t(size));
  const Places places(index);
  if (places.depends_on_data())
    t.by_data = std::min(size, t.by_data + places.count());
  else
    places.mark(t.elements);
}

int64_t elements_of(const Touched& t) { return std::max<int64_t>(t.by_data, std::count(t.elements.begin(), t.elements.end(), true)); }

double evaluations(const UOp& u) {
  double n = 1;
  for (const UOp& r : ranges_of(u.is(Op::REDUCE) ? u.src(0) : u)) n *= double(size_of(r));
  return n;
}

}  // namespace

Traffic traffic_of(const UOp& call) {
  Traffic t;
  const UOp& body = call.src(0);
  if (body.is(Op::COPY)) {
    t.bytes = 2 * const_value(call.src(1).src(0))->as_int() * itemsize(body.dtype());
    return t;
  }
  std::map<int32_t, Touched> read, written;
  for (const UOp& u : toposort(body)) {
    if (u.is(Op::LOAD)) touch(read, u.src(0));
    if (u.is(Op::STORE)) touch(written, u.src(0));
    if ((u.in(Group::elementwise) || u.is(Op::REDUCE)) && u.dtype() != DType::index) t.work += evaluations(u);
  }
  for (const auto* side : {&read, &written})
    for (const auto& [slot, touched] : *side) t.bytes += elements_of(touched) * itemsize(call.src(size_t(slot) + 1).dtype());
  return t;
}

}  // namespace tinygrad::schedule

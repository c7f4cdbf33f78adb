#include "codegen/late/split_vectors.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

constexpr int any_power = 62;        // of zero, which everything divides
constexpr int group_alignment = 16;  // bytes, of each memory of a group

UOp memory_of(UOp place) {
  while (place.is(Op::AFTER)) place = UOp(place.src(0));
  return place;
}

bool is_memory(const UOp& u) {
  const UOp m = memory_of(u);
  return m.is(Op::PARAM) || m.is(Op::BUFFER);
}
bool is_address(const UOp& u) { return u.is(Op::INDEX) && is_memory(u.src(0)); }
bool is_vector(const UOp& u) { return !is_memory(u) && !shape_of(u).empty(); }

class Splitter {
 public:
  explicit Splitter(const Target& target) : target_(target) {}

  UOp run(const UOp& sink) {
    for (const UOp& u : toposort(sink)) {
      power_[u] = power_of_two(u);
      split(u);
    }
    return done_[sink];
  }

 private:
  void split(const UOp& u) {
    if (is_address(u) && is_vector(u)) return;  // at its LOADs and STOREs
    switch (u.op()) {
      case Op::LOAD:
        if (is_vector(u)) return load(u);
        break;
      case Op::STORE:
        if (is_vector(u.src(1))) return store(u);
        break;
      case Op::STACK: return keep(u, sources(u));
      case Op::EXPAND: return keep(u, UOps(size_t(const_value(u.src(1))->as_int()), one(u.src(0))));
      case Op::SHRINK: {
        const UOps& all = lanes(u.src(0));
        const auto begin = const_value(u.src(1))->as_int(), end = const_value(u.src(2))->as_int();
        return keep(u, UOps(std::span<const UOp>(all).subspan(size_t(begin), size_t(end - begin))));
      }
      case Op::INDEX:
        if (is_vector(u.src(0))) {
          done_[u] = lanes(u.src(0))[size_t(const_value(u.src(1))->as_int())];
          return;
        }
        break;
      case Op::WMMA: {
        UOps operands;
        for (const UOp& s : u.src()) operands.push_back(stack(lanes(s)));
        return keep_vector(u, u.with_src(operands));
      }
      default:
        if (is_vector(u)) return elementwise(u);
    }
    done_[u] = u.with_src(sources(u));
  }

  void elementwise(const UOp& u) {
    const auto n = size_t(shape_of(u)[0].value());
    UOps out;
    for (size_t i = 0; i < n; ++i) {
      UOps parts;
      for (const UOp& s : u.src()) parts.push_back(lane(s, i));
      out.push_back(u.with_src(parts));
    }
    keep(u, std::move(out));
  }

  // Memory.

  /// Elements that one access moves: as many as divide the run, are aligned, and fit.
  int64_t most_at_once(const UOp& address) const {
    const UOp memory = memory_of(address.src(0));
    const auto width = int64_t(address.arg_as<IndexArg>().width), item = int64_t(itemsize(address.dtype()));
    const bool is_private = memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope != Scope::group;
    if (is_private || is_bool(address.dtype())) return 1;  // of single registers; of bytes that are bools
    int64_t n = std::min<int64_t>(width & -width, target_.vector_bits / 8 / item);
    if (target_.most_lanes != 0) n = std::min<int64_t>(n, target_.most_lanes);
    if (!target_.unaligned_vectors) {
      const int64_t align = memory.is(Op::BUFFER) ? group_alignment : memory.arg_as<ParamArg>().align;
      n = std::min({n, align / item, int64_t{1} << std::min(*power_.find(address.src(1)), 10)});
    }
    return n < 2 ? 1 : int64_t(std::bit_floor(uint64_t(n)));
  }

  struct Access {
    UOp address;
    size_t first = 0, count = 1;  ///< lanes
  };

  /// The parts of a vector of addresses or of a run. With a gate of its own each lane is a part.
  std::vector<Access> parts(const UOp& address, bool one_by_one) {
    std::vector<Access> out;
    const auto memory = one(address.src(0));
    if (is_image(memory)) return {{address.with_src(sources(address)), 0, 4}};
    if (is_vector(address.src(1))) {
      for (const UOp& at : lanes(address.src(1))) out.push_back({address.with_src(UOps{memory, at}), out.size()});
      return out;
    }
    const auto width = int64_t(address.arg_as<IndexArg>().width), each = one_by_one ? 1 : most_at_once(address);
    auto arg = address.arg_as<IndexArg>();
    arg.width = int32_t(each);
    for (int64_t i = 0; i < width; i += each) {
      const UOp first = one(address.src(1)), at = i == 0 ? first : first + i;
      out.push_back({address.with_src(UOps{memory, at}).with_arg(arg), size_t(i), size_t(each)});
    }
    return out;
  }

  static bool has_gates(const UOp& u, size_t plain) { return u.src_count() > plain && is_vector(u.src(u.src_count() - 1)); }

  void load(const UOp& u) {
    const bool gated = u.src_count() == 3;
    UOps out;
    for (const Access& a : parts(u.src(0), has_gates(u, 1))) {
      UOps s{a.address};
      if (gated) {
        s.push_back(joined(u.src(1), a));
        s.push_back(lane(u.src(2), a.first));
      }
      const UOp part = u.with_src(s);
      if (a.count == 1) out.push_back(part);
      for (size_t i = 0; a.count > 1 && i < a.count; ++i) out.push_back(lane_at(part, i));
    }
    keep(u, std::move(out));
  }

  void store(const UOp& u) {
    UOps out;
    for (const Access& a : parts(u.src(0), has_gates(u, 2))) {
      UOps s{a.address, joined(u.src(1), a)};
      if (u.src_count() == 3) s.push_back(lane(u.src(2), a.first));
      out.push_back(u.with_src(s));
    }
    done_[u] = out.size() == 1 ? out[0] : group(out);
  }

  /// The lanes of a value that an access moves.
  UOp joined(const UOp& value, const Access& a) {
    UOps parts;
    for (size_t i = 0; i < a.count; ++i) parts.push_back(lane(value, a.first + i));
    return a.count == 1 ? parts[0] : stack(parts);
  }

  // Values.

  static UOp lane_at(const UOp& v, size_t i) { return UOp(Op::INDEX, v.dtype(), {v, constant(DType::int32, int64_t(i))}, IndexArg{}); }

  void keep(const UOp& u, UOps values) { lanes_[u] = std::move(values); }
  void keep_vector(const UOp& u, const UOp& vector) {
    UOps out;
    for (int64_t i = 0; i < shape_of(u)[0].value(); ++i) out.push_back(lane_at(vector, size_t(i)));
    keep(u, std::move(out));
  }
  const UOps& lanes(const UOp& u) { return lanes_[u]; }
  const UOp& one(const UOp& u) { return done_[u]; }
  const UOp& lane(const UOp& u, size_t i) { return is_vector(u) ? lanes(u)[i] : one(u); }
  UOps sources(const UOp& u) {
    UOps out;
    for (const UOp& s : u.src()) out.push_back(done_.contains(s) ? one(s) : s);
    return out;
  }

  /// The largest power of two that is known to divide an integer, which wrapping around does not change.
  int power_of_two(const UOp& u) const {
    const auto of = [&](size_t i) { return *power_.find(u.src(i)); };
    if (!is_int(u.dtype())) return 0;
    switch (u.op()) {
      case Op::CONST: {
        const auto value = uint64_t(u.arg_as<ConstArg>().value.as_int());
        return value == 0 ? any_power : std::countr_zero(value);
      }
      case Op::ADD:
      case Op::SUB: return std::min(of(0), of(1));
      case Op::MUL: return std::min(of(0) + of(1), any_power);
      case Op::MULACC: return std::min(of(0) + of(1), of(2));
      case Op::SHL: return const_value(u.src(1)) ? std::min<int>(of(0) + int(const_value(u.src(1))->as_int() & 63), any_power) : of(0);
      case Op::NEG: return of(0);
      case Op::WHERE: return std::min(of(1), of(2));
      case Op::CAST: return is_int(u.src(0).dtype()) ? of(0) : 0;
      default: return 0;
    }
  }

  const Target& target_;
  NodeMap<UOp> done_;    // of scalars and effects
  NodeMap<UOps> lanes_;  // of vectors
  NodeMap<int> power_;
};

}  // namespace

UOp split_vectors(const UOp& sink, const Target& target) { return target.vector_math ? sink : Splitter(target).run(sink); }

}  // namespace tinygrad::codegen

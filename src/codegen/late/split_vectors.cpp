#include "codegen/late/split_vectors.h"

#include <utility>

#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

UOp memory_of(UOp place) {
  while (place.is(Op::AFTER)) place = UOp(place.src(0));
  return place;
}

bool is_memory(const UOp& u) {
  const UOp m = memory_of(u);
  return m.is(Op::PARAM) || m.is(Op::BUFFER);
}
bool is_place(const UOp& u) { return u.is(Op::INDEX) && is_memory(u.src(0)); }
bool is_vector(const UOp& u) { return !is_memory(u) && !shape_of(u).empty(); }

class Splitter {
 public:
  UOp run(const UOp& sink) {
    for (const UOp& u : toposort(sink)) split(u);
    return done_[sink];
  }

 private:
  void split(const UOp& u) {
    if (is_place(u) && is_vector(u)) return;  // at its LOADs and STOREs
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
        for (const UOp& s : u.src()) operands.push_back(is_vector(s) && !is_place(s) ? stack(lanes(s)) : one(s));
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

  /// The lanes of a vector of addresses or of a run.
  UOps places(const UOp& address) {
    UOps out;
    const UOp memory = one(address.src(0));
    if (is_vector(address.src(1))) {
      for (const UOp& at : lanes(address.src(1))) out.push_back(address.with_src(UOps{memory, at}));
      return out;
    }
    auto arg = address.arg_as<IndexArg>();
    const int64_t width = std::exchange(arg.width, 1);
    for (int64_t i = 0; i < width; ++i) {
      const UOp first = one(address.src(1)), at = i == 0 ? first : first + i;
      out.push_back(address.with_src(UOps{memory, at}).with_arg(arg));
    }
    return out;
  }

  /// Texels of images are accessed whole.
  UOps texel_sources(const UOp& u) {
    UOps out{u.src(0).with_src(sources(u.src(0)))};
    for (const UOp& x : u.src().subspan(1)) out.push_back(is_vector(x) ? stack(lanes(x)) : one(x));
    return out;
  }

  void load(const UOp& u) {
    if (is_image(u.src(0).src(0))) return keep_vector(u, u.with_src(texel_sources(u)));
    UOps out;
    for (const UOp& place : places(u.src(0))) {
      UOps s{place};
      for (const UOp& x : u.src().subspan(1)) s.push_back(lane(x, out.size()));
      out.push_back(u.with_src(s));
    }
    keep(u, std::move(out));
  }

  void store(const UOp& u) {
    if (is_image(u.src(0).src(0))) {
      done_[u] = u.with_src(texel_sources(u));
      return;
    }
    UOps out;
    for (const UOp& place : places(u.src(0))) {
      UOps s{place};
      for (const UOp& x : u.src().subspan(1)) s.push_back(lane(x, out.size()));
      out.push_back(u.with_src(s));
    }
    done_[u] = group(out);
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

  NodeMap<UOp> done_;    // of scalars and effects
  NodeMap<UOps> lanes_;  // of vectors
};

}  // namespace

UOp split_vectors(const UOp& sink, const Target& target) { return target.vector_math ? sink : Splitter().run(sink); }

}  // namespace tinygrad::codegen

#include "spec/verify.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include <algorithm>
#include <functional>
#include <string>

#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::spec {
namespace {

using Nodes = std::vector<UOp>;

/// A rule with a graph that keeps it and one that breaks it.
struct Case {
  std::string rule;
  UOp legal, illegal;
};

using Verify = std::function<void(const UOp&)>;

std::string message_of(const Verify& verify, const UOp& graph) {
  try {
    verify(graph);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

void check(const Verify& verify, std::string_view border, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.rule);
    EXPECT_EQ(message_of(verify, c.legal), "");
    const std::string message = message_of(verify, c.illegal), begin = "verify " + std::string(border) + ": rule '" + c.rule + "'";
    EXPECT_EQ(message.substr(0, begin.size()), begin) << message;
  }
}

UOp node(Op op, DType dtype, const Nodes& sources, Arg arg = {}) { return UOp(op, dtype, sources, std::move(arg)); }
UOp number(double value) { return constant(DType::float32, value); }

// Tensor graphs.

UOp memory(uint64_t id, int64_t size, DType dtype = DType::float32, Symbol device = "CPU") {
  return buffer(dtype, {.id = id, .size = size, .device = device});
}
UOp sunk(const UOp& effect) { return sink(Nodes{effect}); }
/// A tensor graph that stores the value; in memory of any size where the value has no shape.
UOp kept(const UOp& value) {
  Shape shape{4};
  try {
    shape = shape_of(value);
  } catch (const Error&) {}
  return sunk(store(reshape(memory(1000, numel(shape).value(), value.dtype()), shape), value));
}

UOp slot(int n, DType dtype = DType::float32) { return node(Op::PARAM, dtype, {}, ParamArg{.slot = n}); }
UOp function(const UOp& body) { return node(Op::FUNCTION, body.dtype(), {body}, FunctionArg{"f"}); }
UOp tuple(const Nodes& values) { return node(Op::TUPLE, DType::void_, values); }
UOp element(const UOp& from, int i, DType dtype = DType::float32) { return node(Op::GETTUPLE, dtype, {from}, TupleArg{i}); }
UOp general(const UOp& values, const UOp& body, const Nodes& ranges, Axes axes = {}) {
  Nodes s{values, tuple({number(0)}), body, body};
  s.insert(s.end(), ranges.begin(), ranges.end());
  return node(Op::REDUCE, DType::void_, s, ReduceArg{Op::FUNCTION, std::move(axes)});
}

TEST(Verify, TypedRules) {
  const UOp a = memory(1, 4), b = memory(2, 4), n = memory(3, 4, DType::int32), one = reshape(a, {2, 2});
  const UOp body = function(tuple({slot(0) + slot(1)}));
  const UOp f = function(node(Op::PARAM, DType::float32, {index_const(4)}, ParamArg{.slot = 0}) * number(2));
  const auto call = [&](const Nodes& args, DType dtype = DType::float32) {
    Nodes s{f};
    s.insert(s.end(), args.begin(), args.end());
    return node(Op::CALL, dtype, s);
  };
  check(verify_tensor_graph, "tensor graph",
        {
            {"sources", kept(a + b), kept(node(Op::ADD, DType::float32, {a}))},
            {"sources", kept(where(a < b, a, b)), kept(node(Op::WHERE, DType::float32, {a < b, a}))},
            {"arg", kept(permute(one, {1, 0})), kept(node(Op::PERMUTE, DType::float32, {a}))},
            {"arg", kept(a + b), kept(node(Op::ADD, DType::float32, {a, b}, AxesArg{}))},
            {"constant", kept(a + number(1)),
             kept(a + node(Op::CONST, DType::float32, {}, ConstArg{Scalar::of(int64_t(1), DType::int32), {}}))},
            {"sizes", kept(one), kept(node(Op::RESHAPE, DType::float32, {a, number(4)}))},
            {"value", kept(a), kept(node(Op::CAST, DType::void_, {a}))},
            {"value", kept(cast(a, DType::int32)), kept(node(Op::CAST, DType::int32, {store(a, b)}))},
            {"dtype", kept(n & n), kept(a & b)},
            {"dtype", kept(a + b), kept(node(Op::ADD, DType::float32, {a, n}))},
            {"dtype", kept(a < b), kept(node(Op::CMPLT, DType::float32, {a, b}))},
            {"dtype", kept(where(a < b, a, b)), kept(where(n, a, b))},
            {"dtype", kept(alu(Op::FDIV, {a, b})), kept(alu(Op::FDIV, {n, n}))},
            {"dtype", sunk(store(a, b)), sunk(store(a, n))},
            {"bitcast", kept(bitcast(a, DType::int32)), kept(bitcast(a, DType::int16))},
            {"reduce op", kept(reduce(Op::MAX, one, {1})), kept(reduce(Op::SUB, one, {1}))},
            {"reduce op", kept(reduce(Op::XOR, n, {0})), kept(reduce(Op::XOR, a, {0}))},
            {"general reduce", kept(element(general(tuple({one}), body, {}, {1}), 0)),
             kept(element(general(tuple({one}), function(slot(0)), {}, {1}), 0))},
            {"general reduce", kept(element(general(tuple({one}), body, {}, {1}), 0)),
             kept(element(general(tuple({one}), function(tuple({slot(2)})), {}, {1}), 0))},
            {"element", kept(element(tuple({a, n}), 0)), kept(element(tuple({a, n}), 1))},
            {"element", kept(element(tuple({a, n}), 0)), kept(element(tuple({a, n}), 2))},
            {"call", kept(call({a})), kept(call({}))},
            {"call", kept(call({a})), kept(call({n}))},
            {"call", kept(call({a})), kept(call({a}, DType::int32))},
            {"buffer size", kept(a), kept(memory(1, -4))},
            {"shape", kept(a + b), kept(a + memory(2, 5))},
            {"shape", kept(reduce(Op::ADD, one, {1})), kept(reduce(Op::ADD, one, {2}))},
            {"shape", kept(shrink(a, {0, 2})), kept(shrink(a, {0, 5}))},
            {"shape", kept(reshape(a, {4, 1})), kept(reshape(a, {3}))},
        });
}

TEST(Verify, TensorRules) {
  const UOp a = memory(1, 4), b = memory(2, 4), n = variable("n", 1, 4);
  const auto first = [&](const UOp& size) { return shrink(a, std::vector<UOp>{index_const(0), size}); };
  const auto sum = [&](const Nodes& more) {
    Nodes s{a};
    s.insert(s.end(), more.begin(), more.end());
    return node(Op::REDUCE, DType::float32, s, ReduceArg{Op::ADD, {0}});
  };
  check(verify_tensor_graph, "tensor graph",
        {
            {"op", kept(a), kept(load(index(a, index_const(0))))},
            {"op", kept(a), kept(cast(range(4, 0), DType::float32))},
            {"root", kept(a), sink(Nodes{store(a, b)}, KernelArg{})},
            {"buffer", kept(a), kept(buffer(DType::float32, {.id = 1, .size = 4, .scope = Scope::reg, .device = "CPU"}))},
            {"buffer", kept(a), kept(memory(1, 4, DType::float32, {}))},
            {"buffer", kept(a + b), kept(a + shrink(memory(1, 5), {0, 4}))},
            {"param", kept(a), kept(param(DType::float32, 4, {.slot = 0, .device = "CPU"}))},
            {"bound variable", sunk(store(first(bind(n, 3)), number(0))), sunk(store(first(bind(n, 5)), number(0)))},
            {"closed ranges", kept(sum({})), kept(sum({index_const(3)}))},
            {"store target", sunk(store(flip(a, {0}), b)), sunk(store(a + b, b))},
            {"store target", sunk(store(a, b)), sunk(store(pad(a, {1, 1}), number(0)))},
            {"state of memory", sunk(after(a, Nodes{store(a, b)})), sunk(after(a, Nodes{store(b, a)}))},
            {"state of memory", sunk(after(a, Nodes{store(a, b)})), sunk(after(a + b, Nodes{store(a, b)}))},
            {"state of memory", sunk(after(a, Nodes{store(a, b)})), sunk(after(a, Nodes{b}))},
            {"call", kept(a), sunk(node(Op::CALL, DType::void_, {node(Op::COPY, DType::float32, {a}, DeviceArg{"CPU"}), a}))},
            {"copy", kept(node(Op::COPY, DType::float32, {a}, DeviceArg{"CPU"})), kept(node(Op::COPY, DType::float32, {a}, DeviceArg{}))},
            {"device", kept(a + b), kept(a + memory(2, 4, DType::float32, "CUDA"))},
            {"effects", sunk(group(Nodes{store(a, b), store(b, a)})), sunk(group(Nodes{store(a, b), a}))},
            {"effects", sunk(store(a, b)), sunk(a)},
        });
}

// Kernels.

UOp arg(int n, int64_t size = 4, DType dtype = DType::float32) { return param(dtype, size, {.slot = n}); }
UOp kernel(const Nodes& effects, bool optimized = false) {
  return sink(effects, KernelArg{.name = "k", .opts = {}, .optimized = optimized});
}
UOp read(const UOp& from, const UOp& at) { return load(index(from, at)); }

class Kernels : public ::testing::Test {
 protected:
  const UOp i = range(4, 0), k = range(4, 1, AxisKind::reduce), out = arg(0), in = arg(1);
  /// for i: out[i] = value
  UOp loop(const UOp& value) const { return end(store(index(out, i), value), Nodes{i}); }
  UOp kept(const UOp& value) const { return kernel({loop(value)}); }
  UOp sum(const UOp& x, const Nodes& ranges, Axes axes = {}) const {
    Nodes s{x};
    s.insert(s.end(), ranges.begin(), ranges.end());
    return node(Op::REDUCE, x.dtype(), s, ReduceArg{Op::ADD, std::move(axes)});
  }
};

TEST_F(Kernels, KernelRules) {
  const UOp x = read(in, i), total = sum(read(in, k), {k});
  const UOp twice = end(store(index(arg(1), i), number(0)), Nodes{i});
  const UOp seen = after(out, Nodes{loop(number(0))}), j = range(4, 2), l = range(4, 3, AxisKind::reduce);
  check(verify_kernel, "kernel",
        {
            {"op", kept(x), kept(expand(x, {1}))},
            {"op", kept(x), kept(load(index(memory(1, 4), i)))},
            {"constant", kept(number(1)), kept(node(Op::CONST, DType::float32, {}, ConstArg{Scalar::of(1.0, DType::float32), "CPU"}))},
            {"index dtype", kept(x), kept(cast(node(Op::VAR, DType::int32, {}, VarArg{"n", 0, 3}), DType::float32))},
            {"index dtype", kept(x), kept(cast(node(Op::RANGE, DType::float32, {index_const(4)}, RangeArg{.id = 0}), DType::float32))},
            {"range", kept(total), kept(sum(read(in, range(4, 1, AxisKind::lane)), {range(4, 1, AxisKind::lane)}))},
            {"range", kept(total), kept(sum(read(in, range(3, 0, AxisKind::reduce)), {range(3, 0, AxisKind::reduce)}))},
            {"param", kept(x), kept(x + read(arg(1, 5), i))},
            {"param", kept(x), kept(read(node(Op::PARAM, DType::float32, {index_const(4)}, ParamArg{.slot = -1}), i))},
            {"root", kept(x), kept(read(arg(2), i))},
            {"root", kept(x), sink(Nodes{loop(x)})},
            {"place", kept(x), kept(read(in, cast(i, DType::int32)))},
            {"index bounds", kept(read(in, i - i + 3)), kept(read(in, i + 4))},
            {"load", kept(load(index_valid(in, i, i < 2))), kept(node(Op::LOAD, DType::float32, {index(in, i), number(0), i < 2}))},
            {"store", kept(x), kernel({end(node(Op::STORE, DType::void_, {index(out, i), x, i < 2}), Nodes{i})})},
            {"closed kind", kept(total), kept(sum(read(in, j), {j}))},
            {"own ranges", kept(sum(read(in, k) * total, {k})),
             kept(sum(read(in, k) * sum(read(in, l) * read(in, k) * sum(where(l < k, read(in, k), read(in, l)), {k}), {l}), {k}))},
            {"place", kept(x), kept(load(index(in, index_const(0), 4)))},
            {"scalar", kept(x), kept(in + in)},
            {"indexed", kept(x), kept(read(x, i))},
            {"state of memory", kernel({end(store(index(arg(1), j), read(seen, j)), Nodes{j})}), kept(read(after(out, Nodes{x}), i))},
            {"place", kept(x), kept(load(in))},
            {"store target", kept(x), kernel({store(x, x)})},
            {"effects", kept(x), kernel({loop(x), end(x, Nodes{j})})},
            {"closed ranges", kept(total), kept(sum(x, {index_const(4)}))},
            {"closed once", kernel({loop(x)}), kernel({loop(x), twice})},
            {"open ranges", kept(x), kept(read(in, j))},
            {"condition", kept(where(i < 2, x, x)), kernel({end(node(Op::STORE, DType::void_, {index(out, i), x, i}), Nodes{i})})},
            {"index width", kept(x), kept(load(index(in, i, 0)))},
        });
  EXPECT_EQ(
      message_of(verify_kernel,
                 kernel({end(store(index(out, range(4, 0, AxisKind::upcast)), number(0)), Nodes{range(4, 0, AxisKind::upcast)})}, true)),
      "");
}

TEST_F(Kernels, TheMessageSaysWhatAndWhere) {
  EXPECT_EQ(
      message_of(verify_kernel, kept(read(in, cast(i, DType::int32)))),
      "verify kernel: rule 'place' is broken at INDEX float(PARAM float, CAST int) = INDEX(p1, CAST(r0)): got an index of dtypes.int32, "
      "expects dtypes.index");
}

// Linear programs.

/// Lists instructions in the order they are made.
class List {
 public:
  UOp add(Op op, DType dtype, const Nodes& sources, Arg arg = {}) { return add(node(op, dtype, sources, std::move(arg))); }
  UOp add(const UOp& u) {
    list_.push_back(u);
    return u;
  }
  UOp number(double v) { return add(constant(DType::float32, v)); }
  UOp integer(int64_t v) { return add(constant(DType::int32, v)); }
  UOp memory(int slot, int64_t size) { return add(Op::PARAM, DType::float32, {integer_once(size)}, ParamArg{.slot = slot}); }
  UOp loop(const UOp& size, AxisKind kind = AxisKind::loop) {
    return add(Op::RANGE, DType::int32, {size}, RangeArg{.id = ranges_++, .kind = kind});
  }
  UOp end(const UOp& last, const UOp& range) { return add(Op::END, DType::void_, {last, range}); }
  UOp at(const UOp& m, const UOp& i, int width = 1) { return add(Op::INDEX, m.dtype(), {m, i}, IndexArg{width}); }
  UOp load(const UOp& place) { return add(Op::LOAD, place.dtype(), {place}); }
  UOp store(const UOp& place, const UOp& x) { return add(Op::STORE, DType::void_, {place, x}); }
  UOp linear() const { return node(Op::LINEAR, DType::void_, list_, LinearArg{1}); }

 private:
  UOp integer_once(int64_t v) {
    const UOp u = constant(DType::int32, v);
    if (std::find(list_.begin(), list_.end(), u) == list_.end()) list_.push_back(u);
    return u;
  }
  Nodes list_;
  int32_t ranges_ = 0;
};

using Build = void (*)(List& l);

/// for i below 8: p0[i] = p1[i], vectors of 4 at p2 and what else a case adds.
UOp program(Build more) {
  List l;
  more(l);
  return l.linear();
}

struct LinearCase {
  const char* rule;
  Build legal, illegal;
};

/// A product that goes on beside the program, added to sums or, in place, to a tile.
UOp product(List& l, const UOp& zero, const UOp& sums) {
  const UOp factor = l.at(l.add(buffer(DType::float16, {.id = 1, .size = 64, .scope = Scope::group})), zero);
  return l.add(Op::WMMA, is_tensor_memory(sums) ? DType::void_ : DType::float32, {factor, factor, sums}, WmmaArg{});
}
UOp tile(List& l, const UOp& zero, int width = 4) {
  return l.at(l.add(buffer(DType::float32, {.id = 2, .size = 4, .scope = Scope::tensor})), zero, width);
}
UOp sums(List& l, const UOp& zero) {
  return l.load(l.at(l.add(buffer(DType::float32, {.id = 3, .size = 4, .scope = Scope::reg})), zero, 4));
}
UOp wait_for(List& l, const UOp& product) { return l.add(Op::WMMA_WAIT, DType::void_, {product}); }
UOp use(List& l, const UOp& zero, const UOp& vector) { return l.add(Op::NEG, DType::float32, {l.at(vector, zero)}); }

TEST(Verify, LinearRules) {
  const LinearCase cases[] = {
      {"op", [](List& l) { l.number(1); }, [](List& l) { l.add(Op::GROUP, DType::void_, {l.add(Op::BARRIER, DType::void_, {})}); }},
      {"order", [](List& l) { l.add(Op::NEG, DType::float32, {l.number(1)}); },
       [](List& l) { l.add(Op::NEG, DType::float32, {constant(DType::float32, 1.0)}); }},
      {"order", [](List& l) { l.number(1), l.number(2); }, [](List& l) { l.number(1), l.number(1); }},
      {"order",
       [](List& l) {
         const UOp r = l.loop(l.integer(4)), x = l.add(Op::NEG, DType::int32, {r});
         l.end(l.add(Op::NEG, DType::int32, {x}), r);
       },
       [](List& l) {
         const UOp r = l.loop(l.integer(4)), x = l.add(Op::NEG, DType::int32, {r});
         l.end(x, r);
         l.add(Op::NEG, DType::int32, {x});
       }},
      {"index dtype", [](List& l) { l.integer(1); }, [](List& l) { l.add(index_const(1)); }},
      {"index dtype", [](List& l) { l.add(Op::VAR, DType::int64, {}, VarArg{"n", 0, 3}); },
       [](List& l) { l.add(Op::VAR, DType::float32, {}, VarArg{"n", 0, 3}); }},
      {"blocks nest",
       [](List& l) {
         const UOp n = l.integer(4), a = l.loop(n), b = l.loop(n);
         l.end(l.end(b, b), a);
       },
       [](List& l) {
         const UOp n = l.integer(4), a = l.loop(n), b = l.loop(n);
         l.end(l.end(b, a), b);
       }},
      {"blocks nest", [](List& l) { l.add(Op::ENDIF, DType::void_, {l.add(Op::IF, DType::void_, {l.add(bool_const(true))})}); },
       [](List& l) {
         const UOp block = l.add(Op::IF, DType::void_, {l.add(bool_const(true))});
         l.loop(l.integer(4));
         l.add(Op::ENDIF, DType::void_, {block});
       }},
      {"every block ends",
       [](List& l) {
         const UOp r = l.loop(l.integer(4));
         l.end(r, r);
       },
       [](List& l) { l.loop(l.integer(4)); }},
      {"condition", [](List& l) { l.add(Op::ENDIF, DType::void_, {l.add(Op::IF, DType::void_, {l.add(bool_const(true))})}); },
       [](List& l) { l.add(Op::IF, DType::void_, {l.integer(1)}); }},
      {"range",
       [](List& l) {
         const UOp r = l.loop(l.integer(4), AxisKind::thread);
         l.end(r, r);
       },
       [](List& l) { l.loop(l.integer(4), AxisKind::lane); }},
      {"range",
       [](List& l) {
         const UOp r = l.loop(l.integer(4));
         l.end(r, r);
       },
       [](List& l) { l.loop(l.integer(4), AxisKind::element); }},
      {"range",
       [](List& l) {
         const UOp n = l.integer(4), t = l.loop(n, AxisKind::thread), r = l.loop(n);
         l.end(l.end(r, r), t);
       },
       [](List& l) {
         const UOp n = l.integer(4);
         l.loop(n);
         l.loop(n, AxisKind::thread);
       }},
      {"buffer", [](List& l) { l.add(buffer(DType::float32, {.id = 1, .size = 4, .scope = Scope::reg})); },
       [](List& l) { l.add(buffer(DType::float32, {.id = 1, .size = 4, .scope = Scope::device})); }},
      {"param", [](List& l) { l.memory(0, 4), l.memory(1, 5); }, [](List& l) { l.memory(0, 4), l.memory(0, 5); }},
      {"place or lane", [](List& l) { l.load(l.at(l.memory(0, 4), l.integer(0))); },
       [](List& l) {
         const UOp m = l.memory(0, 4), i = l.integer(0);
         l.load(l.add(Op::INDEX, m.dtype(), {m, i, l.add(bool_const(true))}, IndexArg{}));
       }},
      {"place or lane",
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 4), l.integer(0), 4));
         l.at(v, l.integer(3));
       },
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 8), l.integer(0), 4));
         l.at(v, l.integer(4));
       }},
      {"access", [](List& l) { l.store(l.at(l.memory(0, 4), l.integer(0)), l.number(1)); },
       [](List& l) { l.store(l.at(l.memory(0, 4), l.integer(0), 4), l.number(1)); }},
      {"access", [](List& l) { l.load(l.at(l.memory(0, 4), l.integer(0))); }, [](List& l) { l.load(l.memory(0, 4)); }},
      {"access",
       [](List& l) {
         const UOp place = l.at(l.memory(0, 4), l.integer(0));
         l.add(Op::LOAD, DType::float32, {place, l.number(0), l.add(bool_const(true))});
       },
       [](List& l) {
         const UOp place = l.at(l.memory(0, 4), l.integer(0));
         l.add(Op::LOAD, DType::float32, {place, l.number(0)});
       }},
      {"access", [](List& l) { l.store(tile(l, l.integer(0)), l.number(0)); },
       [](List& l) { l.store(tile(l, l.integer(0)), l.number(1)); }},
      {"access", [](List& l) { l.load(tile(l, l.integer(0))); }, [](List& l) { l.load(tile(l, l.integer(0), 2)); }},
      {"factors",
       [](List& l) {
         const UOp zero = l.integer(0);
         wait_for(l, product(l, zero, tile(l, zero)));
       },
       [](List& l) {
         const UOp zero = l.integer(0), p = product(l, zero, tile(l, zero));
         l.add(Op::WMMA, DType::float32, Nodes(p.src().begin(), p.src().end()), WmmaArg{});
       }},
      {"products under way",
       [](List& l) {
         const UOp zero = l.integer(0), p = product(l, zero, sums(l, zero));
         wait_for(l, p);
         use(l, zero, p);
       },
       [](List& l) {
         const UOp zero = l.integer(0);
         use(l, zero, product(l, zero, sums(l, zero)));
       }},
      {"products under way",
       [](List& l) {
         const UOp zero = l.integer(0), place = tile(l, zero);
         wait_for(l, product(l, zero, place));
         l.load(place);
       },
       [](List& l) {
         const UOp zero = l.integer(0), place = tile(l, zero);
         product(l, zero, place);
         l.load(place);
       }},
      {"products under way",
       [](List& l) {
         const UOp zero = l.integer(0), p = product(l, zero, sums(l, zero));
         wait_for(l, p);
         l.add(Op::BARRIER, DType::void_, {p});
       },
       [](List& l) {
         const UOp zero = l.integer(0);
         l.add(Op::BARRIER, DType::void_, {product(l, zero, sums(l, zero))});
       }},
      {"products under way", [](List& l) { l.number(1); }, [](List& l) { wait_for(l, sums(l, l.integer(0))); }},
      {"values", [](List& l) { l.add(Op::NEG, DType::float32, {l.load(l.at(l.memory(0, 4), l.integer(0)))}); },
       [](List& l) { l.add(Op::NEG, DType::float32, {l.at(l.memory(0, 4), l.integer(0))}); }},
      {"equal shapes",
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 4), l.integer(0), 4));
         l.add(v + l.add(Op::EXPAND, DType::float32, {l.number(1), constant(DType::int32, 4)}));
       },
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 4), l.integer(0), 4));
         l.add(v + l.number(1));
       }},
      {"lanes moved",
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 4), l.integer(0), 4));
         l.add(Op::SHRINK, DType::float32, {v, constant(DType::int32, 0), constant(DType::int32, 4)});
       },
       [](List& l) {
         const UOp v = l.load(l.at(l.memory(0, 4), l.integer(0), 4));
         l.add(Op::EXPAND, DType::float32, {v, constant(DType::int32, 4)});
       }},
  };
  for (const LinearCase& c : cases)
    check([](const UOp& u) { verify_linear(u); }, "linear program", {{c.rule, program(c.legal), program(c.illegal)}});
}

TEST(Verify, LinearRoot) {
  const auto verify = [](const UOp& u) { verify_linear(u); };
  const UOp list = program([](List& l) { l.number(1); });
  check(verify, "linear program", {{"root", list, list.with_arg(LinearArg{0})}});
}

TEST(Verify, LinearSupported) {
  const auto floats = [](const UOp& u) { verify_linear(u, [](const UOp& n) { return is_float(n.dtype()); }); };
  check(floats, "linear program",
        {{"supported", program([](List& l) { l.add(Op::NEG, DType::float32, {l.number(1)}); }),
          program([](List& l) { l.add(Op::NEG, DType::int32, {l.integer(1)}); })}});
}

TEST(Verify, BetweenStepsWhatHoldsAtAnyTime) {
  const auto verify = [](const UOp& u) { verify_between(u, "lanes"); };
  const UOp out = arg(0), i = range(4, 0), acc = buffer(DType::float32, {.id = 1, .size = 1, .scope = Scope::reg});
  const UOp zero = index_const(0);
  const UOp head = after(acc, Nodes{store(index(acc, zero), number(0)), i});
  const UOp done = end(store(index(head, zero), load(index(head, zero)) + number(1)), Nodes{i});
  check(
      verify, "lanes",
      {
          {"dtype", sunk(store(index(out, zero, 4), expand(number(1), {4}))), sunk(store(index(out, zero, 4), constant(DType::int32, 1)))},
          {"shape", sunk(store(index(out, zero, 4), expand(number(1), {4}))), sunk(store(index(out, zero, 4), expand(number(1), {3})))},
          {"open ranges", sunk(store(index(out, zero), load(index(after(acc, Nodes{done}), zero)))), sunk(store(index(out, i), number(1)))},
          {"indexed", sunk(store(index(out, zero), number(1))), sunk(store(index(reshape(out, {2, 2}), zero), number(1)))},
      });
}

/// What is known of realized values is verified with the graph, also above what was verified before.
TEST(Verify, HistoriesOfRealizedValues) {
  const UOp a = memory(1, 4), b = memory(2, 4);
  uint64_t id = 1000;
  const auto realized = [&](const UOp& x) { return node(Op::REALIZED, DType::float32, {b, x}, HistoryArg{id++, {}}); };
  const UOp bad = node(Op::ADD, DType::float32, {a, memory(3, 4, DType::int32)});
  UOp chain = realized(a + a);
  for (int i = 0; i < 100; ++i) {
    const UOp broken = realized(chain + realized(bad));
    EXPECT_NE(message_of(verify_tensor_graph, kept(broken * a)), "");
    EXPECT_NE(message_of(verify_tensor_graph, kept(broken * a)), "") << "what is broken stays so";
    EXPECT_EQ(message_of(verify_tensor_graph, kept(chain * a)), "");
    EXPECT_NE(message_of(verify_tensor_graph, kept(chain * bad)), "");
    chain = realized(chain * a);
  }
}

TEST(Verify, MillionNodesWithoutRecursion) {
  constexpr int count = 1'000'000;
  const UOp a = memory(1, 4);
  UOp chain = a, scalar = read(arg(1), range(4, 0));
  for (int n = 0; n < count; ++n) chain = chain + a;
  for (int n = 0; n < count / 2; ++n) scalar = scalar * number(2) + number(n % 7);
  verify_tensor_graph(kept(chain));
  verify_kernel(kernel({end(store(index(arg(0), range(4, 0)), scalar), Nodes{range(4, 0)})}));
  UOp state = a;
  for (int n = 0; n < 100'000; ++n) state = after(state, Nodes{store(state, number(n % 7))});
  verify_tensor_graph(sunk(state));
}

// Schedules.

TEST(VerifySchedule, TheListOfKernels) {
  const auto list = [](const Nodes& steps) { return node(Op::LINEAR, DType::void_, steps, LinearArg{0}); };
  const UOp memory = param(DType::float32, 8, {.slot = 0, .device = "CPU"}), i = variable("i", 0, 3), r = range(4, 0), other = range(4, 1);
  const UOp body = sunk(store(index(memory, cast(i, DType::index)), number(1)));
  const auto call = [&](const UOp& argument) { return node(Op::CALL, DType::void_, {body, memory, argument}); };
  const auto bound = [&](const UOp& value) { return node(Op::BIND, DType::index, {i, value}); };
  const auto loop = [&](const UOp& step, const UOp& range) { return end(list({step}), Nodes{range}); };
  const UOp broken = sunk(store(index(memory, index_const(0)), constant(DType::int32, 1)));
  check([](const UOp& u) { verify_schedule(u, "join nests"); }, "join nests",
        {
            {"list", list({call(i)}), node(Op::LINEAR, DType::void_, {}, LinearArg{1})},
            {"step", list({call(i)}), list({body})},
            {"argument", list({call(bound(index_const(2)))}), list({call(number(2))})},
            {"argument", list({loop(call(bound(r)), r)}), list({call(bound(r))})},
            {"argument", list({loop(loop(call(bound(other)), r), other)}), list({loop(call(bound(other)), r)})},
            {"loop", list({loop(call(bound(r)), r)}), list({loop(loop(call(bound(r)), r), r)})},
            {"dtype", list({call(i)}), list({node(Op::CALL, DType::void_, {broken, memory})})},
        });
}

}  // namespace
}  // namespace tinygrad::spec

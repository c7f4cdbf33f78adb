#include <algorithm>
#include <map>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "kernel/address_parts.h"
#include "kernel/scratch_layout.h"
#include "renderer/exact.h"
#include "renderer/llvmir/aliases.h"
#include "renderer/llvmir/emitter.h"
#include "renderer/llvmir/liveness.h"
#include "renderer/llvmir/llvmir.h"
#include "renderer/llvmir/memory.h"
#include "renderer/llvmir/tiles.h"
#include "renderer/llvmir/vectors.h"
#include "renderer/nearest.h"
#include "renderer/walk.h"
#include "target/tensor_cores/registers.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::renderer {
namespace {

using namespace llvmir;

/// A RANGE whose END has not come yet.
struct OpenLoop {
  std::string variable, type, header, exit;
  std::string bound, before;  // the first value that is not taken; the block that enters the loop
  std::string first;
  size_t phi_line;
  bool has_sums = false;  // of products, which other instructions add to accumulators
};

class Renderer : public Walk {
 public:
  Renderer(const Target& target, const UOp& linear, const KernelInfo& info)
      : Walk("LLVM IR", linear, info),
        target_(target),
        scratch_(linear),
        aliases_(info, int32_t(scratch_.buffers().size())),
        live_(linear),
        tiles_(out_, linear) {}

  std::string render() {
    tiles_.begin();
    walk();
    memory_.finish();
    tiles_.finish();
    out_.line("ret void");
    const auto [triple, cpu, features] = processor_names(target_.arch.str());
    // "stackrealign": by default LLVM finds out too late that it must spill vectors, and does so across cache lines.
    return fmt::format(
        "target triple = \"{}\"\n\n"
        "define void @{}(ptr noalias %bufs, ptr noalias %vars, i64 %chunk_begin, i64 %chunk_end, ptr noalias align {}{} %scratch) #0 "
        "{{\nentry:\n{}}}\n\n"
        "{}\nattributes #0 = {{ nounwind willreturn \"no-builtins\" \"stackrealign\" \"target-cpu\"=\"{}\"{} "
        "\"prefer-vector-width\"=\"{}\" "
        "}}\n{}",
        triple, kernel_symbol(info_.name), ScratchLayout::alignment,
        scratch_.bytes() ? fmt::format(" dereferenceable({})", scratch_.bytes()) : "", out_.body(), out_.declarations(), cpu,
        features.empty() ? "" : fmt::format(" \"target-features\"=\"{}\"", features), target_.vector_bits,
        aliases_.metadata() + loop_nodes_);
  }

 private:
  // Values.

  const Value& value(const UOp& u) const { return values_.of(u); }
  void set(const UOp& u, Value v) { values_.set(u, std::move(v)); }
  void set(const UOp& u, std::string ref, int lanes = 1) { set(u, Value{.ref = std::move(ref), .dtype = u.dtype(), .lanes = lanes}); }

  /// The number of 64 bits for a scalar index.
  const Value& wide_value(const UOp& u) {
    const Value* wide = wide_.find(u);
    return wide ? *wide : value(u);
  }

  void step(const UOp& u, size_t place) override {
    tiles_.enter(u, place);
    if (u.is(Op::RANGE) || live_.is_live(u)) visit(u);
    if (!u.is(Op::RANGE) && live_.is_wide(u)) wide_[u] = widened(u);
  }

  Value widened(const UOp& u) {
    if (const Scalar* c = const_value(u)) return {.ref = literal(*c), .dtype = DType::int64};
    if (Liveness::is_wide_sum(u)) return emit_alu(out_, u.op(), DType::int64, {wide_value(u.src(0)), wide_value(u.src(1))}, true);
    return extended(value(u));
  }
  Value extended(const Value& narrow) {
    return {.ref = out_.define("wide", fmt::format(FMT_COMPILE("sext {} to i64"), typed(narrow))), .dtype = DType::int64};
  }

  void constant(const UOp& u, const Scalar& c) override {
    set(u, Value{.ref = literal(c), .dtype = u.dtype(), .lanes = 1, .constant = &c});
  }

  void product(const UOp& u) override {
    if (!loops_.empty() && !adds_itself(u.arg_as<WmmaArg>())) loops_.back().has_sums = true;
    const auto [row, turned] = turned_row(u.src(0));
    set(u, dot_product(out_, u.arg_as<WmmaArg>(), value(row), turned, value(u.src(1)), value(u.src(2))));
  }

  /// A row of which bits are turned over, and these bits of each 32: LLVM does so to four bytes one by one, if they are a vector.
  static std::pair<UOp, uint32_t> turned_row(const UOp& row) {
    if (!row.is(Op::BITCAST) || !row.src(0).is(Op::XOR)) return {row, 0};
    const UOp &x = row.src(0), &bits = x.src(1);
    const Scalar* constant = bits.is(Op::EXPAND) ? const_value(bits.src(0)) : nullptr;
    if (!constant || bitsize(constant->dtype()) != 8) return {row, 0};
    return {x.src(0), static_cast<uint32_t>(constant->as_uint() & 0xff) * 0x01010101u};
  }

  void begin_product(const UOp& u) override {
    if (!tiles_.any()) has_none(u);
    if (!loops_.empty()) loops_.back().has_sums = true;
    tiles_.multiply(u, addresses_.of(u.src(0)).pointers[0], addresses_.of(u.src(1)).pointers[0]);
  }
  /// Products of tiles are in the order of the program.
  void wait_for_products(const UOp& u) override {
    if (!tiles_.any()) has_none(u);
  }

  void elementwise(const UOp& u) override {
    if (u.is(Op::CAST)) return set(u, emit_cast(out_, value(u.src(0)), u.dtype(), is_small(u.src(0))));
    if (u.is(Op::BITCAST)) return set(u, emit_bitcast(out_, value(u.src(0)), u.dtype()));
    if (const UOp x = rounded_to_nearest(u); x && value(x).lanes > 1) return set(u, nearest(out_, value(x)));
    std::vector<Value> sources;
    for (const UOp& s : u.src()) sources.push_back(value(s));
    set(u, emit_alu(out_, u.op(), u.dtype(), sources, is_exact(u)));
  }

  void parameter(const UOp& u) override {
    const auto& arg = u.arg_as<ParamArg>();
    const std::string name = fmt::format("%buf{}", arg.slot);
    out_.entry_line(fmt::format("{}.at = getelementptr inbounds ptr, ptr %bufs, i64 {}", name, arg.slot));
    out_.entry_line(fmt::format("{} = load ptr, ptr {}.at, align 8, !invariant.load !0", name, name));
    set(u, name);
  }

  void variable(const UOp& u) override {
    const size_t place = place_of_variable(u);
    const std::string name = fmt::format("%var{}", place);
    out_.entry_line(fmt::format("{}.at = getelementptr inbounds i64, ptr %vars, i64 {}  ; {}", name, place, u.arg_as<VarArg>().name.str()));
    out_.entry_line(fmt::format("{}.wide = load i64, ptr {}.at, align 8, !invariant.load !0", name, name));
    const std::string type = type_name(u.dtype());
    if (type == "i64") return set(u, name + ".wide");
    out_.entry_line(fmt::format("{} = trunc i64 {}.wide to {}", name, name, type));
    set(u, name);
  }

  void own_memory(const UOp& u) override {
    const auto& arg = u.arg_as<BufferArg>();
    if (arg.scope == Scope::tensor) return;
    if (arg.scope != Scope::reg && arg.scope != Scope::thread) fail(u, "a CPU has no memory shared between work-items");
    const std::string name = fmt::format("%mem{}", memories_++);
    if (const auto offset = scratch_.offset(u)) {
      out_.entry_line(fmt::format("{} = getelementptr inbounds i8, ptr %scratch, i64 {}", name, *offset));
    } else {
      out_.entry_line(fmt::format("{} = alloca [{} x {}], align 64", name, arg.size, memory_type_name(u.dtype())));
    }
    set(u, name);
  }

  // Control flow. Loops test at the end: a range that may be empty is tested once before.

  void open_loop(const UOp& u) override {
    const auto& arg = u.arg_as<RangeArg>();
    const DType counter = live_.is_wide(u) ? DType::int64 : u.dtype();
    const std::string number = std::to_string(loop_count_++), type = type_name(counter);
    OpenLoop loop{.variable = "%r" + number,
                  .type = type,
                  .header = "loop" + number,
                  .exit = "done" + number,
                  .bound = {},
                  .before = {},
                  .first = "0",
                  .phi_line = 0};
    const Scalar* size = const_value(u.src(0));
    bool may_be_empty = !size || size->as_int() <= 0;
    if (arg.kind == AxisKind::thread) {
      loop.first = chunk_number("%chunk_begin", counter);
      loop.bound = chunk_number("%chunk_end", counter);
      may_be_empty = true;
    } else {
      loop.bound = size ? literal(size->cast(counter)) : counter == u.dtype() ? value(u.src(0)).ref : extended(value(u.src(0))).ref;
    }
    if (may_be_empty) {
      const std::string some = out_.define("some", fmt::format("icmp slt {} {}, {}", type, loop.first, loop.bound));
      out_.line(fmt::format("br i1 {}, label %{}, label %{}", some, loop.header, loop.exit));
    } else {
      out_.line(fmt::format("br label %{}", loop.header));
    }
    loop.before = out_.current_block();
    out_.block(loop.header);
    loop.phi_line = out_.reserve();
    count_with(u, {.ref = loop.variable, .dtype = counter});
    loops_.push_back(std::move(loop));
    bases_.open_block();
  }

  void count_with(const UOp& range, const Value& counter) {
    if (counter.dtype == range.dtype()) return set(range, counter);
    wide_[range] = counter;
    if (live_.is_live(range))
      set(range, out_.define("count", fmt::format(FMT_COMPILE("trunc {} to {}"), typed(counter), type_name(range.dtype()))));
  }

  std::string chunk_number(const std::string& wide, DType dtype) {
    return bitsize(dtype) == 64 ? wide : out_.define("chunk", fmt::format("trunc i64 {} to {}", wide, type_name(dtype)));
  }

  void close_loop() override {
    const OpenLoop loop = std::move(loops_.back());
    loops_.pop_back();
    bases_.close_block();
    const std::string next = loop.variable + ".next";
    out_.line(fmt::format("{} = add nuw nsw {} {}, 1", next, loop.type, loop.variable));
    const std::string more = out_.define("more", fmt::format("icmp slt {} {}, {}", loop.type, next, loop.bound));
    out_.fill(loop.phi_line, fmt::format("{} = phi {} [ {}, %{} ], [ {}, %{} ]", loop.variable, loop.type, loop.first, loop.before, next,
                                         out_.current_block()));
    out_.line(fmt::format("br i1 {}, label %{}, label %{}{}", more, loop.header, loop.exit, loop.has_sums ? as_written() : ""));
    out_.block(loop.exit);
  }

  /// Of a loop that LLVM shall not unroll: it would add up products of several steps first, whose sums take the registers of accumulators.
  /// Those of tiles take so long that nothing is gained.
  std::string as_written() {
    const int32_t node = first_loop_node + 2 * written_loops_++;
    loop_nodes_ += fmt::format("!{0} = distinct !{{!{0}, !{1}}}\n!{1} = !{{!\"llvm.loop.unroll.disable\"}}\n", node, node + 1);
    return fmt::format(", !llvm.loop !{}", node);
  }

  void open_if(const UOp& u) override {
    const std::string inside = out_.fresh("if");
    ifs_.push_back(inside + ".end");
    out_.line(fmt::format("br i1 {}, label %{}, label %{}", value(u.src(0)).ref, inside, ifs_.back()));
    out_.block(inside);
    bases_.open_block();
  }

  void close_if() override {
    out_.line(fmt::format("br label %{}", ifs_.back()));
    out_.block(ifs_.back());
    ifs_.pop_back();
    bases_.close_block();
  }

  // Memory.

  void address(const UOp& u) override {
    if (is_tensor_memory(u)) return;
    if (u.src_count() != 2) fail(u, "has a gate, which belongs to the LOAD or STORE");
    Address a{
        .pointers = {}, .lanes = u.arg_as<IndexArg>().width, .memory = memory_number(u.src(0)), .streams = u.arg_as<IndexArg>().streams};
    const std::string memory = value(u.src(0)).ref, element = memory_type_name(u.dtype());
    if (const auto parts = address_parts(u.src(1))) {
      const std::string base = parts->base ? base_of(u.src(0), *parts->base, element) : memory;
      for (const int64_t offset : parts->offsets)
        a.pointers.push_back(offset == 0 ? base : offset_pointer(out_, base, element, fmt::format(FMT_COMPILE("i64 {}"), offset)));
    } else {
      const Value& at = value(u.src(1));
      for (int i = 0; i < at.lanes; ++i) a.pointers.push_back(offset_pointer(out_, memory, element, typed(lane_of(out_, at, i))));
    }
    a.per_lane = a.pointers.size() > 1;
    if (a.per_lane && a.lanes != 1) fail(u, "has both lanes and a width");
    if (a.per_lane) a.lanes = int(a.pointers.size());
    addresses_.set(u, std::move(a));
  }

  std::string base_of(const UOp& memory, const UOp& at, const std::string& element) {
    return bases_.get(memory, at, [&] { return offset_pointer(out_, value(memory).ref, element, typed(wide_value(at))); });
  }

  int32_t memory_number(const UOp& memory) const {
    if (memory.is(Op::PARAM)) return memory.arg_as<ParamArg>().slot;
    const auto places = scratch_.buffers();
    const auto at = std::ranges::find(places, memory);
    return at == places.end() ? -1 : Aliases::number_of_place(static_cast<int32_t>(at - places.begin()));
  }

  void prefetch(const UOp& u) override { memory_.prefetch(addresses_.of(u.src(0)), stores_to(info_, u.src(0))); }

  void load(const UOp& u) override {
    if (is_tensor_memory(u.src(0))) return;  // for a STORE
    const Address& a = addresses_.of(u.src(0));
    if (u.src_count() == 1) return set(u, memory_.load(a, u.dtype()));
    const Value &alternative = value(u.src(1)), &gate = value(u.src(2));
    if (gate.lanes > 1) return set(u, memory_.load(a, alternative, [&](int first, int lanes) { return mask_of(u.src(2), first, lanes); }));
    const std::string label = out_.fresh("load"), type = type_name(u.dtype(), a.lanes), before = out_.current_block();
    out_.line(fmt::format("br i1 {}, label %{}, label %{}.end", gate.ref, label, label));
    out_.block(label);
    const std::string loaded = memory_.load(a, u.dtype()).ref, inside = out_.current_block();
    out_.line(fmt::format("br label %{}.end", label));
    out_.block(label + ".end");
    set(u, out_.define("gated", fmt::format("phi {} [ {}, %{} ], [ {}, %{} ]", type, alternative.ref, before, loaded, inside)), a.lanes);
  }

  void store(const UOp& u) override {
    const auto pointer = [&](const UOp& place) { return addresses_.of(place).pointers[0]; };
    if (is_tensor_memory(u.src(0)) && u.src(1).is(Op::LOAD)) return tiles_.load(u.src(0).src(0), pointer(u.src(1).src(0)));
    if (is_tensor_memory(u.src(0))) return tiles_.clear(u.src(0).src(0));
    if (u.src(1).is(Op::LOAD) && is_tensor_memory(u.src(1).src(0))) return tiles_.store(u.src(1).src(0).src(0), pointer(u.src(0)));
    const Address& a = addresses_.of(u.src(0));
    const Value& x = value(u.src(1));
    if (x.lanes != a.lanes) fail(u, fmt::format("stores {} lanes to {} elements", x.lanes, a.lanes));
    if (u.src_count() == 2) return memory_.store(a, x);
    const Value& gate = value(u.src(2));
    if (gate.lanes > 1) return memory_.store(a, x, [&](int first, int lanes) { return mask_of(u.src(2), first, lanes); });
    const std::string label = out_.fresh("store");
    out_.line(fmt::format("br i1 {}, label %{}, label %{}.end", gate.ref, label, label));
    out_.block(label);
    memory_.store(a, x);
    out_.line(fmt::format("br label %{}.end", label));
    out_.block(label + ".end");
  }

  /// Lanes [first, first + lanes) of a gate, computed from such parts of what it is made of.
  std::string mask_of(const UOp& gate, int first, int lanes) {
    if (lanes == value(gate).lanes) return typed(value(gate));
    const auto has_parts = [&](const UOp& u) { return u.in(Group::alu) && value(u).lanes > 1; };
    NodeMap<Value> parts;
    for (const UOp& u : toposort_where(std::span(&gate, 1), has_parts)) {
      if (!has_parts(u)) {
        parts[u] = part_of(u, first, lanes);
        continue;
      }
      std::vector<Value> sources;
      for (const UOp& s : u.src()) sources.push_back(parts[s]);
      parts[u] = emit_alu(out_, u.op(), u.dtype(), sources, is_exact(u));
    }
    return typed(parts[gate]);
  }

  Value part_of(const UOp& u, int first, int lanes) {
    const Value& v = value(u);
    if (v.lanes == 1) return v;
    if (u.is(Op::EXPAND)) return splat(out_, value(u.src(0)), lanes);
    if (u.is(Op::STACK)) return stack_of(u.src().subspan(size_t(first), size_t(lanes)), u.dtype());
    return run_of(v, first, lanes);
  }

  // Vectors.

  Value run_of(const Value& v, int64_t first, int64_t lanes) {
    if (lanes == 1) return lane_of(out_, v, first);
    return {
        .ref = run_of_lanes(out_, type_name(v.dtype), v.ref, v.lanes, first, lanes), .dtype = v.dtype, .lanes = static_cast<int>(lanes)};
  }

  void lanes(const UOp& u, int64_t begin, int64_t end) override {
    const Value& v = value(u.src(0));
    if (begin < 0 || end > v.lanes) fail(u, "there are no such lanes");
    set(u, run_of(v, begin, end - begin));
  }

  void expand(const UOp& u, int64_t lanes) override {
    if (value(u.src(0)).lanes != 1) fail(u, "repeats what is no scalar");
    set(u, splat(out_, value(u.src(0)), int(lanes)));
  }

  void stack(const UOp& u) override { set(u, stack_of(u.src(), u.dtype())); }

  Value stack_of(std::span<const UOp> scalars, DType dtype) {
    if (scalars.size() == 1) return value(scalars[0]);
    if (const UOp vector = whole_of(scalars)) return lanes_of(vector, scalars);
    std::vector<Value> values;
    const size_t vectors = interleaved_vectors(scalars);
    for (const UOp& u : scalars.first(vectors ? vectors : scalars.size())) values.push_back(value(vectors ? u.src(0) : u));
    if (vectors) return interleave(out_, values);
    if (std::ranges::any_of(values, [](const Value& v) { return v.lanes != 1; }))
      throw InternalError(fmt::format("LLVM IR: a STACK of vectors in kernel {}; it may join scalars only", info_.name));
    return vector_of(out_, values, dtype);
  }

  /// The vector that all of them are lanes of; null if there is none.
  static UOp whole_of(std::span<const UOp> scalars) {
    const UOp& first = scalars[0];
    const auto is_lane = [&](const UOp& u) { return u.is(Op::INDEX) && u.src(0) == first.src(0) && const_value(u.src(1)); };
    return first.is(Op::INDEX) && !first.src(0).in(Group::memory) && std::ranges::all_of(scalars, is_lane) ? UOp(first.src(0)) : UOp();
  }

  Value lanes_of(const UOp& vector, std::span<const UOp> scalars) {
    const Value& v = value(vector);
    std::vector<int64_t> order;
    for (const UOp& u : scalars) order.push_back(const_value(u.src(1))->as_int());
    return shuffled(out_, v, order);
  }

  /// Of how many vectors these are the first lane of each, the second lane of each, ...; 0: they are something else.
  size_t interleaved_vectors(std::span<const UOp> scalars) {
    const auto is_lane_of = [&](size_t i, const UOp& vector, size_t at) {
      const UOp& u = scalars[i];
      return u.is(Op::INDEX) && u.src(0) == vector && is_const(u.src(1), int64_t(at));
    };
    if (!scalars[0].is(Op::INDEX)) return 0;
    size_t n = 1;
    while (n < scalars.size() && scalars[n].is(Op::INDEX) && is_lane_of(n, scalars[n].src(0), 0)) ++n;
    const auto lanes = size_t(value(scalars[0].src(0)).lanes);
    if (n == 1 || n * lanes != scalars.size()) return 0;
    for (size_t i = 0; i < scalars.size(); ++i)
      if (!is_lane_of(i, scalars[i % n].src(0), i / n) || size_t(value(scalars[i % n].src(0)).lanes) != lanes) return 0;
    return n;
  }

  const Target& target_;
  const ScratchLayout scratch_;
  const Aliases aliases_;
  const Liveness live_;
  Emitter out_{target_.supports(Op::LDEXP), computes_halves(target_)};  // AVX-512 alone has LDEXP
  Memory memory_{out_, target_, aliases_};
  Tiles tiles_;
  Results<Value> values_;
  Results<Address> addresses_;
  NodeMap<Value> wide_;
  std::vector<OpenLoop> loops_;
  std::vector<std::string> ifs_;
  SharedAddresses bases_;
  int loop_count_ = 0, memories_ = 0;
  static constexpr int32_t first_loop_node = 1 << 20;  ///< behind those of aliases
  int32_t written_loops_ = 0;
  std::string loop_nodes_;
};

}  // namespace

std::string render_llvmir(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(target, linear, info).render();
}

}  // namespace tinygrad::renderer

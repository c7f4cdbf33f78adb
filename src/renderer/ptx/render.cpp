#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "kernel/address_parts.h"
#include "kernel/group_layout.h"
#include "renderer/nvidia_matrix.h"
#include "renderer/ptx/emitter.h"
#include "renderer/ptx/memory.h"
#include "renderer/ptx/mma.h"
#include "renderer/ptx/ptx.h"
#include "renderer/ptx/tensor_memory.h"
#include "renderer/walk.h"
#include "symbolic/known_divisors.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::renderer {
namespace {

using namespace ptx;

/// The lanes of a value; there are no vectors in registers.
struct Value {
  DType dtype = DType::void_;
  std::vector<Operand> lanes;
};

/// Memory of any kind. What is private and accessed at numbers alone is registers, one an element.
struct Memory {
  std::string_view space;  ///< empty: registers
  std::string base;        ///< a register with the address
  int64_t alignment = 16;
  std::vector<std::string> registers;
};

/// An INDEX: a run of elements, or one for each lane, as offsets in elements from a base.
struct Address {
  UOp memory;
  std::vector<Place> places;           ///< one for a run
  std::vector<int64_t> elements = {};  ///< of registers
  size_t width = 1;
};

/// A tile in tensor memory, and the registers that an item reads it to.
struct ResidentTile {
  TensorTile tile;
  std::vector<std::string> sums;
};

/// A product that is given what it adds to, under way.
struct GivenSum {
  UOp product;
  TensorTile tile;
  std::vector<std::string> sums;
  DType dtype = DType::void_;
};

struct OpenLoop {
  std::string counter, bound, begin, end;
  std::string_view type;
};

/// The least version of PTX that knows the architecture.
std::string_view version_for(std::string_view arch) {
  if (arch.ends_with('f')) return "8.8";
  if (arch.starts_with("sm_110")) return "9.0";
  if (arch.starts_with("sm_103") || arch.starts_with("sm_121")) return "8.8";
  if (arch.starts_with("sm_12")) return "8.7";
  if (arch.starts_with("sm_10")) return "8.6";
  return "8.4";
}

class Renderer : public Walk {
 public:
  Renderer(const Target& target, const UOp& linear, const KernelInfo& info)
      : Walk("PTX", linear, info), target_(target), is_given_(given_group_bytes(target, info) != 0), group_layout_(linear) {
    for (const UOp& u : linear.src()) {
      if (u.is(Op::INDEX) && u.src(0).is(Op::BUFFER) && !constant_offsets(u)) has_address_[u.src(0)] = true;
      if (!is_asynchronous(u)) continue;
      has_products_ = true;
      if (core_of(u).tensor_memory && !tensor_memory_) tensor_memory_.emplace(out_, info_);
    }
  }

  std::string render() {
    walk();
    const std::string shared =
        tensor_memory_ ? group_memory("sums", tensor_memory_group_bytes, group_layout_.bytes(), GroupLayout::least_alignment) : "";
    const std::string prologue = tensor_memory_ ? tensor_memory_->prologue(shared) : "",
                      epilogue = tensor_memory_ ? tensor_memory_->epilogue() : "";
    std::vector<std::string> parameters;
    for (const KernelParam& p : info_.params) parameters.push_back(fmt::format("  .param .u64 buffer{}", p.slot));
    for (size_t i = 0; i < info_.variables.size(); ++i) parameters.push_back(fmt::format("  .param .s64 variable{}", i));
    const std::string given = is_given_ ? fmt::format(".extern .shared .align {} .b8 given[];\n\n", group_layout_.alignment()) : "";
    return fmt::format("// {}\n.version {}\n.target {}\n.address_size 64\n\n{}.visible .entry {}(\n{}\n)\n{}{{\n{}{}{}{}{}{}  ret;\n}}\n",
                       info_.name, version_for(target_.arch.str()), target_.arch.str(), given, kernel_symbol(info_.name),
                       fmt::join(parameters, ",\n"), group_size(), out_.declarations(), memories_, out_.entry(), prologue, out_.body(),
                       epilogue);
  }

 private:
  /// Work-items of a group, where they are known: registers are shared out among so many.
  std::string group_size() const {
    if (!std::ranges::all_of(info_.local, &IndexExpr::is_constant)) return {};
    return fmt::format(".reqntid {}, {}, {}\n", info_.local[0].evaluate({}), info_.local[1].evaluate({}), info_.local[2].evaluate({}));
  }

  // Values.

  const Value& value(const UOp& u) const { return values_.of(u); }
  void set(const UOp& u, std::vector<Operand> lanes) { values_.set(u, {.dtype = u.dtype(), .lanes = std::move(lanes)}); }
  void set(const UOp& u, std::string one) { set(u, std::vector<Operand>{{.text = std::move(one), .dtype = u.dtype()}}); }
  void set(const UOp& u, const std::vector<std::string>& lanes) {
    std::vector<Operand> operands;
    for (const std::string& x : lanes) operands.push_back({.text = x, .dtype = u.dtype()});
    set(u, std::move(operands));
  }
  const Operand& scalar(const UOp& u) {
    const Value& v = value(u);
    if (v.lanes.size() != 1) fail(u, "is a vector where a scalar must be");
    return v.lanes[0];
  }
  std::vector<std::string> registers(const UOp& u) {
    std::vector<std::string> out;
    for (const Operand& x : value(u).lanes) out.push_back(out_.in_register(x));
    return out;
  }

  void constant(const UOp& u, const Scalar& c) override { set(u, std::vector{constant_operand(out_, c)}); }
  void commit(const UOp&) override { out_.line("cp.async.commit_group;"); }
  void wait(const UOp&, int32_t pending) override { out_.line(fmt::format("cp.async.wait_group {};", pending)); }
  void product(const UOp& u) override {
    set(u, emit_mma(out_, u.arg_as<WmmaArg>(), registers(u.src(0)), registers(u.src(1)), registers(u.src(2))));
  }

  // Asynchronous products.

  static const TensorCore& core_of(const UOp& wmma) { return *find_tensor_core(wmma.arg_as<WmmaArg>().name); }

  void begin_product(const UOp& u) override { core_of(u).tensor_memory ? begin_in_memory(u) : begin_in_registers(u); }

  void wait_for_products(const UOp&) override {
    if (!tensor_memory_) end_products(out_, begun_);
    begun_.clear();
    if (!tensor_memory_) return;
    tensor_memory_->wait();
    for (GivenSum& g : given_) {
      tensor_memory_->read(g.tile, g.dtype, g.sums);
      free_.push_back(std::move(g.tile));
    }
    given_.clear();
  }

  /// Tensor cores see shared memory another way than what the items write there.
  void barrier(const UOp&) override {
    if (tensor_memory_) return tensor_memory_->barrier();
    if (has_products_) out_.line("fence.proxy.async.shared::cta;");
    out_.line("bar.sync 0;");
  }

  void begin_in_registers(const UOp& u) {
    const TensorCore& core = core_of(u);
    const auto factor = [&](size_t i, const TensorCore::Layout& layout) {
      return layout.in_memory ? Factor{address_of(u, i).places.at(0)} : Factor{{}, registers(u.src(i))};
    };
    const Factor a = factor(0, core.a), b = factor(1, core.b);
    const std::vector<std::string> sums = registers(u.src(2));
    if (const auto before = std::ranges::find(begun_, sums, &Product::sums); before != begun_.end()) {
      ptx::begin_product(out_, core, a, b, {}, &*before);
      return set(u, sums);
    }
    begun_.push_back(ptx::begin_product(out_, core, a, b, sums, nullptr));
    set(u, begun_.back().sums);
  }

  /// A product given a tile adds to it in place. Another gets a tile of its own, which its sums are copied to and, when they are done,
  /// from.
  void begin_in_memory(const UOp& u) {
    const TensorCore& core = core_of(u);
    const std::string a = matrix_place(out_, core, 0, address_of(u, 0).places.at(0)),
                      b = matrix_place(out_, core, 1, address_of(u, 1).places.at(0));
    TensorMemory& memory = *tensor_memory_;
    if (is_tensor_memory(u.src(2))) return memory.begin_product(core, tiles_.find(u.src(2).src(0))->tile, a, b);
    if (const auto before = std::ranges::find(given_, u.src(2), &GivenSum::product); before != given_.end()) {
      before->product = u;
      memory.begin_product(core, before->tile, a, b);
      return set(u, before->sums);
    }
    GivenSum g{.product = u, .tile = free_tile(core.n), .sums = registers_for_sums(core.n, core.out), .dtype = core.out};
    if (is_zero(u.src(2)))
      memory.clear(g.tile);
    else
      memory.write(g.tile, registers(u.src(2)));
    memory.begin_product(core, g.tile, a, b);
    set(u, g.sums);
    given_.push_back(std::move(g));
  }
  TensorTile free_tile(int32_t columns) {
    const auto free = std::ranges::find(free_, columns, &TensorTile::columns);
    if (free == free_.end()) return tensor_memory_->add_tile(columns);
    TensorTile tile = std::move(*free);
    free_.erase(free);
    return tile;
  }

  std::vector<std::string> registers_for_sums(int64_t count, DType dtype) {
    std::vector<std::string> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(out_.fresh(kind_of(dtype)));
    return out;
  }

  // Tiles in tensor memory.

  void own_tile(const UOp& u) {
    const int64_t n = u.arg_as<BufferArg>().size;
    TensorTile tile = tensor_memory_->add_tile(int32_t(n));
    tiles_[u] = {std::move(tile), registers_for_sums(n, u.dtype())};
  }
  void load_tile(const UOp& u) {
    const ResidentTile& t = *tiles_.find(u.src(0).src(0));
    tensor_memory_->read(t.tile, u.dtype(), t.sums);
    set(u, t.sums);
  }

  void elementwise(const UOp& u) override {
    const size_t lanes = value(u.src(0)).lanes.size();
    std::vector<std::string> result;
    for (size_t i = 0; i < lanes; ++i) {
      std::vector<Operand> sources;
      for (const UOp& s : u.src()) {
        if (value(s).lanes.size() != lanes) fail(u, "its sources have different numbers of lanes");
        sources.push_back(value(s).lanes[i]);
      }
      result.push_back(u.is(Op::CAST)      ? emit_cast(out_, sources[0], u.dtype())
                       : u.is(Op::BITCAST) ? emit_bitcast(out_, sources[0], u.dtype())
                                           : emit_alu(out_, u.op(), u.dtype(), sources));
    }
    set(u, result);
  }

  void lanes(const UOp& u, int64_t begin, int64_t end) override {
    const std::vector<Operand>& all = value(u.src(0)).lanes;
    if (begin < 0 || end > int64_t(all.size())) fail(u, "there are no such lanes");
    set(u, std::vector<Operand>(all.begin() + begin, all.begin() + end));
  }
  void expand(const UOp& u, int64_t lanes) override { set(u, std::vector(size_t(lanes), scalar(u.src(0)))); }
  void stack(const UOp& u) override {
    std::vector<Operand> lanes;
    for (const UOp& s : u.src()) lanes.push_back(scalar(s));
    set(u, std::move(lanes));
  }

  void parameter(const UOp& u) override {
    const int32_t slot = u.arg_as<ParamArg>().slot;
    const std::string generic = out_.fresh(RegisterKind::bits64), base = out_.fresh(RegisterKind::bits64);
    out_.entry_line(fmt::format("ld.param.u64 {}, [buffer{}];", generic, slot));
    out_.entry_line(fmt::format("cvta.to.global.u64 {}, {};", base, generic));
    const int64_t alignment = std::max<int64_t>(u.arg_as<ParamArg>().align, int64_t(itemsize(u.dtype())));
    memory_[u] = {.space = is_constant(slot) ? "global.nc" : "global", .base = base, .alignment = alignment, .registers = {}};
  }

  /// Nothing that the kernel stores may be in it.
  bool is_constant(int32_t slot) const {
    const auto of_slot = [&](const KernelParam& p) { return p.slot == slot; };
    const auto self = std::ranges::find_if(info_.params, of_slot);
    if (self == info_.params.end() || self->written) return false;
    return std::ranges::none_of(
        info_.params, [&](const KernelParam& p) { return p.written && (p.alias == 0 || self->alias == 0 || p.alias == self->alias); });
  }

  void variable(const UOp& u) override {
    const std::string name = out_.fresh(kind_of(u.dtype()));
    const std::string_view type = kind_of(u.dtype()) == RegisterKind::bits64 ? "b64" : "b32";  // the lower word
    out_.entry_line(fmt::format("ld.param.{} {}, [variable{}];", type, name, place_of_variable(u)));
    set(u, name);
  }

  void special(const UOp& u) override {
    const auto& arg = u.arg_as<SpecialArg>();
    const std::string name = out_.fresh(RegisterKind::bits32);
    out_.entry_line(fmt::format("mov.u32 {}, %{}.{};", name, arg.kind == AxisKind::local ? "tid" : "ctaid", "xyz"[arg.dim]));
    set(u, emit_cast(out_, {.text = name, .dtype = DType::int32}, u.dtype()));
  }

  // Memory of the kernel's own.

  static std::optional<std::vector<int64_t>> constant_offsets(const UOp& index) {
    const auto parts = address_parts(index.src(1));
    if (!parts || parts->base) return std::nullopt;
    return parts->offsets;
  }

  void own_memory(const UOp& u) override {
    const auto& arg = u.arg_as<BufferArg>();
    if (arg.scope == Scope::tensor) return own_tile(u);
    Memory& m = memory_[u];
    if (arg.scope != Scope::group && !has_address_.contains(u)) {
      for (int64_t i = 0; i < arg.size; ++i) m.registers.push_back(out_.fresh(kind_of(u.dtype())));
      return;
    }
    m.space = arg.scope == Scope::group ? "shared" : "local";
    const int64_t bytes = arg.size * int64_t(itemsize(u.dtype()));
    const std::string name = fmt::format("{}{}", m.space, memory_.size());
    m.base = arg.scope == Scope::group ? group_memory(name, bytes, group_layout_.place(u), group_layout_.alignment(u))
                                       : declared_memory("local", name, bytes, GroupLayout::least_alignment);
  }
  std::string declared_memory(std::string_view space, const std::string& name, int64_t bytes, int alignment) {
    memories_ += fmt::format("  .{} .align {} .b8 {}[{}];\n", space, alignment, name, bytes);
    const std::string base = out_.fresh(RegisterKind::bits64);
    out_.entry_line(fmt::format("mov.u64 {}, {};", base, name));
    return base;
  }
  std::string group_memory(const std::string& name, int64_t bytes, int64_t place, int alignment) {
    if (!is_given_) return declared_memory("shared", name, bytes, alignment);
    const std::string base = out_.fresh(RegisterKind::bits64);
    out_.entry_line(fmt::format("mov.u64 {}, given;", base));
    if (place > 0) out_.entry_line(fmt::format("add.s64 {0}, {0}, {1};", base, place));
    return base;
  }

  // Addresses.

  void address(const UOp& u) override {
    if (is_tensor_memory(u)) return;
    const Memory& m = *memory_.find(u.src(0));
    Address a{.memory = u.src(0), .places = {}, .width = size_t(u.arg_as<IndexArg>().width)};
    const int64_t each = int64_t(itemsize(u.dtype()));
    if (m.space.empty()) {
      a.elements = *constant_offsets(u);
    } else if (const auto parts = address_parts(u.src(1))) {
      const int64_t divisor = parts->base ? each << std::min(divisors_.power_of_two(*parts->base), 4) : 16;
      const std::string pointer = parts->base ? base_of(u.src(0), *parts->base) : m.base;
      for (const int64_t offset : parts->offsets) a.places.push_back({m.space, pointer, offset * each, std::min(m.alignment, divisor)});
    } else {
      for (const Operand& at : value(u.src(1)).lanes) a.places.push_back({m.space, beyond(m.base, at, each), 0, each});
    }
    if (a.width != 1 && a.places.size() > 1) fail(u, "has both lanes and a width");
    addresses_.set(u, std::move(a));
  }

  /// The address of an element, by an index of any integer dtype.
  std::string beyond(const std::string& base, const Operand& at, int64_t each) {
    if (bitsize(at.dtype) == 32)
      return out_.define(DType::uint64, fmt::format("mad.wide.{}", type_name(at.dtype)), fmt::format("{}, {}, {}", at.text, each, base));
    const std::string wide = emit_cast(out_, at, DType::int64);
    return out_.define(DType::uint64, "mad.lo.s64", fmt::format("{}, {}, {}", wide, each, base));
  }

  std::string base_of(const UOp& memory, const UOp& at) {
    return bases_.get(memory, at, [&] { return beyond(memory_.find(memory)->base, scalar(at), int64_t(itemsize(memory.dtype()))); });
  }

  const Address& address_of(const UOp& access, size_t source = 0) const { return addresses_.of(access.src(source)); }
  static size_t count(const Address& a) { return a.width * std::max(a.places.size(), a.elements.size()); }

  /// Predicates, one for all lanes or one each; none without a gate.
  std::vector<std::string> gates(const UOp& access, size_t lanes) {
    if (access.src_count() != 3) return std::vector<std::string>(lanes);
    std::vector<std::string> out = registers(access.src(2));
    if (out.size() == 1) out.resize(lanes, out[0]);
    return out;
  }

  void load(const UOp& u) override {
    if (is_tensor_memory(u.src(0))) return load_tile(u);
    const Address& a = address_of(u);
    const size_t lanes = count(a);
    const std::vector<std::string> gate = gates(u, lanes),
                                   other = u.src_count() == 3 ? registers(u.src(1)) : std::vector<std::string>(lanes);
    const Memory& m = *memory_.find(a.memory);
    std::vector<std::string> loaded;
    if (m.space.empty()) return set(u, read_registers(u, a, m, gate, other));
    for_each_run(a, gate, [&](const Place& place, size_t first, size_t n) {
      const std::vector<std::string> part(other.begin() + int64_t(first), other.begin() + int64_t(first + n));
      for (std::string& x : emit_load(out_, place, u.dtype(), n, gate[first], part)) loaded.push_back(std::move(x));
    });
    set(u, loaded);
  }

  void store(const UOp& u) override {
    if (is_tensor_memory(u.src(0))) return tensor_memory_->clear(tiles_.find(u.src(0).src(0))->tile);
    const Address& a = address_of(u);
    const size_t lanes = count(a);
    const std::vector<std::string> gate = gates(u, lanes), x = registers(u.src(1));
    if (x.size() != lanes) fail(u, "stores another number of lanes than the address has");
    const Memory& m = *memory_.find(a.memory);
    if (m.space.empty()) return write_registers(u, a, m, gate, x);
    for_each_run(a, gate, [&](const Place& place, size_t first, size_t n) {
      emit_store(out_, place, u.src(1).dtype(), {x.begin() + int64_t(first), x.begin() + int64_t(first + n)}, gate[first]);
    });
  }

  void fetch(const UOp& u) override {
    const Address &to = address_of(u), &from = address_of(u, 1);
    const std::string none, valid = u.src_count() > 2 && !is_const(u.src(2), 1) ? out_.in_register(scalar(u.src(2))) : none;
    emit_fetch(out_, to.places.at(0), from.places.at(0), int(to.width * itemsize(to.memory.dtype())), valid,
               u.src_count() > 3 ? out_.in_register(scalar(u.src(3))) : none);
  }

  /// Runs of elements with one gate.
  template <class F>
  void for_each_run(const Address& a, const std::vector<std::string>& gate, F&& f) {
    const bool is_run = a.width > 1 && std::ranges::all_of(gate, [&](const std::string& g) { return g == gate[0]; });
    if (is_run) return f(a.places[0], size_t{0}, a.width);
    for (size_t i = 0; i < count(a); ++i) {
      Place one = a.places[a.width > 1 ? 0 : i];
      if (a.width > 1) one.offset += int64_t(i * itemsize(a.memory.dtype()));
      f(one, i, size_t{1});
    }
  }

  /// The register of an element, given by the number of the lane.
  const std::string& element(const UOp& u, const Address& a, const Memory& m, size_t i) const {
    const int64_t at = a.width > 1 ? a.elements[0] + int64_t(i) : a.elements[i];
    if (at < 0 || at >= int64_t(m.registers.size())) fail(u, "is outside of its memory");
    return m.registers[size_t(at)];
  }
  static std::string_view move_name(DType d) {
    return is_bool(d) ? "mov.pred" : d == DType::float32 ? "mov.f32" : d == DType::float64 ? "mov.f64" : "";
  }
  static std::string move(DType d) {
    const std::string_view known = move_name(d);
    return known.empty() ? fmt::format("mov.{}", bits_name(d)) : std::string(known);
  }

  /// Later stores change the registers, so what was read is a copy.
  std::vector<std::string> read_registers(const UOp& u, const Address& a, const Memory& m, const std::vector<std::string>& gate,
                                          const std::vector<std::string>& other) {
    std::vector<std::string> out;
    for (size_t i = 0; i < gate.size(); ++i) {
      const std::string& from = element(u, a, m, i);
      if (!gate[i].empty()) {
        out.push_back(out_.define(u.dtype(), move(u.dtype()), other[i]));
        out_.line(fmt::format("@{} {} {}, {};", gate[i], move(u.dtype()), out.back(), from));
      } else {
        out.push_back(out_.define(u.dtype(), move(u.dtype()), from));
      }
    }
    return out;
  }
  void write_registers(const UOp& u, const Address& a, const Memory& m, const std::vector<std::string>& gate,
                       const std::vector<std::string>& x) {
    for (size_t i = 0; i < x.size(); ++i)
      out_.line(fmt::format("{}{} {}, {};", gate[i].empty() ? "" : fmt::format("@{} ", gate[i]), move(u.src(1).dtype()),
                            element(u, a, m, i), x[i]));
  }

  // Control flow. Loops test at the end: a range that may be empty is tested once before.

  void open_loop(const UOp& u) override {
    if (u.arg_as<RangeArg>().kind == AxisKind::thread) fail(u, "these GPUs run no chunks");
    const Scalar* size = const_value(u.src(0));
    OpenLoop loop{.counter = out_.fresh(kind_of(u.dtype())),
                  .bound = size ? literal(size->cast(u.dtype())) : out_.in_register(scalar(u.src(0))),
                  .begin = out_.fresh_label("loop"),
                  .end = out_.fresh_label("done"),
                  .type = type_name(u.dtype())};
    out_.line(fmt::format("mov.{} {}, 0;", loop.type, loop.counter));
    if (!size || size->as_int() <= 0) {
      const std::string empty =
          out_.define(DType::bool_, fmt::format("setp.ge.{}", loop.type), fmt::format("{}, {}", loop.counter, loop.bound));
      out_.line(fmt::format("@{} bra {};", empty, loop.end));
    }
    out_.label(loop.begin);
    set(u, loop.counter);
    if (tensor_memory_) tensor_memory_->forget_barrier();
    loops_.push_back(std::move(loop));
    bases_.open_block();
  }

  void close_loop() override {
    const OpenLoop loop = std::move(loops_.back());
    loops_.pop_back();
    bases_.close_block();
    out_.line(fmt::format("add.{0} {1}, {1}, 1;", loop.type, loop.counter));
    const std::string more =
        out_.define(DType::bool_, fmt::format("setp.lt.{}", loop.type), fmt::format("{}, {}", loop.counter, loop.bound));
    out_.line(fmt::format("@{} bra {};", more, loop.begin));
    out_.label(loop.end);
    if (tensor_memory_) tensor_memory_->forget_barrier();
  }

  void open_if(const UOp& u) override {
    ifs_.push_back(out_.fresh_label("endif"));
    out_.line(fmt::format("@!{} bra {};", out_.in_register(scalar(u.src(0))), ifs_.back()));
    bases_.open_block();
  }
  void close_if() override {
    out_.label(ifs_.back());
    ifs_.pop_back();
    bases_.close_block();
  }

  const Target& target_;
  const bool is_given_;  ///< the group's memory, by the launch
  const GroupLayout group_layout_;
  bool has_products_ = false;   ///< asynchronous ones
  std::vector<Product> begun_;  ///< under way, with sums in registers
  std::optional<TensorMemory> tensor_memory_;
  NodeMap<ResidentTile> tiles_;
  std::vector<GivenSum> given_;   ///< under way, with sums in tensor memory that they were given
  std::vector<TensorTile> free_;  ///< that those do not use any more
  Emitter out_;
  symbolic::KnownDivisors divisors_;
  Results<Value> values_;
  Results<Address> addresses_;
  NodeMap<Memory> memory_;
  NodeMap<bool> has_address_;  ///< BUFFERs that are not registers
  std::string memories_;
  std::vector<OpenLoop> loops_;
  std::vector<std::string> ifs_;
  SharedAddresses bases_;
};

}  // namespace

std::string render_ptx(const Target& target, const UOp& linear, const KernelInfo& info) { return Renderer(target, linear, info).render(); }

}  // namespace tinygrad::renderer

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "kernel/group_layout.h"
#include "kernel/scratch_layout.h"
#include "renderer/cstyle/async_products.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/cstyle/lanes.h"
#include "renderer/cstyle/tiles.h"
#include "renderer/cstyle/value.h"
#include "renderer/exact.h"
#include "renderer/expression_walk.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::renderer {
namespace {

using namespace cstyle;

constexpr size_t kLongestRepeated = 32;  // characters of an index that several accesses repeat before it gets a name

/// Where an INDEX points: an element, a run of them, or one per lane.
struct Address {
  std::string memory;
  std::string_view space;  ///< the address space, where the language has them
  Value at;
  DType dtype = DType::void_;
  int width = 1;
  std::string element = {};  ///< of private memory: the variable, where it has one
  std::string row = {};      ///< of an image, where `at` is the place in it; else empty
  int lanes() const { return at.lanes > 1 ? at.lanes : width; }
};

class Renderer : public ExpressionWalk {
 public:
  Renderer(const Dialect& dialect, const Target& target, const UOp& linear, const KernelInfo& info)
      : ExpressionWalk(dialect.name, linear, info, dialect.fuses_halves),
        target_(target),
        prelude_(dialect),
        groups_(dialect.groups),
        group_layout_(linear) {
    if (!groups_) scratch_.emplace(linear), tiles_.emplace(prelude_, linear);
    if (const auto u = std::ranges::find_if(linear.src(), is_asynchronous); u != linear.src().end() && groups_ && groups_->products)
      products_ = groups_->products(prelude_, names_, info_, *find_tensor_core(u->arg_as<WmmaArg>().name));
  }

  std::string render() {
    walk();
    KernelText text{.info = info_, .parameters = {}, .body = std::move(body_)};
    for (const auto& [slot, parameter] : parameters_) text.parameters.push_back(parameter);
    groups_ ? finish_group_kernel(text) : finish_thread_kernel(text);
    const std::string kernel = prelude_.dialect().kernel(text);
    return prelude_.text() + kernel;
  }

 private:
  void finish_thread_kernel(KernelText& text) {
    for (const UOp& v : variables_) text.parameters.push_back({prelude_.type(v.dtype()), value(v).expr.text});
    if (!chunk_type_.empty()) {
      text.parameters.push_back({chunk_type_, "begin"});
      text.parameters.push_back({chunk_type_, "end"});
    }
    for (const UOp& u : scratch_->buffers()) {
      text.parameters.push_back(scratch_parameter(u));
      text.scratch.push_back(*scratch_->offset(u));
    }
    text.body = tiles_->surround(std::move(text.body));
    text.variables = variables_;
    text.in_chunks = !chunk_type_.empty();
    text.streams = streams_;
  }

  /// All variables in the order of the launch, those that only sizes need too.
  void finish_group_kernel(KernelText& text) {
    std::string converted;
    for (const Symbol& symbol : info_.variables) {
      const auto used = std::ranges::find_if(variables_, [&](const UOp& v) { return v.arg_as<VarArg>().name == symbol; });
      const std::string name = names_.fresh(fmt::format("{}_argument", symbol.str()));
      text.parameters.push_back({prelude_.type(DType::int64), name});
      if (used == variables_.end()) continue;
      const std::string type = prelude_.type(used->dtype());
      converted += fmt::format("  const {0} {1} = ({0}){2};\n", type, value(*used).expr.text, name);
    }
    text.body = converted + text.body;
    text.arrays = std::move(arrays_);
    if (products_) products_->surround(text, group_layout_.bytes());
    text.is_memory_given = given_group_bytes(target_, info_) != 0;
    text.memory_alignment = group_layout_.alignment();
    text.items = 1;
    for (const IndexExpr& n : info_.local) text.items *= n.is_constant() ? n.evaluate({}) : 0;
  }

  // Values.

  const Value& value(const UOp& u) const { return values_.of(u); }
  void keep(const UOp& u, Value v) { values_.set(u, std::move(v)); }

  /// Keeps the value as an expression or, where it is long or used more than once, in a variable.
  void set(const UOp& u, Value v) {
    const bool is_stable = !u.is(Op::LOAD) || inlining_.stays_in_place(u);
    const bool is_plain = is_stable && v.expr.binds == Binds::primary && (names_.is_taken(v.expr.text) || (v.constant && v.lanes == 1));
    const bool repeats_name =
        is_stable && v.splatted && v.splatted->binds <= Binds::unary && (v.constant || names_.is_taken(v.splatted->text));
    if (is_plain || repeats_name || (inlining_.may_inline(u) && v.expr.text.size() <= longest_inline)) return keep(u, std::move(v));
    const std::string name = names_.numbered(hint(u, v.dtype));
    line(fmt::format("{} {} = {};", type_of(v), name, v.expr.text));
    v.expr = {name};
    v.splatted.reset();
    v.negated.reset();
    v.inverse.reset();
    v.left_operand.clear();
    keep(u, std::move(v));
  }

  std::string type_of(const Value& v) { return prelude_.type(v.is_mask() ? signed_of_bits(v.mask_bits) : v.dtype, v.lanes); }

  void step(const UOp& u, size_t place) override {
    declare_private(int32_t(place));
    if (tiles_) tiles_->enter(u, place);
    visit(u);
  }

  void elementwise(const UOp& u) override {
    if (u.is(Op::CAST)) return set(u, write_cast(prelude_, value(u.src(0)), u.dtype()));
    if (u.is(Op::BITCAST)) return set(u, write_bitcast(prelude_, value(u.src(0)), u.dtype()));
    std::vector<Value> sources;
    for (const UOp& s : u.src()) sources.push_back(value(s));
    set(u, write_alu(prelude_, u.op(), u.dtype(), sources, is_exact(u)));
  }

  void product(const UOp& u) override {
    const auto& arg = u.arg_as<WmmaArg>();
    const auto hook = prelude_.dialect().matrix_product;
    if (!hook) fail(u, fmt::format("there is no tensor core {}", arg.name.str()));
    const Value &a = value(u.src(0)), &b = value(u.src(1)), &c = value(u.src(2));
    set(u, {.expr = hook(prelude_, arg, a, b, c), .dtype = u.dtype(), .lanes = c.lanes});
  }

  // Asynchronous products.

  AsyncProducts& products(const UOp& u) const {
    if (!products_) has_none(u);
    return *products_;
  }

  void write(const AsyncProducts::Lines& lines) {
    for (const std::string& x : lines) line(x);
  }

  bool has_tiles() const { return tiles_ && tiles_->any(); }

  /// Products of tiles are in the order of the program.
  void wait_for_products(const UOp& u) override {
    if (!has_tiles()) write(products(u).wait());
  }

  void begin_product(const UOp& u) override {
    if (has_tiles()) return line(tiles_->multiply(u, pointer(addresses_.of(u.src(0))), pointer(addresses_.of(u.src(1)))));
    AsyncProducts::Lines lines;
    const Value* sums = is_tensor_memory(u.src(2)) ? nullptr : &value(u.src(2));
    Value product = products(u).begin(u, *find_tensor_core(u.arg_as<WmmaArg>().name), pointer(addresses_.of(u.src(0))),
                                      pointer(addresses_.of(u.src(1))), sums, lines);
    write(lines);
    keep(u, std::move(product));
  }

  void load_tile(const UOp& u) {
    if (has_tiles()) return;  // for a STORE
    AsyncProducts::Lines lines;
    Value sums = products(u).load(u.src(0).src(0), lines);
    write(lines);
    keep(u, std::move(sums));
  }

  void barrier(const UOp& u) override { products_ ? write(products_->barrier()) : line(prelude_.word(groups(u).barrier)); }

  // Work-groups.

  const GroupDialect& groups(const UOp& u) const {
    if (!groups_) has_none(u);
    return *groups_;
  }

  const GroupDialect& copying(const UOp& u) const {
    if (!groups(u).fetch) has_none(u);
    return groups(u);
  }

  void commit(const UOp& u) override { line(copying(u).commit()); }
  void wait(const UOp& u, int32_t pending) override { line(copying(u).wait(pending)); }

  void fetch(const UOp& u) override {
    const Address &to = addresses_.of(u.src(0)), &from = addresses_.of(u.src(1));
    const std::string valid = u.src_count() > 2 ? value(u.src(2)).expr.text : "true",
                      guard = u.src_count() > 3 ? fmt::format("if ({}) ", value(u.src(3)).expr.text) : "";
    line(guard + copying(u).fetch(prelude_, pointer(to), pointer(from), to.width * int(itemsize(to.dtype)), valid));
  }

  void special(const UOp& u) override {
    const auto& arg = u.arg_as<SpecialArg>();
    const std::string name = names_.fresh(fmt::format("{}{}", arg.kind == AxisKind::global ? "group" : "item", arg.dim));
    line(fmt::format("const {0} {1} = {2};", prelude_.type(u.dtype()), name, groups(u).id(arg.kind, arg.dim)));
    keep(u, {.expr = {name}, .dtype = u.dtype()});
  }

  /// A parameter shares no memory with the others if its alias class is its own and every other one has a class too.
  bool is_restricted(const KernelParam& p) const {
    return std::ranges::all_of(info_.params,
                               [&](const KernelParam& o) { return o.alias != 0 && (o.slot == p.slot || o.alias != p.alias); });
  }

  void parameter(const UOp& u) override {
    const KernelParam& p = parameter_of(u);
    const std::string name = name_parameter(p);
    if (is_image(u)) {
      if (!groups_ || groups_->read_image.empty()) fail(u, "there are no images");
      parameters_[p.slot] = {.type = std::string(p.written ? groups_->written_image : groups_->read_image), .name = name};
      return keep(u, {.expr = {name}, .dtype = u.dtype()});
    }
    parameters_[p.slot] = {
        .type = (p.written ? "" : "const ") + memory_type(u.dtype()), .name = name, .is_memory = true, .is_restricted = is_restricted(p)};
    keep(u, {.expr = {name}, .dtype = u.dtype()});
  }

  void variable(const UOp& u) override {
    variables_.push_back(u);
    keep(u, {.expr = {names_.fresh(u.arg_as<VarArg>().name.str())}, .dtype = u.dtype()});
  }

  void constant(const UOp& u, const Scalar& c) override { keep(u, {.expr = prelude_.literal(c), .dtype = u.dtype(), .constant = c}); }

  void lanes(const UOp& u, int64_t begin, int64_t end) override {
    const UOp& vector = u.src(0);
    Value x = run_of_lanes(prelude_, value(vector), begin, end);
    // What was loaded of tensor memory is a variable of its own, which does not change: its lanes are names.
    if (vector.is(Op::LOAD) && is_tensor_memory(vector.src(0))) return keep(u, std::move(x));
    set(u, std::move(x));
  }

  void expand(const UOp& u, int64_t lanes) override {
    const Value& x = value(u.src(0));
    if (x.lanes != 1) fail(u, "repeats what is no scalar");
    set(u, lanes == 1 ? x : splat(prelude_, x, int(lanes)));
  }

  void stack(const UOp& u) override {
    std::vector<Value> sources;
    for (const UOp& s : u.src()) sources.push_back(value(s));
    set(u, sources.size() == 1 ? sources[0] : vector_of(prelude_, sources, u.dtype()));
  }

  // Blocks.

  void open_loop(const UOp& u) override {
    if (products_) products_->join();
    const auto& arg = u.arg_as<RangeArg>();
    const std::string type = prelude_.type(u.dtype());
    std::string first = "0", end;
    if (arg.kind == AxisKind::thread) {
      chunk_type_ = type;
      first = "begin";
      end = "end";
    } else {
      end = value(u.src(0)).expr.text;
    }
    const std::string name = name_loop(arg.kind == AxisKind::thread);
    open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1}++) {{", type, name, first, end));
    keep(u, {.expr = {name}, .dtype = u.dtype()});
  }

  void close_loop() override {
    if (products_) products_->join();
    ExpressionWalk::close_loop();
  }
  void open_if(const UOp& u) override { open(fmt::format("if ({}) {{", value(u.src(0)).expr.text)); }

  // Memory.

  /// A bool is a byte, and any but 0 is true.
  std::string memory_type(DType dtype, int lanes = 1) { return prelude_.type(is_bool(dtype) ? DType::uint8 : dtype, lanes); }

  void own_memory(const UOp& u) override {
    if (has_tiles() && is_tensor_memory(u)) return;
    const auto& arg = u.arg_as<BufferArg>();
    if (arg.scope == Scope::tensor) return products(u).add_tile(u);
    if (arg.scope == Scope::group) {
      if (!groups_) fail(u, "a CPU has no memory shared between work-items");
      arrays_.push_back({memory_type(u.dtype()), names_.numbered("tile"), arg.size, group_layout_.place(u), group_layout_.alignment(u)});
      return keep(u, {.expr = {arrays_.back().name}, .dtype = u.dtype()});
    }
    if (arg.scope == Scope::device) fail(u, "is no memory of a kernel's own");
    keep(u, {.expr = {names_.numbered("acc")}, .dtype = u.dtype()});
    if (in_scratch(u) || private_.layout(u).first_access < 0) return;
    if (inlining_.is_local_to_first_access(u)) {
      late_.push_back(u);
    } else {
      line(declaration(u) + ";");
    }
  }

  bool in_scratch(const UOp& u) const { return scratch_ && scratch_->offset(u); }

  /// The type of the elements with which private memory is declared.
  int private_width(const UOp& u) const {
    const auto& layout = private_.layout(u);
    return layout.regular && layout.width != 0 ? layout.width : 1;
  }

  /// A variable instead of an array.
  bool is_single(const UOp& u) const {
    const auto& layout = private_.layout(u);
    return layout.regular && u.arg_as<BufferArg>().size == layout.width && !in_scratch(u);
  }

  std::string declaration(const UOp& u) {
    const std::string type = memory_type(u.dtype(), private_width(u)), &name = value(u).expr.text;
    return is_single(u) ? fmt::format("{} {}", type, name)
                        : fmt::format("{} {}[{}]", type, name, u.arg_as<BufferArg>().size / private_width(u));
  }
  Parameter scratch_parameter(const UOp& u) {
    return {.type = memory_type(u.dtype(), private_width(u)), .name = value(u).expr.text, .is_memory = true, .is_restricted = true};
  }

  /// Memory is declared in the block that uses it, in front of its first access or, a single variable that is set there, with it.
  void declare_private(int32_t position) {
    for (const UOp& u : late_) {
      if (private_.layout(u).first_access != position) continue;
      const UOp& access = linear_.src(static_cast<size_t>(position));
      if (is_single(u) && access.is(Op::STORE) && access.src_count() == 2) {
        declared_by_store_ = memory_type(u.dtype(), private_.layout(u).width) + " ";
      } else {
        line(declaration(u) + ";");
      }
    }
  }

  void address(const UOp& u) override {
    if (is_tensor_memory(u)) return;
    if (is_image(u.src(0))) {
      return addresses_.set(u, {.memory = value(u.src(0)).expr.text,
                                .space = {},
                                .at = value(u.src(2)),
                                .dtype = u.dtype(),
                                .width = 4,
                                .row = value(u.src(1)).expr.text});
    }
    if (u.src_count() != 2) fail(u, "has a gate, which belongs to the LOAD or STORE");
    Address a{.memory = value(u.src(0)).expr.text,
              .space = groups_ ? space_of(u.src(0)) : "",
              .at = value(u.src(1)),
              .dtype = u.dtype(),
              .width = u.arg_as<IndexArg>().width};
    if (a.at.lanes > 1 && a.width != 1) fail(u, "has both lanes and a width");
    if (is_private(u.src(0)) && private_.layout(u.src(0)).regular) {
      const auto constant = PrivateMemory::constant_index(u);
      a.element = is_single(u.src(0)) ? a.memory
                  : constant          ? fmt::format("{}[{}]", a.memory, *constant / a.width)
                                      : fmt::format("{}[{}]", a.memory, a.at.expr.text);
    }
    if (inlining_.uses(u) > 1 && a.element.empty() && a.at.expr.text.size() > kLongestRepeated) {
      const std::string name = names_.numbered("at");
      line(fmt::format("{} {} = {};", type_of(a.at), name, a.at.expr.text));
      a.at.expr = {name};
      a.at.splatted.reset();
    }
    addresses_.set(u, std::move(a));
  }

  static bool is_private(const UOp& memory) { return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope != Scope::group; }
  std::string_view space_of(const UOp& memory) const {
    return is_private(memory) ? groups_->private_memory : memory.is(Op::BUFFER) ? groups_->group_memory : groups_->device_memory;
  }

  /// "in1[i]" or "*(float8*)(in1 + i)"
  Expr place(const Address& a, DType dtype) {
    if (!a.row.empty()) return {groups_->read_texel(prelude_, a.memory, a.at.expr.text, a.row)};
    if (!a.element.empty()) return {a.element};
    if (a.width == 1) return {fmt::format("{}[{}]", a.memory, a.at.expr.text)};
    if (groups_ && groups_->load_vector) return {groups_->load_vector(pointer(a), a.width)};
    return {fmt::format("*({}{}*){}", a.space, prelude_.type(dtype, a.width), pointer(a)), Binds::unary};
  }
  std::string pointer(const Address& a) {
    if (a.at.constant && a.at.constant->is_zero()) return a.memory;
    if (a.at.expr.binds == Binds::sum) return fmt::format("({} + {})", a.memory, a.at.expr.text);
    return "(" + binary({a.memory}, "+", Binds::sum, a.at.expr).text + ")";
  }

  void load(const UOp& u) override { is_tensor_memory(u.src(0)) ? load_tile(u) : set(u, loaded(u)); }

  Value loaded(const UOp& u) {
    const Address& a = addresses_.of(u.src(0));
    const DType stored = is_bool(a.dtype) ? DType::uint8 : a.dtype;
    const bool gated = u.src_count() > 1;
    const Value* gate = gated ? &value(u.src(2)) : nullptr;
    Value out{.expr = {}, .dtype = stored, .lanes = a.lanes()};
    if (gated && gate->lanes > 1 && !gate->splatted) {
      const Value other = write_cast(prelude_, value(u.src(1)), stored);
      out.expr = a.at.lanes > 1 ? gather(prelude_, stored, a.memory, a.at, gate, &other)
                                : load_run(prelude_, stored, pointer(a), a.width, *gate, other, !groups_);
      return write_cast(prelude_, out, a.dtype);
    }
    out.expr = a.at.lanes > 1 ? gather(prelude_, stored, a.memory, a.at, nullptr, nullptr) : place(a, stored);
    if (!gated) return write_cast(prelude_, out, a.dtype);
    const Value other = write_cast(prelude_, value(u.src(1)), stored);
    out.expr = choice(condition(*gate), out.expr, other.expr);
    return write_cast(prelude_, out, a.dtype);
  }

  /// A gate that is the same for all lanes.
  static Expr condition(const Value& gate) { return gate.splatted ? *gate.splatted : gate.expr; }

  void store(const UOp& u) override {
    if (has_tiles() && accesses_tile(u)) return line(access_of_tile(u));
    if (is_tensor_memory(u.src(0))) return write(products(u).clear(u.src(0).src(0)));
    const Address& a = addresses_.of(u.src(0));
    const Value& x = value(u.src(1));
    if (x.lanes != a.lanes()) fail(u, fmt::format("stores {} lanes to {} elements", x.lanes, a.lanes()));
    const DType stored = is_bool(a.dtype) ? DType::uint8 : a.dtype;
    const Value bytes = write_cast(prelude_, x, stored);
    const Value* gate = u.src_count() > 2 ? &value(u.src(2)) : nullptr;
    const std::string declared = std::exchange(declared_by_store_, {});
    if (gate && gate->lanes > 1 && !gate->splatted) {
      return line(a.at.lanes > 1 ? scatter(prelude_, stored, a.memory, a.at, bytes, gate)
                                 : store_run(prelude_, stored, pointer(a), a.width, bytes, *gate, whole_store(u, stored, a.width)));
    }
    const std::string guard = gate ? fmt::format("if ({}) ", condition(*gate).text) : "";
    if (u.src(0).arg_as<IndexArg>().streams) return line(guard + stream(u, pointer(a), bytes));
    if (a.at.lanes > 1) return line(guard + scatter(prelude_, stored, a.memory, a.at, bytes, nullptr));
    if (!a.row.empty()) return line(guard + groups_->write_texel(a.memory, a.at.expr.text, a.row, bytes.expr.text));
    if (groups_ && groups_->store_vector && a.width > 1) return line(guard + groups_->store_vector(pointer(a), a.width, bytes.expr.text));
    const std::string to = place(a, stored).text;
    const bool accumulates = !bytes.left_operand.empty() && bytes.left_operand == to;
    line(fmt::format("{}{}{} {} {};", guard, declared, to, accumulates ? "+=" : "=", accumulates ? bytes.rest : bytes.expr.text));
  }

  static bool accesses_tile(const UOp& store) {
    return is_tensor_memory(store.src(0)) || (store.src(1).is(Op::LOAD) && is_tensor_memory(store.src(1).src(0)));
  }
  std::string access_of_tile(const UOp& store) {
    const UOp &to = store.src(0), &value = store.src(1);
    if (!is_tensor_memory(to)) return tiles_->store(value.src(0).src(0), pointer(addresses_.of(to)));
    return value.is(Op::LOAD) ? tiles_->load(to.src(0), pointer(addresses_.of(value.src(0)))) : tiles_->clear(to.src(0));
  }

  std::string stream(const UOp& u, const std::string& to, const Value& x) {
    streams_ = true;
    return hinting(u).stream(prelude_, to, x);
  }
  /// Of all lanes of x to p, in a function that does so where a gate lets them through. Memory of groups has its own ways.
  std::string whole_store(const UOp& u, DType dtype, int width) {
    if (u.src(0).arg_as<IndexArg>().streams) return stream(u, "p", {.expr = {"x"}, .dtype = dtype, .lanes = width});
    return groups_ ? "" : fmt::format("*({}*)p = x;", prelude_.type(dtype, width));
  }
  void prefetch(const UOp& u) override { line(hinting(u).prefetch(pointer(addresses_.of(u.src(0))), stores_to(info_, u.src(0)))); }
  const Dialect& hinting(const UOp& u) const {
    if (!prelude_.dialect().stream) has_none(u);
    return prelude_.dialect();
  }

  const Target& target_;
  Prelude prelude_;
  const GroupDialect* const groups_;  // null: a kernel runs in one thread
  std::optional<ScratchLayout> scratch_;
  std::optional<Tiles> tiles_;  ///< nothing where the kernel runs in groups
  const GroupLayout group_layout_;
  std::unique_ptr<AsyncProducts> products_;  ///< null: the kernel has none
  Results<Value> values_;
  Results<Address> addresses_;
  std::map<int32_t, Parameter> parameters_;  // by slot
  std::vector<GroupArray> arrays_;
  std::vector<UOp> variables_, late_;
  std::string chunk_type_, declared_by_store_;
  bool streams_ = false;
};

}  // namespace

std::string render_c(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(clang_dialect(), target, linear, info).render();
}

std::string render_cuda(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(cuda_dialect(), target, linear, info).render();
}

std::string render_hexagon(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(hexagon_dialect(), target, linear, info).render();
}

std::string render_hip(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(hip_dialect(), target, linear, info).render();
}

std::string render_metal(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(metal_dialect(), target, linear, info).render();
}

std::string render_opencl(const Target& target, const UOp& linear, const KernelInfo& info) {
  return Renderer(opencl_dialect(target.supports(DType::float16)), target, linear, info).render();
}

}  // namespace tinygrad::renderer

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "renderer/expression_walk.h"
#include "renderer/wgsl/memory.h"
#include "renderer/wgsl/wgsl.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::renderer {

std::string wgsl_first(int32_t slot) { return fmt::format("first{}", slot); }

namespace {

using namespace wgsl;
using cstyle::binary;

constexpr char kDimensions[] = "xyz";

struct Value {
  DType dtype = DType::void_;
  std::vector<Expr> lanes;  ///< one for a scalar
  std::optional<Scalar> constant = {};
  Term term(size_t lane) const { return {lanes[lanes.size() == 1 ? 0 : lane], dtype, constant}; }
};

/// Where an INDEX points: an element for each lane.
struct Address {
  size_t memory = 0;
  std::vector<Expr> at;
};

class Renderer : public ExpressionWalk {
 public:
  Renderer(const Target& target, const UOp& linear, const KernelInfo& info) : ExpressionWalk("WGSL", linear, info, true), target_(target) {}

  std::string render() {
    walk();
    if (group_bytes_ > target_.group_memory_bytes) {
      throw CompileError(fmt::format("kernel {}: its groups need {} bytes of memory, the target has {}", info_.name, group_bytes_,
                                     target_.group_memory_bytes));
    }
    const std::string module = variables() + module_, items = entry();
    return prelude_.text() + "\n" + module + "\n" + items + body_ + "}\n";
  }

 private:
  // Text.

  std::string variables() const {
    if (info_.variables.empty()) return {};
    std::string members;
    for (const Symbol& v : info_.variables) members += fmt::format("  {}: i32,\n", member(v));
    return fmt::format("struct Variables {{\n{}}}\n@group(0) @binding({}) var<uniform> variables: Variables;\n", members,
                       info_.buffer_count());
  }
  /// No word of the language begins like this.
  static std::string member(Symbol variable) {
    std::string out = "v_";
    for (const char c : variable.str()) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return out;
  }

  std::string entry() const {
    int64_t local[3];
    for (int i = 0; i < 3; ++i) {
      if (!info_.local[i].is_constant()) throw InternalError(fmt::format("WGSL: the groups of kernel {} have no known size", info_.name));
      local[i] = info_.local[i].evaluate({});
    }
    return fmt::format(
        "@compute @workgroup_size({})\nfn {}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {{\n",
        fmt::join(local, ", "), kernel_symbol(info_.name));
  }

  // Values.

  const Value& value(const UOp& u) const { return values_.of(u); }
  bool is_name(const Expr& x) const { return x.binds == Binds::primary && names_.is_taken(x.text); }

  Expr named(const Expr& x, std::string_view hint, bool is_stable = true) {
    if (is_stable && is_name(x)) return x;
    const std::string name = names_.numbered(hint);
    line(fmt::format("let {} = {};", name, x.text));
    return {name};
  }
  /// Keeps each lane as an expression or, where it is long or used more than once, by a name.
  void set(const UOp& u, Value v) {
    const bool may_inline = inlining_.may_inline(u);
    const bool is_stable = !u.is(Op::LOAD) || inlining_.stays_in_place(u);
    for (Expr& x : v.lanes)
      if (!may_inline || x.text.size() > longest_inline) x = named(x, hint(u, u.dtype()), is_stable);
    values_.set(u, std::move(v));
  }

  /// A value for each lane of `u` from those of its sources.
  template <class F>
  void set_lanes(const UOp& u, F&& f) {
    size_t lanes = 1;
    for (const UOp& s : u.src()) lanes = std::max(lanes, value(s).lanes.size());
    Value out{.dtype = u.dtype(), .lanes = {}};
    for (size_t i = 0; i < lanes; ++i) {
      std::vector<Term> terms;
      for (const UOp& s : u.src()) terms.push_back(value(s).term(i));
      out.lanes.push_back(f(terms));
    }
    set(u, std::move(out));
  }

  void elementwise(const UOp& u) override {
    set_lanes(u, [&](const auto& x) {
      return u.is(Op::CAST)      ? write_cast(prelude_, x[0], u.dtype())
             : u.is(Op::BITCAST) ? write_bitcast(prelude_, x[0], u.dtype())
                                 : write_alu(prelude_, u.op(), x);
    });
  }

  void variable(const UOp& u) override { values_.set(u, {u.dtype(), {named({"variables." + member(u.arg_as<VarArg>().name)}, "n")}}); }

  void constant(const UOp& u, const Scalar& c) override { values_.set(u, {u.dtype(), {number(prelude_, c)}, c}); }

  void special(const UOp& u) override {
    const auto& arg = u.arg_as<SpecialArg>();
    const std::string_view of = arg.kind == AxisKind::local ? "item" : "group";
    const std::string name = names_.fresh(fmt::format("{}_{}", of, kDimensions[arg.dim]));
    line(fmt::format("let {} = i32({}.{});", name, of, kDimensions[arg.dim]));
    values_.set(u, {u.dtype(), {{name}}});
  }

  void expand(const UOp& u, int64_t lanes) override {
    // What is repeated is computed once.
    Value v = value(u.src(0));
    if (!v.constant) v.lanes[0] = named(v.lanes[0], hint(u, u.dtype()));
    v.lanes.resize(size_t(lanes), v.lanes[0]);
    values_.set(u, std::move(v));
  }
  void stack(const UOp& u) override {
    Value out{.dtype = u.dtype(), .lanes = {}};
    for (const UOp& s : u.src()) out.lanes.push_back(value(s).lanes[0]);
    set(u, std::move(out));
  }
  void lanes(const UOp& u, int64_t begin, int64_t end) override {
    const Value& v = value(u.src(0));
    set(u, {u.dtype(), {v.lanes.begin() + begin, v.lanes.begin() + end}, v.constant});
  }

  // Blocks.

  void open_loop(const UOp& u) override {
    const std::string name = name_loop();
    open(fmt::format("for (var {0} = 0; {0} < {1}; {0}++) {{", name, value(u.src(0)).lanes[0].text));
    values_.set(u, {u.dtype(), {{name}}});
  }
  void open_if(const UOp& u) override { open(fmt::format("if ({}) {{", value(u.src(0)).lanes[0].text)); }
  void barrier(const UOp&) override { line("workgroupBarrier();"); }

  // Memory.

  void add_memory(const UOp& u, Memory m) {
    memory_number_[u] = static_cast<int32_t>(memories_.size());
    memories_.push_back(std::move(m));
  }

  void parameter(const UOp& u) override {
    const KernelParam& p = parameter_of(u);
    Memory m{.name = name_parameter(p), .dtype = u.dtype(), .first = wgsl_first(p.slot), .is_written = p.written};
    // All may be written: a buffer that is bound twice must be bound in one way.
    module_ += fmt::format("@group(0) @binding({}) var<storage, read_write> {}: {};\noverride {}: i32 = 0;\n", p.slot, m.name,
                           array_type(prelude_, m), m.first);
    add_memory(u, std::move(m));
  }

  void own_memory(const UOp& u) override {
    const auto& arg = u.arg_as<BufferArg>();
    const bool shared = arg.scope == Scope::group;
    Memory m{.name = names_.numbered(shared ? "tile" : "acc"), .dtype = u.dtype(), .is_variable = arg.size == 1};
    const std::string type = m.is_variable ? std::string(type_of(prelude_, u.dtype())) : array_type(prelude_, m, arg.size);
    if (shared) {
      module_ += fmt::format("var<workgroup> {}: {};\n", m.name, type);
      group_bytes_ += arg.size * std::max<int64_t>(is_bool(u.dtype()) ? 4 : 1, static_cast<int64_t>(itemsize(u.dtype())));
    } else {
      line(fmt::format("var {}: {};", m.name, type));
    }
    add_memory(u, std::move(m));
  }

  void address(const UOp& u) override {
    const int32_t* memory = memory_number_.find(u.src(0));
    if (!memory || u.src_count() != 2) fail(u, "is not an address");
    Address a{.memory = static_cast<size_t>(*memory), .at = value(u.src(1)).lanes};
    const int width = u.arg_as<IndexArg>().width;
    const bool repeats = width > 1 || inlining_.uses(u) > 1 || memories_[a.memory].is_packed();
    if (repeats && !const_value(u.src(1)))
      for (Expr& at : a.at) at = named(at, "at");
    for (int i = 1; i < width; ++i) a.at.push_back(moved(u.src(1), a.at[0], i));
    addresses_.set(u, std::move(a));
  }
  static Expr moved(const UOp& index, const Expr& at, int by) {
    if (const Scalar* c = const_value(index)) return {fmt::format("{}", c->as_int() + by)};
    return binary(at, "+", Binds::sum, {fmt::format("{}", by)});
  }
  void load(const UOp& u) override {
    const Address& a = addresses_.of(u.src(0));
    const Memory& m = memories_[a.memory];
    Value out{.dtype = u.dtype(), .lanes = {}};
    for (size_t i = 0; i < a.at.size(); ++i) {
      Expr x = element(prelude_, m, a.at[i]);
      if (u.src_count() > 1) x = gated(x, value(u.src(1)).term(i), value(u.src(2)).term(i).expr);
      out.lanes.push_back(std::move(x));
    }
    set(u, std::move(out));
  }
  /// A choice would read in both cases.
  Expr gated(const Expr& x, const Term& other, const Expr& gate) {
    const std::string name = names_.numbered("x");
    line(fmt::format("var {}: {} = {};", name, type_of(prelude_, other.dtype), other.expr.text));
    line(fmt::format("if ({}) {{ {} = {}; }}", gate.text, name, x.text));
    return {name};
  }

  void store(const UOp& u) override {
    const Address& a = addresses_.of(u.src(0));
    const Value& v = value(u.src(1));
    for (size_t i = 0; i < a.at.size(); ++i) {
      const auto statements = store_element(prelude_, memories_[a.memory], a.at[i], v.term(i).expr);
      if (u.src_count() < 3) {
        for (const std::string& s : statements) line(s);
      } else {
        line(fmt::format("if ({}) {{ {} }}", value(u.src(2)).term(i).expr.text, fmt::join(statements, " ")));
      }
    }
  }

  const Target& target_;
  Prelude prelude_;
  Results<Value> values_;
  Results<Address> addresses_;
  NodeMap<int32_t> memory_number_;
  std::vector<Memory> memories_;
  std::string module_;
  int64_t group_bytes_ = 0;
};

}  // namespace

std::string render_wgsl(const Target& target, const UOp& linear, const KernelInfo& info) { return Renderer(target, linear, info).render(); }

}  // namespace tinygrad::renderer

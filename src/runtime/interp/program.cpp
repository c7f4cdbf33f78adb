#include "runtime/interp/program.h"

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::runtime::interp {

namespace {

// What a node of the list is to its users.
struct Place {
  int32_t reg = -1;
  int32_t memory = -1;
};

class Parser {
 public:
  Parser(const UOp& linear, std::string_view name, std::span<const Symbol> variables) : variables_(variables) {
    program_.name = name;
    program_.linear = linear;
  }

  Program run() {
    if (!program_.linear.is(Op::LINEAR) || program_.linear.arg_as<LinearArg>().kind != 1)
      throw InternalError(fmt::format("kernel {}: expects a LINEAR of instructions", program_.name));
    for (const UOp& u : program_.linear.src()) add(u);
    if (!open_.empty()) fail(node_of(open_.back()), "its block is never closed");
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const UOp& u, std::string_view what) const {
    throw InternalError(fmt::format("kernel {}: {}: {}", program_.name, print_expr(u), what));
  }
  void need(bool holds, const UOp& u, std::string_view what) const {
    if (!holds) fail(u, what);
  }
  const UOp& node_of(int32_t at) const { return program_.node(program_.code[size_t(at)]); }
  const Register& register_of(int32_t reg) const { return program_.registers[size_t(reg)]; }

  Instruction& emit(const UOp& u) {
    Instruction i;
    i.op = u.op();
    i.node = int32_t(program_.nodes.size());
    program_.nodes.push_back(u);
    program_.code.push_back(i);
    return program_.code.back();
  }

  int32_t add_register(const UOp& u, int64_t lanes, bool uniform) { return add_register(u, u.dtype(), lanes, uniform); }
  int32_t add_register(const UOp& u, DType dtype, int64_t lanes, bool uniform) {
    need(lanes >= 1 && lanes <= 1 << 16, u, "a vector of so many lanes cannot be held");
    int64_t& numbers = uniform ? program_.uniform_numbers : program_.varying_numbers;
    program_.registers.push_back({dtype, int32_t(lanes), uniform, numbers});
    numbers += lanes;
    const auto reg = int32_t(program_.registers.size()) - 1;
    places_[u].reg = reg;
    return reg;
  }

  // The register of a source. Constants need not be listed: sizes and lanes are told by them.
  int32_t value(const UOp& user, const UOp& source) {
    if (const Place* p = places_.find(source); p && p->reg >= 0) return p->reg;
    if (!source.is(Op::CONST)) fail(user, fmt::format("its source {} does not stand earlier in the list", print_expr(source)));
    add(source);
    return places_[source].reg;
  }

  // The register of the size of memory or a loop: an expression of constants and variables, which need not be listed.
  int32_t size_value(const UOp& user, const UOp& size) {
    for (const UOp& u : toposort(size)) {
      if (const Place* p = places_.find(u); p && p->reg >= 0) continue;
      need(u.is(Op::CONST) || u.is(Op::VAR) || u.in(Group::elementwise), user, "its size is not an expression of variables");
      add(u);
    }
    return value(user, size);
  }

  int64_t number(const UOp& user, size_t source) const {
    const Scalar* c = user.src_count() > source ? const_value(user.src(source)) : nullptr;
    need(c != nullptr, user, fmt::format("source {} must be a CONST", source));
    return c->as_int();
  }

  void add(const UOp& u) {
    switch (u.op()) {
      case Op::CONST: emit_with(u, 1, true); return;
      case Op::VAR: add_variable(u); return;
      case Op::SPECIAL: add_special(u); return;
      case Op::PARAM: add_param(u); return;
      case Op::BUFFER: add_buffer(u); return;
      case Op::RANGE: add_range(u); return;
      case Op::END: add_end(u); return;
      case Op::IF: add_if(u); return;
      case Op::ENDIF: close(u, Op::IF, u.src(0)); return;
      case Op::BARRIER:
      case Op::COMMIT: emit(u); return;
      case Op::WAIT: emit(u).extra = u.arg_as<WaitArg>().pending; return;
      case Op::FETCH: add_fetch(u); return;
      case Op::INDEX: add_index(u); return;
      case Op::LOAD: add_load(u); return;
      case Op::STORE: add_store(u); return;
      case Op::EXPAND: add_expand(u); return;
      case Op::STACK: add_stack(u); return;
      case Op::SHRINK: add_shrink(u); return;
      case Op::WMMA: add_wmma(u); return;
      case Op::PREFETCH:
      case Op::WMMA_WAIT:  // a product is done at once
      case Op::GROUP:
      case Op::SINK: return;
      default:
        if (u.in(Group::elementwise)) return add_elementwise(u);
        throw DeviceError(
            fmt::format("kernel {}: {}: the interpreted device does not have {}", program_.name, print_expr(u), name(u.op())));
    }
  }

  Instruction& emit_with(const UOp& u, int64_t lanes, bool uniform) {
    const int32_t reg = add_register(u, lanes, uniform);
    Instruction& i = emit(u);
    i.dst = reg;
    return i;
  }

  void add_variable(const UOp& u) {
    const Symbol wanted = u.arg_as<VarArg>().name;
    const auto found = std::find(variables_.begin(), variables_.end(), wanted);
    need(found != variables_.end(), u, "is not one of the variables of the kernel");
    emit_with(u, 1, true).extra = int32_t(found - variables_.begin());
  }

  void add_special(const UOp& u) {
    const auto& arg = u.arg_as<SpecialArg>();
    need(arg.dim < 3 && (arg.kind == AxisKind::global || arg.kind == AxisKind::local), u, "expects dimension 0, 1 or 2, global or local");
    const int32_t size = size_value(u, u.src(0));
    Instruction& i = emit_with(u, 1, arg.kind == AxisKind::global);
    i.src[0] = size;
    i.extra = arg.dim;
    i.kind = arg.kind;
  }

  void add_param(const UOp& u) {
    if (is_image(u)) return add_image(u);
    need(u.src_count() == 1, u, "expects one size, the number of elements");
    const int32_t size = size_value(u, u.src(0));
    Instruction& i = emit(u);
    i.src[0] = size;
    i.memory = places_[u].memory = int32_t(program_.memories.size());
    program_.memories.push_back({Scope::device, u.dtype(), u.arg_as<ParamArg>().slot});
  }

  void add_image(const UOp& u) {
    const int64_t height = number(u, 0), width = number(u, 1);
    need(height > 0 && width > 0 && number(u, 2) == 4, u, "expects rows of texels of four elements");
    emit(u).memory = places_[u].memory = int32_t(program_.memories.size());
    program_.memories.push_back(
        {.scope = Scope::device, .dtype = u.dtype(), .slot = u.arg_as<ParamArg>().slot, .size = height * width * 4, .image_width = width});
  }

  void add_buffer(const UOp& u) {
    const auto& arg = u.arg_as<BufferArg>();
    need(arg.scope != Scope::thread && arg.scope != Scope::device, u, "expects memory of scope reg, group or tensor");
    need(arg.size >= 0, u, "has a negative size");
    places_[u].memory = int32_t(program_.memories.size());
    // Of tensor memory, too, each item has its part.
    program_.memories.push_back({arg.scope == Scope::tensor ? Scope::reg : arg.scope, u.dtype(), -1, arg.size, true});
  }

  void add_range(const UOp& u) {
    const AxisKind kind = u.arg_as<RangeArg>().kind;
    need(kind != AxisKind::thread || open_.empty(), u, "a thread range must be the outermost loop");
    // A size computed in the program may vary by its structure: whether it does is checked when it runs.
    const Place* known = places_.find(u.src(0));
    const int32_t size = known && known->reg >= 0 ? known->reg : size_value(u, u.src(0));
    Instruction& i = emit_with(u, 1, true);
    i.src[0] = size;
    i.kind = kind;
    open_.push_back(int32_t(program_.code.size()) - 1);
  }

  void add_end(const UOp& u) {
    bool any_range = false;
    for (size_t k = u.src_count(); k-- > 1;) {  // source 0 is the effect
      if (!u.src(k).is(Op::RANGE)) continue;
      any_range = true;
      close(u, Op::RANGE, u.src(k));
    }
    need(any_range, u, "closes no range");
  }

  void add_if(const UOp& u) {
    const int32_t condition = value(u, u.src(0));
    need(register_of(condition).lanes == 1 && is_bool(register_of(condition).dtype), u, "expects one bool");
    emit(u).src[0] = condition;
    open_.push_back(int32_t(program_.code.size()) - 1);
  }

  void close(const UOp& u, Op opened_by, const UOp& opener) {
    need(!open_.empty() && node_of(open_.back()) == opener, u, "does not close the innermost open block");
    const int32_t begin = open_.back();
    open_.pop_back();
    Instruction& i = emit(u);
    if (opened_by == Op::RANGE) i.dst = program_.code[size_t(begin)].dst;
    i.jump = begin;
    program_.code[size_t(begin)].jump = int32_t(program_.code.size()) - 1;
  }

  // An address makes no instruction: LOAD and STORE know its memory and its register. A lane of a vector does.
  void add_index(const UOp& u) {
    if (is_image(u.src(0))) {
      need(u.src_count() == 3 && u.arg_as<IndexArg>().width == 4, u, "expects a texel of an image");
      for (const UOp& at : u.src().subspan(1))
        need(is_int(register_of(value(u, at)).dtype) && register_of(value(u, at)).lanes == 1, u, "expects an integer row and place");
      return;
    }
    need(u.src_count() == 2, u, "expects memory or a vector, and an index");
    if (const Place* p = places_.find(u.src(0)); p && p->memory >= 0) {
      const int32_t at = value(u, u.src(1));
      need(is_int(register_of(at).dtype), u, "expects an integer index");
      need(register_of(at).lanes == 1 || u.arg_as<IndexArg>().width == 1, u, "has an index for each lane and a width too");
      return;
    }
    const int32_t vector = value(u, u.src(0));
    const int64_t lane = number(u, 1);
    need(lane >= 0 && lane < register_of(vector).lanes, u, "there is no such lane");
    add_lanes(u, vector, lane, 1);
  }

  void add_shrink(const UOp& u) {
    const int32_t vector = value(u, u.src(0));
    const int64_t begin = number(u, 1), end = number(u, 2);
    need(begin >= 0 && begin < end && end <= register_of(vector).lanes, u, "there are no such lanes");
    add_lanes(u, vector, begin, end - begin);
  }

  void add_lanes(const UOp& u, int32_t vector, int64_t begin, int64_t lanes) {
    need(u.dtype() == register_of(vector).dtype, u, "has another dtype than the vector");
    Instruction& i = emit_with(u, lanes, register_of(vector).uniform);
    i.src[0] = vector;
    i.extra = int32_t(begin);
  }

  void add_expand(const UOp& u) {
    const int32_t x = value(u, u.src(0));
    need(register_of(x).lanes == 1, u, "expects a scalar");
    emit_with(u, number(u, 1), register_of(x).uniform).src[0] = x;
  }

  void add_stack(const UOp& u) {
    bool uniform = true;
    const auto first = int32_t(program_.operands.size());
    for (const UOp& s : u.src()) {
      const int32_t x = value(u, s);
      need(register_of(x).lanes == 1 && register_of(x).dtype == u.dtype(), u, "expects scalars of its dtype");
      uniform = uniform && register_of(x).uniform;
      program_.operands.push_back(x);
    }
    emit_with(u, int64_t(u.src_count()), uniform).extra = first;
  }

  void add_wmma(const UOp& u) {
    const TensorCore* core = find_tensor_core(u.arg_as<WmmaArg>().name);
    need(core != nullptr, u, "no tensor core has this name");
    const bool in_place = is_tensor_memory(u.src(2));
    need(u.dtype() == (in_place ? DType::void_ : core->out), u, "has another dtype than what the core gives");
    const int32_t sums = in_place ? add_load_of(u, 2) : value(u, u.src(2));
    int32_t src[3], memories[3] = {-1, -1, -1};
    const TensorCore::Layout* layouts[] = {&core->a, &core->b, &core->c};
    // On a CPU the items are lanes, and may share what all of them hold alike.
    const int64_t lanes = core->c.elements() * core->items;
    const bool in_lanes = register_of(sums).lanes == lanes;
    for (size_t k = 0; k < 3; ++k) {
      const DType dtype = k == 0 ? core->a_type : k == 1 ? core->b_type : core->out;
      // A narrow float may come as its bits.
      const auto fits = [&](DType d) {
        return d == dtype || (k < 2 && is_float(dtype) && is_unsigned(d) && itemsize(d) == itemsize(dtype));
      };
      if (layouts[k]->in_memory) {
        const Access a = access(u, k);
        const Memory& memory = program_.memories[size_t(a.memory)];
        // On a CPU the thread has it.
        need((memory.scope == Scope::group) != in_lanes && fits(memory.dtype) && a.lanes == 1, u,
             "the factor is not in memory of the group");
        memories[k] = a.memory;
        src[k] = a.address;
        continue;
      }
      src[k] = k == 2 ? sums : value(u, u.src(k));
      const Register& r = register_of(src[k]);
      const int64_t held = layouts[k]->elements();
      need((r.lanes == held || (in_lanes && r.lanes == held * core->items)) && fits(r.dtype), u, "its sources are not what an item holds");
    }
    const int32_t result = add_register(u, core->out, in_lanes ? lanes : core->c.elements(), false);
    Instruction& i = emit(u);
    i.dst = result;
    std::copy(src, src + 3, i.src);
    i.memory = memories[0];
    i.other_memory = memories[1];
    i.extra = int32_t(program_.cores.size());
    program_.cores.push_back(core);
    if (in_place) add_store_to(u, 2, result);
  }

  /// A product adds to a tile in place by a LOAD and a STORE around it.
  int32_t add_load_of(const UOp& u, size_t source) {
    const Access a = access(u, source);
    const int32_t result = add_register(u, u.src(source).dtype(), a.lanes, false);
    Instruction& i = emit(u);
    i.op = Op::LOAD;
    i.dst = result;
    i.memory = a.memory;
    i.src[0] = a.address;
    return result;
  }
  void add_store_to(const UOp& u, size_t place, int32_t value) {
    const Access a = access(u, place);
    Instruction& i = emit(u);
    i.op = Op::STORE;
    i.memory = a.memory;
    i.src[0] = a.address;
    i.src[1] = value;
  }

  void add_elementwise(const UOp& u) {
    int32_t src[3] = {-1, -1, -1};
    bool uniform = true;
    for (size_t k = 0; k < u.src_count(); ++k) {
      src[k] = value(u, u.src(k));
      const Register& r = register_of(src[k]);
      need(r.lanes == register_of(src[0]).lanes, u, "its sources have different numbers of lanes");
      const size_t like = u.is(Op::WHERE) ? 1 : 0;  // all sources have one dtype but a condition and the amount of a shift
      const bool free = k <= like || u.is(Op::SHL) || u.is(Op::SHR);
      need(free || r.dtype == register_of(src[like]).dtype, u, "its sources have different dtypes");
      uniform = uniform && r.uniform;
    }
    Instruction& i = emit_with(u, register_of(src[0]).lanes, uniform);
    std::copy(src, src + 3, i.src);
  }

  // Fills in memory and address of an access, gives its lanes.
  struct Access {
    int32_t memory, address;
    int64_t lanes;
    int32_t in_row = -1;  // of an image, where `address` is the row
  };
  Access access(const UOp& u, size_t source = 0) {
    const UOp& index = u.src(source);
    need(index.is(Op::INDEX) && index.src_count() == (is_image(index.src(0)) ? 3 : 2), u, "expects an INDEX of memory");
    const Place* p = places_.find(index.src(0));
    need(p && p->memory >= 0, u, "its memory does not stand earlier in the list");
    const int32_t memory = p->memory, address = value(u, index.src(1));
    const int64_t width = index.arg_as<IndexArg>().width;
    return {memory, address, width > 1 ? width : register_of(address).lanes, is_image(index.src(0)) ? value(u, index.src(2)) : -1};
  }

  void check_gate(const UOp& u, int32_t gate, int64_t lanes) const {
    const Register& r = register_of(gate);
    need(is_bool(r.dtype) && (r.lanes == 1 || r.lanes == lanes), u, "its gate is not a bool, or one a lane");
  }

  void add_load(const UOp& u) {
    const Access a = access(u);
    need(u.src_count() == 1 || u.src_count() == 3, u, "expects an INDEX, or an INDEX, an alternative and a gate");
    const Memory& memory = program_.memories[size_t(a.memory)];
    need(u.dtype() == (a.in_row >= 0 ? DType::float32 : memory.dtype), u, "has another dtype than its memory");
    bool uniform = memory.scope == Scope::device && register_of(a.address).uniform && (a.in_row < 0 || register_of(a.in_row).uniform);
    int32_t alt = -1, gate = -1;
    if (u.src_count() == 3) {
      alt = value(u, u.src(1));
      gate = value(u, u.src(2));
      check_gate(u, gate, a.lanes);
      need(register_of(alt).dtype == u.dtype() && (register_of(alt).lanes == a.lanes || register_of(alt).lanes == 1), u,
           "its alternative has another dtype or number of lanes");
      uniform = uniform && register_of(alt).uniform && register_of(gate).uniform;
    }
    // Items may find different things in memory that the kernel stores to.
    uniform = uniform && !is_stored(u.src(0).src(0));
    Instruction& i = emit_with(u, a.lanes, uniform);
    i.memory = a.memory;
    i.src[0] = a.address;
    i.src[1] = alt;
    i.src[2] = gate;
    i.extra = a.in_row;
  }

  bool is_stored(const UOp& memory) {
    if (stored_.size() == 0) {
      stored_.insert(program_.linear);  // not empty any more
      for (const UOp& u : program_.linear.src())
        if (u.is(Op::STORE) && u.src(0).is(Op::INDEX)) stored_.insert(u.src(0).src(0));
    }
    return stored_.contains(memory);
  }

  void add_store(const UOp& u) {
    const Access a = access(u);
    need(u.src_count() == 2 || u.src_count() == 3, u, "expects an INDEX and a value, and maybe a gate");
    int32_t x = value(u, u.src(1));
    if (is_tensor_memory(u.src(0)) && register_of(x).lanes == 1) x = add_splat(u, x, a.lanes);
    const int32_t gate = u.src_count() == 3 ? value(u, u.src(2)) : -1;
    if (gate >= 0) check_gate(u, gate, a.lanes);
    Memory& memory = program_.memories[size_t(a.memory)];
    need(register_of(x).dtype == (a.in_row >= 0 ? DType::float32 : memory.dtype), u, "the value has another dtype than the memory");
    need(register_of(x).lanes == a.lanes, u, "the value has another number of lanes than the address");
    memory.stored = true;
    Instruction& i = emit(u);
    i.memory = a.memory;
    i.src[0] = a.address;
    i.src[1] = x;
    i.src[2] = gate;
    i.extra = a.in_row;
  }

  /// What clears a tile is one number.
  int32_t add_splat(const UOp& u, int32_t x, int64_t lanes) {
    const int32_t result = add_register(u, register_of(x).dtype, lanes, register_of(x).uniform);
    Instruction& i = emit(u);
    i.op = Op::EXPAND;
    i.dst = result;
    i.src[0] = x;
    return result;
  }

  void add_fetch(const UOp& u) {
    need(u.src_count() >= 2 && u.src_count() <= 4, u, "expects two INDEXes, and maybe a validity and a gate");
    const Access to = access(u), from = access(u, 1);
    Memory &near = program_.memories[size_t(to.memory)], &far = program_.memories[size_t(from.memory)];
    need(near.scope == Scope::group && far.scope == Scope::device, u, "copies from an argument to memory of the group");
    need(near.dtype == far.dtype && to.lanes == from.lanes, u, "the places have other dtypes or numbers of elements");
    int32_t gates[2] = {-1, -1};
    for (size_t k = 2; k < u.src_count(); ++k) check_gate(u, gates[k - 2] = value(u, u.src(k)), 1);
    Instruction& i = emit(u);
    i.memory = to.memory;
    i.other_memory = from.memory;
    i.width = int32_t(to.lanes);
    i.src[0] = to.address;
    i.src[1] = from.address;
    i.src[2] = gates[1];
    i.src[3] = gates[0];
  }

  Program program_;
  std::span<const Symbol> variables_;
  NodeMap<Place> places_;
  NodeSet stored_;
  std::vector<int32_t> open_;  // RANGEs and IFs
};

}  // namespace

Program parse_program(const UOp& linear, std::string_view name, std::span<const Symbol> variables) {
  return Parser(linear, name, variables).run();
}

}  // namespace tinygrad::runtime::interp

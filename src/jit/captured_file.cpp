// Captured calls as files.
//
// The text "TGJIT", a version, a hash of what follows; then the graph nodes, and what the call takes, runs and gives, which refer to them.
// A file may come from anybody. Kernels are graphs, not machine code: the verifier looks at them as at those of the scheduler, and accesses
// that cannot be proved to be inside their memory are made only where they are.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/options.h"
#include "device/device.h"
#include "engine/host_memory.h"
#include "jit/captured.h"
#include "jit/graph_file.h"
#include "shape/device.h"
#include "shape/infer.h"
#include "spec/verify.h"
#include "symbolic/bounds.h"
#include "tensor/random.h"
#include "uop/build.h"

namespace tinygrad::jitted {

using namespace tensor;

using engine::CapturedSlot;
using engine::SlotKind;

namespace {

constexpr std::string_view magic = "TGJIT";
constexpr uint32_t version = 4;
constexpr std::string_view damaged = "LoadedJit: the file is damaged";

/// A view that reaches nothing but its memory, whatever the variables are: a file can hold such.
bool is_safe_view(const UOp& view, int64_t size) {
  const UOp* u = &view;
  for (; !u->is(Op::PARAM); u = &u->src(0)) {
    if (u->src_count() == 0) return false;
    const Shape &in = shape_of(u->src(0)), &out = shape_of(*u);
    if (u->is(Op::RESHAPE)) {
      if (!all_known(in) || !all_known(out)) return false;
    } else if (u->is(Op::SHRINK)) {
      for (size_t a = 0; a < in.size(); ++a) {
        const SInt begin(u->src(1 + 2 * a)), end(u->src(2 + 2 * a));
        if (begin.min() < 0 || end.max() > in[a].min() || (end - begin).min() < 0) return false;
      }
    } else if (!u->is(Op::PERMUTE) && !u->is(Op::FLIP)) {
      return false;
    }
  }
  return shape_of(*u) == Shape{SInt(size)};
}

}  // namespace

/// Puts down what Reader takes up, in the same order.
class CapturedCall::Writer {
 public:
  explicit Writer(const CapturedCall& call) : call_(call) {}

  const std::string& write() {
    std::vector<UOp> roots;
    for (const CallForm::Value& v : call_.form_.values) roots.push_back(v.view);
    for (const Result& r : call_.results_) roots.push_back(r.form);
    for (const engine::RecordedCall& c : call_.calls_) {
      roots.push_back(c.body);
      roots.insert(roots.end(), c.bound.begin(), c.bound.end());
    }
    roots.insert(roots.end(), call_.limits_.begin(), call_.limits_.end());
    for (const Check& c : call_.checks_) roots.insert(roots.end(), {c.what.size, c.what.count});
    out_.put_graph(roots);
    out_.put_each(call_.variables_, [&](Symbol v) { out_.put_text(v.str()); });
    out_.put_each(call_.bound_, [&](const auto& variable) { put_bound(variable.first, variable.second); });
    out_.put_each(call_.slots_, [&](const CapturedSlot& s) { put_slot(s); });
    out_.put(uint32_t(call_.arguments_.size()));
    for (size_t i = 0; i < call_.arguments_.size(); ++i) put_argument(call_.arguments_[i], call_.form_.values[i]);
    out_.put_each(call_.calls_, [&](const engine::RecordedCall& c) {
      if (c.body.is(Op::COPY) && (c.body.src(0).is(Op::SHRINK) || c.body.arg_as<DeviceArg>().begin != 0))
        throw ValueError("save: a call with tensors on several devices cannot be saved");
      out_.put_node(c.body);
      out_.put_each(c.slots, [&](uint32_t s) { out_.put(s); });
      out_.put_each(c.bound, [&](const UOp& b) { out_.put_node(b); });
    });
    out_.put_each(call_.results_, [&](const Result& r) { put_result(r); });
    out_.put_each(call_.draws_, [&](const Draw& d) {
      out_.put(d.words);
      put_slot_number(d.slot);
    });
    out_.put_each(call_.limits_, [&](const UOp& room) { out_.put_node(room); });
    out_.put_each(call_.checks_, [&](const Check& c) { put_check(c); });
    return out_.bytes();
  }

 private:
  void put_bound(Symbol name, const std::optional<int64_t>& value) {
    out_.put_text(name.str());
    out_.put(uint8_t(value.has_value()));
    out_.put(value.value_or(0));
  }

  void put_slot(const CapturedSlot& s) {
    out_.put(s.kind);
    out_.put(s.dtype);
    out_.put(s.size);
    out_.put_text(s.device.str());
    if (s.kind != SlotKind::fixed) return;
    std::string values(size_t(s.size) * itemsize(s.dtype), '\0');
    s.buffer->check_readable();
    s.buffer->copyout(std::as_writable_bytes(std::span(values)));
    out_.put_bytes(values);
  }

  void put_slot_number(const std::optional<size_t>& slot) { out_.put(slot ? uint32_t(*slot + 1) : uint32_t{0}); }

  /// The slot of what is on one device.
  static std::optional<size_t> only_slot(const std::vector<size_t>& slots) {
    if (slots.size() > 1) throw ValueError("save: a call with tensors on several devices cannot be saved");
    return slots.empty() ? std::nullopt : std::optional(slots[0]);
  }

  void put_argument(const Argument& a, const CallForm::Value& v) {
    const std::optional<size_t> slot = only_slot(a.slots);
    if (v.view && !is_safe_view(v.view, call_.slots_[*slot].size))
      throw ValueError("save: only the values of its variables keep an argument inside of its memory; pass a clone()");
    out_.put(uint8_t(a.defined));
    put_form(v.view, v.shape);
    out_.put(v.dtype);
    out_.put_text(v.device.str());
    put_slot_number(slot);
  }

  void put_result(const Result& r) {
    out_.put(r.kind);
    out_.put(uint64_t(r.kind == Result::Kind::argument ? r.number : only_slot(r.slots).value_or(0)));
    put_form(r.form, r.shape);
    out_.put(r.dtype);
    out_.put_text(r.device.str());
    out_.put(uint8_t(r.is_param));
  }

  void put_check(const Check& c) {
    out_.put(c.slot);
    out_.put(c.what.dtype);
    out_.put(uint8_t(c.what.wraps));
    out_.put(c.what.axis);
    out_.put_node(c.what.size);
    out_.put_node(c.what.count);
    out_.put_text(c.what.operation);
    out_.put_text(c.what.subject);
  }

  /// A row-major shape has no symbolic sizes; that of a view is in the view.
  void put_form(const UOp& view, const Shape& shape) {
    out_.put_node(view);
    out_.put_each(view ? Shape() : shape, [&](const SInt& s) {
      if (!s.known()) throw ValueError("save: a result or an argument of a symbolic size that is no view");
      out_.put(s.value());
    });
  }

  const CapturedCall& call_;
  GraphWriter out_;
};

void CapturedCall::save(const std::string& path) const {
  Writer writer(*this);
  const std::string& body = writer.write();
  ByteWriter head;
  head.put_bytes(magic);
  head.put(version);
  head.put(hash_bytes(body.data(), body.size()));
  AtomicFile file(path);
  file.write(head.bytes());
  file.write(body);
  file.commit();
}

/// Reads a file, checking all that a CapturedCall relies on.
class CapturedCall::Reader {
 public:
  Reader(std::span<const std::byte> bytes, CapturedCall& out) : in_(bytes, damaged), out_(out) {}

  void read() {
    in_.take_graph();
    in_.take_each([&] { out_.variables_.push_back(Symbol(in_.take_text())); });
    read_bound();
    in_.take_each([&] { read_slot(); });
    in_.take_each([&] { read_argument(); });
    in_.take_each([&] { read_call(); });
    in_.take_each([&] { read_result(); });
    in_.take_each([&] { read_draw(); });
    in_.take_each([&] { out_.limits_.push_back(take_expression()); });
    in_.take_each([&] { read_check(); });
    in_.expect_end();
  }
  /// The bounds that kernels and views rely on.
  std::map<Symbol, std::pair<int64_t, int64_t>> bounds;

 private:
  void need(bool holds, std::string_view what) const {
    if (!holds) in_.wrong(what);
  }

  void read_bound() {
    size_t brought = 0;
    in_.take_each([&] {
      const Symbol name(in_.take_text());
      const bool has_value = in_.take<bool>();
      const auto value = in_.take<int64_t>();
      if (!has_value) need(brought < out_.variables_.size() && out_.variables_[brought++] == name, "the variables");
      out_.bound_.emplace_back(name, has_value ? std::optional(value) : std::nullopt);
    });
    need(brought == out_.variables_.size(), "the variables");
  }

  void read_slot() {
    CapturedSlot s;
    s.kind = in_.take_up_to<SlotKind>(uint64_t(SlotKind::temporary));
    s.dtype = in_.take_dtype();
    s.size = in_.take<int64_t>();
    s.device = Symbol(in_.take_text());
    need(s.dtype != DType::void_ && s.dtype != DType::index, "memory of a dtype that has none");
    need(s.size >= 0 && s.size <= most_bytes, "the size of memory");
    byte_count_ += s.size * int64_t(itemsize(s.dtype));  // of arenas, in which offsets are added
    need(byte_count_ <= most_bytes, "the size of all memory");
    Device& device = Device::get(s.device.str());
    if (s.kind == SlotKind::fixed) {
      const auto values = in_.take_bytes(uint64_t(s.size) * itemsize(s.dtype));
      s.buffer = Buffer::make(device, s.size, s.dtype);
      s.buffer->ensure_allocated();
      if (s.size > 0) s.buffer->copyin(values);
      out_.fixed_slots_.push_back(out_.slots_.size());
    }
    out_.slots_.push_back(std::move(s));
  }

  std::optional<size_t> take_slot() {
    const auto number = in_.take<uint32_t>();
    need(number <= out_.slots_.size(), "a slot that is not there");
    return number ? std::optional<size_t>(number - 1) : std::nullopt;
  }

  /// A shape, or a view of memory of this size.
  void read_form(UOp& view, Shape& shape) {
    view = in_.take_node();
    in_.take_each([&] {
      shape.push_back(in_.take<int64_t>());
      need(shape.back().value() >= 0, "a negative size");
    });
  }

  void check_form(const UOp& view, const Shape& shape, DType dtype, const CapturedSlot& memory) {
    need(memory.dtype == dtype, "a view of another dtype than its memory's");
    if (view)
      need(view.dtype() == dtype && is_safe_view(view, memory.size), "a view");
    else
      need(count(shape) == memory.size, "a shape and its memory");
    if (view) note_variables(view);
  }

  int64_t count(const Shape& shape) const {
    int64_t n = 1;
    for (const SInt& s : shape) need(!__builtin_mul_overflow(n, s.value(), &n), "the size of a tensor");
    return n;
  }

  void note_variables(const UOp& root, std::span<const UOp> bound = {}) {
    for (const UOp& u : toposort(root)) {
      if (!u.is(Op::VAR)) continue;
      const auto& v = u.arg_as<VarArg>();
      if (const auto value = engine::value_bound_to(v.name, bound)) {
        need(v.min <= *value && *value <= v.max, "the value of a call's variable");
        continue;
      }
      auto& b = bounds.try_emplace(v.name, v.min, v.max).first->second;
      b = {std::max(b.first, v.min), std::min(b.second, v.max)};
    }
  }

  void read_argument() {
    Argument a;
    CallForm::Value v;
    a.defined = in_.take<bool>();
    read_form(v.view, v.shape);
    v.dtype = in_.take_dtype();
    v.device = Symbol(in_.take_text());
    if (const auto slot = take_slot()) {
      a.slots.push_back(*slot);
      const CapturedSlot& s = out_.slots_[*slot];
      need(a.defined && s.kind == SlotKind::call && s.device == v.device && taken_.insert(*slot).second, "an argument");
      check_form(v.view, v.shape, v.dtype, s);
    } else {
      need(!v.view && (!a.defined || count(v.shape) == 0), "an argument without memory");
    }
    out_.arguments_.push_back(a);
    out_.form_.values.push_back(std::move(v));
  }

  /// A variable's value in one call.
  UOp take_bound() {
    const UOp b = in_.take_node();
    need(b && b.is(Op::BIND) && b.src_count() == 2 && b.src(0).is(Op::VAR) && b.src(1).is(Op::CONST) && b.src(1).dtype() == DType::index,
         "a variable of a call");
    return b;
  }

  void read_call() {
    engine::RecordedCall c;
    c.body = in_.take_node();
    need(bool(c.body), "a call of nothing");
    in_.take_each([&] {
      const auto slot = in_.take<uint32_t>();
      need(slot < out_.slots_.size(), "a slot that is not there");
      c.slots.push_back(slot);
    });
    in_.take_each([&] { c.bound.push_back(take_bound()); });
    if (c.body.is(Op::SINK)) {
      spec::verify_kernel(c.body);
      check_kernel(c);
      c.body = guarded(c.body);
      spec::verify_kernel(c.body);
    } else {
      need(c.body.is(Op::COPY) && c.slots.size() == 2 && c.body.src(0).is(Op::PARAM), "a call that is neither a kernel nor a copy");
      const CapturedSlot &to = out_.slots_[c.slots[0]], &from = out_.slots_[c.slots[1]];
      need(to.size == from.size && to.dtype == from.dtype, "a copy between memories of different sizes");
    }
    out_.calls_.push_back(std::move(c));
  }

  void check_kernel(const engine::RecordedCall& c) {
    size_t params = 0;
    for (const UOp& u : toposort(c.body)) {
      if (!u.is(Op::PARAM)) continue;
      ++params;
      const auto slot = size_t(u.arg_as<ParamArg>().slot);
      need(slot < c.slots.size(), "a kernel with more arguments than its call");
      const CapturedSlot& s = out_.slots_[c.slots[slot]];
      need(s.dtype == u.dtype() && shape_of(u)[0].value() == s.size, "a kernel for memory of another size");
      need(s.device == out_.slots_[c.slots[0]].device, "a kernel of several devices");
    }
    need(params == c.slots.size(), "a call with more arguments than its kernel");
    note_variables(c.body, c.bound);
  }

  /// The kernel with a condition at each access that might be outside of its memory.
  static UOp guarded(const UOp& kernel) {
    NodeMap<UOp> done;
    for (const UOp& u : toposort(kernel)) {
      UOps sources;
      for (const UOp& s : u.src()) {
        const UOp* replaced = done.find(s);
        sources.push_back(replaced ? *replaced : s);
      }
      UOp v = std::ranges::equal(sources, u.src()) ? u : u.with_src(sources);
      if (u.is(Op::INDEX)) {
        const UOp* memory = &v.src(0);
        while (memory->is(Op::AFTER)) memory = &memory->src(0);
        const int64_t size = shape_of(*memory)[0].value();
        const UOp at = v.src(1);
        if (const symbolic::Bounds b = symbolic::bounds(at); b.min < 0 || b.max >= size) {
          const UOp inside = logical_not(at < 0) & (at < size);
          v = index_valid(v.src(0), at, v.src_count() > 2 ? v.src(2) & inside : inside);
        }
      }
      done[u] = v;
    }
    return *done.find(kernel);
  }

  void read_result() {
    Result r;
    r.kind = in_.take_up_to<Result::Kind>(uint64_t(Result::Kind::made));
    r.number = size_t(in_.take<uint64_t>());
    r.slots.push_back(r.number);
    read_form(r.form, r.shape);
    r.dtype = in_.take_dtype();
    r.device = Symbol(in_.take_text());
    r.is_param = in_.take<bool>();
    using Kind = Result::Kind;
    if (r.kind == Kind::argument) {
      need(r.number < out_.arguments_.size() && !out_.arguments_[r.number].slots.empty(), "a result that is no argument");
      check_form(r.form, r.shape, r.dtype, out_.slots_[out_.arguments_[r.number].slots[0]]);
    } else if (r.kind == Kind::fixed || r.kind == Kind::made) {
      need(r.number < out_.slots_.size(), "a slot that is not there");
      const CapturedSlot& s = out_.slots_[r.number];
      need(s.device == r.device && s.kind == (r.kind == Kind::fixed ? SlotKind::fixed : SlotKind::call), "the memory of a result");
      check_form(r.form, r.shape, r.dtype, s);
      if (r.kind == Kind::fixed) {
        r.ids.push_back(next_buffer_id());
      } else {
        taken_.insert(r.number);
        made_.insert(r.number);
      }
    } else if (r.kind == Kind::empty) {
      need(!r.form && count(r.shape) == 0, "an empty result");
      Device::get(r.device.str());
    }
    out_.results_.push_back(std::move(r));
  }

  void read_draw() {
    Draw d{.words = in_.take<int64_t>(), .slot = take_slot()};
    need(d.words >= 0, "a draw of random words");
    if (d.slot) {
      const CapturedSlot& s = out_.slots_[*d.slot];
      need(s.kind == SlotKind::lease && uint64_t(s.size) * itemsize(s.dtype) == sizeof(DrawState), "the memory of a draw");
    }
    out_.draws_.push_back(d);
  }

  /// An index expression of the call's variables.
  UOp take_expression() {
    UOp out = in_.take_node();
    need(out && out.dtype() == DType::index, "a limit or size that is no index expression");
    for (const UOp& u : toposort(out)) {
      if (u.is(Op::VAR)) {
        const Symbol name = u.arg_as<VarArg>().name;
        need(std::ranges::any_of(out_.bound_, [&](const auto& v) { return v.first == name; }), "a limit or size of an unknown variable");
      } else {
        need(u.is(Op::CONST) || u.in(Group::alu), "a limit or size that is no index expression");
      }
      need(u.is(Op::CONST) || u.dtype() == infer_dtype(u.op(), u.src()), "the dtype of a limit or size");
      need(u.dtype() == DType::index || u.dtype() == DType::bool_, "the dtype of a limit or size");
    }
    return out;
  }

  void read_check() {
    Check c;
    c.slot = in_.take<uint32_t>();
    c.what.dtype = in_.take_dtype();
    c.what.wraps = in_.take<bool>();
    c.what.axis = in_.take<int32_t>();
    c.what.size = take_expression();
    c.what.count = take_expression();
    c.what.operation = in_.take_text();
    c.what.subject = in_.take_text();
    need(c.slot < out_.slots_.size() && is_int(c.what.dtype), "indices that are looked at");
    const CapturedSlot& s = out_.slots_[c.slot];
    need(s.kind == SlotKind::lease && s.size == 1 && s.dtype == unsigned_like(c.what.dtype), "the memory of what is looked at");
    out_.checks_.push_back(std::move(c));
  }

  friend class CapturedCall;
  static constexpr int64_t most_bytes = int64_t{1} << 48;
  int64_t byte_count_ = 0;
  GraphReader in_;
  CapturedCall& out_;
  std::set<size_t> taken_, made_;  // slots that a call brings: arguments, and results
};

std::shared_ptr<CapturedCall> CapturedCall::load(const std::string& path) {
  const std::string file = read_file(path);
  ByteReader head(file, damaged);
  if (file.size() < magic.size() || !file.starts_with(magic)) throw FormatError(fmt::format("LoadedJit: {} is not a saved jit", path));
  head.take_bytes(magic.size());
  if (const auto v = head.take<uint32_t>(); v != version)
    throw FormatError(fmt::format("LoadedJit: {} has version {}, expects {}; save it anew", path, v, version));
  const auto hash = head.take<uint64_t>();
  const size_t start = magic.size() + sizeof version + sizeof hash;
  const auto body = std::as_bytes(std::span(file)).subspan(start);
  if (hash_bytes(body.data(), body.size()) != hash) head.wrong("its content is not what was written");

  const std::shared_ptr<CapturedCall> out(new CapturedCall);
  out->options_ = Context::current();
  Reader reader(body, *out);
  try {
    reader.read();
    for (size_t i = 0; i < out->slots_.size(); ++i)
      if (out->slots_[i].kind == SlotKind::call && !reader.taken_.contains(i)) head.wrong("memory that nobody brings");
    out->made_slots_.assign(reader.made_.begin(), reader.made_.end());
    out->variable_bounds_ = reader.bounds;
    for (const auto& [name, value] : out->bound_) {
      const auto b = reader.bounds.find(name);
      if (value && b != reader.bounds.end() && (*value < b->second.first || *value > b->second.second))
        head.wrong("a variable is out of its bounds");
    }
    out->capture_ = std::make_unique<engine::Capture>(out->slots_, out->calls_, out->bound_, current_options(), out->looked_at());
    out->capture_->note_made(out->made_slots_);
  } catch (const DeviceError&) {
    throw;
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const FormatError&) {
    throw;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& e) {
    throw FormatError(fmt::format("LoadedJit: {} holds what save() does not write: {}", path, e.what()));
  }
  out->find_uses();
  return out;
}

detail::JitResults CapturedCall::call_loaded(const CallArguments& arguments) {
  if (!std::equal(variables_.begin(), variables_.end(), arguments.variables.begin(), arguments.variables.end(),
                  [](Symbol name, const auto& v) { return name == v.first; }))
    throw JitError("LoadedJit: the arguments have other variables than the saved call");
  for (const auto& [name, value] : arguments.variables)
    if (const auto b = variable_bounds_.find(name); b != variable_bounds_.end() && (value < b->second.first || value > b->second.second))
      throw JitError(fmt::format("LoadedJit: variable {} is {}, expects {} to {}", name.str(), value, b->second.first, b->second.second));
  if (const CallForm form = jitted::form_of(arguments); form != form_)
    throw JitError(
        fmt::format("LoadedJit: the {} tensors among the arguments differ from the {} of the saved call in number, shape, dtype or device",
                    form.values.size(), form_.values.size()));
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].defined) check_argument(i, arguments.values[i]);
  check_aliases(arguments);
  check_limits(arguments);
  return replay(arguments);
}

}  // namespace tinygrad::jitted

namespace tinygrad {

LoadedJit::LoadedJit(const std::string& path) : captured_(jitted::CapturedCall::load(path)) {}
LoadedJit::~LoadedJit() = default;

std::vector<Tensor> LoadedJit::operator()(std::span<const Tensor> arguments, std::span<const Variable> variables) const {
  return engine::with_host_memory([&] {
    detail::JitArguments given;
    detail::JitCollector collector(given);
    for (const Tensor& t : arguments) collector.tensor(t);
    for (const Variable& v : variables) collector.variable(v);
    if (given.variables.size() != variables.size()) throw ValueError("LoadedJit: a variable without a value; use bind()");
    return captured_->call_loaded(jitted::prepare_arguments(given)).tensors;
  });
}

}  // namespace tinygrad

// A function of arrays of another library (PyTorch's graphs) that is captured for each form of its arguments, and replayed on their memory.
#include <algorithm>
#include <bit>
#include <cstring>
#include <list>
#include <new>

#include "dlpack.h"

#include "device/buffer.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "uop/build.h"
#include "uop/uop.h"

namespace tinygrad::python {

namespace {

using dlpack::Array;
using dlpack::Exchange;

/// An argument as captured calls depend on it: a number, nothing, or an array of one layout.
struct ArgumentForm {
  enum class Kind : uint8_t { none, integer, number, array } kind = Kind::none;
  int64_t integer = 0;
  uint64_t number = 0;  ///< the bits: zeros differ in sign, and a NaN is the same as itself
  DType dtype = DType::void_;
  Sizes shape = {}, strides = {};
  int64_t span = 0;
  bool is_aligned = true;  ///< to its elements
  bool copied = false;     ///< what no view of its memory shows
  bool written = false;

  bool operator==(const ArgumentForm& o) const {
    if (kind != o.kind || integer != o.integer || number != o.number || dtype != o.dtype || shape != o.shape || is_aligned != o.is_aligned)
      return false;
    for (size_t i = 0; i < shape.size() && span > 0; ++i)
      if (shape[i] > 1 && strides[i] != o.strides[i]) return false;
    return true;
  }
};

/// One of what a call gives: None or a number as it is, an argument, or a result, seen with these strides.
struct OutputForm {
  enum class Kind : uint8_t { constant, argument, view_of_argument, result } kind = Kind::constant;
  nb::object constant = {};
  size_t number = 0;
  Sizes shape = {}, strides = {};
  int64_t offset = 0;
  bool shares = false;  ///< its result with other outputs: they are views of one array
};

OutputForm output_of(nb::handle x) {
  const auto t = nb::borrow<nb::tuple>(x);
  const std::string kind = nb::cast<std::string>(t[0]);
  if (kind == "constant") return {.kind = OutputForm::Kind::constant, .constant = nb::borrow(t[1])};
  if (kind == "argument") return {.kind = OutputForm::Kind::argument, .number = nb::cast<size_t>(t[1])};
  return {.kind = kind == "result" ? OutputForm::Kind::result : OutputForm::Kind::view_of_argument,
          .number = nb::cast<size_t>(t[1]),
          .shape = nb::cast<Ints>(t[2]).values,
          .strides = nb::cast<Ints>(t[3]).values,
          .offset = nb::cast<int64_t>(t[4])};
}

/// Calls whose arguments have one form.
struct Captured {
  std::vector<ArgumentForm> arguments;
  nb::object build;  ///< a list of tensors to a list of tensors, and the outputs made of them
  bool draws = false;
  bool computes_nothing = false;  ///< outputs are arguments, views of them, numbers, or have no elements: there is nothing to capture
  detail::JitCore core{{.at_once = true}};
  std::vector<OutputForm> outputs = {};
  std::vector<std::string> indexing = {};  ///< operators of which the last result tells that one got an index out of range
  std::vector<bool> is_borrowed = {};      ///< results that lie in the memory of an argument or of another result
};

class GraphFunction {
 public:
  GraphFunction(nb::handle type, nb::object prepare, nb::object seed)
      : library_(dlpack::exchange_of(type)), type_(nb::borrow(type)), prepare_(std::move(prepare)), seed_(std::move(seed)) {}

  nb::object call(const nb::list& arguments) {
    std::vector<ArgumentForm> now;
    std::vector<Array> arrays;
    describe(arguments, now, arrays);
    for (const std::shared_ptr<Captured>& c : captured_)
      if (c->arguments == now) return run(c, arguments, arrays);
    const nb::object prepared = prepare_(arguments);
    if (!nb::isinstance<nb::tuple>(prepared)) return prepared;  // what it computed in another way
    const auto [build, copied, written, draws] = nb::cast<std::tuple<nb::object, std::vector<size_t>, std::vector<size_t>, bool>>(prepared);
    describe(arguments, now, arrays);
    const auto made = std::make_shared<Captured>();
    made->arguments = now;
    made->build = build;
    made->draws = draws;
    for (size_t i : copied) made->arguments.at(i).copied = true;
    for (size_t i : written) made->arguments.at(i).written = true;
    captured_.push_front(made);
    try {
      return run(made, arguments, arrays);
    } catch (...) {
      captured_.remove(made);
      throw;
    }
  }

  size_t count() const { return captured_.size(); }

 private:
  void describe(const nb::list& arguments, std::vector<ArgumentForm>& forms, std::vector<Array>& arrays) const {
    const size_t n = nb::len(arguments);
    forms.assign(n, {});
    arrays.assign(n, {});
    for (size_t i = 0; i < n; ++i) {
      PyObject* x = PyList_GET_ITEM(arguments.ptr(), Py_ssize_t(i));
      ArgumentForm& f = forms[i];
      if (x == Py_None) continue;
      if (PyLong_Check(x)) {
        f.kind = ArgumentForm::Kind::integer;
        f.integer = nb::cast<int64_t>(nb::handle(x));
      } else if (PyFloat_Check(x)) {
        f.kind = ArgumentForm::Kind::number;
        f.number = std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(x));
      } else {
        describe_array(x, f, arrays[i]);
      }
    }
  }

  void describe_array(nb::handle x, ArgumentForm& f, Array& array) const {
    array = dlpack::borrowed(library_, x);
    if (array.device.type != dlpack::cpu)
      throw DeviceError("an argument is in the memory of a device; only those on the CPU are computed with");
    const std::optional<DType> dtype = dlpack::dtype_of(array.dtype);
    if (!dtype) throw DTypeError(std::string("no tensor has elements of ") + nb::repr(nb::getattr(x, "dtype")).c_str());
    f.kind = ArgumentForm::Kind::array;
    f.dtype = *dtype;
    f.shape = dlpack::shape_of(array);
    f.strides = dlpack::strides_of(array);
    f.span = dlpack::span_of(array);
    f.is_aligned = reinterpret_cast<uintptr_t>(dlpack::data_of(array)) % itemsize(*dtype) == 0;
  }

  static Tensor on_memory(void* data, int64_t count, DType dtype) {
    static Device& host = Device::get("CPU");
    static const Symbol name("CPU");
    const BufferPtr memory = Buffer::make(host, count, dtype, {.external_ptr = data});
    return Tensor::from_uop(buffer(dtype, {.id = next_buffer_id(), .size = count, .device = name, .resource = memory}));
  }

  nb::object run(const std::shared_ptr<Captured>& captured, const nb::list& arguments, std::vector<Array>& arrays) {
    detail::JitArguments given;
    std::vector<std::pair<nb::object, nb::object>> written_back;  // the argument and its copy
    std::vector<nb::object> kept;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const ArgumentForm& f = captured->arguments[i];
      if (f.kind != ArgumentForm::Kind::array || f.span == 0) continue;
      int64_t span = f.span;
      if (f.copied) {
        const nb::object own = nb::borrow(arguments[i]).attr("detach")().attr("contiguous")().attr("clone")();
        arrays[i] = dlpack::borrowed(library_, own);
        span = dlpack::span_of(arrays[i]);
        kept.push_back(own);
        if (f.written) written_back.emplace_back(arguments[i], own);
      }
      given.tensors.push_back(on_memory(dlpack::data_of(arrays[i]), span, f.dtype));
    }
    std::optional<uint64_t> seed;
    if (captured->draws) seed = nb::cast<uint64_t>(seed_());
    static constexpr char tag = 0;
    std::vector<Tensor> results;
    const auto body = [&](std::span<const Tensor> tensors) {
      const nb::gil_scoped_acquire gil;
      nb::list own;
      for (const Tensor& t : tensors) own.append(nb::cast(t));
      const auto built = nb::borrow<nb::tuple>(captured->build(own));
      for (nb::handle t : nb::borrow<nb::list>(built[0])) results.push_back(*nb::inst_ptr<Tensor>(t));
      captured->outputs.clear();
      for (nb::handle o : nb::borrow<nb::list>(built[1])) captured->outputs.push_back(output_of(o));
      note_shared(captured->outputs);
      captured->computes_nothing = std::ranges::all_of(results, [](const Tensor& t) { return t.numel() == 0; }) &&
                                   std::ranges::none_of(captured->arguments, [](const ArgumentForm& f) { return f.written && f.span > 0; });
      captured->indexing = nb::cast<std::vector<std::string>>(built[2]);
      return detail::JitResults{results, {}};
    };
    std::vector<std::shared_ptr<std::byte>> memories;
    {
      const Interruptible interruptible;
      const Released released;
      std::optional<tensor::OwnSequence> sequence;
      if (seed) sequence.emplace(*seed);
      if (captured->computes_nothing)
        body(given.tensors);
      else
        results = compute(*captured, given, &tag, body, results);
      for (const Tensor& t : results) memories.push_back(t.host_memory());
    }
    if (!captured->indexing.empty()) {
      int32_t found = 0;
      std::memcpy(&found, memories.back().get(), sizeof found);
      if (found) throw nb::index_error((captured->indexing.at(size_t(found) - 1) + ": an index is out of range").c_str());
    }
    note_borrowed(*captured, arrays, results, memories);
    for (size_t i = 0; i < memories.size(); ++i)
      if (captured->is_borrowed[i]) memories[i] = copy_of(memories[i], results[i].nbytes());
    for (const auto& [argument, copy] : written_back) argument.attr("copy_")(copy);
    nb::list out;
    std::vector<nb::object> whole(results.size());
    for (const OutputForm& o : captured->outputs) out.append(output(o, arguments, results, memories, whole));
    return out;
  }

  /// `built` are the results of the body, if it was run.
  template <typename Body>
  static std::vector<Tensor> compute(Captured& captured, const detail::JitArguments& given, const void* tag, const Body& body,
                                     const std::vector<Tensor>& built) {
    try {
      if (std::optional<detail::JitResults> replayed = captured.core.call(given, tag, body)) return std::move(replayed->tensors);
    } catch (const JitError&) {
      if (captured.computes_nothing) return built;
      throw;
    }
    std::vector<Tensor> all = built;
    all.insert(all.end(), given.tensors.begin(), given.tensors.end());
    Tensor::realize(all);
    return built;
  }

  static void note_shared(std::vector<OutputForm>& outputs) {
    for (OutputForm& a : outputs)
      for (const OutputForm& b : outputs)
        if (&a != &b && a.kind == OutputForm::Kind::result && b.kind == a.kind && a.number == b.number) a.shares = true;
  }

  static void note_borrowed(Captured& captured, const std::vector<Array>& arrays, const std::vector<Tensor>& results,
                            const std::vector<std::shared_ptr<std::byte>>& memories) {
    if (captured.is_borrowed.size() == results.size()) return;
    const auto lies_in = [](const std::byte* x, const void* memory, size_t bytes) {
      const auto at = reinterpret_cast<uintptr_t>(x), begin = reinterpret_cast<uintptr_t>(memory);
      return x && at >= begin && at < begin + bytes;
    };
    captured.is_borrowed.assign(results.size(), false);
    for (size_t r = 0; r < results.size(); ++r) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        const ArgumentForm& f = captured.arguments[i];
        if (f.kind != ArgumentForm::Kind::array || f.span == 0) continue;
        if (lies_in(memories[r].get(), dlpack::data_of(arrays[i]), size_t(dlpack::span_of(arrays[i])) * itemsize(f.dtype)))
          captured.is_borrowed[r] = true;
      }
      for (size_t other = 0; other < r; ++other)
        if (lies_in(memories[r].get(), memories[other].get(), size_t(results[other].nbytes())) ||
            lies_in(memories[other].get(), memories[r].get(), size_t(results[r].nbytes())))
          captured.is_borrowed[r] = true;
    }
  }

  static std::shared_ptr<std::byte> copy_of(const std::shared_ptr<std::byte>& memory, int64_t bytes) {
    const auto alignment = std::align_val_t(64);
    std::shared_ptr<std::byte> copy(static_cast<std::byte*>(operator new(size_t(bytes), alignment)),
                                    [alignment](std::byte* p) { operator delete(p, alignment); });
    std::memcpy(copy.get(), memory.get(), size_t(bytes));
    return copy;
  }

  nb::object output(const OutputForm& o, const nb::list& arguments, const std::vector<Tensor>& results,
                    const std::vector<std::shared_ptr<std::byte>>& memories, std::vector<nb::object>& whole) const {
    switch (o.kind) {
      case OutputForm::Kind::constant: return o.constant;
      case OutputForm::Kind::argument: return nb::borrow(arguments[o.number]);
      case OutputForm::Kind::view_of_argument: {
        const nb::object x = nb::borrow(arguments[o.number]);
        const auto offset = nb::cast<int64_t>(x.attr("storage_offset")()) + o.offset;
        return x.attr("as_strided")(to_tuple(o.shape), to_tuple(o.strides), offset);
      }
      case OutputForm::Kind::result:
        if (o.shares) {
          const Tensor& result = results.at(o.number);
          nb::object& base = whole.at(o.number);
          if (!base.is_valid()) base = dlpack::to_object(library_, memories.at(o.number), result.dtype(), {result.numel()}, {1}, 0);
          return base.attr("as_strided")(to_tuple(o.shape), to_tuple(o.strides), o.offset);
        }
        return dlpack::to_object(library_, memories.at(o.number), results.at(o.number).dtype(), o.shape, o.strides, o.offset);
    }
    return nb::none();
  }

  const Exchange& library_;
  const nb::object type_, prepare_, seed_;
  std::list<std::shared_ptr<Captured>> captured_;
};

}  // namespace

void bind_graph_function(nb::module_& m) {
  m.def(
      "shows_memory", [](const Tensor& t) { return bool(tensor::state_of_view(t.uop())); }, "tensor"_a,
      "Whether a tensor is a view of memory, in which what is written later is seen.");
  nb::class_<GraphFunction>(
      m, "GraphFunction", nb::dynamic_attr(),
      "A function of a list of PyTorch's tensors and numbers. `prepare(arguments)` gives, for arguments of a new form, "
      "a function that builds the graph and how it takes them, or the results themselves.")
      .def(nb::init<nb::handle, nb::object, nb::object>(), "type"_a, "prepare"_a, "seed"_a)
      .def("__call__", &GraphFunction::call, "arguments"_a)
      .def_prop_ro("count", &GraphFunction::count);
}

}  // namespace tinygrad::python

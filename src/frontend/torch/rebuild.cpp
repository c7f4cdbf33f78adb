// What calls of allowed names make.
#include <algorithm>
#include <array>
#include <span>

#include "frontend/torch/globals.h"

namespace tinygrad::frontend::torch {

namespace {

using Kind = Global::Kind;

constexpr size_t most_axes = 64;  // as in PyTorch

/// The arguments of a call, each of the kind that is asked for.
class Args {
 public:
  Args(std::span<const Value> args, Heap& heap, const Place& place) : args_(args), heap_(heap), place_(place) {}

  size_t size() const { return args_.size(); }
  const Value& at(size_t i) const { return args_[i]; }
  [[noreturn]] void refuse(size_t i, std::string_view expected) const {
    place_.fail(fmt::format("argument {} is {}, expects {}", i, kind_of(args_[i]), expected));
  }
  /// Of one of the alternatives of Value.
  template <class T>
  const T& get(size_t i, std::string_view expected) const {
    if (const T* value = std::get_if<T>(&args_[i])) return *value;
    refuse(i, expected);
  }
  const Text* text_value(size_t i) const { return get<const Text*>(i, "a text"); }
  std::string_view text(size_t i) const { return text_value(i)->text; }
  int64_t integer(size_t i) const {
    if (const bool* flag = std::get_if<bool>(&args_[i])) return *flag;
    return get<int64_t>(i, "an integer");
  }
  int64_t count(size_t i) const {
    const int64_t value = integer(i);
    if (value < 0) place_.fail(fmt::format("argument {} is {}, expects at least 0", i, value));
    return value;
  }
  double number(size_t i) const {
    if (const int64_t* value = std::get_if<int64_t>(&args_[i])) return static_cast<double>(*value);
    return get<double>(i, "a number");
  }
  const ScalarType& type(size_t i) const {
    const Global* name = get<const Global*>(i, "an element type");
    if (name->kind != Kind::scalar_type) place_.fail(fmt::format("argument {} is {}, expects an element type", i, name->name));
    return *name->type;
  }
  TensorRecord* tensor(size_t i) const { return get<TensorRecord*>(i, "a tensor"); }
  std::span<const Value> items(size_t i) const {
    if (List* const* list = std::get_if<List*>(&args_[i])) return (*list)->items;
    return get<const Tuple*>(i, "a tuple")->items;
  }
  Args inner(size_t i) const { return {items(i), heap_, place_}; }
  /// Sizes or strides: no negative numbers.
  Sizes sizes(size_t i) const {
    const Args numbers = inner(i);
    if (numbers.size() > most_axes) place_.fail(fmt::format("argument {} has {} axes, at most {} can be", i, numbers.size(), most_axes));
    heap_.copies(numbers.size(), place_);
    Sizes out;
    for (size_t k = 0; k < numbers.size(); ++k) out.push_back(numbers.count(k));
    return out;
  }
  const Place& place() const { return place_; }
  Heap& heap() const { return heap_; }

 private:
  std::span<const Value> args_;
  Heap& heap_;
  const Place& place_;
};

/// storage, offset, sizes, strides: the first arguments of all that make dense tensors.
TensorRecord dense(const Args& args, const ScalarType* type = nullptr) {
  const Storage* storage = args.get<const Storage*>(0, "a storage");
  TensorRecord out{.type = type ? type : storage->type, .storage = storage, .offset = args.count(1), .at = args.place().at};
  out.sizes = args.sizes(2);
  out.strides = args.sizes(3);
  if (out.sizes.size() != out.strides.size())
    args.place().fail(fmt::format("{} sizes and {} strides", out.sizes.size(), out.strides.size()));
  return out;
}

std::vector<double> numbers_of(const Args& args) {
  args.heap().copies(args.size(), args.place());
  std::vector<double> out;
  for (size_t i = 0; i < args.size(); ++i) out.push_back(args.number(i));
  return out;
}

Quantizer quantizer_of(const Args& args, const Sizes& sizes) {
  const Place& place = args.place();
  if (args.size() == 0) place.fail("no scheme of quantization");
  const Global* scheme = args.get<const Global*>(0, "a scheme of quantization");
  const bool by_channel = scheme->name.starts_with("torch.per_channel_affine");
  if (scheme->kind != Kind::quantization_scheme || (!by_channel && scheme->name != "torch.per_tensor_affine"))
    place.fail(fmt::format("the scheme of quantization {} is not read", scheme->name));
  const size_t expected = by_channel ? 4 : 3;
  if (args.size() != expected) place.fail(fmt::format("{} parameters of {}, expects {}", args.size(), scheme->name, expected));
  Quantizer out;
  if (!by_channel) {
    out.scale = args.number(1);
    out.zero_point = args.integer(2);
    if (out.zero_point < INT32_MIN || out.zero_point > INT32_MAX) place.fail(fmt::format("the zero point {}", out.zero_point));
    return out;
  }
  out.axis = args.integer(3);
  if (*out.axis < 0 || *out.axis >= static_cast<int64_t>(sizes.size()))
    place.fail(fmt::format("the axis of the scales is {}, of {}", *out.axis, sizes.size()));
  const int64_t channels = sizes[static_cast<size_t>(*out.axis)];
  const auto check = [&](int64_t count, std::string_view what) {
    if (count != channels) place.fail(fmt::format("{} {} for {} channels", count, what, channels));
  };
  if (std::holds_alternative<List*>(args.at(1))) {
    out.scale_list = numbers_of(args.inner(1));
    out.zero_point_list = numbers_of(args.inner(2));
    check(static_cast<int64_t>(out.scale_list.size()), "scales");
    check(static_cast<int64_t>(out.zero_point_list.size()), "zero points");
    return out;
  }
  out.scales = args.tensor(1);
  out.zero_points = args.tensor(2);
  for (const TensorRecord* t : {out.scales, out.zero_points}) {
    if (!t->storage || !t->type->dtype || t->type->is_quantized || t->sizes.size() != 1)
      place.fail("scales and zero points are no vectors of numbers");
    check(t->sizes[0], t == out.scales ? "scales" : "zero points");
  }
  return out;
}

/// A tensor whose elements do not lie in a storage.
TensorRecord without_elements(std::string_view layout, const ScalarType& type, Sizes sizes, const Args& args) {
  return {.type = &type, .sizes = std::move(sizes), .layout = layout, .at = args.place().at};
}

TensorRecord sparse(const Args& args) {
  const std::string_view layout = args.text(0);
  const Args data = args.inner(1);
  const bool is_coo = layout == "torch.sparse_coo";
  constexpr std::array<std::string_view, 4> compressed{"torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc"};
  if (!is_coo && std::ranges::find(compressed, layout) == compressed.end())
    args.place().fail(fmt::format("the layout {} of a sparse tensor is not known", layout));
  const size_t values = is_coo ? 1 : 2;
  if (data.size() < values + 2) args.place().fail(fmt::format("{} parts of a sparse tensor, expects {}", data.size(), values + 2));
  return without_elements("sparse", *data.tensor(values)->type, data.sizes(values + 1), args);
}

Value bytes_of_text(const Args& args) {
  const std::string_view text = args.text(0);
  const std::string_view coding = args.size() > 1 ? args.text(1) : "latin1";
  if (coding != "latin1" && coding != "latin-1")
    args.place().fail(fmt::format("the encoding '{}' is not read; bytes are texts in latin1", coding));
  args.heap().copies(text.size(), args.place());
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      out += text[i];
      continue;
    }
    // Two bytes of UTF-8 stand for what is up to 255.
    if ((first != 0xC2 && first != 0xC3) || i + 1 == text.size()) args.place().fail("a text that is not latin1");
    out += static_cast<char>((first & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
  }
  return static_cast<const Bytes*>(args.heap().make(Bytes{std::move(out)}));
}

Value make_bytearray(const Args& args) {
  if (args.size() == 0) return static_cast<const Bytes*>(args.heap().make(Bytes{}));
  if (std::holds_alternative<const Bytes*>(args.at(0))) return args.at(0);
  return bytes_of_text(args);
}

Value make_dict(const Args& args) {
  Dict* out = args.heap().make(Dict{});
  if (args.size() == 0) return out;
  if (Dict* const* other = std::get_if<Dict*>(&args.at(0))) {
    args.heap().copies((*other)->entries().size(), args.place());
    for (const auto& [key, value] : (*other)->entries()) out->set(key, value);
    return out;
  }
  const Args pairs = args.inner(0);
  args.heap().copies(pairs.size(), args.place());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto pair = pairs.items(i);
    if (pair.size() != 2) args.place().fail(fmt::format("an entry of {} values, expects 2", pair.size()));
    if (is_mutable(pair[0])) args.place().fail(fmt::format("a key is {}", kind_of(pair[0])));
    out->set(pair[0], pair[1]);
  }
  return out;
}

Value make_device(const Args& args) {
  if (args.size() == 1) return args.text_value(0);
  constexpr size_t most = 64;
  return args.heap().text(fmt::format("{}:{}", args.text(0).substr(0, most), args.integer(1)));
}

Value make_set(const Args& args) {
  Set* out = args.heap().make(Set{});
  if (args.size() != 0) {
    const auto items = args.items(0);
    args.heap().copies(items.size(), args.place());
    out->items.assign(items.begin(), items.end());
  }
  return out;
}

/// The tensor itself in another class; only where the element type is another one there is work that is not done here.
Value from_cpu(const Args& args) {
  TensorRecord* data = args.tensor(0);
  const ScalarType& type = args.type(1);
  if (data->type == &type) return data;
  args.heap().copies(data->sizes.size(), args.place());
  TensorRecord out = without_elements("cast", type, data->sizes, args);
  return args.heap().make(std::move(out));
}

struct Call {
  Kind kind;
  size_t least, most;  // arguments
  Value (*run)(const Args&);
};

constexpr auto calls = std::to_array<Call>({
    {Kind::ordered_dict, 0, 1, make_dict},
    {Kind::counter, 0, 1, make_dict},
    {Kind::layout, 1, 1, [](const Args& a) -> Value { return a.text_value(0); }},
    {Kind::size, 1, 1, [](const Args& a) -> Value { return a.get<const Tuple*>(0, "a tuple"); }},
    {Kind::device, 1, 2, make_device},
    {Kind::encode, 1, 2, bytes_of_text},
    {Kind::bytearray, 0, 2, make_bytearray},
    {Kind::set, 0, 1, make_set},
    {Kind::complex, 2, 2,
     [](const Args& a) -> Value { return static_cast<const Complex*>(a.heap().make(Complex{a.number(0), a.number(1)})); }},
    {Kind::parameter, 1, 2, [](const Args& a) -> Value { return a.tensor(0); }},
    {Kind::rebuild_parameter, 3, 3, [](const Args& a) -> Value { return a.tensor(0); }},
    {Kind::rebuild_parameter_with_state, 4, 4, [](const Args& a) -> Value { return a.tensor(0); }},
    {Kind::rebuild_tensor, 4, 4, [](const Args& a) -> Value { return a.heap().make(dense(a)); }},
    {Kind::rebuild_tensor_v2, 6, 7, [](const Args& a) -> Value { return a.heap().make(dense(a)); }},
    {Kind::rebuild_tensor_v3, 7, 8, [](const Args& a) -> Value { return a.heap().make(dense(a, &a.type(6))); }},
    {Kind::rebuild_quantized, 7, 7,
     [](const Args& a) -> Value {
       TensorRecord out = dense(a);
       if (!out.type->is_quantized) a.place().fail(fmt::format("a quantized tensor of {}", out.type->name));
       out.quantizer = a.heap().make(quantizer_of(a.inner(4), out.sizes));
       return a.heap().make(std::move(out));
     }},
    {Kind::rebuild_sparse, 2, 2, [](const Args& a) -> Value { return a.heap().make(sparse(a)); }},
    {Kind::rebuild_meta, 4, 4, [](const Args& a) -> Value { return a.heap().make(without_elements("meta", a.type(0), a.sizes(1), a)); }},
    {Kind::rebuild_nested, 4, 4,
     [](const Args& a) -> Value { return a.heap().make(without_elements("nested", *a.tensor(0)->type, {}, a)); }},
    {Kind::rebuild_wrapper, 8, 8,
     [](const Args& a) -> Value { return a.heap().make(without_elements("wrapper", a.type(1), a.sizes(2), a)); }},
    {Kind::rebuild_from_cpu, 4, 4, from_cpu},
    {Kind::rebuild_from_numpy, 4, 4, [](const Args& a) -> Value { a.refuse(0, "an array of NumPy, which is not read"); }},
});

}  // namespace

Value call_global(const Global& callee, const Tuple& args, Heap& heap, const Place& place) {
  const Global* what = &callee;
  const Tuple* with = &args;
  // (function, class, arguments, state): the function's result, of a class that does not matter here.
  constexpr int most_classes = 16;
  for (int classes = 0; what->kind == Kind::rebuild_from_type; ++classes) {
    if (classes == most_classes) place.fail(fmt::format("more than {} classes around a tensor", most_classes));
    const Args outer(with->items, heap, place);
    if (outer.size() != 4) place.fail(fmt::format("{} arguments of {}, expects 4", outer.size(), what->name));
    what = outer.get<const Global*>(0, "a name");
    with = outer.get<const Tuple*>(2, "a tuple");
  }
  const auto* call = std::ranges::find(calls, what->kind, &Call::kind);
  if (call == calls.end()) place.fail(fmt::format("{} is not to be called", what->name));
  const size_t count = with->items.size();
  if (count < call->least || count > call->most) {
    const std::string range = call->least == call->most ? fmt::format("{}", call->least) : fmt::format("{} to {}", call->least, call->most);
    place.fail(fmt::format("{} arguments of {}, expects {}", count, what->name, range));
  }
  const Place of{place.file, what->name, place.at};
  return call->run(Args(with->items, heap, of));
}

Value new_object(const Global& of, const Tuple& args, Heap& heap, const Place& place) {
  if (of.kind != Kind::tensor_class) return call_global(of, args, heap, place);
  if (!args.items.empty()) place.fail(fmt::format("a new {} with arguments is not read", of.name));
  return heap.make(TensorRecord{.type = of.type ? of.type : &scalar_type("float32"), .layout = "empty", .at = place.at});
}

void set_state(const Value& object, const Value& state, Heap& heap, const Place& place) {
  if (std::holds_alternative<Dict*>(object) && std::holds_alternative<Dict*>(state)) return;
  TensorRecord* const* tensor = std::get_if<TensorRecord*>(&object);
  const Tuple* const* parts = std::get_if<const Tuple*>(&state);
  if (!tensor || !parts || (*parts)->items.size() != 4 || (*tensor)->layout != "empty")
    place.fail(fmt::format("{} is not given the state {}", kind_of(object), kind_of(state)));
  **tensor = dense(Args((*parts)->items, heap, place));
}

const Storage* storage_of(const Value& id, Heap& heap, const Place& place) {
  const Tuple* const* parts = std::get_if<const Tuple*>(&id);
  if (!parts) place.fail(fmt::format("a persistent id is {}, expects a tuple", kind_of(id)));
  const Args args((*parts)->items, heap, place);
  if (args.size() == 0 || args.text(0) != "storage") place.fail("a persistent id that is not of a storage");
  if (args.size() != 5 && args.size() != 6) place.fail(fmt::format("a persistent id of {} values, expects 5 or 6", args.size()));
  const Global* of = args.get<const Global*>(1, "a class of storages");
  if (of->kind != Kind::storage_class || of->name == "torch.storage.TypedStorage")
    place.fail(fmt::format("{} is no class of storages", of->name));
  const auto key_of = [&](const Args& from, size_t i) {
    const int64_t* number = std::get_if<int64_t>(&from.at(i));
    return number ? heap.text(fmt::format("{}", *number)) : from.text_value(i);
  };
  Storage out{.type = of->type ? of->type : &scalar_type("uint8"), .key = key_of(args, 2), .count = args.count(4), .at = place.at};
  if (out.count > INT64_MAX / out.type->bytes) place.fail(fmt::format("a storage of {} elements", out.count));
  if (args.size() == 6 && !std::holds_alternative<std::monostate>(args.at(5))) {
    const Args view = args.inner(5);
    if (view.size() != 3) place.fail(fmt::format("a view of a storage has {} values, expects 3", view.size()));
    out.view = Storage::View{key_of(view, 0), view.count(1), view.count(2)};
    if (out.view->offset > out.count || out.view->count > out.count - out.view->offset)
      place.fail(fmt::format("a view of the elements {} to {} of {}", out.view->offset, out.view->count, out.count));
  }
  return heap.make(out);
}

}  // namespace tinygrad::frontend::torch

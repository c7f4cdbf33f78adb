// Files of tensors, and loading them into objects.
#include <nanobind/stl/map.h>

#include <tinygrad/checkpoint.h>
#include <tinygrad/formats.h>

#include "common.h"

namespace tinygrad::python {

namespace {

using namespace nn::state;

std::string path_of(nb::handle x) {
  return cast_to<std::string>(nb::hasattr(x, "__fspath__") ? nb::object(x.attr("__fspath__")()) : nb::borrow(x), "file", "a path");
}

/// Calls `f` with the path or the tensor that `x` is.
template <class F>
auto read(nb::handle x, F f) {
  if (nb::isinstance<Tensor>(x)) {
    const Tensor& bytes = *nb::inst_ptr<Tensor>(x);
    const Interruptible interruptible;
    const Released released;
    return f(bytes);
  }
  const std::string path = path_of(x);
  const Interruptible interruptible;
  const Released released;
  return f(path);
}

std::map<std::string, std::string> metadata_of(const nb::dict& metadata) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : metadata) out[nb::cast<std::string>(nb::str(key))] = nb::cast<std::string>(nb::str(value));
  return out;
}

/// Tensors in the order of their file.
nb::dict in_order(const StateDict& tensors, const SafeMetadata& file) {
  nb::dict out;
  for (const std::string& name : file.names) out[nb::str(name.data(), name.size())] = tensors.at(name);
  return out;
}

std::vector<std::pair<std::string, Tensor>> in_order(const nb::dict& tensors) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const auto& [name, value] : tensors) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<Tensor>(value))
      throw nb::type_error(
          (std::string("safe_save: expects tensors by name, got ") + nb::repr(name).c_str() + ": " + nb::repr(value.type()).c_str())
              .c_str());
    out.emplace_back(nb::cast<std::string>(name), nb::cast<Tensor>(value));
  }
  return out;
}

nb::object to_python(const formats::MetadataValue& value);

/// Text that is no UTF-8 with marks in place of the bytes that are none.
nb::object to_python(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::object to_python(const formats::Metadata& metadata) {
  nb::dict out;
  for (const auto& [name, value] : metadata) out[to_python(name)] = to_python(value);
  return out;
}

nb::object to_python(const std::vector<formats::MetadataValue>& values) {
  nb::list out;
  for (const formats::MetadataValue& v : values) out.append(to_python(v));
  return out;
}

nb::object to_python(const formats::MetadataValue& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return nb::none();
        else if constexpr (std::is_arithmetic_v<T>)
          return nb::cast(v);
        else
          return to_python(v);
      },
      value.value);
}

/// A model file and all of its tensors, in its order.
struct ModelFile {
  std::unique_ptr<formats::Reader> reader;
  std::vector<Tensor> tensors;
};

/// Throws FormatError where it is of another format than this one or, for "torch", its variants.
ModelFile load_model_file(nb::handle file, const std::string& function, const std::string& format) {
  return read(file, [&](const auto& x) {
    ModelFile out{.reader = formats::open(x), .tensors = {}};
    if (!out.reader->format().starts_with(format))
      throw FormatError(function + ": expects a file of " + format + ", got one of " + std::string(out.reader->format()));
    for (size_t i = 0; i < out.reader->tensors().size(); ++i) out.tensors.push_back(out.reader->tensor(i));
    return out;
  });
}

nb::dict tensors_of(const ModelFile& file) {
  nb::dict out;
  for (size_t i = 0; i < file.tensors.size(); ++i) out[to_python(file.reader->tensors()[i].name)] = file.tensors[i];
  return out;
}

nb::dict entries_of(const SafeMetadata& file) {
  nb::dict out;
  if (!file.metadata.empty()) out["__metadata__"] = nb::cast(file.metadata);
  for (const std::string& name : file.names) {
    const SafeMetadata::Entry& entry = file.tensors.at(name);
    nb::dict e;
    e["dtype"] = entry.dtype == DType::void_ ? to_python(entry.type) : nb::cast(DTypeArg{entry.dtype});
    e["shape"] = to_tuple(entry.shape);
    e["data_offsets"] = nb::make_tuple(entry.begin, entry.end);
    out[nb::str(name.data(), name.size())] = e;
  }
  return out;
}

}  // namespace

void bind_state(nb::module_& m) {
  nb::class_<LoadReport::Mismatch>(m, "LoadMismatch", "A tensor whose shapes differ.")
      .def_ro("name", &LoadReport::Mismatch::name)
      .def_prop_ro("in_module", [](const LoadReport::Mismatch& x) { return to_tuple(x.in_module); })
      .def_prop_ro("in_state", [](const LoadReport::Mismatch& x) { return to_tuple(x.in_state); });
  nb::class_<LoadReport>(m, "LoadReport", "What load_state_dict did.")
      .def_ro("loaded", &LoadReport::loaded)
      .def_ro("missing", &LoadReport::missing)
      .def_ro("unexpected", &LoadReport::unexpected)
      .def_ro("mismatched", &LoadReport::mismatched)
      .def("__repr__", &LoadReport::to_string);
  m.def(
      "load_into",
      [](const StateDict& own, nb::dict state, bool strict, bool verbose, bool consume, bool realize) {
        NamedTensors module;
        module.tensors = own;
        StateDict given;
        for (const auto& [name, value] : state) {
          const auto key = cast_to<std::string>(name, "load_state_dict: a name in the state", "a string");
          if (!nb::isinstance<Tensor>(value))
            throw nb::type_error(("load_state_dict: " + key + ": expects a tensor, got " + nb::repr(value.type()).c_str()).c_str());
          given.emplace(key, nb::cast<Tensor>(value));
        }
        LoadReport report;
        {
          const Interruptible interruptible;
          const Released released;
          report = load_state_dict(module, given, {.strict = strict, .verbose = verbose, .consume = consume, .realize = realize});
        }
        for (nb::handle name : nb::list(state.keys()))
          if (!given.contains(nb::cast<std::string>(name))) nb::del(state[name]);
        return report;
      },
      "own"_a, "state_dict"_a, "strict"_a, "verbose"_a, "consume"_a, "realize"_a);
  m.def(
      "safe_load_metadata",
      [](nb::handle fn) {
        const SafeMetadata file = read(fn, [](const auto& x) { return safe_load_metadata(x); });
        return nb::make_tuple(nb::borrow(fn), file.data_start, entries_of(file));
      },
      "t"_a, "The file, where its data start, and its header.");
  m.def(
      "safe_load",
      [](nb::handle fn) {
        const Tensor bytes = nb::isinstance<Tensor>(fn) ? nb::cast<Tensor>(fn) : Tensor::from_file(path_of(fn));
        const auto [header, tensors] = [&] {
          const Interruptible interruptible;
          const Released released;
          return std::pair(safe_load_metadata(bytes), safe_load(bytes));
        }();
        return in_order(tensors, header);
      },
      "fn"_a, "The tensors of a safetensors file by name, in its order. They stay in the file: nothing but the header is read.");
  m.def(
      "safe_save",
      [](const nb::dict& given, nb::handle fn, const std::optional<nb::dict>& metadata) {
        const auto tensors = in_order(given);
        const std::string path = path_of(fn);
        const std::map<std::string, std::string> notes = metadata ? metadata_of(*metadata) : std::map<std::string, std::string>();
        const Interruptible interruptible;
        const Released released;
        safe_save(tensors, path, notes);
      },
      "tensors"_a, "fn"_a, "metadata"_a = nb::none(), "Writes a safetensors file.");
  m.def(
      "save_checkpoint",
      [](nb::handle folder, int64_t step, const StateDict& tensors, const nb::dict& metadata, int keep) {
        const std::string path = path_of(folder);
        const std::map<std::string, std::string> texts = metadata_of(metadata);
        const Interruptible interruptible;
        const Released released;
        save_checkpoint(path, step, tensors, texts, {.keep = keep});
      },
      "folder"_a, "step"_a, "tensors"_a, "metadata"_a, "keep"_a);
  m.def(
      "load_checkpoint",
      [](nb::handle folder) -> nb::object {
        const std::string path = path_of(folder);
        std::optional<Checkpoint> found;
        {
          const Interruptible interruptible;
          const Released released;
          found = load_checkpoint(path);
        }
        if (!found) return nb::none();
        return nb::make_tuple(found->step, nb::cast(found->tensors), nb::cast(found->metadata), found->path);
      },
      "folder"_a);
  m.def("zip_extract", [](nb::handle t) { return read(t, [](const auto& x) { return zip_extract(x); }); }, "t"_a);
  m.def("tar_extract", [](nb::handle t) { return read(t, [](const auto& x) { return tar_extract(x); }); }, "t"_a);
  m.def(
      "torch_load", [](nb::handle t) { return tensors_of(load_model_file(t, "torch_load", "torch")); }, "t"_a,
      "The tensors of a checkpoint of PyTorch by their paths in the object that was saved, as \"model.layer.weight\". Nothing in it is "
      "executed.");
  m.def(
      "gguf_load",
      [](nb::handle fn) {
        const ModelFile file = load_model_file(fn, "gguf_load", "gguf");
        return nb::make_tuple(to_python(file.reader->metadata()), tensors_of(file));
      },
      "fn"_a, "The metadata and the tensors of a GGUF file; those in blocks are dequantized to float32 when they are used.");
}

}  // namespace tinygrad::python

// Shapes, views and indices.
#include "common.h"

namespace tinygrad::python {

namespace {

std::pair<Extent, Extent> pair_of(nb::handle x, const char* function) {
  if (nb::isinstance<nb::sequence>(x) && nb::len(x) == 2) {
    const auto first = to_extent(nb::object(x[0])), second = to_extent(nb::object(x[1]));
    if (first && second) return {*first, *second};
  }
  throw nb::type_error((std::string(function) + ": expects pairs of integers, got " + nb::repr(x).c_str()).c_str());
}

Extent size_of(nb::handle x, const char* function) {
  if (const auto size = to_extent(x)) return *size;
  throw nb::type_error((std::string(function) + ": expects an integer, got " + nb::repr(x).c_str()).c_str());
}

void check_sequence(nb::handle x, const char* function) {
  if (!nb::isinstance<nb::sequence>(x))
    throw nb::type_error((std::string(function) + ": expects pairs of integers, one an axis, got " + nb::repr(x).c_str()).c_str());
}

/// ((before, after), ...) with None for an axis that stays, or flat numbers from the last axis on as PyTorch has them.
ExtentPairs padding_of(nb::handle x, int ndim) {
  ExtentPairs out;
  Sizes flat;
  check_sequence(x, "pad");
  if (to_ints(x, flat)) {
    if (flat.size() % 2)
      throw ValueError("pad: expects an even count of numbers, two an axis from the last one on; got " + std::to_string(flat.size()));
    if (flat.size() > size_t(ndim) * 2)
      throw ValueError("pad: " + std::to_string(flat.size() / 2) + " pairs for a tensor of " + std::to_string(ndim) + " axes");
    out.assign(size_t(ndim), {Extent(0), Extent(0)});
    for (size_t i = 0; i < flat.size() / 2; ++i) out[size_t(ndim) - 1 - i] = {flat[2 * i], flat[2 * i + 1]};
    return out;
  }
  for (nb::handle pair : nb::borrow<nb::sequence>(x))
    out.push_back(pair.is_none() ? std::pair(Extent(0), Extent(0)) : pair_of(pair, "pad"));
  return out;
}

ExtentPairs bounds_of(nb::handle x, const Extents& shape) {
  ExtentPairs out;
  check_sequence(x, "shrink");
  for (nb::handle pair : nb::borrow<nb::sequence>(x))
    out.push_back(pair.is_none() && out.size() < shape.size() ? std::pair(Extent(0), shape[out.size()]) : pair_of(pair, "shrink"));
  return out;
}

nb::tuple tuple_of(const std::vector<Tensor>& tensors) { return nb::tuple(nb::cast(tensors)); }

/// `f(2, 3)`, `f((2, 3))` or `f(shape=(2, 3))`; where `keeps`, None is the size that the tensor has.
void bind_shaped(TensorClass& tensor, const char* name, bool keeps, Tensor (*f)(const Tensor&, const Extents&)) {
  tensor.def(
      name,
      [=](const Tensor& t, const nb::args& args, nb::handle shape) {
        return f(t, to_extents_or_none(with_keyword(args, shape, name, "shape"), name,
                                       keeps ? std::optional(t.symbolic_shape()) : std::nullopt));
      },
      "args"_a, "shape"_a = nb::none());
}

void bind_shapes(TensorClass& tensor) {
  for (const char* name : {"reshape", "view"})
    bind_shaped(tensor, name, true, +[](const Tensor& t, const Extents& shape) { return t.reshape(shape); });
  bind_shaped(tensor, "expand", false, +[](const Tensor& t, const Extents& shape) { return t.expand(shape); });
  bind_shaped(tensor, "shrink_to", false, +[](const Tensor& t, const Extents& shape) { return t.shrink_to(shape); });
  tensor.def_prop_ro("shape", [](const Tensor& t) { return to_tuple(t.symbolic_shape()); })
      .def_prop_ro("ndim", &Tensor::ndim)
      .def_prop_ro("T", &Tensor::T)
      .def("numel", &Tensor::numel)
      .def_prop_ro("max_shape", [](const Tensor& t) { return to_tuple(t.max_shape()); })
      .def("max_numel", &Tensor::max_numel)
      .def(
          "size",
          [](const Tensor& t, std::optional<int> dim) -> nb::object {
            return dim ? nb::cast(t.size(*dim)) : nb::object(to_tuple(t.symbolic_shape()));
          },
          "dim"_a = nb::none())
      .def("__len__",
           [](const Tensor& t) {
             if (t.ndim() == 0) throw nb::type_error("len() of a tensor without axes");
             return t.size(0);
           })
      .def(
          "permute",
          [](const Tensor& t, const nb::args& args, nb::handle order) {
            return t.permute(to_axes(to_sizes(with_keyword(args, order, "permute", "order"), "permute")));
          },
          "args"_a, "order"_a = nb::none())
      .def(
          "flip",
          [](const Tensor& t, const nb::args& args, nb::handle axis) {
            return t.flip(to_axes(to_sizes(with_keyword(args, axis, "flip", "axis"), "flip")));
          },
          "args"_a, "axis"_a = nb::none())
      .def(
          "shrink", [](const Tensor& t, nb::handle bounds) { return t.shrink(bounds_of(bounds, t.symbolic_shape())); }, "arg"_a)
      .def(
          "pad",
          [](const Tensor& t, nb::handle padding, const std::string& mode, const Value& value) {
            const PadMode m = choose<PadMode>("pad: mode", mode,
                                              {{"constant", PadMode::constant},
                                               {"reflect", PadMode::reflect},
                                               {"replicate", PadMode::replicate},
                                               {"circular", PadMode::circular}});
            return t.pad(padding_of(padding, t.ndim()), value, m);
          },
          "padding"_a, "mode"_a = "constant", "value"_a = 0.0)
      .def(
          "pad_to",
          [](const Tensor& t, const nb::args& args, const Value& value, nb::handle shape) {
            return t.pad_to(to_extents_or_none(with_keyword(args, shape, "pad_to", "shape"), "pad_to"), value);
          },
          "args"_a, "value"_a = 0, "shape"_a = nb::none())
      .def("transpose", &Tensor::transpose, "dim0"_a = 1, "dim1"_a = 0)
      .def(
          "squeeze", [](const Tensor& t, std::optional<int> dim) { return dim ? t.squeeze(*dim) : t.squeeze(); }, "dim"_a = nb::none())
      .def("unsqueeze", &Tensor::unsqueeze, "dim"_a)
      .def("flatten", &Tensor::flatten, "start_dim"_a = 0, "end_dim"_a = -1)
      .def(
          "unflatten", [](const Tensor& t, int dim, const Ints& sizes) { return t.unflatten(dim, sizes.values); }, "dim"_a, "sizes"_a)
      .def(
          "rearrange",
          [](const Tensor& t, const std::string& formula, const nb::kwargs& sizes) {
            std::vector<std::pair<std::string, int64_t>> named;
            for (const auto& [name, size] : sizes) {
              const auto axis = nb::cast<std::string>(name);
              named.emplace_back(axis, cast_to<int64_t>(size, "rearrange: " + axis, "an integer"));
            }
            return t.rearrange(formula, named);
          },
          "formula"_a, "sizes"_a)
      .def(
          "repeat",
          [](const Tensor& t, const nb::args& args, nb::handle repeats) {
            return t.repeat(to_extents(with_keyword(args, repeats, "repeat", "repeats"), "repeat"));
          },
          "args"_a, "repeats"_a = nb::none())
      .def("repeat_interleave", &Tensor::repeat_interleave, "repeats"_a, "dim"_a = nb::none())
      .def(
          "roll",
          [](const Tensor& t, const Ints& shifts, const std::optional<Ints>& dims) {
            return t.roll(shifts.values, dims ? to_axes(dims->values) : std::vector<int>());
          },
          "shifts"_a, "dims"_a = nb::none())
      .def("unfold", &Tensor::unfold, "dim"_a, "size"_a, "step"_a)
      .def("diag", &Tensor::diag)
      .def("diagonal", &Tensor::diagonal, "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1)
      .def(
          "triu", [](const Tensor& t, nb::handle diagonal) { return t.triu(size_of(diagonal, "triu")); }, "diagonal"_a = 0)
      .def("tril", [](const Tensor& t, nb::handle diagonal) { return t.tril(size_of(diagonal, "tril")); }, "diagonal"_a = 0);
}

void bind_joins(TensorClass& tensor) {
  tensor
      .def(
          "split",
          [](const Tensor& t, nb::handle sizes, int dim) {
            Sizes list;
            int64_t one = 0;
            if (to_int(sizes, one)) return tuple_of(t.split(one, dim));
            if (to_ints(sizes, list)) return tuple_of(t.split(list, dim));
            throw nb::type_error((std::string("split: expects an integer or integers, got ") + nb::repr(sizes).c_str()).c_str());
          },
          "sizes"_a, "dim"_a = 0)
      .def("chunk", &Tensor::chunk, "chunks"_a, "dim"_a = 0)
      .def(
          "stack", [](nb::handle self, const nb::args& args, int dim) { return Tensor::stack(to_tensors(self, args, "stack"), dim); },
          "args"_a, "dim"_a = 0)
      .def(
          "cat", [](nb::handle self, const nb::args& args, int dim) { return Tensor::cat(to_tensors(self, args, "cat"), dim); }, "args"_a,
          "dim"_a = 0)
      .def(
          "meshgrid",
          [](nb::handle self, const nb::args& args, const std::string& indexing) {
            return tuple_of(Tensor::meshgrid(to_tensors(self, args, "meshgrid"),
                                             choose<bool>("meshgrid: indexing", indexing, {{"ij", false}, {"xy", true}})));
          },
          "args"_a, "indexing"_a = "ij");
}

void bind_lookups(TensorClass& tensor) {
  tensor.def(
            "gather", [](const Tensor& t, int dim, const Tensor& index) { return t.gather(dim, index); }, "dim"_a, "index"_a)
      .def(
          "scatter",
          [](const Tensor& t, int dim, const Tensor& index, const Value& src, const std::optional<std::string>& reduce) {
            if (!reduce) return t.scatter(dim, index, src);
            const ScatterMode mode =
                choose<ScatterMode>("scatter: reduce", *reduce, {{"add", ScatterMode::sum}, {"multiply", ScatterMode::prod}});
            const Operand& x = src;
            const Tensor* given = x.tensor();
            return t.scatter_reduce(
                dim, index, given ? *given : Tensor::full(index.symbolic_shape(), x, {.dtype = t.dtype(), .device = t.device()}), mode);
          },
          "dim"_a, "index"_a, "src"_a, "reduce"_a = nb::none())
      .def(
          "scatter_reduce",
          [](const Tensor& t, int dim, const Tensor& index, const Tensor& src, const std::string& reduce, bool include_self) {
            return t.scatter_reduce(dim, index, src,
                                    choose<ScatterMode>("scatter_reduce: reduce", reduce,
                                                        {{"sum", ScatterMode::sum},
                                                         {"prod", ScatterMode::prod},
                                                         {"mean", ScatterMode::mean},
                                                         {"amax", ScatterMode::amax},
                                                         {"amin", ScatterMode::amin}}),
                                    include_self);
          },
          "dim"_a, "index"_a, "src"_a, "reduce"_a, "include_self"_a = true)
      .def(
          "masked_select",
          [](const Tensor& t, const Tensor& mask, std::optional<int64_t> size, const Value& fill) {
            const Interruptible interruptible;
            const Released released;
            return t.masked_select(mask, size, fill);
          },
          "mask"_a, "size"_a = nb::none(), "fill_value"_a = 0)
      .def(
          "nonzero",
          [](const Tensor& t, std::optional<int64_t> size, const Value& fill) {
            const Interruptible interruptible;
            const Released released;
            return t.nonzero(size, fill);
          },
          "size"_a = nb::none(), "fill_value"_a = 0)
      .def("one_hot", &Tensor::one_hot, "num_classes"_a);
}

void bind_items(TensorClass& tensor) {
  tensor
      .def(
          "__getitem__",
          [](const Tensor& t, nb::handle indices) {
            const IndexArg index = to_indices(indices, t);
            const Interruptible interruptible;
            const Released released;  // masks are read back
            return t.get_item(index.indices);
          },
          "key"_a.none())
      .def(
          "__setitem__",
          [](Tensor& t, nb::handle indices, nb::handle value) {
            if (value.is_none()) throw nb::type_error("assignment: expects a tensor, an array or a number, got None");
            const IndexArg index = to_indices(indices, t);
            std::optional<Operand> number;
            const bool is_operand = to_operand(value, number);
            const Tensor other = is_operand ? Tensor() : to_tensor_like(value, t);
            const Interruptible interruptible;
            const Released released;
            t.set_item(index.indices, is_operand ? *number : Operand(other));
          },
          "key"_a.none(), "value"_a.none())
      .def("__delitem__", [](const Tensor&, nb::handle) { throw nb::type_error("a tensor's elements cannot be deleted"); })
      .def("__iter__", [](const Tensor& t) {
        if (t.ndim() == 0) throw nb::type_error("iteration over a tensor without axes");
        nb::list rows;
        for (int64_t i = 0; i < t.size(0); ++i) rows.append(t[i]);
        return nb::iter(rows);
      });
}

}  // namespace

void bind_views(TensorClass& tensor) {
  bind_shapes(tensor);
  bind_joins(tensor);
  bind_lookups(tensor);
  bind_items(tensor);
}

}  // namespace tinygrad::python

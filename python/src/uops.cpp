// UOp, for looking at graphs.
#include "common.h"

#include "shape/shape.h"
#include "uop/graph.h"
#include "uop/uop.h"

namespace tinygrad::python {

void bind_uops(nb::module_& m) {
  m.def("op_names", [] {
    nb::list out;
    for (int i = 0; i < op_count; ++i) out.append(std::string(name(Op(i))));
    return out;
  });
  nb::class_<UOp>(m, "UOp", "A node of a graph.")
      .def_prop_ro(
          "op", [](const UOp& u) { return std::string(name(u.op())); }, "Its operation's name, as in Ops.")
      .def_prop_ro("dtype", [](const UOp& u) { return DTypeArg{u.dtype()}; })
      .def_prop_ro("src", [](const UOp& u) { return nb::tuple(nb::cast(std::vector<UOp>(u.src().begin(), u.src().end()))); })
      .def(
          "toposort", [](const UOp& u) { return toposort(u); }, "All nodes below and itself, sources first.")
      .def(
          "__eq__", [](const UOp& a, const UOp& b) { return a == b; }, nb::is_operator())
      .def("__hash__", [](const UOp& u) { return Py_hash_t(u->hash >> 1); })
      .def("__repr__", [](const UOp& u) { return print_expr(u); })
      .def("graph", [](const UOp& u) { return print_graph(u); }, "The graph as text, a line a node.");
}

}  // namespace tinygrad::python

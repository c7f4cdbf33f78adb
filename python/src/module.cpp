// The module tinygrad_cpp._core.
#include <atomic>
#include <csignal>
#include <typeinfo>

#include <unistd.h>

#include <tinygrad/onnx.h>

#include "common.h"

#include "uop/uop.h"

namespace tinygrad::python {

namespace {

/// A class of errors that is both Error, so the RuntimeError that tinygrad and PyTorch mostly throw, and what else Python users catch.
template <class E>
void bind_error(nb::module_& m, const char* name, nb::handle root, PyObject* also) {
  nb::object bases = also ? nb::object(nb::make_tuple(root, nb::handle(also))) : nb::object(nb::make_tuple(root));
  const std::string full = std::string("tinygrad_cpp.") + name;
  static nb::handle type;  // one for each E, of the module
  const nb::object made = nb::steal(PyErr_NewException(full.c_str(), bases.ptr(), nullptr));
  m.attr(name) = made;
  type = made;
  nb::register_exception_translator([](const std::exception_ptr& e, void*) {
    try {
      std::rethrow_exception(e);
    } catch (const E& error) {
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

// Ctrl-C while the library computes.
std::atomic<bool> interrupted{false};
struct sigaction python_action;

/// What Python's handler raised, while the computation that it ends is on its way out. Of the main thread.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
} raised;

void on_interrupt(int signal) {
  interrupted = true;
  if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN) python_action.sa_handler(signal);  // tells Python
}

/// Only the main thread runs Python's signal handlers.
bool is_main_thread() { return getpid() == static_cast<pid_t>(gettid()); }

}  // namespace

void check_interrupted() {
  if (!interrupted.load(std::memory_order_relaxed) || !is_main_thread()) return;
  interrupted = false;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return;
  for (PyObject* old : {raised.type, raised.value, raised.trace}) Py_XDECREF(old);
  PyErr_Fetch(&raised.type, &raised.value, &raised.trace);
  throw Cancelled("interrupted by a signal");
}

Interruptible::Interruptible() : installed_(is_main_thread()) {
  if (!installed_) return;
  struct sigaction ours = {};
  ours.sa_handler = on_interrupt;
  sigemptyset(&ours.sa_mask);
  struct sigaction before;
  if (sigaction(SIGINT, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) || before.sa_handler == on_interrupt) {
    installed_ = false;
    return;
  }
  interrupted = false;
  python_action = before;
  sigaction(SIGINT, &ours, nullptr);
}

Interruptible::~Interruptible() {
  if (installed_) sigaction(SIGINT, &python_action, nullptr);
}

void bind_errors(nb::module_& m) {
  const nb::object root = nb::steal(PyErr_NewException("tinygrad_cpp.Error", PyExc_RuntimeError, nullptr));
  m.attr("Error") = root;
  bind_error<Error>(m, "LibraryError", root, nullptr);
  bind_error<ShapeError>(m, "ShapeError", root, PyExc_ValueError);
  bind_error<DTypeError>(m, "DTypeError", root, PyExc_TypeError);
  bind_error<DeviceError>(m, "DeviceError", root, nullptr);
  bind_error<CommError>(m, "CommError", root, PyExc_ConnectionError);
  bind_error<CompileError>(m, "CompileError", root, nullptr);
  bind_error<OutOfMemoryError>(m, "OutOfMemoryError", root, PyExc_MemoryError);
  bind_error<IndexError>(m, "IndexError", root, PyExc_IndexError);
  bind_error<ValueError>(m, "ValueError", root, PyExc_ValueError);
  bind_error<IoError>(m, "IoError", root, PyExc_OSError);
  bind_error<JitError>(m, "JitError", root, nullptr);
  bind_error<FormatError>(m, "FormatError", root, PyExc_ValueError);
  bind_error<onnx::UnsupportedError>(m, "UnsupportedError", root, PyExc_NotImplementedError);
  bind_error<InternalError>(m, "InternalError", root, nullptr);
  bind_error<Cancelled>(m, "Cancelled", root, nullptr);
  nb::register_exception_translator([](const std::exception_ptr& e, void*) {
    try {
      std::rethrow_exception(e);
    } catch (const Cancelled&) {
      if (!raised.type || !is_main_thread()) throw;
      PyErr_Restore(raised.type, raised.value, raised.trace);
      raised = {};
    }
  });
  nb::register_exception_translator([](const std::exception_ptr& e, void*) {
    try {
      std::rethrow_exception(e);
    } catch (const std::bad_cast&) {  // nanobind's, of a value that an argument holds
      PyErr_SetString(PyExc_TypeError, "an argument, or a value in it, is of a type that was not expected");
    }
  });
}

}  // namespace tinygrad::python

NB_MODULE(_core, m) {
  using namespace tinygrad::python;
  m.doc() = "The C++ library behind tinygrad_cpp.";
  m.attr("version") = TG_VERSION;
  bind_errors(m);
  bind_places();
  bind_dtypes(m);
  bind_devices(m);
  bind_mesh(m);
  bind_helpers(m);
  bind_uops(m);
  TensorClass tensor(m, "Tensor", nb::is_weak_referenceable(), "A lazy, differentiable array.");
  bind_creation(tensor);
  bind_values(tensor);
  bind_elementwise(tensor);
  bind_views(tensor);
  bind_reduce(tensor);
  bind_products(tensor);
  bind_graph(tensor);
  bind_nn(m);
  bind_optim(m);
  bind_state(m);
  bind_parallel(m);
  bind_data(m);
  bind_jit(m);
  bind_onnx(m);
  bind_aten(m);
  bind_dlpack(m);
  bind_graph_function(m);
  nb::set_leak_warnings(false);  // what jitted functions keep ends with the process
  tinygrad::set_interrupt_check(check_interrupted);
}

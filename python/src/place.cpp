// Which line of a Python program makes a tensor.
#include <unordered_map>
#include <utility>

#include <Python.h>
#include <dlfcn.h>
#include <frameobject.h>

#include "common.h"

#include "base/hash.h"
#include "tensor/origin.h"

namespace tinygrad::python {

using tensor::SourcePlace;

namespace {

thread_local const SourcePlace* noted = nullptr;

#if PY_VERSION_HEX >= 0x030B0000
int instruction_of(PyFrameObject* frame) { return PyFrame_GetLasti(frame); }
void locate(PyCodeObject* code, int instruction, PyFrameObject*, SourcePlace& out) {
  PyCode_Addr2Location(code, instruction, &out.line, &out.column, &out.end_line, &out.end_column);
  if (out.column < 0 || out.end_column < 0) out.column = out.end_column = 0;
}
#else
int instruction_of(PyFrameObject* frame) { return PyFrame_GetLineNumber(frame); }
void locate(PyCodeObject*, int, PyFrameObject* frame, SourcePlace& out) { out.line = out.end_line = PyFrame_GetLineNumber(frame); }
#endif

std::string text_of(PyObject* s) {
  const char* text = PyUnicode_AsUTF8(s);
  if (text) return text;
  PyErr_Clear();
  return "?";
}

/// The parts of programs that have made tensors. They, and their code, stay: an address means the same for as long as the process lives.
/// Under Python's lock, which nothing here lets go of.
class Places {
 public:
  struct Entry {
    bool is_library = false;  ///< of this package: who called it is meant
    SourcePlace place;
  };

  /// Null if there are too many: a program that makes code without end does not fill memory with it.
  const Entry* find(PyFrameObject* frame) {
    const auto code = nb::steal<nb::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const Key key{code.ptr(), instruction_of(frame)};
    const auto it = entries_.find(key);
    if (it != entries_.end()) return &it->second;
    if (entries_.size() >= most) return nullptr;
    auto* c = reinterpret_cast<PyCodeObject*>(code.ptr());
    Entry made;
    made.place.file = text_of(c->co_filename);
    made.place.function = text_of(c->co_name);
    made.is_library = made.place.file.starts_with(package_);
    locate(c, key.second, frame, made.place);
    Py_INCREF(code.ptr());
    return &entries_.emplace(key, std::move(made)).first->second;
  }

 private:
  using Key = std::pair<PyObject*, int>;
  struct Hash {
    size_t operator()(const Key& k) const { return hash_combine(uint64_t(uintptr_t(k.first)), uint64_t(k.second)); }
  };
  static constexpr size_t most = 1 << 16;

  static std::string folder_of_this() {
    Dl_info file;
    if (!dladdr(reinterpret_cast<const void*>(&text_of), &file) || !file.dli_fname) return "?";
    const std::string path = file.dli_fname;
    return path.substr(0, path.rfind('/') + 1);
  }

  const std::string package_ = folder_of_this();  ///< with a slash
  std::unordered_map<Key, Entry, Hash> entries_;
};

const SourcePlace* current_place() noexcept {
  if (!PyGILState_Check()) return noted;
  static auto* places = new Places;
  try {
    auto frame = nb::steal<nb::object>(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    while (frame.is_valid()) {
      auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
      const Places::Entry* entry = places->find(f);
      if (!entry) return nullptr;
      if (!entry->is_library) return &entry->place;
      frame = nb::steal<nb::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
    }
  } catch (...) {
    PyErr_Clear();
  }
  return nullptr;
}

}  // namespace

NotedPlace::NotedPlace() : before_(std::exchange(noted, current_place())) {}
NotedPlace::~NotedPlace() { noted = before_; }

void bind_places() { tensor::set_place_provider(current_place); }

}  // namespace tinygrad::python

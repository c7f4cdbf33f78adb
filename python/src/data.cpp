// Data sets, and batches of them decoded ahead.
#include <mutex>
#include <set>
#include <stdexcept>

#include "common.h"

namespace tinygrad::python {

namespace {

Example example_of(nb::handle x) {
  Example out;
  const auto add = [&](nb::handle array) {
    const Tensor t = make_tensor(array, "CPU", {});
    const Interruptible interruptible;
    const Released released;
    out.emplace_back(t);
  };
  if (nb::isinstance<nb::tuple>(x) || nb::isinstance<nb::list>(x)) {
    for (nb::handle array : nb::borrow<nb::sequence>(x)) add(array);
  } else {
    add(x);
  }
  return out;
}

/// Anything with a length and items, or tensors whose rows are the examples.
Dataset dataset_of(nb::handle x) {
  const bool is_tensor = nb::isinstance<Tensor>(x);
  if (is_tensor ||
      ((nb::isinstance<nb::tuple>(x) || nb::isinstance<nb::list>(x)) && nb::len(x) != 0 && nb::isinstance<Tensor>(nb::object(x[0])))) {
    const std::vector<Tensor> tensors =
        is_tensor ? std::vector{nb::cast<Tensor>(x)} : cast_to<std::vector<Tensor>>(x, "DataLoader", "tensors, all of them");
    const Interruptible interruptible;
    const Released released;
    return tensor_dataset(tensors);
  }
  return {.size = int64_t(nb::len(x)), .decode = [items = shared_object(nb::borrow(x))](const ExampleRequest& r) {
            const nb::gil_scoped_acquire gil;
            return example_of(nb::handle(static_cast<PyObject*>(items.get()))[nb::int_(r.index)]);
          }};
}

/// Arrays in a list are examples, one each; that is seldom what is meant where they differ.
bool is_list_of_arrays(nb::handle x) {
  if (!nb::isinstance<nb::tuple>(x) && !nb::isinstance<nb::list>(x)) return false;
  for (nb::handle item : nb::borrow<nb::sequence>(x))
    if (nb::isinstance<Tensor>(item) || !PyObject_HasAttrString(item.ptr(), "shape")) return false;
  return true;
}

/// Runs it; its errors say what to do where the data set is a list of arrays.
template <class F>
auto with_hint(bool of_arrays, F&& f) {
  constexpr const char* hint =
      "; each array of the list is an example here. Of arrays whose rows are the examples: DataLoader([Tensor(a), Tensor(b)])";
  try {
    return f();
  } catch (const ShapeError& e) {
    if (of_arrays) throw ShapeError(std::string(e.what()) + hint);
    throw;
  } catch (const DTypeError& e) {
    if (of_arrays) throw DTypeError(std::string(e.what()) + hint);
    throw;
  }
}

/// Threads of a loader may wait for Python's lock: it is not held while they end or are waited for. They end before the interpreter does,
/// which would take them down in the middle of C++.
class Loader {
 public:
  Loader(nb::handle dataset, const DataLoaderOptions& options) : of_arrays_(is_list_of_arrays(dataset)) {
    Dataset d = dataset_of(dataset);
    {
      const Released released;
      loader_ = std::make_unique<DataLoader>(std::move(d), options);
    }
    all().insert(this);
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() { stop(); }

  static void stop_all() {
    while (!all().empty()) (*all().begin())->stop();
  }

  size_t size() const { return loader().size(); }
  std::vector<int64_t> order(int64_t epoch) const { return loader().order(epoch); }
  /// The number of the loop over batches that begins.
  uint64_t begin() {
    const Interruptible interruptible;
    const Released released;
    const std::lock_guard lock(mutex_);
    next_ = with_hint(of_arrays_, [&] { return loader().begin(); });
    is_first_ = true;
    return ++loop_;
  }
  /// Threads that share a loop get each batch once.
  nb::tuple next(uint64_t loop) {
    const std::optional<Batch> batch = with_hint(of_arrays_, [&]() -> std::optional<Batch> {
      const Interruptible interruptible;
      const Released released;
      const std::lock_guard lock(mutex_);
      DataLoader& own = loader();
      if (loop != loop_) throw std::runtime_error("DataLoader: another loop over it has begun meanwhile; a loader has one at a time");
      if (!std::exchange(is_first_, false)) ++next_;
      return next_ == own.end() ? std::nullopt : std::optional(*next_);
    });
    if (!batch) throw nb::stop_iteration();
    return nb::tuple(nb::cast(*batch));
  }

 private:
  static std::set<Loader*>& all() {
    static std::set<Loader*> loaders;
    return loaders;
  }
  DataLoader& loader() const {
    if (!loader_) throw std::runtime_error("DataLoader: the interpreter is ending");
    return *loader_;
  }
  void stop() {
    all().erase(this);
    const Released released;
    const std::lock_guard lock(mutex_);
    loader_.reset();
  }

  std::mutex mutex_;  // never taken with Python's lock held, which decoders need
  const bool of_arrays_;
  std::unique_ptr<DataLoader> loader_;
  DataLoader::Iterator next_;
  bool is_first_ = true;
  uint64_t loop_ = 0;
};

/// The batches of one loop.
struct Loop {
  Loader& loader;
  const uint64_t number;
};

nb::tuple parts_of(const nn::datasets::LabelledImages& images) {
  return nb::make_tuple(images.x_train, images.y_train, images.x_test, images.y_test);
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::class_<Loop>(m, "DataLoaderLoop", "The batches of an epoch. Threads may share it: each batch goes to one of them.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", [](Loop& loop) { return loop.loader.next(loop.number); });
  nb::class_<Loader>(
      m, "DataLoader",
      "A range over the batches of an epoch, each a tuple of tensors; each loop is the next epoch. The data set has a length and\n"
      "items, which are arrays or tuples of arrays, or it is tensors whose rows are the examples. Threads decode batches ahead.")
      .def(
          "__init__",
          [](Loader* self, nb::handle dataset, int64_t batch_size, bool shuffle, uint64_t seed, bool drop_last, int threads,
             int64_t prefetch, int64_t first_epoch, const std::optional<std::string>& device) {
            new (self) Loader(dataset, {.batch_size = batch_size,
                                        .shuffle = shuffle,
                                        .seed = seed,
                                        .drop_last = drop_last,
                                        .threads = threads,
                                        .prefetch = prefetch,
                                        .first_epoch = first_epoch,
                                        .device = device.value_or("")});
          },
          "dataset"_a, "batch_size"_a = 1, "shuffle"_a = false, "seed"_a = 0, "drop_last"_a = false, "threads"_a = -1, "prefetch"_a = 4,
          "first_epoch"_a = 0, "device"_a = nb::none())
      .def("__len__", &Loader::size)
      .def("order", &Loader::order, "epoch"_a, "The examples of an epoch in their order.")
      .def("__iter__", [](Loader& loader) { return Loop{loader, loader.begin()}; }, nb::keep_alive<0, 1>());
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Loader::stop_all));
  m.def(
      "mnist",
      [](const std::optional<std::string>& device, bool fashion, const std::optional<std::string>& folder) {
        return parts_of([&] {
          const Interruptible interruptible;
          const Released released;
          return nn::datasets::mnist({.device = device.value_or(""), .fashion = fashion, .folder = folder.value_or("")});
        }());
      },
      "device"_a = nb::none(), "fashion"_a = false, "folder"_a = nb::none());
  m.def(
      "cifar",
      [](const std::optional<std::string>& device, const std::optional<std::string>& folder) {
        return parts_of([&] {
          const Interruptible interruptible;
          const Released released;
          return nn::datasets::cifar({.device = device.value_or(""), .folder = folder.value_or("")});
        }());
      },
      "device"_a = nb::none(), "folder"_a = nb::none());
}

}  // namespace tinygrad::python

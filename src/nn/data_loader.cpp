#include <tinygrad/data_loader.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/hash.h"

namespace tinygrad {

namespace {

constexpr int most_default_threads = 8;

size_t bytes_of(DType dtype, std::span<const int64_t> shape) {
  int64_t count = static_cast<int64_t>(itemsize(dtype));
  for (int64_t s : shape)
    if (s < 0 || __builtin_mul_overflow(count, s, &count))
      throw ShapeError(fmt::format("HostArray: no array of {} has the shape ({})", repr(dtype), fmt::join(shape, ", ")));
  return static_cast<size_t>(count);
}

uint64_t epoch_seed(uint64_t seed, int64_t epoch) { return hash_combine(seed, static_cast<uint64_t>(epoch)); }

/// Numbers that are the same on every machine, unlike those of the standard's distributions (Steele, Lea and Flood, 2014).
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  /// Below `bound`; from 64 bits, so that no number of examples makes a difference that could be seen.
  uint64_t below(uint64_t bound) { return static_cast<uint64_t>((Wide{next()} * bound) >> 64); }

 private:
  __extension__ using Wide = unsigned __int128;
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

void check_same(const Example& first, const Example& example, int64_t index) {
  if (example.size() != first.size())
    throw ShapeError(fmt::format("DataLoader: example {} has {} arrays, others in its batch have {}", index, example.size(), first.size()));
  for (size_t i = 0; i < first.size(); ++i) {
    if (example[i].dtype != first[i].dtype)
      throw DTypeError(fmt::format("DataLoader: array {} of example {} is {}, others in its batch are {}", i, index, repr(example[i].dtype),
                                   repr(first[i].dtype)));
    if (example[i].shape != first[i].shape)
      throw ShapeError(fmt::format("DataLoader: array {} of example {} is ({}), others in its batch are ({})", i, index,
                                   fmt::join(example[i].shape, ", "), fmt::join(first[i].shape, ", ")));
  }
}

/// Arrays for `count` of such examples.
std::vector<HostArray> room_for(const Example& example, int64_t count) {
  std::vector<HostArray> out(example.size());
  for (size_t k = 0; k < out.size(); ++k) {
    out[k].dtype = example[k].dtype;
    out[k].shape = {count};
    out[k].shape.insert(out[k].shape.end(), example[k].shape.begin(), example[k].shape.end());
    out[k].bytes.resize(example[k].bytes.size() * static_cast<size_t>(count));
  }
  return out;
}

}  // namespace

HostArray::HostArray(std::span<const std::byte> data, DType type, const Sizes& sizes)
    : bytes(data.begin(), data.end()), dtype(type), shape(sizes) {
  if (bytes.size() != bytes_of(type, sizes))
    throw ShapeError(fmt::format("HostArray: {} bytes of {} cannot have the shape ({})", bytes.size(), repr(type), fmt::join(sizes, ", ")));
}

HostArray::HostArray(const Tensor& tensor) : bytes(tensor.data()), dtype(tensor.dtype()), shape(tensor.shape()) {}

Dataset tensor_dataset(std::span<const Tensor> tensors) {
  if (tensors.empty()) throw ValueError("tensor_dataset: got no tensors");
  const auto columns = std::make_shared<std::vector<HostArray>>();
  int64_t rows = 0;
  for (const Tensor& t : tensors) {
    if (t.ndim() == 0) throw ShapeError(fmt::format("tensor_dataset: got {}, expects an axis of examples", t.to_string()));
    if (columns->empty()) rows = t.size(0);
    if (t.size(0) != rows)
      throw ShapeError(fmt::format("tensor_dataset: {} has {} rows, the first tensor {}", t.to_string(), t.size(0), rows));
    columns->emplace_back(t);
  }
  return {rows, [columns](const ExampleRequest& r) {
            Example out;
            for (const HostArray& c : *columns) {
              const Sizes shape(c.shape.begin() + 1, c.shape.end());
              const size_t bytes = bytes_of(c.dtype, shape);
              out.emplace_back(std::span(c.bytes).subspan(static_cast<size_t>(r.index) * bytes, bytes), c.dtype, shape);
            }
            return out;
          }};
}

/// The batches of one epoch: threads take their numbers in order and leave what they made, or its error, for the consumer.
struct DataLoader::Epoch {
  struct Slot {
    Batch batch;
    std::exception_ptr error;
  };

  Epoch(const State& loader, int64_t epoch_number);
  ~Epoch() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    room.notify_all();
    for (std::thread& t : threads) t.join();
  }

  void work();
  Slot make(int64_t number) const;
  Batch decode(int64_t number) const;
  /// The next batch becomes the current one; rethrows what its decoder threw, and is finished then.
  void advance();

  const State& state;
  const int64_t number;
  const uint64_t seed;
  const std::vector<int64_t> order;
  const int64_t batches;

  const std::shared_ptr<const Options> options = Context::current();  // for tensors that a decoder computes
  std::mutex mutex;
  std::condition_variable room, ready;
  int64_t taken = 0, consumed = 0;  // batches that a thread has begun, that the consumer has asked for
  std::map<int64_t, Slot> made;
  std::atomic<bool> stopped = false;
  std::vector<std::thread> threads;

  // The consumer's.
  Batch current;
  bool finished = false;
};

struct DataLoader::State {
  Dataset dataset;
  DataLoaderOptions options;
  int64_t next_epoch = 0;
  std::unique_ptr<Epoch> epoch;

  int64_t batches() const {
    const int64_t b = options.batch_size;
    return options.drop_last ? dataset.size / b : dataset.size / b + (dataset.size % b != 0);
  }
  std::vector<int64_t> order(int64_t epoch_number) const {
    std::vector<int64_t> out(static_cast<size_t>(dataset.size));
    std::iota(out.begin(), out.end(), 0);
    SplitMix random(epoch_seed(options.seed, epoch_number));
    for (size_t i = out.size(); options.shuffle && i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
    return out;
  }
};

DataLoader::Epoch::Epoch(const State& loader, int64_t epoch_number)
    : state(loader),
      number(epoch_number),
      seed(epoch_seed(loader.options.seed, epoch_number)),
      order(loader.order(epoch_number)),
      batches(loader.batches()) {
  const int64_t count = std::min<int64_t>(loader.options.threads, batches);
  try {
    for (int64_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    if (threads.empty()) throw OutOfMemoryError(fmt::format("DataLoader: cannot start a thread: {}", e.what()));
  }
}

void DataLoader::Epoch::work() {
  const Context as_consumer(options);
  std::unique_lock lock(mutex);
  for (;;) {
    room.wait(lock, [&] { return stopped || taken == batches || taken - consumed < state.options.prefetch; });
    if (stopped || taken == batches) return;
    const int64_t mine = taken++;
    lock.unlock();
    Slot slot = make(mine);
    lock.lock();
    if (slot.error) taken = batches;  // nobody will ask for what comes after
    made.emplace(mine, std::move(slot));
    ready.notify_one();
  }
}

DataLoader::Epoch::Slot DataLoader::Epoch::make(int64_t batch) const {
  try {
    return {decode(batch), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

Batch DataLoader::Epoch::decode(int64_t batch) const {
  const int64_t begin = batch * state.options.batch_size;
  const int64_t count = std::min(state.options.batch_size, static_cast<int64_t>(order.size()) - begin);
  std::vector<HostArray> stacked;
  Example first;
  for (int64_t i = 0; i < count; ++i) {
    if (stopped) return {};  // which nobody will see
    check_interrupt();
    const int64_t index = order[static_cast<size_t>(begin + i)];
    const Example example = state.dataset.decode({index, number, hash_combine(seed, static_cast<uint64_t>(index))});
    if (i == 0) {
      first = example;
      stacked = room_for(example, count);
    }
    check_same(first, example, index);
    for (size_t k = 0; k < example.size(); ++k)
      if (const size_t bytes = example[k].bytes.size(); bytes != 0)
        std::memcpy(stacked[k].bytes.data() + static_cast<size_t>(i) * bytes, example[k].bytes.data(), bytes);
  }
  Batch out;
  for (const HostArray& a : stacked) out.push_back(Tensor(a.bytes, a.dtype, a.shape, {.device = state.options.device}).is_param_(false));
  return out;
}

void DataLoader::Epoch::advance() {
  current.clear();
  if (finished || consumed == batches) {
    finished = true;
    return;
  }
  Slot slot;
  if (threads.empty()) {
    slot = make(consumed++);
  } else {
    std::unique_lock lock(mutex);
    while (!ready.wait_for(lock, std::chrono::milliseconds(10), [&] { return made.contains(consumed); })) check_interrupt();
    slot = std::move(made.extract(consumed).mapped());
    ++consumed;
    lock.unlock();
    room.notify_all();
  }
  current = std::move(slot.batch);
  finished = slot.error != nullptr;
  if (slot.error) std::rethrow_exception(slot.error);
}

DataLoader::DataLoader(Dataset dataset, const DataLoaderOptions& options) : state_(std::make_unique<State>()) {
  const auto require = [](bool fits, std::string_view what, int64_t got, std::string_view expected) {
    if (!fits) throw ValueError(fmt::format("DataLoader: {} is {}, expects {}", what, got, expected));
  };
  require(dataset.size >= 0, "the size of the data set", dataset.size, "at least 0");
  if (!dataset.decode) throw ValueError("DataLoader: the data set has no decoder");
  require(options.batch_size >= 1, "batch_size", options.batch_size, "at least 1");
  require(options.prefetch >= 1, "prefetch", options.prefetch, "at least 1");
  require(options.threads >= -1 && options.threads <= 4096, "threads", options.threads, "-1 to 4096");
  require(options.first_epoch >= 0, "first_epoch", options.first_epoch, "at least 0");
  state_->dataset = std::move(dataset);
  state_->options = options;
  state_->options.device = options.device.empty() ? default_device() : canonical_device(options.device);
  if (options.threads < 0)
    state_->options.threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_default_threads);
  state_->next_epoch = options.first_epoch;
}

DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

size_t DataLoader::size() const { return static_cast<size_t>(state_->batches()); }
int64_t DataLoader::next_epoch() const { return state_->next_epoch; }
std::vector<int64_t> DataLoader::order(int64_t epoch) const { return state_->order(epoch); }

DataLoader::Iterator DataLoader::begin() {
  state_->epoch.reset();
  state_->epoch = std::make_unique<Epoch>(*state_, state_->next_epoch++);
  state_->epoch->advance();
  return Iterator(this);
}

const Batch& DataLoader::current() const { return state_->epoch->current; }
bool DataLoader::finished() const { return !state_->epoch || state_->epoch->finished; }
void DataLoader::advance() {
  if (state_->epoch) state_->epoch->advance();
}

}  // namespace tinygrad

#pragma once
/// DataLoader: batches of a data set, decoded by threads ahead of their use.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad {

/// Elements in host memory, row-major: what a decoder gives.
struct TINYGRAD_EXPORT HostArray {
  std::vector<std::byte> bytes;
  DType dtype = DType::void_;
  Sizes shape;

  HostArray() = default;
  /// One number, of shape ().
  template <Element E>
  HostArray(E value) : HostArray(std::span<const E>(&value, 1), {}) {}
  template <Element E>
    requires(!std::is_same_v<E, bool>)
  HostArray(const std::vector<E>& values) : HostArray(std::span<const E>(values), {static_cast<int64_t>(values.size())}) {}
  template <Element E>
    requires(!std::is_same_v<E, bool>)
  HostArray(const std::vector<E>& values, const Sizes& sizes) : HostArray(std::span<const E>(values), sizes) {}
  template <Element E>
  HostArray(std::span<const E> values, const Sizes& sizes) : HostArray(std::as_bytes(values), dtype_of<E>(), sizes) {}
  /// Throws ShapeError for another number of bytes than the shape has.
  HostArray(std::span<const std::byte> data, DType type, const Sizes& sizes);
  /// Computes the tensor.
  HostArray(const Tensor& tensor);
};

/// The arrays of one example: picture and label, say. All examples of a batch have the same dtypes and shapes.
using Example = std::vector<HostArray>;

/// Which example a decoder is to give.
struct ExampleRequest {
  int64_t index = 0;
  int64_t epoch = 0;
  uint64_t seed = 0;  ///< for what is drawn by chance: a function of the loader's seed, the epoch and the index, not of the threads
};

/// Gives example `index`, the same whenever it is asked; called by several threads at once.
using Decoder = std::function<Example(const ExampleRequest&)>;

/// Something with examples 0 to size - 1.
struct Dataset {
  int64_t size = 0;
  Decoder decode;
};

/// Example i is row i of each tensor; the tensors are read into host memory. Throws ShapeError unless they have as many rows.
TINYGRAD_EXPORT Dataset tensor_dataset(std::span<const Tensor> tensors);
inline Dataset tensor_dataset(std::initializer_list<Tensor> tensors) {
  return tensor_dataset(std::span<const Tensor>(tensors.begin(), tensors.size()));
}

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;     ///< another order for each epoch
  uint64_t seed = 0;        ///< of the orders, and of what decoders draw
  bool drop_last = false;   ///< leave out a last batch that is smaller
  int threads = -1;         ///< that decode; 0: the thread that asks, when it asks; -1: one for each core, at most 8
  int64_t prefetch = 4;     ///< batches that are decoded ahead
  int64_t first_epoch = 0;  ///< for going on with training
  std::string device = {};  ///< of the batches
};

/// One tensor for each array of an example, with a new first axis.
using Batch = std::vector<Tensor>;

/// A range over the batches of an epoch; each begin() starts the next epoch and ends the one before.
///
///     DataLoader loader({.size = n, .decode = [&](const ExampleRequest& r) -> Example { return {pixels(r.index), label(r.index)}; }},
///                       {.batch_size = 64, .shuffle = true});
///     for (int epoch = 0; epoch < 10; ++epoch)
///       for (const Batch& batch : tqdm(loader)) train(batch[0], batch[1]);
///
/// What comes, and in which order, is a function of the seed and the epoch, not of the number of threads. What a decoder throws arrives
/// where its batch would have, and ends the epoch. Destroying the loader ends its threads after the examples they are at. Used by one
/// thread.
class TINYGRAD_EXPORT DataLoader {
 public:
  /// Throws ValueError for options or a data set that make no sense.
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {});
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  /// Batches in an epoch.
  size_t size() const;
  /// The epoch that the next begin() starts.
  int64_t next_epoch() const;
  /// The examples of an epoch in their order.
  std::vector<int64_t> order(int64_t epoch) const;

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = const Batch*;
    using reference = const Batch&;

    Iterator() = default;
    const Batch& operator*() const { return loader_->current(); }
    const Batch* operator->() const { return &loader_->current(); }
    Iterator& operator++() {
      loader_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    /// At the end, or not.
    bool operator==(const Iterator& other) const { return at_end() == other.at_end(); }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader) {}
    bool at_end() const { return !loader_ || loader_->finished(); }
    DataLoader* loader_ = nullptr;
  };
  Iterator begin();
  Iterator end() { return {}; }

 private:
  struct Epoch;
  struct State;
  const Batch& current() const;
  bool finished() const;
  void advance();

  std::unique_ptr<State> state_;
};

}  // namespace tinygrad

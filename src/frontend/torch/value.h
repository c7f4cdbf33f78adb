#pragma once
/// What a pickle of PyTorch holds: plain values, containers, names, storages and tensors.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include <tinygrad/variable.h>

#include "frontend/torch/scalar_type.h"

namespace tinygrad::frontend::torch {

struct Text;
struct LongInteger;
struct Bytes;
struct Complex;
struct Global;
struct List;
struct Tuple;
struct Set;
class Dict;
struct Storage;
struct TensorRecord;

/// A value, small: what is not lies in the Heap that made it, and may be in several places, and in itself. The first alternative is None.
using Value = std::variant<std::monostate, bool, int64_t, double, const Text*, const LongInteger*, const Bytes*, const Complex*,
                           const Global*, List*, const Tuple*, Set*, Dict*, const Storage*, TensorRecord*>;

/// "a list", for messages.
std::string_view kind_of(const Value& value);
/// A list, a set or a dict, which is no key of another dict.
bool is_mutable(const Value& value);

/// A field of a file, and what to say of it.
struct Place {
  std::string_view file, field;
  uint64_t at = 0;  ///< byte of the file
  /// Throws FormatError.
  [[noreturn]] void fail(std::string_view why) const { throw FormatError(fmt::format("{}: {} at byte {}: {}", file, field, at, why)); }
};

struct Text {
  std::string text;
};
/// An integer of more than 64 bits, and of the upper half of unsigned ones.
struct LongInteger {
  std::string digits;  ///< decimal, with a sign if it is negative
};
struct Bytes {
  std::string bytes;
};
struct Complex {
  double real = 0, imaginary = 0;
};
struct List {
  std::vector<Value> items;
};
struct Tuple {
  std::vector<Value> items;
};
struct Set {
  std::vector<Value> items;
};

/// Entries in the order in which their keys came first.
class Dict {
 public:
  /// Keys must not be lists, sets and dicts. Tuples are equal only to themselves.
  void set(const Value& key, const Value& value);
  /// Nothing where the text is no key.
  std::optional<Value> find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<Value, size_t> places_;
};

/// Memory that tensors share.
struct Storage {
  struct View {
    const Text* key;
    int64_t offset, count;  ///< in elements
  };
  const ScalarType* type = nullptr;
  const Text* key = nullptr;
  int64_t count = 0;  ///< elements
  /// The part of it that is meant; only old files have it.
  std::optional<View> view = {};
  uint64_t at = 0;  ///< byte of the file that names it

  int64_t bytes() const { return count * type->bytes; }
};

/// How the integers of a quantized tensor become numbers: (integer - zero point) * scale.
struct Quantizer {
  double scale = 1;
  int64_t zero_point = 0;
  std::optional<int64_t> axis = {};  ///< a scale and a zero point for each place of this axis, of the following:
  const TensorRecord *scales = nullptr, *zero_points = nullptr;
  std::vector<double> scale_list = {}, zero_point_list = {};  ///< where they are no tensors
};

struct TensorRecord {
  const ScalarType* type = nullptr;
  const Storage* storage = nullptr;  ///< null where no elements are in the file
  int64_t offset = 0;                ///< in elements, as strides are
  Sizes sizes = {}, strides = {};
  const Quantizer* quantizer = nullptr;
  /// "sparse", "meta", ... of a tensor whose elements do not lie in a storage.
  std::string_view layout = {};
  uint64_t at = 0;  ///< byte of the file that makes it
};

/// What values are made in; it must live as long as they do. It is let go without recursion, whatever they hold.
class Heap {
 public:
  template <class T>
  T* make(T value) {
    return &std::get<std::deque<T>>(all_).emplace_back(std::move(value));
  }
  /// Equal texts are one, so that keys are compared by their place.
  const Text* text(std::string_view text);

  const std::deque<Storage>& storages() const { return std::get<std::deque<Storage>>(all_); }

  /// A call copies `count` elements or bytes of what it is given: more of all together than the bytes that are read, as what is given a
  /// thousand times makes, are refused.
  void copies(size_t count, const Place& place);
  void allow_copies(uint64_t count) { copies_left_ += count; }

 private:
  uint64_t copies_left_ = 0;
  std::tuple<std::deque<LongInteger>, std::deque<Bytes>, std::deque<Complex>, std::deque<List>, std::deque<Tuple>, std::deque<Set>,
             std::deque<Dict>, std::deque<Storage>, std::deque<TensorRecord>, std::deque<Quantizer>>
      all_;
  std::deque<Text> texts_;
  std::unordered_map<std::string_view, const Text*> text_of_;
};

}  // namespace tinygrad::frontend::torch

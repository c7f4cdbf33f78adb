#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include <tinygrad/tensor.h>

namespace tinygrad::apps {

/// The elements of a realized tensor as float64, read in place where the host can.
class Values {
 public:
  explicit Values(const Tensor& tensor);
  double operator[](int64_t i) const {
    switch (dtype_) {
      case DType::uint8: return as<uint8_t>(i);
      case DType::int8: return as<int8_t>(i);
      case DType::int32: return as<int32_t>(i);
      default: return as<float>(i);
    }
  }
  int64_t size() const { return size_; }

 private:
  template <class T>
  double as(int64_t i) const {
    return double(reinterpret_cast<const T*>(bytes_.get())[i]);
  }
  std::shared_ptr<const std::byte> bytes_;
  DType dtype_;
  int64_t size_;
};

}  // namespace tinygrad::apps

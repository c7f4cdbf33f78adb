#pragma once
/// A program on memory of a device, filled with numbers that are safe in any place of the test programs; the evaluator gets the same.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.h"
#include "device/buffer.h"
#include "device/device.h"
#include "spec/evaluate.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {

class OnMemory {
 public:
  OnMemory(const UOp& program, Symbol device) {
    std::mt19937 random(3);
    NodeMap<UOp> placed;
    for (const UOp& u : toposort(program)) {
      if (!u.is(Op::BUFFER)) continue;
      const int64_t size = u.arg_as<BufferArg>().size;
      const BufferPtr memory = Buffer::make(Device::get(device.str()), size, u.dtype());
      const UOp b = buffer(u.dtype(), {.id = next_buffer_id(), .size = size, .device = device, .resource = memory});
      spec::Array data = some_data(u.dtype(), size, random);
      buffer_of(b).copyin(data.bytes);
      inputs_.set(b, std::move(data));
      buffers_.push_back(b);
      placed[u] = b;
    }
    graph = substitute(program, placed);
  }

  /// Expects that all memory holds what the evaluator leaves there.
  void compare_with_evaluator() {
    spec::evaluate(std::vector<UOp>{graph}, inputs_, {.exact = true});
    for (size_t n = 0; n < buffers_.size(); ++n) {
      const spec::Array& want = inputs_.at(buffers_[n]);
      spec::Array got = spec::Array::zeros(buffers_[n].dtype(), want.shape);
      buffer_of(buffers_[n]).copyout(got.bytes);
      double scale = 1;
      for (size_t i = 0; i < want.size(); ++i) scale = std::max(scale, std::abs(want[i].as_double()));
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i].as_double(), want[i].as_double(), 1e-3 * scale) << "element " << i << " of buffer " << n;
    }
  }

  UOp graph;

 private:
  /// Positive floats, small integers as indices, any bits for random keys.
  static spec::Array some_data(DType dtype, int64_t size, std::mt19937& random) {
    std::vector<double> values(size_t(size), 0.0);
    for (double& v : values) {
      const double u = double(random()) / 4294967296.0;
      v = is_float(dtype) ? 0.25 + u / 2 : dtype == DType::uint32 ? std::floor(u * 4294967296.0) : std::floor(u * 10);
    }
    return spec::Array::of(dtype, values);
  }

  spec::EvalInputs inputs_;
  std::vector<UOp> buffers_;
};

}  // namespace tinygrad::test

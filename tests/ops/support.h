#pragma once
/// Values in, values out: tensors on evaluator memory, results as doubles.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/operand.h"
#include "spec/evaluate.h"
#include "support/message_of.h"
#include "uop/build.h"

namespace tinygrad::ops {

using Values = std::vector<double>;

class OpsTest : public ::testing::Test {
 protected:
  /// A tensor on memory that holds these values.
  UOp tensor(std::initializer_list<int64_t> shape, const Values& values, DType dtype = DType::float64) {
    const UOp memory = buffer(dtype, BufferArg{.id = ++buffers_, .size = int64_t(values.size())});
    inputs_.set(memory, spec::Array::of(dtype, values));
    return tinygrad::reshape(memory, make_shape(shape));
  }
  /// 0, 1, 2, ...
  UOp counting(std::initializer_list<int64_t> shape, DType dtype = DType::float64) {
    Values values(size_t(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), 0.0);
    return tensor(shape, values, dtype);
  }
  /// Seeded numbers from [low, high).
  Values numbers(size_t count, double low = -1, double high = 1) {
    std::uniform_real_distribution<double> uniform(low, high);
    Values out(count);
    for (double& v : out) v = uniform(generator_);
    return out;
  }
  UOp random(std::initializer_list<int64_t> shape, double low = -1, double high = 1) {
    return tensor(shape, numbers(size_t(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())), low, high));
  }

  spec::Array evaluated(const UOp& u) { return spec::evaluate(u, inputs_); }
  Values values(const UOp& u) {
    const spec::Array a = evaluated(u);
    Values out;
    for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i].as_double());
    return out;
  }
  void set(const UOp& tensor, const Values& values) {
    const UOp& memory = tensor.is(Op::BUFFER) ? tensor : tensor.src(0);
    inputs_.set(memory, spec::Array::of(memory.dtype(), values));
  }

  void expect_values(const UOp& u, const Values& want, double tolerance = 1e-12) {
    const Values got = values(u);
    ASSERT_EQ(got.size(), want.size()) << to_string(shape_of(u));
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(got[i])) << "element " << i << ": " << got[i];
      else if (std::isinf(want[i]))
        EXPECT_EQ(got[i], want[i]) << "element " << i;
      else
        EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
    }
  }
  void expect_shape(const UOp& u, const std::string& shape) { EXPECT_EQ(to_string(shape_of(u)), shape); }

 private:
  uint64_t buffers_ = 0;
  spec::EvalInputs inputs_;
  std::mt19937_64 generator_{7};
};

using test::message_of;

inline const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace tinygrad::ops

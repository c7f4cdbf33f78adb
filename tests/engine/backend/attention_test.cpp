// Attention where a row is masked as a whole, where masks are infinite or only very negative, and where scores are infinite or NaN: what is
// carried along with the running maximum gives what the passes after one another would have given.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/options.h"
#include "device/buffer.h"
#include "engine/run.h"
#include "runtime/every_device.h"
#include "spec/evaluate.h"
#include "support/program_parts.h"

namespace tinygrad::engine {
namespace {

using namespace test_programs;

constexpr int64_t rows = 8, keys = 40, features = 24;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double least = std::numeric_limits<float>::lowest();

/// What is added to the score of a query and a key.
double mask_of(int64_t row, int64_t key) {
  switch (row) {
    case 0: return -inf;
    case 1: return key < 30 ? -inf : 0;
    case 2: return key % 3 ? 0 : -inf;
    case 3: return least;
    case 4: return key < 5 ? least : 0;
    case 5: return key == 7 ? inf : 0;
    case 6: return key == 9 ? nan : 0;
    default: return key > 2 ? 90.0 * double(key) : -90.0;
  }
}

class Attention : public test::EveryDevice {
 protected:
  UOp memory(const Shape& shape, const std::vector<double>& values) {
    const int64_t size = numel(shape).value();
    const BufferPtr resource = Buffer::make(device(), size, DType::float32);
    const UOp b = buffer(DType::float32, {.id = next_buffer_id(), .size = size, .device = device().name(), .resource = resource});
    spec::Array data = spec::Array::of(DType::float32, values.empty() ? std::vector<double>(size_t(size)) : values);
    resource->copyin(data.bytes);
    inputs_.set(b, std::move(data));
    return ops::reshape(b, shape);
  }
  UOp some(const Shape& shape, int64_t step) {
    std::vector<double> values;
    for (int64_t i = 0; i < numel(shape).value(); ++i) values.push_back(double(i * step % 17) / 8 - 1);
    return memory(shape, values);
  }

  spec::EvalInputs inputs_;
};

TEST_P(Attention, WithInfiniteMasksAndScores) {
  std::vector<double> masks;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < keys; ++k) masks.push_back(mask_of(r, k));
  const UOp scores = add(matmul(some({rows, 16}, 5), ops::transpose(some({keys, 16}, 7))), memory({rows, keys}, masks));
  const UOp result = memory({rows, features}, {}), sums = memory({rows, 1}, {});
  const UOp weights = ops::exp(sub(scores, ops::max(scores, 1, true)));
  const UOp graph = sink(UOps{store(result, matmul(softmax(scores), some({keys, features}, 3))), store(sums, sum(weights, 1, true))});
  run_schedule(schedule::make_schedule(graph, target_of), current_options());
  spec::evaluate(std::vector<UOp>{graph}, inputs_, {.exact = true});
  for (const UOp& out : {result, sums}) {
    const UOp& b = out.src(0);
    const spec::Array& want = inputs_.at(b);
    spec::Array got = spec::Array::zeros(b.dtype(), want.shape);
    buffer_of(b).copyout(got.bytes);
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(i);
      const double w = want[i].as_double(), g = got[i].as_double();
      if (std::isnan(w))
        EXPECT_TRUE(std::isnan(g)) << g;
      else
        EXPECT_NEAR(g, w, 1e-4 * std::max(1.0, std::abs(w)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, Attention, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

}  // namespace
}  // namespace tinygrad::engine

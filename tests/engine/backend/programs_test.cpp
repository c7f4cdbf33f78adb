// Every program of support/programs.h gives on a device what the evaluator gives.
#include "support/programs.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <random>

#include <tinygrad/context.h>

#include "base/options.h"
#include "device/buffer.h"
#include "engine/run.h"
#include "runtime/backends.h"
#include "spec/evaluate.h"
#include "uop/graph.h"

namespace tinygrad::engine {
namespace {

/// Numbers that are safe in any place of the programs: positive floats, small integers as indices, any bits for random keys.
spec::Array some_data(DType dtype, int64_t size, std::mt19937& random) {
  std::vector<double> values(size_t(size), 0.0);
  for (double& v : values) {
    const double u = double(random()) / 4294967296.0;
    v = is_float(dtype) ? 0.25 + u / 2 : dtype == DType::uint32 ? std::floor(u * 4294967296.0) : std::floor(u * 10);
  }
  return spec::Array::of(dtype, values);
}

class Programs : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  static void SetUpTestSuite() { runtime::install_backends(); }

  /// The graph on memory of a device, filled; the evaluator gets the same.
  UOp on_memory(const UOp& graph, Symbol device) {
    std::mt19937 random(3);
    NodeMap<UOp> placed;
    for (const UOp& u : toposort(graph)) {
      if (!u.is(Op::BUFFER)) continue;
      const int64_t size = u.arg_as<BufferArg>().size;
      const BufferPtr memory = Buffer::make(runtime::open_device(device.str()), size, u.dtype());
      const UOp b = buffer(u.dtype(), {.id = next_buffer_id(), .size = size, .device = device, .resource = memory});
      spec::Array data = some_data(u.dtype(), size, random);
      buffer_of(b).copyin(data.bytes);
      inputs_.set(b, std::move(data));
      buffers_.push_back(b);
      placed[u] = b;
    }
    return substitute(graph, placed);
  }

  spec::EvalInputs inputs_;
  std::vector<UOp> buffers_;
};

TEST_P(Programs, GiveWhatTheEvaluatorGives) {
  const auto& [choice, number] = GetParam();
  const Context chosen{{.dev = choice}};
  const Symbol device = runtime::default_device_name();
  test_programs::device() = device;
  const UOp graph = on_memory(sink(test_programs::all()[number].build()), device);
  run_schedule(schedule::make_schedule(graph, target_of), current_options());
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

INSTANTIATE_TEST_SUITE_P(Engine, Programs,
                         testing::Combine(testing::Values("CPU:LLVM", "CPU:CLANG", "INTERP"),
                                          testing::Range(size_t(0), test_programs::all().size())),
                         [](const auto& test) {
                           std::string name;
                           for (char c : std::string(std::get<0>(test.param)) + "_" +
                                             std::string(test_programs::all()[std::get<1>(test.param)].name))
                             name += std::isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tinygrad::engine

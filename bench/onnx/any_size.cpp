// A model at several sizes, captured for any size beside a capture for each alone, in turns: seconds of the processor a call, least of
// several. any_size MODEL SIZES... where SIZES are numbers for the names of axes in the order of their first use: "1,48".
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <tinygrad/onnx.h>
#include <tinygrad/tinygrad.h>

using namespace tinygrad;

namespace {

constexpr int rounds = 15;

/// The shape with these numbers for its names.
Sizes sized(const onnx::ValueInfo& input, const std::vector<int64_t>& numbers, std::vector<std::string>& names) {
  Sizes out;
  for (const onnx::Dimension& d : input.shape) {
    if (d.size > 0) {
      out.push_back(d.size);
      continue;
    }
    auto found = std::find(names.begin(), names.end(), d.name);
    if (found == names.end()) found = names.insert(found, d.name);
    const auto place = size_t(found - names.begin());
    if (place >= numbers.size()) throw ValueError("no number for the size '" + d.name + "'");
    out.push_back(numbers[place]);
  }
  return out;
}

onnx::Values inputs_of(const onnx::Model& m, const std::string& text) {
  std::vector<int64_t> numbers;
  for (const char* at = text.c_str(); *at;) {
    char* end = nullptr;
    numbers.push_back(std::strtoll(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
    if (end == at && *end) throw ValueError("sizes such as 1,48: " + text);
  }
  std::vector<std::string> names;
  onnx::Values out;
  for (const onnx::ValueInfo& input : m.inputs()) {
    const Sizes shape = sized(input, numbers, names);
    const DType dtype = onnx::dtype_of(input.element_type);
    Tensor t = Tensor::ones(shape, {.dtype = dtype});  // a mask
    if (is_float(dtype)) t = Tensor::rand(shape, {.dtype = dtype});
    if (input.index_bound > 0) t = Tensor::randint(shape, 0, input.index_bound, {.dtype = dtype});
    out.emplace(input.name, onnx::Value(t.contiguous().realize(), input.element_type));
  }
  return out;
}

/// Both give the same but for rounding.
void compare(const onnx::Values& a, const onnx::Values& b, const std::string& sizes) {
  for (const auto& [name, value] : a) {
    const std::vector<double> x = value.tensor().cast(DType::float32).tolist<double>(),
                              y = b.at(name).tensor().cast(DType::float32).tolist<double>();
    double difference = value.shape() == b.at(name).shape() ? 0 : 1e9, greatest = 1;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      difference = std::max(difference, std::fabs(x[i] - y[i]));
      greatest = std::max(greatest, std::fabs(y[i]));
    }
    if (!(difference <= 1e-3 * greatest))
      throw ValueError("at " + sizes + " the output " + name + " differs by " + std::to_string(difference));
  }
}

double seconds_of(const onnx::Model& m, const onnx::Values& inputs) {
  const std::clock_t begin = std::clock();
  m.run(inputs);
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "any_size MODEL SIZES...\n"), 1;
  const onnx::Model any = onnx::load(argv[1]), each = onnx::load(argv[1], {.each_size = true});
  std::printf("| sizes | any size | each size | ratio | first call, any size | walk and capture for this size |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (int i = 2; i < argc; ++i) {
    const onnx::Values inputs = inputs_of(any, argv[i]);
    const double first = seconds_of(any, inputs), walk = seconds_of(each, inputs) + seconds_of(each, inputs);
    compare(any.run(inputs), each.run(inputs), argv[i]);
    double of_any = 1e9, of_each = 1e9;
    for (int k = 0; k < rounds; ++k) {
      of_any = std::min(of_any, seconds_of(any, inputs));
      of_each = std::min(of_each, seconds_of(each, inputs));
    }
    std::printf("| %s | %.2f ms | %.2f ms | %.2f | %.0f ms | %.0f ms |\n", argv[i], of_any * 1e3, of_each * 1e3, of_any / of_each,
                first * 1e3, walk * 1e3);
  }
}

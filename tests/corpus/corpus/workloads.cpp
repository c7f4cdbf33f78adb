#include "corpus/workloads.h"

#include <fmt/format.h>
#include <tinygrad/tinygrad.h>

#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

Tensor memory(const Extents& shape, DType dtype) { return Tensor::empty(shape, {.dtype = dtype}); }

/// A stack of convolutions as detectors have them, with a split, a join and an upsampling.
std::vector<Tensor> detector(DType d) {
  const auto conv = [&](const Tensor& x, int64_t from, int64_t to, int64_t size, int64_t stride) {
    const Tensor y = x.conv2d(memory({to, from, size, size}, d), memory({to}, d), {.stride = {stride}, .padding = {size / 2}});
    return y.silu();
  };
  const Tensor image = memory({1, 3, 320, 320}, d);
  const Tensor a = conv(conv(image, 3, 16, 3, 2), 16, 32, 3, 2), half = conv(a, 32, 16, 1, 1);
  const Tensor joined = Tensor::cat({half, conv(half, 16, 16, 3, 1)}, 1), b = conv(joined, 32, 64, 3, 2), c = conv(b, 64, 64, 3, 2);
  const Tensor pooled = c.max_pool2d({.kernel_size = {5}, .stride = {1}, .padding = {2}});
  const Tensor up = pooled.repeat_interleave(2, 2).repeat_interleave(2, 3);
  return {conv(Tensor::cat({up, b}, 1), 128, 64, 1, 1), conv(c, 64, 85, 1, 1).sigmoid()};
}

/// Layers with weights and activations of 8 bits and sums of 32.
std::vector<Tensor> quantized() {
  std::vector<Tensor> out;
  for (const DType a : {DType::int8, DType::uint8})
    for (const auto& [m, n, k] :
         {std::tuple(128, 768, 768), std::tuple(128, 3072, 768), std::tuple(64, 1000, 2048), std::tuple(1, 768, 3072)}) {
      const Tensor x = memory({m, k}, a), w = memory({n, k}, DType::int8), scale = memory({n}, DType::float32);
      const Tensor sum = x.matmul(w.transpose(), DType::int32);
      out.push_back(sum);
      out.push_back((sum.cast(DType::float32) * scale).relu().clip(0.0, 127.0).cast(a));
    }
  return out;
}

/// Products, rows and conversions in one dtype.
std::vector<Tensor> pieces(DType d) {
  std::vector<Tensor> out;
  for (const int64_t n : {64, 256, 1024}) {
    const Tensor x = memory({n, n}, d), y = memory({n, n}, d);
    for (const Tensor& t : {x.matmul(y), x.matmul(y.transpose()).relu(), x.softmax(), x.layernorm(), (x * y + x).gelu(), x.max({0}),
                            x.cumsum(1), x.argmax(1), x.cast(DType::float32).sum(), x.transpose().contiguous(), x.cast(DType::int32)})
      out.push_back(t);
  }
  return out;
}

/// Large trainings have many kernels, which differ little from dtype to dtype.
std::vector<std::string> dtypes_of(std::string_view model) {
  if (model == "resnet50-train") return {"float32"};
  if (model == "gpt2-2-train") return {"float32", "float16"};
  return {"float32", "float16", "bfloat16"};
}

}  // namespace

const std::vector<Corpus>& corpus() {
  static const auto& all = *[] {
    auto* list = new std::vector<Corpus>;
    for (const std::string& model : apps::model_names())
      for (const std::string& d : dtypes_of(model)) list->push_back({model + " " + d, d, [model] { return apps::make_workload(model); }});
    for (const DType d : {DType::float32, DType::float16, DType::bfloat16})
      list->push_back({fmt::format("detector {}", repr(d).substr(7)), "float32", [d] { return apps::Workload{detector(d)}; }});
    list->push_back({"quantized", "float32", [] { return apps::Workload{quantized()}; }});
    for (const DType d : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2})
      list->push_back({fmt::format("pieces {}", repr(d).substr(7)), "float32", [d] { return apps::Workload{pieces(d)}; }});
    list->push_back({.name = "pieces with TF32",
                     .default_float = "float32",
                     .make = [] { return apps::Workload{pieces(DType::float32)}; },
                     .allow_tf32 = true});
    *list = sampled(std::move(*list));
    return list;
  }();
  return all;
}

}  // namespace tinygrad::test

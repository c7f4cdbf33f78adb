// Operators that draw random numbers.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// Of the random numbers of floats.
void check_type(const Call& c, ElementType type) {
  if (!is_float(dtype_of(type))) c.fail(fmt::format("random numbers of {}", name(type)));
}

Results normal(const Call& c, const Sizes& shape, ElementType type) {
  check_type(c, type);
  const Tensor x = Tensor::randn(shape) * c.attribute("scale", 1.0) + c.attribute("mean", 0.0);
  return results(x.cast(dtype_of(type)));
}
Results uniform(const Call& c, const Sizes& shape, ElementType type) {
  check_type(c, type);
  const double low = c.attribute("low", 0.0), high = c.attribute("high", 1.0);
  return results((Tensor::rand(shape) * (high - low) + low).cast(dtype_of(type)));
}

Results random_normal(Call& c) { return normal(c, c.required_integers("shape"), c.type_attribute("dtype", ElementType::float32)); }
Results random_uniform(Call& c) { return uniform(c, c.required_integers("shape"), c.type_attribute("dtype", ElementType::float32)); }
ElementType type_like(const Call& c) { return c.type_attribute("dtype", is_float_type(c.type(0)) ? c.type(0) : ElementType::float32); }
Results random_normal_like(Call& c) { return normal(c, c.shape(0), type_like(c)); }
Results random_uniform_like(Call& c) { return uniform(c, c.shape(0), type_like(c)); }
Results bernoulli(Call& c) {
  const Tensor drawn = Tensor::rand(c.shape(0));
  return results((drawn < c.tensor(0).cast(DType::float32)).cast(dtype_of(c.type_attribute("dtype", c.type(0)))));
}
Results multinomial(Call& c) {
  const int64_t count = c.attribute_within("sample_size", 1, 1, int64_t{1} << 24);
  const Tensor drawn = c.tensor(0).cast(DType::float32).softmax(-1).multinomial(count, true);
  return results(drawn.cast(dtype_of(c.type_attribute("dtype", ElementType::int32))));
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "Bernoulli", 15, bernoulli},         {onnx_domain, "Multinomial", 7, multinomial},
    {onnx_domain, "RandomNormal", 1, random_normal},   {onnx_domain, "RandomNormalLike", 1, random_normal_like},
    {onnx_domain, "RandomUniform", 1, random_uniform}, {onnx_domain, "RandomUniformLike", 1, random_uniform_like},
};

}  // namespace

std::span<const OperatorRow> random_operators() { return rows; }

}  // namespace tinygrad::onnx

// OpenBLAS or oneDNN as a peer of bench/kernels: products of matrices. The operands lie as ours do, so packing is in the timed part.
#include <cblas.h>
#include <dnnl.hpp>

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "serve.h"

using bench::Json;

namespace {

struct Sizes {
  int64_t batch, m, n, k;
};

Sizes sizes_of(const Json& c) {
  const std::vector<int64_t> size = c.at("size");
  if (c.at("kernel") == "matvec") return {1, size[0], 1, size[1]};
  if (c.at("kernel") != "matmul") throw std::runtime_error("has no " + c.at("kernel").get<std::string>());
  return {c.value("batch", int64_t{1}), size[0], size[1], size[2]};
}

std::shared_ptr<std::vector<float>> random_floats(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(count));
  for (float& v : *values) v = normal(random);
  return values;
}

bench::Prepared prepare_openblas(const Json& c) {
  const Sizes s = sizes_of(c);
  if (c.value("dtype", "float32") != "float32") throw std::runtime_error("float32 only");
  const auto a = random_floats(s.batch * s.m * s.k), b = random_floats(s.batch * s.k * s.n), out = random_floats(s.batch * s.m * s.n);
  const auto m = blasint(s.m), n = blasint(s.n), k = blasint(s.k);
  if (n == 1) return {[=] { cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, 1, a->data(), k, b->data(), 1, 0, out->data(), 1); }};
  return {[=] {
    for (int64_t i = 0; i < s.batch; ++i)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a->data() + i * s.m * s.k, k, b->data() + i * s.k * s.n, n, 0,
                  out->data() + i * s.m * s.n, n);
  }};
}

struct Types {
  dnnl::memory::data_type a, b, out;
};

Types types_of(const std::string& dtype) {
  using Type = dnnl::memory::data_type;
  if (dtype == "float32") return {Type::f32, Type::f32, Type::f32};
  if (dtype == "bfloat16") return {Type::bf16, Type::bf16, Type::bf16};
  if (dtype == "float16") return {Type::f16, Type::f16, Type::f16};
  if (dtype == "int8") return {Type::u8, Type::s8, Type::s32};
  throw std::runtime_error("no dtype " + dtype);
}

/// Normal numbers, or small integers, in memory of any of the types.
void fill(dnnl::memory& memory, const dnnl::engine& engine, dnnl::stream& stream) {
  using Type = dnnl::memory::data_type;
  const dnnl::memory::desc desc = memory.get_desc();
  const Type type = desc.data_type();
  if (type == Type::u8 || type == Type::s8) {
    auto* bytes = static_cast<uint8_t*>(memory.get_data_handle());
    std::mt19937 random(1);
    for (size_t i = 0; i < desc.get_size(); ++i) bytes[i] = static_cast<uint8_t>(random());
    return;
  }
  dnnl::memory floats({desc.dims(), Type::f32, dnnl::memory::format_tag::abc}, engine);
  const auto values = random_floats(static_cast<int64_t>(floats.get_desc().get_size() / sizeof(float)));
  std::memcpy(floats.get_data_handle(), values->data(), floats.get_desc().get_size());
  dnnl::reorder(floats, memory).execute(stream, floats, memory);
  stream.wait();
}

/// Products of bytes are added in 16 bits where the processor has no instruction for more, and saturate: then the result is no peer's.
void check_sums(const Sizes& s, dnnl::memory& a, dnnl::memory& b, dnnl::memory& out) {
  const auto* left = static_cast<const uint8_t*>(a.get_data_handle());
  const auto* right = static_cast<const int8_t*>(b.get_data_handle());
  const auto* sums = static_cast<const int32_t*>(out.get_data_handle());
  for (int64_t n = 0; n < s.n; ++n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < s.k; ++k) sum += int64_t(left[k]) * right[k * s.n + n];
    if (sum != sums[n]) throw std::runtime_error("the result is wrong: its sums saturate");
  }
}

bench::Prepared prepare_onednn(const Json& c) {
  const Sizes s = sizes_of(c);
  const Types types = types_of(c.value("dtype", "float32"));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto desc = [](int64_t batch, int64_t rows, int64_t columns, dnnl::memory::data_type type) {
    return dnnl::memory::desc({batch, rows, columns}, type, dnnl::memory::format_tag::abc);
  };
  const auto a = desc(s.batch, s.m, s.k, types.a), b = desc(s.batch, s.k, s.n, types.b), out = desc(s.batch, s.m, s.n, types.out);
  const dnnl::matmul::primitive_desc how(dnnl::matmul::desc(a, b, out), engine);
  dnnl::memory a_memory(a, engine), b_memory(b, engine), out_memory(out, engine);
  fill(a_memory, engine, stream);
  fill(b_memory, engine, stream);
  const auto call = [=, product = dnnl::matmul(how)]() mutable {
    product.execute(stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, out_memory}});
    stream.wait();
  };
  if (types.a == dnnl::memory::data_type::u8) {
    auto once = call;
    once();
    check_sums(s, a_memory, b_memory, out_memory);
  }
  return {call, {{"implementation", how.impl_info_str()}}};
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

/// "OpenBLAS 0.3.21 NO_LAPACKE ..." and the kernels it chose.
std::string openblas_version() {
  const std::string config = openblas_get_config();
  const size_t name = config.find(' ');
  return config.substr(name + 1, config.find(' ', name + 1) - name - 1) + " " + openblas_get_corename();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "onednn") == 0) return bench::serve(onednn_version(), prepare_onednn);
  return bench::serve(openblas_version(), prepare_openblas);
}

// Results do not depend on the number of threads that compute them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

/// The bits of large reductions, products, a softmax and its gradient, in one number.
std::string fingerprint() {
  Tensor::manual_seed(5);
  const Tensor x = Tensor::randn({300, 700}).realize(), w = Tensor::randn({700, 200}).realize();
  const Tensor product = x.matmul(w), loss = product.log_softmax().mean();
  loss.backward();
  uint64_t hash = 0;
  for (const Tensor& t : {product, x.sum(0), x.sum(), x.softmax(), loss, w.grad()})
    for (float v : t.tolist()) {
      uint32_t bits;
      std::memcpy(&bits, &v, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3u;
    }
  return "bits " + std::to_string(hash);
}

TEST(CpuThreadsDeathTest, AnyNumberGivesTheSameBits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string expected = fingerprint();
  for (const char* threads : {"1", "2", "3", "7"}) {
    EXPECT_EXIT(
        {
          setenv("NUM_CPU_THREADS", threads, 1);
          std::fputs(fingerprint().c_str(), stderr);
          std::exit(0);
        },
        testing::ExitedWithCode(0), expected);
  }
}

}  // namespace
}  // namespace tinygrad

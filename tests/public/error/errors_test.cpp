// The mistakes users make and the failures machines have: each a typed error that says what to do, with nothing lost.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include <tinygrad/tinygrad.h>

#include "support/message_of.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

using test::message_of;
using Floats = std::vector<float>;

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(std::string_view(part)), std::string::npos) << message

TEST(Errors, Shapes) {
  const Tensor a = Tensor::ones({3, 4}), b = Tensor::ones({5, 6});
  const std::string product = message_of<ShapeError>([&] { a.matmul(b); });
  EXPECT_SAYS(product, "matmul");
  EXPECT_SAYS(product, "(3, 4)");
  EXPECT_SAYS(product, "(5, 6)");
  EXPECT_SAYS(message_of<ShapeError>([&] { a + b; }), "(5, 6)");
  EXPECT_SAYS(message_of<ShapeError>([&] { a.reshape({5, 5}); }), "(5, 5)");
  EXPECT_SAYS(message_of<ShapeError>([&] { Tensor(Floats{1, 2, 3}, {2, 2}); }), "(2, 2)");
  EXPECT_SAYS(message_of<ShapeError>([&] { Tensor({{1, 2}, {3}}); }), "one length");
  EXPECT_SAYS(message_of<ShapeError>([&] { Tensor::cat({a, b}); }), "cat");
  EXPECT_SAYS(message_of<ShapeError>([&] { Tensor::zeros({2, -1}); }), "-1");
  EXPECT_SAYS(message_of<ShapeError>([&] { a.conv2d(Tensor::ones({1, 1, 3, 3})); }), "conv2d");
  Tensor c = Tensor::ones({2}).realize();
  EXPECT_SAYS(message_of<ShapeError>([&] { c.assign(a); }), "assign");
  EXPECT_EQ(c.tolist(), (Floats{1, 1}));
}

TEST(Errors, DTypes) {
  Tensor a({1.0, 2.0});
  EXPECT_SAYS(message_of<DTypeError>([&] { a.assign(Tensor({1, 2})); }), "cast");
  EXPECT_SAYS(message_of<DTypeError>([&] { a << 1; }), "dtypes.float32");
  EXPECT_SAYS(message_of<DTypeError>([&] { Tensor({1, 2}).sum().backward(); }), "float");
  EXPECT_EQ(a.tolist(), (Floats{1, 2}));
}

TEST(Errors, Devices) {
  const Tensor a({1.0, 2.0});
  const std::string message = message_of<DeviceError>([&] { a.to("GPUX"); });
  EXPECT_SAYS(message, "GPUX");
  EXPECT_SAYS(message, "CPU");  // says which there are
  EXPECT_SAYS(message_of<DeviceError>([&] { Tensor::zeros({2}, {.device = "cpu:x"}); }), "X");
  EXPECT_SAYS(message_of<DeviceError>([&] { (a + a.to("INTERP")).realize(); }), "INTERP");
  EXPECT_EQ(a.tolist(), (Floats{1, 2}));
}

TEST(Errors, AnUnknownDefaultDevice) {
  const Context context{{.dev = "TOASTER"}};
  EXPECT_SAYS(message_of<DeviceError>([] { Tensor({1.0}); }), "TOASTER");
}

TEST(Errors, NotAScalar) {
  const Tensor a({1.0, 2.0});
  EXPECT_SAYS(message_of<ShapeError>([&] { a.item(); }), "tolist");
  EXPECT_SAYS(message_of<ShapeError>([&] { (a * 2).backward(); }), "(2,)");
  EXPECT_FALSE(a.grad().defined());
}

TEST(Errors, Indices) {
  const Tensor a = Tensor::arange(6).reshape({2, 3});
  EXPECT_SAYS(message_of<IndexError>([&] { a[2]; }), "2");
  EXPECT_SAYS(message_of<IndexError>([&] { a[{0, -4}]; }), "-4");
  EXPECT_SAYS(message_of<IndexError>([&] { a[{0, 0, 0}]; }), "(2, 3)");
  EXPECT_SAYS(message_of<IndexError>([&] { a.sum(2); }), "2");
  EXPECT_SAYS(message_of<IndexError>([&] { a.size(5); }), "5");
  EXPECT_EQ((a[{-1, -1}].item<int>()), 5);
}

TEST(Errors, NoTensor) {
  const Tensor none;
  EXPECT_SAYS(message_of<ValueError>([&] { none + 1; }), "holds no tensor");
  EXPECT_EQ(none.to_string(), "<Tensor undefined>");
}

TEST(Errors, OptionsOutOfRange) { EXPECT_THROW(Context({.debug = 100}), ValueError); }

TEST(Errors, OutOfMemoryLosesNothing) {
  Tensor a = Tensor::rand({1 << 10}).realize(), b = Tensor::rand({1 << 10}).realize();
  const Tensor sum = a.reshape({1 << 10, 1}) + b;  // 4 MB
  const auto limit = GlobalCounters::mem_used.load() + (1 << 20);
  Tensor hog = Tensor::zeros({1 << 17}).clone();  // 512 KB
  {
    const Context little{{.memory_limit = limit}};
    hog.realize();
    const std::string message = message_of<OutOfMemoryError>([&] { sum.realize(); });
    EXPECT_SAYS(message, "4194304");
    a += 1;  // waits with the sum, which is to be computed first
    EXPECT_THROW(a.realize(), OutOfMemoryError);
  }
  hog = Tensor();
  const Floats as = (a - 1).tolist(), bs = b.tolist(), sums = sum.tolist();
  for (size_t i : {size_t{0}, size_t{1023}, size_t{1024 * 1023}, size_t{1024 * 1024 - 1}})
    EXPECT_NEAR(sums[i], as[i / 1024] + bs[i % 1024], 1e-6);
}

/// What another process does with these variables set; it must succeed and its standard error match.
#define EXPECT_PROCESS(setup, statement, pattern)   \
  do {                                              \
    GTEST_FLAG_SET(death_test_style, "threadsafe"); \
    EXPECT_EXIT(                                    \
        {                                           \
          setup;                                    \
          statement;                                \
          std::exit(0);                             \
        },                                          \
        testing::ExitedWithCode(0), pattern);       \
  } while (false)

void compute_something() {
  if (Tensor({1.0, 2.0}).sum().item() != 3) std::exit(1);
}

TEST(ErrorsDeathTest, MissingLlvm) {
  EXPECT_PROCESS(
      {
        setenv("LLVM_PATH", "/nonexistent/libLLVM.so", 1);
        setenv("CACHELEVEL", "0", 1);
      },
      {
        const Tensor a({1.0, 2.0});
        const Tensor b = a + 1;
        try {
          b.realize();
          std::exit(1);
        } catch (const CompileError& e) {
          std::fputs(e.what(), stderr);
        }
        if (a.tolist() != Floats{1, 2}) std::exit(2);
      },
      "/nonexistent/libLLVM.so");
}

TEST(ErrorsDeathTest, ACorruptCacheIsNoError) {
  static const test::TempFolder folder;  // each child has one, which goes when it exits
  const std::string path = folder.write("corrupt.db", "this is no database, however long it may be: " + std::string(5000, 'x'));
  EXPECT_PROCESS(
      {
        setenv("CACHEDB", path.c_str(), 1);
        setenv("DEBUG", "1", 1);
      },
      compute_something(), "cache");
}

TEST(ErrorsDeathTest, AReadOnlyCacheIsNoError) {
  EXPECT_PROCESS(
      {
        setenv("CACHEDB", "/proc/tinygrad/cache.db", 1);
        setenv("DEBUG", "1", 1);
      },
      compute_something(), "cache");
}

TEST(ErrorsDeathTest, ABadVariableIsNamed) {
  EXPECT_PROCESS(
      setenv("DEBUG", "much", 1),
      {
        try {
          Tensor({1.0}).realize();
          std::exit(1);
        } catch (const ValueError& e) {
          std::fputs(e.what(), stderr);
        }
      },
      "DEBUG");
}

TEST(Errors, ComputedIndicesAreLookedAtWithCheckOob) {
  const Tensor x = Tensor::arange(6).reshape({2, 3}).to_float(), bad = Tensor({0, 5}) + 0, labels = Tensor({1, 3}) + 0;
  EXPECT_EQ(x[bad].tolist(), (std::vector<float>{0, 1, 2, 0, 0, 0}));
  const Context check{{.check_oob = true}};
  EXPECT_THROW(x[bad], IndexError);
  EXPECT_THROW(x.gather(0, bad.reshape({2, 1})), IndexError);
  EXPECT_THROW(x.scatter(1, bad.reshape({2, 1}), 1), IndexError);
  EXPECT_THROW(x.sparse_categorical_crossentropy(labels), IndexError);
  EXPECT_THROW(x.cross_entropy(labels), IndexError);
  EXPECT_THROW(x.nll_loss(labels), IndexError);
  EXPECT_NO_THROW(x.nll_loss(labels, {}, {.ignore_index = 3}).item());
  EXPECT_EQ(x[Tensor({-1}) + 0].tolist(), (std::vector<float>{3, 4, 5}));
}

}  // namespace
}  // namespace tinygrad

// Errors that come when values are computed name what they come from.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "support/message_of.h"

namespace tinygrad {
namespace {

using test::message_of;

TEST(Origin, OutOfMemoryNamesTheOperationAndTheLargestTensors) {
  const Tensor small = Tensor::ones({10}, {.device = "CPU"}).contiguous().realize();
  const Tensor large = Tensor::rand({3000, 1000}, {.device = "CPU"}).realize();
  const Tensor out = small.reshape({10, 1}).matmul(small.reshape({1, 10})).exp();
  const std::string text = message_of<OutOfMemoryError>([&] {
    const Context limit{{.memory_limit = 1}};
    Tensor(out).realize();
  });
  EXPECT_NE(text.find("while computing exp: (10, 10) dtypes.float32 of (10, 10)"), text.npos) << text;
  EXPECT_NE(text.find("the largest: 11.4 MiB on CPU, rand: (3000, 1000) dtypes.float32"), text.npos) << text;
  EXPECT_NEAR(out.tolist()[99], std::exp(1), 1e-5);  // nothing is lost
}

// A device whose compiler refuses everything: the first operation that needs a kernel is the one to look at.
TEST(Origin, WhatCannotBeCompiledIsFound) {
  const Context broken{{.ccache = false, .clang_path = "no-such-clang", .dev = "CPU:CLANG"}};
  const Tensor x{1.0f, 2.0f, 3.0f};
  const Tensor y = x * 3 + 1, z = (y.exp() / y.sum()).reshape({3, 1}).matmul(x.reshape({1, 3}));
  const std::string text = message_of<CompileError>([&] { z.sum().realize(); });
  EXPECT_NE(text.find("\n  while computing operator*: (3,) dtypes.float32 of (3,)"), text.npos) << text;
}

TEST(Origin, SeveralResultsAreAllNamed) {
  const Tensor x = Tensor::ones({4}, {.device = "CPU"}).contiguous().realize();
  std::vector<Tensor> all;
  for (int i = 1; i <= 5; ++i) all.push_back(x.sin() * i);
  const std::string text = message_of<OutOfMemoryError>([&] {
    const Context limit{{.memory_limit = 1}};
    Tensor::realize(all);
  });
  EXPECT_NE(text.find("and 2 more"), text.npos) << text;
}

}  // namespace
}  // namespace tinygrad

// What renderers check of a linear program while they go through it.
#include "renderer/walk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tinygrad/errors.h>

#include "kernel/describe_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "renderer/ptx/ptx.h"
#include "renderer/wgsl/wgsl.h"
#include "target/target.h"
#include "target/webgpu.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

/// What each renderer says of the program; "" where it has a text.
std::vector<std::string> errors_of(const std::vector<UOp>& list) {
  const UOp linear(Op::LINEAR, DType::void_, list, LinearArg{1});
  KernelInfo info;
  info.name = "k";
  std::vector<std::string> out;
  const auto add = [&](const Target& target, auto render) {
    try {
      render(target, linear, info);
      out.emplace_back();
    } catch (const InternalError& e) {
      out.emplace_back(e.what());
    }
  };
  add(cpu_target("x86-64-v3"), renderer::render_c);
  add(cpu_target("x86-64-v3"), renderer::render_llvmir);
  add(cuda_target("sm_80"), renderer::render_cuda);
  add(cuda_target("sm_80"), renderer::render_ptx);
  add(webgpu_target({}), renderer::render_wgsl);
  return out;
}

void expect_all(const std::vector<std::string>& errors, const std::string& part) {
  for (const std::string& e : errors) EXPECT_NE(e.find(part), std::string::npos) << e;
}

TEST(Walk, BlocksBeginAndEnd) {
  const UOp n = constant(DType::int32, 4), loop(Op::RANGE, DType::int32, {n}, RangeArg{}), end(Op::END, DType::void_, {loop, loop});
  EXPECT_EQ(errors_of({n, loop, end}), std::vector<std::string>(5));
  expect_all(errors_of({n, loop}), "a block of kernel k has no end");
  const UOp stray(Op::LINEAR, DType::void_, {n, loop, end, end}, LinearArg{1});
  KernelInfo info;
  EXPECT_THROW(renderer::render_llvmir(cpu_target("x86-64-v3"), stray, info), InternalError);
  EXPECT_THROW(renderer::render_ptx(cuda_target("sm_80"), stray, info), InternalError);
}

TEST(Walk, WhatALanguageLacksIsNamed) {
  const UOp wait(Op::WMMA_WAIT, DType::void_, {});
  const std::vector<std::string> errors = errors_of({wait});
  for (size_t i : {0, 1, 2, 4}) EXPECT_NE(errors[i].find("there is no WMMA_WAIT"), std::string::npos) << errors[i];
  EXPECT_EQ(errors[1].substr(0, 7), "LLVM IR");
}

TEST(Walk, SourcesStandBefore) {
  const UOp x = constant(DType::float32, 1);
  const UOp sum(Op::ADD, DType::float32, {x, x});
  const std::vector<std::string> errors = errors_of({sum});
  for (size_t i : {0, 2, 3, 4}) EXPECT_NE(errors[i].find("used before it stands in the list"), std::string::npos) << errors[i];
}

}  // namespace
}  // namespace tinygrad

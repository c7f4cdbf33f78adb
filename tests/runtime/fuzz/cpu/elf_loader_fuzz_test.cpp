// Objects with bytes changed at random either load or throw a typed error; what they hold is never run.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <tinygrad/errors.h>

#include "compiler/llvm/llvm.h"
#include "kernel/describe_kernel.h"
#include "renderer/llvmir/llvmir.h"
#include "runtime/cpu/elf_loader.h"
#include "runtime/cpu/symbols.h"
#include "runtime/program_builder.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using runtime::LoadedObject;
using test::ProgramBuilder;

/// Code with constants, a call out of the object and a loop: for a processor without halves, whatever the host is, since it never runs.
std::string object() {
  const Target target = cpu_target("x86-64-v2");
  ProgramBuilder b;
  const UOp out = b.param(DType::float16, 64, 0), x = b.param(DType::float64, 64, 1);
  const UOp r = b.range(64, AxisKind::thread);
  b.store(out, r, b.cast(b.alu(Op::ADD, {b.load(x, r), b.constant(DType::float64, 0.1)}), DType::float16));
  b.end(r);
  const KernelInfo info = describe_kernel(b.linear(), "k");
  return compiler::compile_llvmir(renderer::render_llvmir(target, b.linear(), info), target.arch.str());
}

/// True if it loaded.
bool load(std::string_view bytes) {
  try {
    LoadedObject loaded(std::as_bytes(std::span(bytes)), runtime::cpu_runtime_symbol);
    return true;
  } catch (const FormatError&) {
  } catch (const CompileError&) {  // an unknown symbol
  } catch (const OutOfMemoryError&) {}
  return false;
}

TEST(ElfLoaderFuzz, AnyBytesLoadOrThrow) {
  const std::string good = object();
  ASSERT_TRUE(load(good));
  const uint64_t seed = test::seed();
  std::mt19937_64 random(seed);
  const int rounds = 20000 * test::test_scale();
  int loaded = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = good;
    for (uint64_t n = random() % 6 + 1; n != 0; --n) {
      // Mostly in the tables, where numbers mean something; sometimes a whole word of an extreme value.
      const size_t at = random() % 3 ? random() % bytes.size() : random() % 64;
      constexpr uint64_t words[] = {0, 1, 0x7fffffff, 0xffffffff, ~uint64_t{0}, uint64_t{1} << 63, 0xfff1, 0x1000};
      if (random() % 2) {
        bytes[at] = static_cast<char>(random());
      } else {
        const uint64_t word = words[random() % std::size(words)];
        const size_t size = std::min<size_t>(size_t{1} << (random() % 4), bytes.size() - at);
        std::memcpy(bytes.data() + at, &word, size);
      }
    }
    if (random() % 20 == 0) bytes.resize(random() % bytes.size());
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << i);
    loaded += load(bytes);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, rounds);
}

TEST(ElfLoader, RefusesWhatItMust) {
  const std::string good = object();
  EXPECT_FALSE(load(""));
  EXPECT_FALSE(load(good.substr(0, good.size() / 2)));
  LoadedObject loaded(std::as_bytes(std::span(good)), runtime::cpu_runtime_symbol);
  EXPECT_NE(loaded.function("kernel_k"), nullptr);
  EXPECT_THROW(loaded.function("main"), CompileError);
  // Without the half conversion that it calls.
  EXPECT_THROW(LoadedObject(std::as_bytes(std::span(good)), [](std::string_view) -> void* { return nullptr; }), CompileError);
}

}  // namespace
}  // namespace tinygrad

#pragma once
/// Runs text that was rendered for a GPU on the CPU: clang makes a library of it and a shim, and each work-item is a thread.

#include <dlfcn.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/subprocess.h"
#include "program/run_kernel.h"
#include "renderer/items.h"
#include "support/temp_folder.h"

namespace tinygrad::codegen::test {

/// What items that run together share.
class Wave {
 public:
  explicit Wave(int64_t lanes) : barrier_(lanes) {}

  // Two places by turns: nobody is two calls ahead of another.
  const void* all_lanes(unsigned lane, unsigned& turn, const void* mine, size_t bytes) {
    std::vector<std::byte>& place = places_[turn++ % 2];
    std::memcpy(place.data() + lane * bytes, mine, bytes);
    barrier_.arrive_and_wait();
    return place.data();
  }

 private:
  static constexpr size_t most_bytes = 64 * 256;
  std::barrier<> barrier_;
  std::vector<std::byte> places_[2] = {std::vector<std::byte>(most_bytes), std::vector<std::byte>(most_bytes)};
};

/// A loaded library whose function run_item() does what one item does.
class CpuItems {
 public:
  /// `text` ends with run_item(); `options` are clang's.
  CpuItems(const std::string& text, const std::vector<std::string>& options) {
    const std::string library = folder_.path("kernel.so");
    std::vector<std::string> command{"clang-19",
                                     "-x",
                                     "c++",
                                     "-std=c++20",
                                     "-O1",
                                     "-w",
                                     "-Wno-narrowing",
                                     "-fPIC",
                                     "-shared",
                                     "-nostdinc++",
                                     "-fno-strict-aliasing",
                                     "-ffp-contract=on",
                                     "-Xclang",
                                     "-ffloat16-excess-precision=none",
                                     "-fsigned-char"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"-o", library, "-"});
    const ProcessResult result = run_process(command, text);
    if (result.exit_code != 0) throw std::runtime_error(result.err + text);
    library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(::dlerror());
    run_item_ = reinterpret_cast<RunItem*>(::dlsym(library_, "run_item"));
    count_kernel();
  }
  ~CpuItems() {
    if (library_) ::dlclose(library_);
  }
  CpuItems(const CpuItems&) = delete;
  CpuItems& operator=(const CpuItems&) = delete;

  /// Groups run one after another.
  void launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims, int64_t wave_size) const {
    const int64_t count = dims.local[0] * dims.local[1] * dims.local[2];
    std::barrier<> group(count);
    std::vector<std::unique_ptr<Wave>> waves;
    for (int64_t i = 0; i < count; i += wave_size) waves.push_back(std::make_unique<Wave>(std::min(wave_size, count - i)));
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] { run_in_all_groups(i, buffers, variables, dims, group, *waves[size_t(i / wave_size)], wave_size); });
  }

 private:
  using RunItem = void(const Items* items, void* const* buffers, const int64_t* variables);
  struct Self {
    std::barrier<>& group;
    Wave& wave;
    unsigned lane, turn = 0;
  };

  /// For tools/backends, which compares the number with what tests/backends.txt says.
  static void count_kernel() {
    const testing::TestResult& test = *testing::UnitTest::GetInstance()->current_test_info()->result();
    int kernels = 1;
    for (int i = 0; i < test.test_property_count(); ++i)
      if (test.GetTestProperty(i).key() == std::string("kernels")) kernels += std::stoi(test.GetTestProperty(i).value());
    testing::Test::RecordProperty("kernels", kernels);
  }

  void run_in_all_groups(int64_t number, std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                         std::barrier<>& group, Wave& wave, int64_t wave_size) const {
    const int64_t x = dims.local[0], y = dims.local[1];
    const auto lane = unsigned(number % wave_size);
    Self self{group, wave, lane};
    Items items{.self = &self,
                .group = {},
                .item = {unsigned(number % x), unsigned(number / x % y), unsigned(number / x / y)},
                .lane = lane,
                .barrier = [](void* s) { static_cast<Self*>(s)->group.arrive_and_wait(); },
                .all_lanes =
                    [](void* s, const void* mine, unsigned long bytes) {
                      auto* me = static_cast<Self*>(s);
                      return me->wave.all_lanes(me->lane, me->turn, mine, bytes);
                    }};
    for (unsigned& z = items.group[2] = 0; z < dims.global[2]; ++z)
      for (items.group[1] = 0; items.group[1] < dims.global[1]; ++items.group[1])
        for (items.group[0] = 0; items.group[0] < dims.global[0]; ++items.group[0]) {
          run_item_(&items, buffers.data(), variables.data());
          group.arrive_and_wait();
        }
  }

  tinygrad::test::TempFolder folder_;
  void* library_ = nullptr;
  RunItem* run_item_ = nullptr;
};

/// The memory that a kernel leaves, by slot.
inline std::map<int32_t, spec::Array> run_cpu_items(const CpuItems& code, const KernelInfo& info, const spec::EvalInputs& inputs,
                                                    int64_t wave_size) {
  std::map<int32_t, spec::Array> memory = inputs.params;
  std::vector<void*> buffers;
  for (const KernelParam& p : info.params) buffers.push_back(memory.at(p.slot).bytes.data());
  std::vector<int64_t> variables;
  for (Symbol name : info.variables) variables.push_back(inputs.variables.at(name));
  code.launch(buffers, variables, info.launch_dims(variables), wave_size);
  return memory;
}

/// "AnyPointer{buffers[0]}, AnyPointer{buffers[1]}"
inline std::string buffer_arguments(const KernelInfo& info) {
  std::vector<std::string> out;
  for (size_t i = 0; i < info.params.size(); ++i) out.push_back(fmt::format("AnyPointer{{buffers[{}]}}", i));
  return fmt::format("{}", fmt::join(out, ", "));
}

/// Kernels that every language of GPUs is tried on, with opts.
struct GpuCase {
  std::string name;
  UOp kernel;
  std::string opts = {};
};
inline std::vector<GpuCase> gpu_cases() {
  const UOp product = matmul(16, 32, 16), odd = matmul(10, 12, 9);
  return {{"elementwise", elementwise(64)},
          {"elementwise", elementwise(64), "LANE(0,4) LOCAL(0,8)"},
          {"row sums", row_sums(5, 64), "GROUP(1,16)"},
          {"row maxima", row_sums(5, 64, {}, Op::MAX), "LANE(1,4) UNROLL(1,2)"},
          {"matmul", odd, "LOCAL(0,3) LOCAL(1,7) UPCAST(0,2) UNROLL(2,4)"},
          {"matmul", product, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
          {"matmul", product, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
          {"matmul", product, "UPCAST(0,4) UPCAST(1,4) LOCAL(0,2) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
          {"matmul", product, "GROUP(2,4) LOCAL(0,2) LOCAL(1,2)"},
          {"softmax", softmax(6, 37), "GROUP(2,8)"},
          {"argmax", argmax(5, 50), "GROUP(1,16)"},
          {"masked attention", joined_attention(8, 8, 4, {}, true), "LOCAL(0,4) UNROLL(3,2)"},
          {"symbolic row sums", symbolic_row_sums(9, 40), "LOCAL(0,4) GROUP(1,8)"},
          {"gather", gather(16, 5), "LOCAL(0,5)"},
          {"padded", padded(8, 1, 2), "LOCAL(0,4)"},
          {"transpose", transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
          {"convolution", convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4)"},
          {"bytes", elementwise(64, {}, DType::int8), "LANE(0,16)"},
          {"longs", elementwise(64, {}, DType::uint64), "LANE(0,2)"},
          {"bools", elementwise(64, {}, DType::bool_), "LANE(0,4)"}};
}

}  // namespace tinygrad::codegen::test

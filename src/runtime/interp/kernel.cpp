#include "runtime/interp/kernel.h"

#include <chrono>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "runtime/check_groups.h"
#include "runtime/interp/machine.h"
#include "runtime/interp/program.h"

namespace tinygrad::runtime::interp {

namespace {

class InterpKernel final : public Kernel {
 public:
  InterpKernel(const KernelInfo& info, const UOp& linear) : program_(parse_program(linear, info.name, info.variables)), info_(info) {}

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    if (variables.size() != info_.variables.size())
      throw InternalError(
          fmt::format("kernel {}: launched with {} variables, expects {}", program_.name, variables.size(), info_.variables.size()));
    static const auto& any = *new Target(interp_target());
    check_groups("INTERP", info_, dims, any.max_global);
    const auto begin = std::chrono::steady_clock::now();
    Machine(program_, buffers, variables, dims).run();
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  const Program program_;
  const KernelInfo info_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const KernelInfo& info, const UOp& linear) { return std::make_unique<InterpKernel>(info, linear); }

}  // namespace tinygrad::runtime::interp

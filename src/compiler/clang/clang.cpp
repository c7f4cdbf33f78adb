#include "compiler/clang/clang.h"

#include <unistd.h>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/options.h"
#include "base/profile.h"
#include "base/subprocess.h"

namespace tinygrad::compiler {
namespace {

// Part of every cache key beside the flags. It stands for the version of clang too, which a warm start does not know.
constexpr std::string_view kVersion = "clang-1";

constexpr const char* kRocmClang = "/opt/rocm/llvm/bin/clang";

/// How the processor is called.
std::vector<std::string> processor_flags(const Target& target) {
  const auto [triple, cpu, features] = processor_names(target.arch.str());
  const std::string_view to = triple;
  std::vector<std::string> out{fmt::format("--target={}", to)};
  const auto add = [&](auto... flag) { (out.push_back(std::move(flag)), ...); };
  if (to.starts_with("x86_64")) {
    add(fmt::format("-march={}", target.arch.str()), fmt::format("-mprefer-vector-width={}", target.vector_bits));
  } else if (to.starts_with("riscv64")) {
    add(fmt::format("-march={}", target.arch.str()), std::string("-mabi=lp64d"));
  } else if (to.starts_with("hexagon")) {
    add(fmt::format("-mcpu={}", cpu), fmt::format("-mhvx={}", target.arch.str()), std::string("-mhvx-length=128B"));
    add(std::string("-G0"));  // no small data at a place of its own
    if (target.vector_floats) add(std::string("-mhvx-ieee-fp"));
    // The software pipeliner loses values that loops carry (github.com/llvm/llvm-project/issues/209946): sums come out wrong.
    add(std::string("-mllvm"), std::string("-enable-pipeliner=false"));
  } else {
    add(cpu == "generic" ? fmt::format("-march={}", target.arch.str()) : fmt::format("-mcpu={}", cpu));
  }
  return out;
}

std::vector<std::string> flags(const Target& target) {
  std::vector<std::string> out = {
      "-x", "c", "-std=c2x", "-O2", "-w",
      // Multiply-adds may be fused within an expression; each other result is rounded to its type, halves included.
      "-ffp-contract=on", "-fno-math-errno", "-Xclang", "-ffloat16-excess-precision=none",
      // Integers wrap, addresses that are not used may be anywhere, and a pointer to vectors may point into scalars.
      "-fno-strict-overflow", "-fno-strict-aliasing", "-fsigned-char",
      // Nothing around the kernel: no headers, library or unwinder.
      "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident", "-nostdinc", "-fPIC",
      // Vectors that do not fit the registers are kept on an aligned stack.
      "-mstackrealign"};
  const std::vector<std::string> processor = processor_flags(target);
  if (!processor[0].starts_with("--target=x86_64")) out.insert(out.end(), {"-fvisibility=hidden", "-ffunction-sections"});
  out.insert(out.end(), processor.begin(), processor.end());
  return out;
}

}  // namespace

std::string find_clang() {
  const std::string& path = current_options().clang_path;
  if (!path.empty()) return path.find('/') == path.npos ? find_program(path) : ::access(path.c_str(), X_OK) == 0 ? path : "";
  for (const std::string_view name : {"clang-19", "clang", "clang-20", "clang-21", "clang-18"})
    if (std::string found = find_program(name); !found.empty()) return found;
  return ::access(kRocmClang, X_OK) == 0 ? kRocmClang : "";
}

std::string clang_missing() {
  if (!find_clang().empty()) return {};
  const std::string& path = current_options().clang_path;
  return fmt::format(
      "clang: {}. Install it (`apt-get install clang-19`), set CLANG_PATH to a clang of version 18 or newer, or use DEV=CPU:LLVM",
      path.empty() ? "no compiler of this name in PATH" : fmt::format("CLANG_PATH={} is no program", path));
}

namespace {

/// What a clang with these options makes of a source.
std::string compiled(const std::vector<std::string>& options, const std::string& source) {
  const std::string key = ContentHasher().add(kVersion).add(fmt::format("{}", fmt::join(options, " "))).add(source).finish().to_hex();
  if (std::optional<std::string> known = disk_cache().get("clang_object", key)) return std::move(*known);
  ProfileSpan span("clang", "compile");
  const std::string clang = find_clang();
  if (clang.empty()) throw CompileError(clang_missing());
  std::vector<std::string> command{clang};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-o", "-", "-"});
  ProcessResult result = run_process(command, source);
  if (result.exit_code != 0 || result.out.empty()) {
    throw CompileError(fmt::format("{} failed ({}): {}\n{}", clang, result.exit_code, result.err, source));
  }
  if (!result.out.starts_with("\177ELF")) throw CompileError(fmt::format("{} gave no object file:\n{}", clang, source));
  disk_cache().put("clang_object", key, result.out);
  return std::move(result.out);
}

/// The flags of HIP sources. Floats have the precision of C: quotients and square roots are rounded correctly, denormal numbers stay.
std::vector<std::string> hip_flags(const Target& target) {
  return {"-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", fmt::format("--offload-arch={}", target.arch.str()), "-nogpuinc",
          "-nogpulib", "-nostdinc", "-O3", "-w", "-Wno-narrowing", "-ffp-contract=on", "-fno-math-errno", "-fno-strict-overflow",
          "-fno-strict-aliasing", "-fsigned-char", "-fno-exceptions", "-fno-ident", "-fhip-fp32-correctly-rounded-divide-sqrt",
          "-fno-gpu-flush-denormals-to-zero",
          // What every ROCm from 4.3 on loads.
          "-mcode-object-version=4"};
}

}  // namespace

std::string compile_c(const std::string& source, const Target& target) {
  std::vector<std::string> options = flags(target);
  options.emplace_back("-c");
  return compiled(options, source);
}

std::string compile_hip(const std::string& source, const Target& target) { return compiled(hip_flags(target), source); }

}  // namespace tinygrad::compiler

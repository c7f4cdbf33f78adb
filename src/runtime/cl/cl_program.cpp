#include "runtime/cl/cl_program.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"
#include "base/hash.h"
#include "base/profile.h"

namespace tinygrad::runtime::cl {
namespace {

constexpr std::string_view kTable = "cl_program", kVersion = "cl-2";  // of the disk cache; part of every key

std::string build_log(const BuildFor& to, ProgramId program) {
  size_t size = 0;
  if (api().GetProgramBuildInfo(program, to.device, program_build_log, 0, nullptr, &size) != success || size == 0) return "no log";
  std::string log(size, '\0');
  if (api().GetProgramBuildInfo(program, to.device, program_build_log, size, log.data(), nullptr) != success) return "no log";
  log.resize(log.find_last_not_of(std::string_view("\0\n", 2)) + 1);
  return log;
}

int32_t build(const BuildFor& to, ProgramId program) {
  return api().BuildProgram(program, 1, &to.device, to.options.c_str(), nullptr, nullptr);
}

ProgramPtr build_source(const BuildFor& to, const std::string& source) {
  int32_t error = success;
  const char* text = source.c_str();
  const size_t size = source.size();
  ProgramPtr program(api().CreateProgramWithSource(to.context, 1, &text, &size, &error));
  check(error, to.name, "making a program");
  error = build(to, program.get());
  if (error == out_of_host_memory) check(error, to.name, "compiling");
  if (error != success) {
    throw CompileError(
        fmt::format("{}: the driver refused a kernel: {}\n{}\n{}", to.name, error_name(error), build_log(to, program.get()), source));
  }
  return program;
}

/// Empty where the driver gives none.
std::string binary_of(ProgramId program) {
  size_t size = 0;
  if (api().GetProgramInfo(program, program_binary_sizes, sizeof(size), &size, nullptr) != success || size == 0) return {};
  std::string binary(size, '\0');
  char* to = binary.data();
  return api().GetProgramInfo(program, program_binaries, sizeof(to), &to, nullptr) == success ? binary : std::string();
}

/// Null where the driver does not take what it once gave.
ProgramPtr load_binary(const BuildFor& to, const std::string& binary) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  int32_t error = success, of_binary = success;
  ProgramPtr program(api().CreateProgramWithBinary(to.context, 1, &to.device, &size, &bytes, &of_binary, &error));
  if (error != success || of_binary != success || build(to, program.get()) != success) return nullptr;
  return program;
}

}  // namespace

ProgramPtr build_program(const BuildFor& to, const std::string& source) {
  const std::string key = ContentHasher().add(kVersion).add(to.key).add(to.options).add(source).finish().to_hex();
  if (const std::optional<std::string> known = disk_cache().get(kTable, key); known && !known->empty())
    if (ProgramPtr program = load_binary(to, *known)) return program;
  ProfileSpan span("opencl", "compile");
  ProgramPtr program = build_source(to, source);
  if (const std::string binary = binary_of(program.get()); !binary.empty()) disk_cache().put(kTable, key, binary);
  return program;
}

}  // namespace tinygrad::runtime::cl

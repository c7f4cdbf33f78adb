// Cases that tests/frontend/onnx/mutate.py changed, one after another: it writes them, starts this, and reads what came of each.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <typeinfo>

#include "frontend/onnx/case_data.h"

namespace tinygrad::onnx::test {
namespace {

/// The most memory that the process ever had, in MiB.
int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

bool is_typed(const std::exception& e) { return dynamic_cast<const Error*>(&e) != nullptr; }

/// "ok", "differs: ...", "error: ...", or "untyped: ..." of another exception than the library's own.
std::string outcome_of(const fs::path& folder) {
  try {
    const Model model = load((folder / "model.onnx").string());
    const frontend::FileBytes file = frontend::FileBytes::map((folder / "model.onnx").string());
    const proto::Source source{reinterpret_cast<const char*>(file.bytes.data()), file.name};
    const proto::Model proto = proto::read_model(source, {source.begin, file.bytes.size()});
    Values inputs;
    for (size_t i = 0; i < proto.graph.inputs.size(); ++i)
      if (const fs::path path = folder / fmt::format("input_{}.pb", i); fs::exists(path))
        inputs[proto.graph.inputs[i].name] = read_case_value(path, proto.graph.inputs[i].type.to_string());
    const Values outputs = model(inputs);
    std::string text;
    for (size_t i = 0; i < proto.graph.outputs.size(); ++i) {
      const Value& got = outputs.at(proto.graph.outputs[i].name);
      text += " " + got.to_string();
      if (got.kind() == Value::Kind::tensor) static_cast<void>(got.tensor().data());
      const fs::path path = folder / fmt::format("output_{}.pb", i);
      if (!fs::exists(path)) continue;
      const Value expected = read_case_value(path, proto.graph.outputs[i].type.to_string());
      if (const std::string d = difference(got, expected, {.relative = 2e-3, .absolute = 1e-5}); !d.empty()) return "differs: " + d;
    }
    return "ok:" + text;
  } catch (const std::exception& e) {
    return fmt::format("{}: {} {}", is_typed(e) ? "error" : "untyped", typeid(e).name(), e.what());
  }
}

/// TG_ONNX_MUTANTS is a folder of numbered folders, TG_ONNX_MUTANT the first that is run.
TEST(OnnxMutants, Run) {
  const char *folder = std::getenv("TG_ONNX_MUTANTS"), *first = std::getenv("TG_ONNX_MUTANT");
  if (!folder) GTEST_SKIP() << "TG_ONNX_MUTANTS names no folder";
  for (int i = first ? std::atoi(first) : 0; fs::exists(fs::path(folder) / std::to_string(i)); ++i) {
    std::printf("\nbegin\t%d\n", i);
    std::fflush(stdout);
    const int64_t before = peak_memory();
    const auto begin = std::chrono::steady_clock::now();
    std::string outcome = outcome_of(fs::path(folder) / std::to_string(i));
    std::replace(outcome.begin(), outcome.end(), '\n', ' ');
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("\nend\t%d\t%.3f\t%lld\t%s\n", i, seconds, static_cast<long long>(peak_memory() - before), outcome.c_str());
    std::fflush(stdout);
    if (peak_memory() > 1500) malloc_trim(0);
  }
}

}  // namespace
}  // namespace tinygrad::onnx::test

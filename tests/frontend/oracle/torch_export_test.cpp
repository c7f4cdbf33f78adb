// Programs that tests/frontend/torch_export/make_programs.py exported into the folder TG_EXPORTED, beside what PyTorch computed.
// TG_EXPORTED_ONLY names a part of their names, DEV the device. `make torch-programs` and `make oracle-full` run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include <tinygrad/device.h>
#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>
#include <tinygrad/torch_export.h>

#include "frontend/aten/aten.h"

namespace tinygrad {
namespace {

/// Tensors named "in.0", "in.1", ... of a checkpoint.
std::vector<Tensor> list_of(const nn::state::StateDict& all, const std::string& name) {
  std::vector<Tensor> out;
  for (size_t i = 0; all.contains(name + '.' + std::to_string(i)); ++i) out.push_back(all.at(name + '.' + std::to_string(i)));
  return out;
}

/// How far results may differ, relative to the greatest one and to each.
double tolerance(DType d, bool is_model) {
  if (d == DType::float64) return 1e-6;
  if (d == DType::float32) return is_model ? 2e-4 : 2e-5;
  return d == DType::float16 ? 4e-3 : 3e-2;
}

std::string difference(const Tensor& got, const Tensor& want, bool is_model) {
  if (!got.defined()) return "undefined";
  if (got.dtype() != want.dtype()) return std::string(repr(got.dtype())) + " for " + std::string(repr(want.dtype()));
  if (got.shape() != want.shape()) return got.to_string() + " for " + want.to_string();
  if (!want.is_floating_point()) return got.tolist<int64_t>() == want.tolist<int64_t>() ? "" : "other values";
  const std::vector<double> a = got.tolist<double>(), b = want.tolist<double>();
  double greatest = 0;
  for (double x : b)
    if (std::isfinite(x)) greatest = std::max(greatest, std::abs(x));
  const double t = tolerance(want.dtype(), is_model);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= t * (std::abs(b[i]) + std::min(greatest, 1e3) * 0.5) + t * 1e-3))
      return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + " for " + std::to_string(b[i]);
  }
  return "";
}

/// Empty where results are right; of loose ones only shapes and dtypes are compared.
std::string difference_of(std::vector<Tensor> got, const std::vector<Tensor>& want, bool is_model, bool loose) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " results for " + std::to_string(want.size());
  Tensor::realize(got);
  for (size_t i = 0; i < got.size(); ++i) {
    Tensor own = got[i];
    // Numbers are float32 or float64 for Python's floats.
    if (own.defined() && want[i].ndim() == 0 && own.dtype() == DType::float64 && want[i].dtype() == DType::float32)
      own = own.cast(DType::float32);
    if (loose && own.defined() && own.shape() == want[i].shape() && own.dtype() == want[i].dtype()) continue;
    if (const std::string why = difference(own, want[i], is_model); !why.empty()) return "result " + std::to_string(i) + ": " + why;
  }
  return "";
}

std::string run(const std::filesystem::path& path, std::set<std::string>& covered, bool& is_unsupported) {
  const std::filesystem::path values = std::filesystem::path(path).replace_extension(".pt");
  const bool is_model = path.filename().string().starts_with("model-");
  const nn::state::StateDict all = nn::state::torch_load(values.string());
  const bool may_refuse = all.contains("refused") && all.at("refused").item<bool>();
  std::optional<torch_export::Program> loaded;
  try {
    loaded = torch_export::load(path.string(), {.device = default_device()});
  } catch (const FormatError&) {
    if (!may_refuse) throw;
    is_unsupported = true;
    return "refused";
  }
  const torch_export::Program& program = *loaded;
  if (!program.unsupported().empty()) {
    // Of the samples of PyTorch's tests there are some that nobody supports; what we export ourselves has to run.
    is_unsupported = !path.filename().string().starts_with("overload-") && !is_model;
    std::string out = "unsupported:";
    for (const std::string& name : program.unsupported()) out += " " + name;
    return out;
  }
  std::vector<Tensor> inputs;
  for (const Tensor& t : list_of(all, "in")) inputs.push_back(t.clone().to(default_device()));
  const std::vector<Tensor> want = list_of(all, "out");
  std::vector<Tensor> got;
  try {
    got = program(inputs);
  } catch (const Error&) {
    if (!may_refuse) throw;
    is_unsupported = true;
    return "refused";
  }
  const bool loose = all.at("loose").item<bool>();
  if (const std::string why = difference_of(got, want, is_model, loose); !why.empty()) return why;
  for (size_t i = 0; i < inputs.size() && !loose; ++i)
    if (const auto after = all.find("after." + std::to_string(i)); after != all.end())
      if (const std::string why = difference(inputs[i], after->second, is_model); !why.empty())
        return "input " + std::to_string(i) + ": " + why;
  for (int call = 0; all.contains("again." + std::to_string(call) + ".0"); ++call) {
    std::vector<torch_export::Input> fresh;
    for (const Tensor& t : list_of(all, "in")) fresh.emplace_back(t.clone().to(default_device()));
    const std::vector<Tensor> now = program.run(fresh);
    if (const std::string why = difference_of(now, list_of(all, "again." + std::to_string(call)), is_model, loose); !why.empty())
      return "call " + std::to_string(call + 2) + ", " + why;
  }
  for (const auto& [name, count] : program.operators()) covered.insert(name);
  return "";
}

TEST(TorchExport, ProgramsComputeWhatPyTorchDoes) {
  const char* folder = std::getenv("TG_EXPORTED");
  if (!folder) GTEST_SKIP() << "TG_EXPORTED is not set";
  const char* only = std::getenv("TG_EXPORTED_ONLY");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pt2" && (!only || entry.path().string().find(only) != std::string::npos))
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::set<std::string> covered;
  int right = 0, unsupported = 0;
  for (const std::filesystem::path& path : paths) {
    std::string why;
    bool is_unsupported = false;
    try {
      why = run(path, covered, is_unsupported);
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why.empty())
      ++right;
    else if (is_unsupported) {
      ++unsupported;
      std::printf("%s: %s\n", path.stem().c_str(), why.c_str());
    } else {
      ADD_FAILURE() << path.stem() << ": " << why;
    }
  }
  int named = 0;
  for (std::string_view op : aten::operators()) {
    named += covered.contains(std::string(op));
    if (!covered.contains(std::string(op)) && std::getenv("TG_EXPORTED_UNCOVERED")) std::printf("not run: %s\n", std::string(op).c_str());
  }
  std::printf("%zu programs: %d right, %d of unsupported operators; %d of %zu operators of the table ran\n", paths.size(), right,
              unsupported, named, aten::operators().size());
}

}  // namespace
}  // namespace tinygrad

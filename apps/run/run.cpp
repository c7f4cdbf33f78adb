#include "run/run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "common/json_line.h"
#include "run/measure.h"
#include "run/show.h"

namespace tinygrad::apps {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double number, double digits = 1e6) { return std::round(number * digits) / digits; }

std::string flop_text(uint64_t flops) {
  if (flops < 1'000'000) return fmt::format("{:.4g} kFLOP", double(flops) / 1e3);
  return flops < 1'000'000'000 ? fmt::format("{:.4g} MFLOP", double(flops) / 1e6) : fmt::format("{:.4g} GFLOP", double(flops) / 1e9);
}

/// NumPy lacks bfloat16 and floats of 8 bits: float32 holds their values.
Tensor for_numpy(const Tensor& x) {
  const bool is_known = !is_float(x.dtype()) || x.dtype() == DType::float16 || x.dtype() == DType::float32 || x.dtype() == DType::float64;
  return is_known ? x : x.cast(DType::float32);
}

void save(const std::vector<Result>& results, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const Result& r : results) {
    if (!r.tensor) throw DTypeError(fmt::format("run: {}: the output '{}' is texts, which .npz does not hold here", path, r.name));
    tensors.emplace_back(r.name, for_numpy(*r.tensor));
  }
  formats::npz_save(tensors, path);
}

void save(const std::vector<Input>& inputs, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const Input& i : inputs) tensors.emplace_back(i.name, for_numpy(i.tensor));
  formats::npz_save(tensors, path);
}

struct Report {
  std::string format, device;
  double load_s = 0;
  std::vector<Input> inputs;
  Measured measured;
  std::vector<std::vector<Ranked>> classes;  ///< of each result; empty where it has none
};

Json json_of(const Result& r, const std::vector<Ranked>& classes) {
  Json out{{"name", r.name}, {"shape", r.shape}, {"dtype", r.tensor ? text_of(r.tensor->dtype()) : "string"}, {"type", r.type}};
  for (const Ranked& c : classes) {
    Json one{{"class", c.place}, {"score", c.score}};
    if (!c.label.empty()) one["label"] = c.label;
    out["top"].push_back(std::move(one));
  }
  return out;
}

void print_as_json(const Report& r, const RunOptions& o) {
  Json inputs = Json::array(), outputs = Json::array();
  for (const Input& i : r.inputs)
    inputs.push_back({{"name", i.name},
                      {"shape", i.tensor.shape()},
                      {"dtype", text_of(i.tensor.dtype())},
                      {"from", i.values.empty() ? i.origin : i.origin + ", " + i.values}});
  for (size_t i = 0; i < r.classes.size(); ++i) outputs.push_back(json_of(r.measured.results[i], r.classes[i]));
  Json line{{"model", o.model},
            {"format", r.format},
            {"device", r.device},
            {"inputs", inputs},
            {"outputs", outputs},
            {"load_s", rounded(r.load_s)},
            {"first_call_s", rounded(r.measured.first_call_s)},
            {"steady_ms", nullptr},
            {"repeat", r.measured.steady_ms.size()},
            {"kernels", r.measured.kernels},
            {"flops", r.measured.flops},
            {"gflops", nullptr},
            {"peak_mb", rounded(r.measured.peak_mb, 1e3)}};
  if (const auto ms = r.measured.median_ms()) {
    line["steady_ms"] = rounded(*ms);
    line["steady_min_ms"] = rounded(r.measured.steady_ms.front());
  }
  if (const auto gflops = r.measured.gflops()) line["gflops"] = rounded(*gflops, 1e9);  // of small models, too
  print_json(line);
}

void print_as_text(const Report& r, const RunOptions& o) {
  const Measured& m = r.measured;
  fmt::print("model     {} ({}), loaded in {:.3f} s\n", o.model, r.format, r.load_s);
  fmt::print("device    {}\n", r.device);
  if (!r.inputs.empty()) fmt::print("\ninputs\n");
  for (const Input& i : r.inputs) {
    fmt::print("  {}  {} ({})\n    {}\n", i.name, text_of(i.tensor.dtype()), fmt::join(i.tensor.shape(), ", "), i.origin);
    if (!i.values.empty()) fmt::print("    {}\n", i.values);
  }
  fmt::print("\noutputs\n");
  for (size_t i = 0; i < r.classes.size(); ++i) print_result(m.results[i], r.classes[i]);
  fmt::print("\nkernels   {}\n", m.kernels);
  fmt::print("first     {:.3f} s, with planning and compiling\n", m.first_call_s);
  if (const auto ms = m.median_ms()) {
    fmt::print("steady    {:.3f} ms, median of {} ({:.3f} to {:.3f})\n", *ms, m.steady_ms.size(), m.steady_ms.front(), m.steady_ms.back());
    fmt::print("speed     {:.2f} GFLOP/s, {} a call\n", m.gflops().value_or(0), flop_text(m.flops));
  }
  fmt::print("memory    {:.1f} MB {} at most\n", m.peak_mb, m.is_of_process ? "in the process" : "on the device");
}

}  // namespace

void run_model(const RunOptions& o) {
  std::optional<Context> chosen;
  if (!o.device.empty()) chosen.emplace(ContextArgs{.dev = o.device});
  Report r;
  const std::vector<std::string> labels = o.labels.empty() ? std::vector<std::string>() : read_labels(o.labels);
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Program> program = open_program(o.model);
  r.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  r.format = program->format();
  r.device = Device::get(default_device()).target().name();
  r.inputs = make_inputs(*program, o.inputs);
  if (!o.save_inputs.empty()) save(r.inputs, o.save_inputs);
  std::map<std::string, Tensor> given;
  for (const Input& i : r.inputs) given[i.name] = i.tensor;
  r.measured = measure(*program, given, o.repeat, o.profile);
  for (const Result& result : r.measured.results) r.classes.push_back(ranked(result, labels, o.top));
  if (!labels.empty() && o.top > 0 && std::ranges::all_of(r.classes, &std::vector<Ranked>::empty))
    throw ValueError("run: --labels: no output has a finite score for each class of one thing");
  if (!o.output.empty()) save(r.measured.results, o.output);
  if (o.json)
    print_as_json(r, o);
  else
    print_as_text(r, o);
}

}  // namespace tinygrad::apps

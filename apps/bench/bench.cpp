#include "bench/bench.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include <tinygrad/compile_report.h>
#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "bench/chart.h"
#include "bench/measure.h"
#include "bench/roofline.h"
#include "bench/works.h"
#include "common/json_line.h"

namespace tinygrad::apps {

namespace {

/// Four digits: more are noise.
double rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(x))) - 3);
  return std::stod(fmt::format("{:.12g}", std::round(x / unit) * unit));
}

struct Report {
  BenchCase what;
  Timing timing;
  Accuracy accuracy;
  Roofline limits;
  std::vector<KernelSource> kernels;

  double gflops() const { return what.flops / timing.seconds * 1e-9; }
  double gb_s() const { return what.bytes / timing.seconds * 1e-9; }
  double fraction() const { return limits.seconds(what.flops, what.bytes) / timing.seconds; }
  bool memory_bound() const { return what.bytes / limits.gb_s > what.flops / limits.gflops; }
  bool wrong() const { return !(accuracy.error <= accuracy.tolerance); }
};

/// BEAM searches for what is measured alone.
BenchWork make_inputs(const BenchCase& what) {
  const Context plain{{.beam = 0}};
  return make_work(what);
}

Report measure(const BenchOptions& o) {
  Report r{.what = make_case(o.what), .timing = {}, .accuracy = {}, .limits = {}, .kernels = {}};
  const BenchWork work = make_inputs(r.what);
  const auto limits = [&] { return measure_roofline(r.what.dtype, r.what.bytes, compute_threads()); };
  const Roofline before = limits();
  const Replay replay(work);
  r.timing = time_replay(replay, o.budget);
  r.limits = higher(before, limits());
  r.accuracy = check_accuracy(r.what, work, replay.results());
  r.kernels = compile_report(work.step(work.inputs), {.sources = true}).sources;  // with the opts that BEAM has found
  return r;
}

void print_as_json(const Report& r) {
  nlohmann::ordered_json opts = nlohmann::ordered_json::array();
  for (const KernelSource& k : r.kernels) opts.push_back({{"kernel", k.name}, {"opts", k.opts}});
  print_json({{"kernel", r.what.kernel},
              {"case", r.what.title()},
              {"target", Device::get(default_device()).target().name()},
              {"ms", rounded(r.timing.seconds * 1e3)},
              {"gflops", rounded(r.gflops())},
              {"gb_s", rounded(r.gb_s())},
              {"roofline", rounded(r.fraction())},
              {"opts", opts},
              {"error", rounded(r.accuracy.error)},
              {"tolerance", rounded(r.accuracy.tolerance)},
              {"values_checked", r.accuracy.values},
              {"threads", r.limits.threads},
              {"peak_gflops", rounded(r.limits.gflops)},
              {"peak_gb_s", rounded(r.limits.gb_s)},
              {"repetitions", r.timing.repetitions},
              {"calls", r.timing.calls}});
}

void print_as_text(const Report& r) {
  fmt::print("{}\n", r.what.title());
  fmt::print("  {:.4f} ms, median of {}{}\n", r.timing.seconds * 1e3, r.timing.repetitions,
             r.timing.calls > 1 ? fmt::format(", each the mean of {} calls", r.timing.calls) : "");
  fmt::print("  {:.2f} GFLOP/s, {:.2f} GB/s, {:.1f} % of the roofline ({})\n", r.gflops(), r.gb_s(), r.fraction() * 100,
             r.memory_bound() ? "memory" : "arithmetic");
  fmt::print("  the machine: {:.1f} GFLOP/s, {:.1f} GB/s at this size, {} threads\n", r.limits.gflops, r.limits.gb_s, r.limits.threads);
  fmt::print("  error {:.2g}, tolerance {:.2g}: {} values compared with float64{}\n", r.accuracy.error, r.accuracy.tolerance,
             r.accuracy.values, r.wrong() ? ": WRONG" : "");
  for (const KernelSource& k : r.kernels) fmt::print("  {}: {}\n", k.name, k.opts.empty() ? "no opts" : k.opts);
}

}  // namespace

void bench(const BenchOptions& o) {
  const Report r = measure(o);
  if (o.json)
    print_as_json(r);
  else
    print_as_text(r);
  if (!o.roofline.empty())
    write_roofline(o.roofline, {.title = r.what.title(), .flops = r.what.flops, .bytes = r.what.bytes, .seconds = r.timing.seconds},
                   r.limits);
  if (r.wrong())
    throw ValueError(fmt::format("bench: the result of {} is wrong: its error is {:.3g}, expects at most {:.3g}", r.what.title(),
                                 r.accuracy.error, r.accuracy.tolerance));
}

}  // namespace tinygrad::apps

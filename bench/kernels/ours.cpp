// Our side of bench/kernels: the cases of `tg bench`.
#include "bench/measure.h"
#include "bench/roofline.h"
#include "models.h"
#include "serve.h"

#include <algorithm>
#include <map>

#include <tinygrad/device.h>

using namespace tinygrad;
using bench::Json;

namespace {

template <class T>
std::optional<T> optional(const Json& c, const char* key) {
  return c.contains(key) ? std::optional<T>(c[key].get<T>()) : std::nullopt;
}

apps::CaseOptions options_of(const Json& c) {
  return {.kernel = c.at("kernel"),
          .size = c.at("size"),
          .dtype = optional<std::string>(c, "dtype"),
          .op = optional<std::string>(c, "op"),
          .batch = optional<int64_t>(c, "batch"),
          .stride = optional<int64_t>(c, "stride"),
          .groups = optional<int64_t>(c, "groups"),
          .keys = optional<int64_t>(c, "keys"),
          .kv_heads = optional<int64_t>(c, "kv_heads"),
          .axis = optional<int>(c, "axis"),
          .order = c.value("order", std::vector<int>{}),
          .causal = c.value("causal", false),
          .backward = c.value("backward", false)};
}

/// The best of several measurements; of arithmetic by the rows before as well.
apps::Roofline limits_of(DType dtype, double bytes) {
  static std::map<DType, double> gflops;
  apps::Roofline best = apps::measure_roofline(dtype, bytes, apps::compute_threads());
  best.gflops = gflops[dtype] = std::max(best.gflops, gflops[dtype]);
  return best;
}
apps::Roofline limits_of(const apps::BenchCase& c) { return limits_of(c.dtype, c.bytes); }

Json facts_of(const apps::BenchCase& c, const apps::Roofline& limits) {
  return {{"roofline_seconds", limits.seconds(c.flops, c.bytes)}, {"peak_gflops", limits.gflops}, {"peak_gb_s", limits.gb_s}};
}

bench::Prepared prepare_kernel(const Json& wanted) {
  const apps::BenchCase c = apps::make_case(options_of(wanted));
  const apps::BenchWork work = apps::make_work(c);
  const auto replay = std::make_shared<apps::Replay>(work);
  const apps::Accuracy accuracy = apps::check_accuracy(c, work, replay->results());
  const apps::Roofline limits = limits_of(c);
  Json facts = {
      {"title", c.title()}, {"flops", c.flops}, {"bytes", c.bytes}, {"error_of_result", accuracy.error}, {"tolerance", accuracy.tolerance}};
  facts.update(facts_of(c, limits));
  return {.call = [replay] { replay->seconds(); },
          .facts = facts,
          .facts_after = [c, limits] { return facts_of(c, higher(limits, limits_of(c))); }};
}

/// Of networks the machine's arithmetic is known, not what they move.
bench::Prepared prepare_model(const Json& c) {
  bench::Prepared work = bench::prepare_model(c);
  const auto peak = [] { return Json{{"peak_gflops", limits_of(DType::float32, 1 << 24).gflops}}; };
  work.facts.update(peak());
  work.facts_after = peak;
  return work;
}

bench::Prepared prepare(const Json& c) {
  const std::vector<std::string> kernels = apps::kernel_names();
  return std::ranges::find(kernels, c.at("kernel").get<std::string>()) == kernels.end() ? prepare_model(c) : prepare_kernel(c);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "first-step" || what == "first-search") {
    std::cout << (what == "first-step" ? bench::first_step() : bench::first_search()).dump() << std::endl;
    return 0;
  }
  if (!what.empty()) {
    std::cerr << "kernels_ours: " << what << ": expects first-step, first-search or nothing\n";
    return 2;
  }
  return bench::serve("", prepare, {{"arch", Device::get(default_device()).target().arch.str()}});
}

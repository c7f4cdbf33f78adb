#include "simulate/simulate.h"

#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <tinygrad/comm.h>
#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/simulate.h>

#include "common/json_line.h"
#include "models/models.h"

namespace tinygrad::apps {

namespace {

using Json = nlohmann::ordered_json;

/// One number of an object, which has to be there.
double number_of(const Json& object, const char* name, const std::string& where) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number()) throw FormatError(fmt::format("{}: expects the number \"{}\"", where, name));
  return at->get<double>();
}

Link link_of(const Json& network, const char* name, const std::string& path) {
  const auto at = network.find(name);
  if (at == network.end() || !at->is_object()) throw FormatError(fmt::format("{}: expects the object \"{}\"", path, name));
  const std::string where = fmt::format("{}: \"{}\"", path, name);
  for (const auto& [key, value] : at->items())
    if (key != "latency_us" && key != "gb_s") throw FormatError(fmt::format("{}: \"{}\" is no number of a link", where, key));
  const Link link{number_of(*at, "latency_us", where) * 1e-6, number_of(*at, "gb_s", where) * 1e9};
  if (!(link.latency_s >= 0) || !(link.bytes_per_s > 0))
    throw FormatError(fmt::format("{}: expects a latency of at least 0 and a speed above 0", where));
  return link;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf())) throw IoError(fmt::format("cannot read {}", path));
  return text.str();
}

Network read_network(const std::string& path) {
  const Link link{14e-6, 12.5e9};
  if (path.empty()) return {.ranks_per_node = 1, .within = link, .between = link};
  const Json json = Json::parse(text_of(path), nullptr, false);
  if (!json.is_object()) throw FormatError(fmt::format("{}: no JSON object", path));
  for (const auto& [key, value] : json.items())
    if (key != "ranks_per_node" && key != "within" && key != "between")
      throw FormatError(fmt::format("{}: \"{}\" is nothing that a network has", path, key));
  Network network;
  network.between = link_of(json, "between", path);
  network.within = json.contains("within") ? link_of(json, "within", path) : network.between;
  if (json.contains("ranks_per_node")) {
    const double count = number_of(json, "ranks_per_node", path);
    if (!(count >= 1 && count <= 1e6) || count != int(count)) throw FormatError(fmt::format("{}: ranks_per_node is {}", path, count));
    network.ranks_per_node = int(count);
  }
  return network;
}

}  // namespace

namespace {

Workload workload(const SimulateArgs& o, const char* device_of_rank) {
  Spread spread{.fully_sharded = o.fully_sharded};
  for (int r = 0; r < o.ranks; ++r) spread.devices.push_back(canonical_device(device_of_rank + std::to_string(r)));
  return make_workload(o.model, spread);
}

void measure_model(const SimulateArgs& o) {
  if (world_size() != o.ranks)
    throw ValueError(fmt::format("--measure: there are {} ranks here; start it with `mpirun -n {}`", world_size(), o.ranks));
  const double seconds = measure_step(workload(o, "CPU@").results);
  if (rank() != 0) return;
  if (o.json) return print_json({{"model", o.model}, {"ranks", o.ranks}, {"measured_step_s", seconds}});
  fmt::print("{} on {} ranks, measured\n  step      {:>10.3f} ms\n", o.model, o.ranks, seconds * 1e3);
}

}  // namespace

void simulate_model(const SimulateArgs& o) {
  const Network network = read_network(o.network);
  if (o.measure) return measure_model(o);
  const Context without_devices{{.dev = "NULL"}};
  const Workload work = workload(o, "NULL:");
  const Simulation s = simulate(work.results, network);
  if (o.json)
    return print_json({{"model", o.model},
                       {"ranks", o.ranks},
                       {"step_s", s.step_s},
                       {"compute_s", s.compute_s},
                       {"exchange_s", s.exchange_s},
                       {"exchanges", s.exchanges},
                       {"bytes_received", s.bytes_received},
                       {"bytes_per_link", s.bytes_per_link},
                       {"memory_per_rank", s.memory_per_rank},
                       {"kernels", s.kernels}});
  const auto bar = [&](double seconds) { return std::string(size_t(s.step_s > 0 ? 40 * seconds / s.step_s + 0.5 : 0), '#'); };
  fmt::print("{} on {} ranks, simulated\n", o.model, o.ranks);
  fmt::print("  step      {:>10.3f} ms\n", s.step_s * 1e3);
  fmt::print("  compute   {:>10.3f} ms  {}\n", s.compute_s * 1e3, bar(s.compute_s));
  fmt::print("  exchange  {:>10.3f} ms  {}\n", s.exchange_s * 1e3, bar(s.exchange_s));
  fmt::print("  {} exchanges, {:.3f} MB to a rank, {:.3f} MB through the busiest link\n", s.exchanges, double(s.bytes_received) / 1e6,
             double(s.bytes_per_link) / 1e6);
  fmt::print("  {:.3f} MB of memory a rank, {} kernels\n", double(s.memory_per_rank) / 1e6, s.kernels);
}

}  // namespace tinygrad::apps

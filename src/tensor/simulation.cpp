#include <tinygrad/simulate.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <vector>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "device/buffer.h"
#include "engine/run.h"
#include "schedule/kernel_calls.h"
#include "schedule/schedule.h"
#include "shape/device.h"
#include "tensor/memory.h"
#include "tensor/realize.h"

namespace tinygrad {

namespace {

constexpr const char* computing = "CPU";

void check(const Link& link, const char* which) {
  if (!(link.bytes_per_s > 0) || !(link.latency_s >= 0))
    throw ValueError(fmt::format("simulate: the link {} has {} bytes a second and {} s of latency, expects more than 0 and at least 0",
                                 which, link.bytes_per_s, link.latency_s));
}

/// As if the ranks' memory was apart, as that of processes is.
const Target& target_of_rank(Symbol) {
  static const Target& target = *[] {
    auto* t = new Target(Device::get(computing).target());
    t->shares_memory = false;
    return t;
  }();
  return target;
}

/// The devices of the ranks, in order.
std::vector<Symbol> ranks_of(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors) {
    const Devices devices = devices_of(t.uop());
    if (!devices.are_several()) continue;
    std::vector<Symbol> out;
    for (size_t s = 0; s < devices.size(); ++s)
      if (std::ranges::find(out, devices[s]) == out.end()) out.push_back(devices[s]);
    return out;
  }
  throw ValueError("simulate: no tensor is on several devices; shard() divides them");
}

/// What the ranks' messages take, of one after another.
class Exchanges {
 public:
  Exchanges(const Network& network, const std::vector<Symbol>& ranks, Simulation& out) : network_(network), out_(out) {
    for (size_t r = 0; r < ranks.size(); ++r) rank_of_[ranks[r]] = int(r);
  }

  /// A message to rank 0.
  void receive(Symbol from, int64_t bytes) {
    const int node = rank_of_.at(from) / network_.ranks_per_node;
    (node == 0 ? within_ : between_) += bytes;
    out_.bytes_received += bytes;
    is_under_way_ = true;
  }
  /// Waits for what is under way. A node's ranks all do the same.
  void wait() {
    if (!is_under_way_) return;
    const int64_t of_node = between_ * network_.ranks_per_node;
    double seconds = 0;
    if (within_) seconds = network_.within.latency_s + double(within_) / network_.within.bytes_per_s;
    if (of_node) seconds = std::max(seconds, network_.between.latency_s + double(of_node) / network_.between.bytes_per_s);
    out_.exchange_s += seconds;
    out_.exchanges += 1;
    bytes_within_ += within_;
    bytes_of_nodes_ += of_node;
    out_.bytes_per_link = std::max(bytes_within_, bytes_of_nodes_);
    within_ = between_ = 0;
    is_under_way_ = false;
  }

 private:
  const Network& network_;
  Simulation& out_;
  std::unordered_map<Symbol, int> rank_of_;
  int64_t within_ = 0, between_ = 0, bytes_within_ = 0, bytes_of_nodes_ = 0;
  bool is_under_way_ = false;
};

/// The device that a slot of a plan is on.
Symbol device_of_slot(const schedule::Schedule& s, int32_t slot) {
  if (size_t(slot) < s.inputs.size()) return s.inputs[size_t(slot)].arg_as<BufferArg>().device;
  return s.plan->arenas[s.plan->temporaries[size_t(slot) - s.inputs.size()].arena].device;
}

/// The schedule with all of a rank's memory on the device that computes, and without what comes from others.
schedule::Schedule computed_here(const schedule::Schedule& s, Symbol rank, std::span<const UOp> calls) {
  const Symbol here = computing;
  auto plan = std::make_shared<schedule::Plan>(*s.plan);
  for (schedule::Arena& a : plan->arenas)
    if (a.device == rank) a.device = here;
  std::vector<UOp> moved;
  for (const UOp& call : calls) {
    UOps sources(call.src());
    if (schedule::is_copy(call)) {
      DeviceArg arg = sources[0].arg_as<DeviceArg>();
      arg.device = here;
      sources[0] = sources[0].with_arg(arg);
    }
    moved.push_back(call.with_src(sources));
  }
  plan->linear = schedule::linear_of(moved);
  schedule::Schedule out{plan, s.inputs, s.variables};
  for (UOp& b : out.inputs) {
    const BufferArg& arg = b.arg_as<BufferArg>();
    if (arg.device != rank) continue;
    b = tensor::make_memory(Shape{SInt(arg.size)}, b.dtype(), here);
    buffer_of(b).copyin(std::vector<std::byte>(buffer_of(b).nbytes()));
  }
  return out;
}

double median_of_runs(const schedule::Schedule& s, int repeats) {
  const Options& options = current_options();
  engine::run_schedule(s, options);  // compiles
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    const auto start = std::chrono::steady_clock::now();
    engine::run_schedule(s, options);
    Device::get(computing).wait();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + std::ptrdiff_t(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

}  // namespace

double measure_step(std::span<const Tensor> tensors, const SimulateOptions& options) {
  const auto how = schedule::ScheduleOptions::from(current_options());
  return median_of_runs(schedule::make_schedule(tensor::effects_of(tensors), engine::target_of, how), options.repeats);
}

Simulation simulate(std::span<const Tensor> tensors, const Network& network, const SimulateOptions& options) {
  check(network.within, "within a node");
  check(network.between, "between nodes");
  const std::vector<Symbol> ranks = ranks_of(tensors);
  if (network.ranks_per_node < 1 || (ranks.size() > size_t(network.ranks_per_node) && ranks.size() % size_t(network.ranks_per_node) != 0))
    throw ValueError(fmt::format("simulate: {} ranks on nodes of {}; expects full nodes", ranks.size(), network.ranks_per_node));

  schedule::ScheduleOptions how = schedule::ScheduleOptions::from(current_options());
  how.cache = false;
  how.only_device = ranks[0];
  const schedule::Schedule s = schedule::make_schedule(tensor::effects_of(tensors), target_of_rank, how);

  Simulation out;
  Exchanges exchanges(network, ranks, out);
  std::vector<UOp> own;
  for (const UOp& call : s.plan->linear.src()) {
    if (schedule::is_copy(call)) {
      const Symbol from = device_of_slot(s, schedule::copied_from(call).arg_as<ParamArg>().slot);
      const int64_t bytes = schedule::range_of_copy(call.src(0)).count * int64_t(itemsize(call.src(0).dtype()));
      if (from != ranks[0]) {
        exchanges.receive(from, bytes);
        continue;
      }
    } else {
      exchanges.wait();
      ++out.kernels;
    }
    own.push_back(call);
  }
  exchanges.wait();
  for (const schedule::Arena& a : s.plan->arenas)
    if (a.device == ranks[0]) out.memory_per_rank += a.bytes;
  for (const UOp& b : s.inputs)
    if (b.arg_as<BufferArg>().device == ranks[0]) out.memory_per_rank += int64_t(buffer_of(b).nbytes());

  if (!own.empty()) out.compute_s = median_of_runs(computed_here(s, ranks[0], own), options.repeats);
  out.step_s = out.compute_s + out.exchange_s;
  return out;
}

}  // namespace tinygrad

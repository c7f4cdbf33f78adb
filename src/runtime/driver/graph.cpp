#include <vector>

#include <tinygrad/errors.h>

#include "runtime/driver/kernel.h"

namespace tinygrad::runtime::driver {
namespace {

/// Launches one after another as one object of the driver.
class GpuGraph final : public tinygrad::Graph {
 public:
  explicit GpuGraph(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)), api_(gpu_->api()) {}
  ~GpuGraph() override {
    api_.enter(gpu_->context());
    if (exec_) api_.graph_exec_destroy(exec_);
    if (graph_) api_.graph_destroy(graph_);
  }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// False if a launch cannot be a part of it.
  bool build(std::span<const GraphLaunch> launches) {
    gpu_->enter();
    api_.check(api_.graph_create(&graph_, 0), "making a graph");
    Arguments arguments;
    for (const GraphLaunch& l : launches) {
      const auto* kernel = dynamic_cast<const GpuKernel*>(l.kernel);
      KernelNode node;
      if (!kernel || !kernel->describe(l, arguments, node)) return false;
      const GraphNode* before = nodes_.empty() ? nullptr : &nodes_.back();
      GraphNode made = nullptr;
      api_.check(api_.add_kernel(&made, graph_, before, node), "adding a kernel to a graph");  // copies the arguments
      nodes_.push_back(made);
    }
    api_.check(api_.graph_instantiate(&exec_, graph_, 0), "making a graph");
    return true;
  }

  std::optional<double> launch(std::span<const GraphLaunch> launches, std::span<const uint32_t> changed, bool wait) override {
    gpu_->enter();
    for (const uint32_t i : changed) {
      const auto& kernel = static_cast<const GpuKernel&>(*launches[i].kernel);
      KernelNode node;
      if (!kernel.describe(launches[i], arguments_, node))
        throw DeviceError(api_.name() + ": a launch of a graph has no work-groups now; call it without a graph (JIT=2)");
      api_.check(api_.set_kernel(exec_, nodes_[i], node), "changing a kernel of a graph");
    }
    const auto start = [&] { api_.check(api_.graph_launch(exec_, gpu_->stream()), "launching a graph"); };
    return seconds_of(*gpu_, wait, start);
  }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  const Driver& api_;
  driver::Graph graph_ = nullptr;
  GraphExec exec_ = nullptr;
  std::vector<GraphNode> nodes_;
  Arguments arguments_;
};

}  // namespace

std::unique_ptr<tinygrad::Graph> make_graph(const std::shared_ptr<const Gpu>& gpu, std::span<const GraphLaunch> launches) {
  auto graph = std::make_unique<GpuGraph>(gpu);
  return graph->build(launches) ? std::move(graph) : nullptr;
}

}  // namespace tinygrad::runtime::driver

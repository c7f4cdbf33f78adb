#pragma once
/// Hardware that is not there: kernels run on the interpreter, or on a device of this machine, but late, in graphs, or not at all, as a
/// test wants.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <tinygrad/errors.h>

#include "device/device.h"
#include "device/fake_device.h"
#include "runtime/interp/kernel.h"

namespace tinygrad::test {

/// What the devices named FAKEHW and OVER do, and has done. Reset by each test.
struct Hardware {
  bool async = false, graphs = false, declines_graphs = false, peers = false;
  std::atomic<int> fail_in{-1};  ///< launches from now until one fails: at once, or at the wait where async
  bool lost = false;             ///< after that, all of them, until it is false again

  int launches = 0, graphs_made = 0, graph_runs = 0, peer_copies = 0;
  std::vector<size_t> graph_sizes;
  std::vector<std::vector<uint32_t>> changed;  ///< of each run of a graph

  std::vector<std::function<void()>> queue;  ///< launched, and not yet run
  std::string error;                         ///< for the next wait

  /// Runs a launch, or what stands for it failing.
  void run(const std::function<void()>& launch) {
    if (lost || fail_in.fetch_sub(1) == 0) {
      lost = lost || lose_when_failing;
      throw DeviceError("FAKEHW: device lost");
    }
    launch();
  }
  bool lose_when_failing = false;

  void submit(std::function<void()> launch) {
    ++launches;
    if (async)
      queue.push_back(std::move(launch));
    else
      run(launch);
  }
  void drain() {
    std::vector<std::function<void()>> begun;
    begun.swap(queue);
    try {
      for (const auto& launch : begun) run(launch);
    } catch (const DeviceError& e) {
      if (error.empty()) error = e.what();
    }
    if (!error.empty()) throw DeviceError(std::exchange(error, {}));
  }

  static Hardware& get() {
    static Hardware hardware;
    return hardware;
  }
  /// As new.
  static Hardware& reset() {
    Hardware& h = get();
    h.async = h.graphs = h.declines_graphs = h.peers = h.lost = h.lose_when_failing = false;
    h.fail_in = -1;
    h.launches = h.graphs_made = h.graph_runs = h.peer_copies = 0;
    h.graph_sizes.clear();
    h.changed.clear();
    h.queue.clear();
    h.error.clear();
    return h;
  }
};

class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    Hardware& h = Hardware::get();
    h.submit([kernel = kernel_, b = std::vector(buffers.begin(), buffers.end()), v = std::vector(variables.begin(), variables.end()),
              dims] { kernel->launch(b, v, dims); });
    if (!wait) return std::nullopt;
    if (h.async) h.drain();
    return 1e-6;
  }

 private:
  std::shared_ptr<Kernel> kernel_;
};

/// Keeps its own list of what to launch, as a device's graph does, and takes from the caller's what it is told has changed.
class FakeGraph final : public Graph {
 public:
  explicit FakeGraph(std::span<const GraphLaunch> launches) : nodes_(launches.size()) {
    for (uint32_t i = 0; i < nodes_.size(); ++i) update(i, launches[i]);
  }
  std::optional<double> launch(std::span<const GraphLaunch> launches, std::span<const uint32_t> changed, bool) override {
    Hardware& h = Hardware::get();
    ++h.graph_runs;
    h.changed.emplace_back(changed.begin(), changed.end());
    for (uint32_t i : changed) update(i, launches[i]);
    for (const Node& n : nodes_) n.kernel->launch(n.buffers, n.variables, n.dims);
    return std::nullopt;
  }

 private:
  struct Node {
    Kernel* kernel = nullptr;
    std::vector<void*> buffers;
    std::vector<int64_t> variables;
    LaunchDims dims;
  };
  void update(uint32_t i, const GraphLaunch& l) {
    nodes_[i] = {l.kernel, {l.buffers.begin(), l.buffers.end()}, {l.variables.begin(), l.variables.end()}, l.dims};
  }
  std::vector<Node> nodes_;
};

class FakeHardware : public Device {
 public:
  explicit FakeHardware(const std::string& name)
      : FakeHardware(name, interp_target(), std::make_unique<CountingAllocator>(name, false), no_code) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string&) override {
    return std::make_unique<FakeKernel>(runtime::interp::make_kernel(info, linear));
  }
  bool is_async() const override { return Hardware::get().async; }
  void synchronize() override { Hardware::get().drain(); }
  bool has_graphs() const override { return Hardware::get().graphs; }
  std::unique_ptr<Graph> make_graph(std::span<const GraphLaunch> launches) override {
    Hardware& h = Hardware::get();
    if (h.declines_graphs) return nullptr;
    ++h.graphs_made;
    h.graph_sizes.push_back(launches.size());
    return std::make_unique<FakeGraph>(launches);
  }
  Queue* queue() override { return Hardware::get().peers ? &queue_ : nullptr; }

 protected:
  FakeHardware(const std::string& name, const Target& target, std::unique_ptr<Allocator> allocator, const CodePath& code)
      : Device(name, target, std::move(allocator), code) {}
  virtual bool is_peer(const Device& other) const { return dynamic_cast<const FakeHardware*>(&other) != nullptr; }
  virtual void copy_memory(void* to, void* from, size_t bytes) { std::memcpy(to, from, bytes); }

 private:
  struct NoSignal final : Signal {
    void wait() override { Hardware::get().drain(); }
  };
  /// All hardware has one queue, in which everything is in order.
  class OneQueue final : public Queue {
   public:
    explicit OneQueue(FakeHardware& device) : device_(device) {}
    void submit(std::span<const Command> commands) override {
      Hardware& h = Hardware::get();
      for (const Command& command : commands) {
        if (const auto* l = std::get_if<LaunchCommand>(&command)) l->kernel->launch(l->buffers, l->variables, l->dims);
        const auto* c = std::get_if<CopyCommand>(&command);
        if (!c) continue;
        if (c->source != &device_) ++h.peer_copies;
        h.submit([this, copy = *c] { device_.copy_memory(copy.to, copy.from, copy.bytes); });
      }
    }
    SignalPtr make_signal() override { return std::make_shared<NoSignal>(); }
    bool can_wait_for(const Queue& other) const override { return dynamic_cast<const OneQueue*>(&other); }
    bool can_copy_from(Device& source) override { return &source == &device_ || device_.is_peer(source); }

   private:
    FakeHardware& device_;
  };
  OneQueue queue_{*this};
};

/// Memory of another device, given back once what was launched has run.
class AllocatorOver final : public Allocator {
 public:
  AllocatorOver(std::string name, Allocator& under) : Allocator(std::move(name)), under_(under) {}

  bool uses_host_memory() const override { return under_.uses_host_memory(); }
  void* offset(void* handle, size_t bytes) const override { return under_.offset(handle, bytes); }
  std::byte* host_pointer(void* handle) const override { return under_.host_pointer(handle); }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override { under_.copy_in(handle, from, bytes); }
  void copy_out(std::byte* to, void* handle, size_t bytes) override { under_.copy_out(to, handle, bytes); }
  void copy(void* to, void* from, size_t bytes) override { under_.copy(to, from, bytes); }

 protected:
  void* take(size_t bytes, const BufferSpec& spec) override { return under_.allocate(bytes, spec); }
  void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept override {
    freed_.push_back({handle, bytes, spec});
    if (!Hardware::get().queue.empty()) return;
    for (const Freed& f : freed_) under_.deallocate(f.handle, f.bytes, f.spec);
    freed_.clear();
  }

 private:
  struct Freed {
    void* handle;
    size_t bytes;
    BufferSpec spec;
  };
  Allocator& under_;
  std::vector<Freed> freed_;
};

/// OVER:2n and OVER:2n+1 are hardware whose kernels run on the device number n of `devices`.
class HardwareOver final : public FakeHardware {
 public:
  HardwareOver(const std::string& name, Device& under)
      : FakeHardware(name, under.target(), std::make_unique<AllocatorOver>(name, under.allocator()), under.code_path()), under_(under) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) override {
    return std::make_unique<FakeKernel>(under_.load(info, linear, binary));
  }
  void synchronize() override {
    FakeHardware::synchronize();
    under_.synchronize();
  }

  static std::vector<std::string>& devices() {
    static std::vector<std::string> names;
    return names;
  }

 private:
  bool is_peer(const Device& other) const override {
    const auto* over = dynamic_cast<const HardwareOver*>(&other);
    return over && &over->under_ == &under_;
  }
  void copy_memory(void* to, void* from, size_t bytes) override { under_.allocator().copy(to, from, bytes); }

  Device& under_;
};

inline void register_fake_hardware() {
  static constexpr Backend kFake{
      .name = "FAKEHW",
      .may_be_default = false,
      .unavailable = [] { return std::string(); },
      .open = [](const DeviceChoice& choice) -> std::unique_ptr<Device> { return std::make_unique<FakeHardware>(choice.canonical()); }};
  register_backend(kFake);
}

inline void register_hardware_over(const std::vector<std::string>& devices) {
  HardwareOver::devices() = devices;
  static constexpr Backend kOver{.name = "OVER",
                                 .may_be_default = false,
                                 .unavailable = [] { return std::string(); },
                                 .open = [](const DeviceChoice& choice) -> std::unique_ptr<Device> {
                                   Device& under = Device::get(HardwareOver::devices().at(size_t(choice.index) / 2));
                                   return std::make_unique<HardwareOver>(choice.canonical(), under);
                                 }};
  register_backend(kOver);
}

}  // namespace tinygrad::test

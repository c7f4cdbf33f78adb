#include "runtime/driver/queue.h"

#include <fmt/core.h>

#include "runtime/driver/memory.h"

namespace tinygrad::runtime::driver {
namespace {

class StreamSignal final : public Signal {
 public:
  explicit StreamSignal(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)), moment_(*gpu_) {}
  void wait() override { moment_.wait(); }
  const Moment& moment() const { return moment_; }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  const Moment moment_;
};

const StreamQueue* queue_of(Device& device) { return dynamic_cast<const StreamQueue*>(device.queue()); }

}  // namespace

void StreamQueue::submit(std::span<const Command> commands) {
  gpu_->enter();
  for (const Command& c : commands) std::visit([&](const auto& command) { run(command); }, c);
}

SignalPtr StreamQueue::make_signal() {
  gpu_->enter();
  return std::make_shared<StreamSignal>(gpu_);
}

void StreamQueue::run(const LaunchCommand& c) const { c.kernel->launch(c.buffers, c.variables, c.dims); }

void StreamQueue::run(const CopyCommand& c) const {
  const Driver& api = gpu_->api();
  const auto address = GpuAllocator::address;
  const Gpu& other = *queue_of(*c.source)->gpu_;
  if (&other == gpu_.get()) return c.source->allocator().copy(c.to, c.from, c.bytes);
  gpu_->timed(fmt::format("copy from {}", c.source->name().str()), "copy", [&] {
    api.check(api.copy_to_peer(address(c.to), gpu_->context(), address(c.from), other.context(), c.bytes, gpu_->stream()),
              "copying from a peer");
  });
}

void StreamQueue::run(const WaitCommand& c) const {
  const Driver& api = gpu_->api();
  api.check(api.stream_wait_event(gpu_->stream(), static_cast<const StreamSignal&>(*c.signal).moment().event(), 0), "waiting for a peer");
}

void StreamQueue::run(const RaiseCommand& c) const { static_cast<const StreamSignal&>(*c.signal).moment().record(); }

bool StreamQueue::can_wait_for(const Queue& other) const {
  const auto* stream = dynamic_cast<const StreamQueue*>(&other);
  return stream && &stream->gpu_->api() == &gpu_->api();
}

bool StreamQueue::can_copy_from(Device& source) {
  const StreamQueue* other = queue_of(source);
  return other && can_wait_for(*other) && (other->gpu_->context() == gpu_->context() || reaches(*other->gpu_));
}

bool StreamQueue::reaches(const Gpu& other) {
  const std::lock_guard lock(mutex_);
  if (reached_.contains(&other)) return true;
  const Driver& api = gpu_->api();
  int can = 0;
  api.check(api.can_access_peer(&can, gpu_->number(), other.number()), "asking for peer access");
  if (!can) return false;
  gpu_->enter();
  const Result enabled = api.enable_peer(other.context());
  if (enabled != kPeerAccessAlreadyEnabled) api.check(enabled, "enabling peer access");
  reached_.insert(&other);
  return true;
}

}  // namespace tinygrad::runtime::driver

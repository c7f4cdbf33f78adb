#include <tinygrad/queue.h>

#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "base/interrupt.h"

#include "device/device.h"

namespace tinygrad {
namespace {

void submit(Queue& queue, std::initializer_list<Command> commands) { queue.submit(std::span(commands.begin(), commands.size())); }

}  // namespace

bool copy_by_queues(Device& target, void* to, Device& source, void* from, size_t bytes) {
  Queue *mine = target.queue(), *theirs = source.queue();
  if (!mine || !theirs || !mine->can_copy_from(source)) return false;
  const CopyCommand copy{to, &source, from, bytes};
  if (mine == theirs) {
    submit(*mine, {copy});
    return true;
  }
  if (!mine->can_wait_for(*theirs) || !theirs->can_wait_for(*mine)) return false;
  const SignalPtr written = theirs->make_signal(), read = mine->make_signal();
  submit(*theirs, {RaiseCommand{written}});
  submit(*mine, {WaitCommand{written}, copy, RaiseCommand{read}});
  submit(*theirs, {WaitCommand{read}});  // what comes next may overwrite what is read
  return true;
}

Signal::~Signal() = default;
Queue::~Queue() = default;

namespace {

/// A signal that carries the failure of the queue that raised it, if there was one.
class HostSignal final : public Signal {
 public:
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return raised_; });
  }
  void raise(std::string failure) {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    failure_ = std::move(failure);
    changed_.notify_all();
  }
  std::string failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
  std::string failure_;
};

/// A command with copies of what it refers to.
struct Task {
  std::shared_ptr<const Options> options;
  Command command;
  std::vector<void*> buffers = {};
  std::vector<int64_t> variables = {};

  explicit Task(const Command& c) : options(Context::current()), command(c) {
    auto* launch = std::get_if<LaunchCommand>(&command);
    if (!launch) return;
    buffers.assign(launch->buffers.begin(), launch->buffers.end());
    variables.assign(launch->variables.begin(), launch->variables.end());
  }
};

}  // namespace

/// Shared by the queue and its thread, which may outlive it.
struct HostQueue::State {
  const std::string device;
  std::mutex mutex;
  std::unique_ptr<std::condition_variable> arrived = std::make_unique<std::condition_variable>(),
                                           finished = std::make_unique<std::condition_variable>();
  std::deque<Task> tasks;
  pid_t thread_in = 0;  ///< the process that has the thread; a forked child has none yet
  bool ends = false, is_running = false;
  std::string failure;  ///< what synchronize() throws next

  explicit State(std::string name) : device(std::move(name)) {}

  bool is_idle() const { return tasks.empty() && !is_running; }
  void fail(const std::string& why) {
    const std::lock_guard lock(mutex);
    if (failure.empty()) failure = why;
  }
  std::string failure_now() {
    const std::lock_guard lock(mutex);
    return failure;
  }

  void operator()(const LaunchCommand& c, const Task& task) { c.kernel->launch(task.buffers, task.variables, c.dims); }
  void operator()(const CopyCommand& c, const Task&) {
    if (c.bytes != 0) std::memmove(c.to, c.source->allocator().host_pointer(c.from), c.bytes);
  }
  void operator()(const WaitCommand& c, const Task&) {
    c.signal->wait();
    const auto* of_host = dynamic_cast<const HostSignal*>(c.signal.get());
    if (const std::string why = of_host ? of_host->failure() : std::string(); !why.empty()) fail(why);
  }
  void operator()(const RaiseCommand& c, const Task&) { static_cast<HostSignal&>(*c.signal).raise(failure_now()); }

  /// Under the mutex. What ran at the moment of a fork has run in the parent only.
  static void ensure_thread(const std::shared_ptr<State>& state) {
    if (state->thread_in == ::getpid()) return;
    if (state->thread_in != 0) state->forget_waiters();
    if (std::exchange(state->is_running, false) && state->failure.empty()) state->failure = "the process was forked while a command ran";
    try {
      std::thread([state] { state->run_all(); }).detach();
    } catch (const std::system_error& e) {
      throw DeviceError(fmt::format("{}: no thread for its queue: {}", state->device, e.what()));
    }
    state->thread_in = ::getpid();
  }
  /// After a fork, in which what waits for the parent's conditions stays behind: to wake it, or to destroy them, would take for ever.
  void forget_waiters() {
    for (auto* condition : {&arrived, &finished}) {
      (void)condition->release();
      *condition = std::make_unique<std::condition_variable>();
    }
  }
  /// Until all has run; with the lock.
  static std::unique_lock<std::mutex> finish(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    if (!state->is_idle()) ensure_thread(state);
    state->finished->wait(lock, [&] { return state->is_idle(); });
    return lock;
  }

  void run(const Task& task) {
    const Context options(task.options);
    const Uninterruptible to_the_end;  // what was submitted counts as done
    try {
      std::visit([&](const auto& command) { (*this)(command, task); }, task.command);
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }

  void run_all() {
    std::unique_lock lock(mutex);
    for (;;) {
      arrived->wait(lock, [&] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      std::optional<Task> task(std::move(tasks.front()));
      tasks.pop_front();
      is_running = true;
      lock.unlock();
      run(*task);
      task.reset();
      lock.lock();
      is_running = false;
      if (tasks.empty()) finished->notify_all();
    }
  }
};

HostQueue::HostQueue(std::string device) : state_(std::make_shared<State>(std::move(device))) {}

HostQueue::~HostQueue() {
  const std::lock_guard lock(state_->mutex);
  state_->ends = true;
  if (state_->thread_in == ::getpid()) state_->arrived->notify_all();
}

void HostQueue::submit(std::span<const Command> commands) {
  std::deque<Task> tasks;
  for (const Command& c : commands) tasks.emplace_back(c);
  const std::lock_guard lock(state_->mutex);
  State::ensure_thread(state_);
  for (Task& t : tasks) state_->tasks.push_back(std::move(t));
  state_->arrived->notify_one();
}

SignalPtr HostQueue::make_signal() { return std::make_shared<HostSignal>(); }

bool HostQueue::can_copy_from(Device& source) { return source.allocator().uses_host_memory(); }

bool HostQueue::drain() noexcept {
  try {
    const std::unique_lock lock = State::finish(state_);
    return state_->failure.empty();
  } catch (const DeviceError&) {  // without a thread nothing uses what goes
    return false;
  }
}

void HostQueue::synchronize() {
  const std::unique_lock lock = State::finish(state_);
  if (!state_->failure.empty()) throw DeviceError(fmt::format("{}: {}", state_->device, std::exchange(state_->failure, {})));
}

}  // namespace tinygrad

#include <pthread.h>
#include <tinygrad/context.h>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/first_error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "base/per_process.h"
#include "base/thread_pool.h"

namespace tinygrad {

detail::Task::Task() : options_(Context::current()) {}

void detail::Task::run_if_unclaimed() {
  if (claimed_.exchange(true, std::memory_order_acq_rel)) return;
  Context scope(options_);
  run();
}

struct TaskPool::State {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::shared_ptr<detail::Task>> queue;
  bool stop = false;
  std::vector<std::thread> threads;

  /// The next task; null when the pool ends and nothing is left.
  std::shared_ptr<detail::Task> take() {
    std::unique_lock lock(mutex);
    more.wait(lock, [&] { return stop || !queue.empty(); });
    if (queue.empty()) return nullptr;
    auto task = std::move(queue.front());
    queue.pop_front();
    return task;
  }
};

TaskPool::TaskPool(size_t threads) : state_(std::make_unique<State>()) {
  const auto serve = [state = state_.get()] {
    pthread_setname_np(pthread_self(), "tg-task");
    while (auto task = state->take()) task->run_if_unclaimed();
  };
  try {
    for (size_t i = 0; i < threads; i++) state_->threads.emplace_back(serve);
  } catch (const std::system_error&) {}  // the system gives no more of them: fewer do
}

TaskPool::~TaskPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->more.notify_all();
  for (std::thread& t : state_->threads) t.join();
}

size_t TaskPool::threads() const noexcept { return state_->threads.size(); }

void TaskPool::enqueue(std::shared_ptr<detail::Task> task) {
  if (threads() == 0) return task->run_if_unclaimed();
  {
    std::lock_guard lock(state_->mutex);
    state_->queue.push_back(std::move(task));
  }
  state_->more.notify_one();
}

void TaskPool::parallel_for(size_t count, FunctionRef<void(size_t)> fn) {
  std::atomic<size_t> next{0};
  FirstError error;
  SharedStop stop;
  const auto interrupted = [&] {
    try {
      check_interrupt();
    } catch (...) {
      stop.request();
      throw;
    }
  };
  auto work = [&] {
    const SharedStop::Scope part(stop);
    for (size_t i; !stop.requested() && (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      error.guard(i, [&] {
        interrupted();
        try {
          fn(i);
        } catch (const Cancelled&) {
          stop.request();
          throw;
        }
      });
    if (stop.requested()) error.guard(count, [] { throw Cancelled("cancelled"); });
  };
  // Who helps uses what is here, so nothing may be thrown before all have ended.
  std::vector<TaskFuture<void>> helpers;
  try {
    helpers.reserve(std::min(count, threads()));
    while (helpers.size() + 1 < std::min(count, threads() + 1)) helpers.push_back(submit(work));
  } catch (const std::bad_alloc&) {  // fewer help
  }
  work();
  for (auto& helper : helpers) {
    while (!stop.requested() && !helper.wait_for(std::chrono::milliseconds(10))) error.guard(count, interrupted);
    helper.get();
  }
  error.rethrow();
}

TaskPool& task_pool() {
  return detail::PerProcess<TaskPool>::get([] {
    const Options& options = current_options();
    return options.parallel >= 0 ? static_cast<size_t>(options.parallel) : cpu_thread_count(options);
  });
}

}  // namespace tinygrad

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/function_ref.h"

namespace tinygrad {

struct Options;

/// Fork-join threads for kernels, one pinned to each CPU, the caller's own thread standing in for the one on its CPU.
/// They spin for some microseconds after a job, so that the next of a row of kernels starts at once, and then sleep.
class ComputePool {
 public:
  explicit ComputePool(size_t threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  size_t threads() const noexcept;

  /// Calls fn(begin, end) on pieces that cover [0, chunks), each once, and returns when all are done. A thread starts with
  /// its own part of the range, the same from job to job, and helps others when it is done. One chunk, one thread, and
  /// calls from inside fn run at once in the calling thread; calls from several threads take turns. fn must not wait
  /// for another thread. When pieces throw, the rest still runs, and the exception of the first piece is rethrown. When the caller is
  /// cancelled, no more pieces begin.
  void run(size_t chunks, FunctionRef<void(size_t begin, size_t end)> fn);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The process's pool, made at the first use with the NUM_CPU_THREADS of the caller. Never destroyed; a child of fork() has its own.
ComputePool& compute_pool();

namespace detail {
/// A piece of work that runs once, in whichever thread claims it first.
class Task {
 public:
  Task();
  virtual ~Task() = default;
  /// Runs the work unless another thread has, or is just doing so. Under the options of the thread that submitted it.
  void run_if_unclaimed();

 protected:
  virtual void run() = 0;

 private:
  std::atomic<bool> claimed_{false};
  std::shared_ptr<const Options> options_;
};

template <class R, class F>
class TypedTask final : public Task {
 public:
  explicit TypedTask(F f) : work_(std::move(f)) {}
  std::future<R> future() { return work_.get_future(); }

 private:
  void run() override { work_(); }
  std::packaged_task<R()> work_;
};
}  // namespace detail

/// The result of a task. Waiting for a task that no thread has begun runs it in the waiting thread, so a task may wait
/// for others of its own pool.
template <class R>
class TaskFuture {
 public:
  TaskFuture() = default;
  TaskFuture(std::shared_ptr<detail::Task> task, std::future<R> future) : task_(std::move(task)), future_(std::move(future)) {}

  bool valid() const noexcept { return future_.valid(); }
  /// The value, or the exception that the task threw. Once.
  R get() {
    task_->run_if_unclaimed();
    return future_.get();
  }
  void wait() const {
    task_->run_if_unclaimed();
    future_.wait();
  }
  /// The same for some time at most; whether the task has ended.
  bool wait_for(std::chrono::milliseconds time) const {
    task_->run_if_unclaimed();
    return future_.wait_for(time) == std::future_status::ready;
  }

 private:
  std::shared_ptr<detail::Task> task_;
  std::future<R> future_;
};

/// Threads for work of any length: compiling, searching, reading files. Tasks see the options of the thread that
/// submitted them.
class TaskPool {
 public:
  /// With no threads a task runs in submit().
  explicit TaskPool(size_t threads);
  /// Finishes what was submitted.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  size_t threads() const noexcept;

  template <class F>
  auto submit(F&& f) -> TaskFuture<std::invoke_result_t<std::decay_t<F>&>> {
    using R = std::invoke_result_t<std::decay_t<F>&>;
    auto task = std::make_shared<detail::TypedTask<R, std::decay_t<F>>>(std::forward<F>(f));
    std::future<R> future = task->future();
    enqueue(task);
    return {std::move(task), std::move(future)};
  }

  /// Calls fn(i) for each i below count, the caller taking part, and returns when all are done. When calls throw, the
  /// others still run, and the exception of the lowest i is rethrown. When the caller, or a call, is cancelled, no more calls begin, and
  /// those in other threads are cancelled too.
  void parallel_for(size_t count, FunctionRef<void(size_t)> fn);

 private:
  struct State;
  void enqueue(std::shared_ptr<detail::Task> task);
  std::unique_ptr<State> state_;
};

/// The process's pool, made at the first use with the PARALLEL of the caller. Never destroyed; a child of fork() has its own.
TaskPool& task_pool();

}  // namespace tinygrad

// NVIDIA's driver in host memory, for tests of runtime/cuda: streams hold what was given to them until somebody waits, as a GPU that is
// slow. Modules are PTX, which the machine of the tests runs.
#include "support/fake_cuda/fake_cuda.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "support/fake_cuda/ptx_machine.h"

namespace {

using tinygrad::LaunchDims;
using tinygrad::test::FakeCuda;
using tinygrad::test::PtxBuffer;
using tinygrad::test::PtxMachine;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500, kNotReady = 600, kLaunchFailed = 719;

struct Event {
  bool done = true;
  double ms = 0;
};
struct Queue {
  std::deque<std::function<int()>> work;
  bool is_running = false;  ///< or waits for another one: what is behind stays behind
};
struct Module {
  PtxMachine machine;
  size_t parameters;
  size_t most_given_bytes = 48 << 10;  ///< until it is asked for more
};
struct Launch {
  Module* module;
  std::vector<uint64_t> values;
  LaunchDims dims;
  size_t given_bytes;
};
struct Nodes {
  std::vector<Launch*> nodes;
};
struct KernelNode {
  void* function;
  unsigned grid[3], group[3], shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

struct State {
  std::recursive_mutex mutex;
  FakeCuda control;
  std::map<char*, size_t> memory;  // device and pinned
  std::set<Queue*> streams;
  double now_ms = 0;
  std::vector<std::unique_ptr<Launch>> nodes;
};
State& state() {
  static State& s = *new State;
  return s;
}

/// The device's clock runs as the host's and was started at another time; no two things happen at once.
void step_clock() {
  const double now = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  constexpr double hour_ms = 3.6e6;
  state().now_ms = std::max(now + hour_ms, state().now_ms + 1e-5);
}

/// The error of a call that the test wants to fail, or 0.
int injected(const char* function) {
  FakeCuda& c = state().control;
  if (c.failing != function || c.fail_after-- > 0) return 0;
  c.failing.clear();
  return c.error;
}

template <class Body>
int call(const char* function, Body&& body) {
  const std::lock_guard lock(state().mutex);
  const int error = injected(function);
  return error ? error : body();
}

bool is_memory(const void* at, size_t bytes) {
  auto* begin = static_cast<char*>(const_cast<void*>(at));
  auto next = state().memory.upper_bound(begin);
  if (next == state().memory.begin()) return false;
  --next;
  return begin + bytes <= next->first + next->second;
}

int run(const Launch& l) {
  if (const int error = injected("kernel")) return error;
  std::vector<PtxBuffer> buffers;
  for (const auto& [at, bytes] : state().memory)
    buffers.push_back({reinterpret_cast<uint64_t>(at), {reinterpret_cast<std::byte*>(at), bytes}});
  try {
    l.module->machine.run(l.values, buffers, l.dims, l.given_bytes);
    ++state().control.kernels_run;
    return 0;
  } catch (const std::exception&) {
    return kLaunchFailed;
  }
}

int run_all(Queue& queue) {
  if (queue.is_running) return 0;
  queue.is_running = true;
  int error = 0;
  while (error == 0 && !queue.work.empty()) {
    const auto work = std::move(queue.work.front());
    queue.work.pop_front();
    step_clock();
    error = work();
  }
  if (error != 0) queue.work.clear();
  queue.is_running = false;
  return error;
}
void run_everything() {
  for (Queue* s : state().streams) run_all(*s);
}

Launch launch_of(void* function, const unsigned (&grid)[3], const unsigned (&group)[3], unsigned given_bytes, void** parameters) {
  Launch l{static_cast<Module*>(function), {}, {}, given_bytes};
  for (size_t i = 0; i < l.module->parameters; ++i) l.values.push_back(*static_cast<uint64_t*>(parameters[i]));
  for (int i = 0; i < 3; ++i) l.dims.global[i] = grid[i], l.dims.local[i] = group[i];
  return l;
}
bool is_possible(void* function, const unsigned (&grid)[3], const unsigned (&group)[3], size_t given_bytes) {
  const Module& m = *static_cast<Module*>(function);
  if (given_bytes + m.machine.shared_bytes() > m.most_given_bytes) return false;
  return grid[0] && grid[1] && grid[2] && grid[1] < 65536 && grid[2] < 65536 && group[0] * group[1] * group[2] <= 1024;
}

int later(void* stream, std::function<int()> work) {
  static_cast<Queue*>(stream)->work.push_back(std::move(work));
  return 0;
}
int copy_later(void* stream, void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  if ((to_device && !is_memory(to, bytes)) || (from_device && !is_memory(from, bytes))) return kInvalidValue;
  return later(stream, [=] { return std::memmove(to, from, bytes), 0; });
}

int allocate(void** memory, size_t bytes) {
  FakeCuda& c = state().control;
  if (bytes > c.memory_bytes || c.bytes > c.memory_bytes - bytes) return kOutOfMemory;
  auto* made = static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (!made) return kOutOfMemory;
  state().memory[made] = bytes;
  ++c.allocations;
  c.bytes += bytes;
  return *memory = made, 0;
}
int free_memory(void* memory) {
  run_everything();
  const auto found = state().memory.find(static_cast<char*>(memory));
  if (found == state().memory.end()) return kInvalidValue;
  --state().control.allocations;
  state().control.bytes -= found->second;
  state().memory.erase(found);
  return std::free(memory), 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) int

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
EXPORT cuInit(unsigned) {
  return call(__func__, [] { return 0; });
}
EXPORT cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", [&] { return *version = state().control.version, 0; });
}
EXPORT cuGetErrorName(int error, const char** name) {
  return *name = error == kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
                 : error == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
                                          : "CUDA_ERROR_OTHER",
         0;
}
EXPORT cuGetErrorString(int, const char** text) { return *text = "an error of the fake", 0; }
EXPORT cuDeviceGetCount(int* count) {
  return call(__func__, [&] { return *count = state().control.devices, 0; });
}
EXPORT cuDeviceGet(int* device, int number) {
  return call(__func__, [&] { return *device = number, 0; });
}
EXPORT cuDeviceGetAttribute(int* value, int which, int) {
  return call(__func__, [&] {
    const FakeCuda& c = state().control;
    return *value = which == 75 ? c.major : which == 76 ? c.minor : which == 97 ? c.most_group_bytes : 0, 0;
  });
}
EXPORT cuDevicePrimaryCtxRetain(void** context, int device) {
  return call(__func__, [&] { return *context = reinterpret_cast<void*>(uintptr_t(device) + 1), 0; });
}
EXPORT cuDevicePrimaryCtxRelease_v2(int) {
  return call(__func__, [] { return 0; });
}
EXPORT cuCtxSetCurrent(void*) {
  return call(__func__, [] { return 0; });
}
EXPORT cuStreamCreate(void** stream, unsigned) {
  return call(__func__, [&] {
    auto* made = new Queue;
    state().streams.insert(made);
    ++state().control.streams;
    return *stream = made, 0;
  });
}
EXPORT cuStreamDestroy_v2(void* stream) {
  return call(__func__, [&] {
    auto* queue = static_cast<Queue*>(stream);
    run_all(*queue);
    state().streams.erase(queue);
    --state().control.streams;
    return delete queue, 0;
  });
}
EXPORT cuStreamSynchronize(void* stream) {
  return call(__func__, [&] { return ++state().control.waits, run_all(*static_cast<Queue*>(stream)); });
}
EXPORT cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return call(__func__, [&] {
    return later(stream, [event] {
      if (!static_cast<Event*>(event)->done) run_everything();
      return 0;
    });
  });
}
EXPORT cuEventCreate(void** event, unsigned) {
  return call(__func__, [&] { return ++state().control.events, *event = new Event, 0; });
}
EXPORT cuEventDestroy_v2(void* event) {
  return call(__func__, [&] {
    run_everything();
    return --state().control.events, delete static_cast<Event*>(event), 0;
  });
}
EXPORT cuEventRecord(void* event, void* stream) {
  return call(__func__, [&] {
    auto* e = static_cast<Event*>(event);
    e->done = false;
    return later(stream, [e] { return e->done = true, e->ms = state().now_ms, 0; });
  });
}
EXPORT cuEventSynchronize(void* event) {
  return call(__func__, [&] {
    ++state().control.waits;
    for (Queue* s : state().streams)
      if (const int error = run_all(*s)) return error;
    return static_cast<Event*>(event)->done ? 0 : kNotReady;
  });
}
EXPORT cuEventElapsedTime(float* ms, void* from, void* to) {
  return call(__func__, [&] {
    const auto *begin = static_cast<Event*>(from), *end = static_cast<Event*>(to);
    if (!begin->done || !end->done) return kNotReady;
    return *ms = float(end->ms - begin->ms), 0;
  });
}
EXPORT cuMemAlloc_v2(void** memory, size_t bytes) {
  return call(__func__, [&] { return allocate(memory, bytes); });
}
EXPORT cuMemFree_v2(void* memory) {
  return call(__func__, [&] { return free_memory(memory); });
}
EXPORT cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return call(__func__, [&] { return allocate(memory, bytes); });
}
EXPORT cuMemFreeHost(void* memory) {
  return call(__func__, [&] { return free_memory(memory); });
}
EXPORT cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t n, void* stream) {
  return call(__func__, [&] { return copy_later(stream, to, from, n, true, false); });
}
EXPORT cuMemcpyDtoHAsync_v2(void* to, void* from, size_t n, void* stream) {
  return call(__func__, [&] { return copy_later(stream, to, from, n, false, true); });
}
EXPORT cuMemcpyDtoDAsync_v2(void* to, void* from, size_t n, void* stream) {
  return call(__func__, [&] {
    const auto *a = static_cast<char*>(to), *b = static_cast<char*>(from);
    if (a < b + n && b < a + n) return kInvalidValue;  // undefined in the real one
    return copy_later(stream, to, from, n, true, true);
  });
}
EXPORT cuMemcpyPeerAsync(void* to, void*, void* from, void*, size_t n, void* stream) {
  return call(__func__, [&] { return ++state().control.peer_copies, copy_later(stream, to, from, n, true, true); });
}
EXPORT cuDeviceCanAccessPeer(int* can, int, int) {
  return call(__func__, [&] { return *can = 1, 0; });
}
EXPORT cuCtxEnablePeerAccess(void*, unsigned) {
  return call(__func__, [] { return 704; });
}
EXPORT cuModuleLoadData(void** module, const char* image) {
  return call(__func__, [&] {
    try {
      auto made = std::make_unique<Module>(Module{.machine = PtxMachine(image), .parameters = 0});
      if (made->machine.entry().empty()) return kInvalidImage;
      made->parameters = made->machine.parameter_count();
      ++state().control.modules;
      return *module = made.release(), 0;
    } catch (const std::exception&) {
      return kInvalidImage;
    }
  });
}
EXPORT cuModuleUnload(void* module) {
  return call(__func__, [&] {
    run_everything();
    return --state().control.modules, delete static_cast<Module*>(module), 0;
  });
}
EXPORT cuModuleGetFunction(void** function, void* module, const char* name) {
  return call(__func__, [&] { return *function = module, static_cast<Module*>(module)->machine.entry() == name ? 0 : kNotFound; });
}
EXPORT cuFuncSetAttribute(void* function, int which, int value) {
  return call(__func__, [&] {
    if (which != 8 || value < 0 || value > state().control.most_group_bytes) return kInvalidValue;
    return static_cast<Module*>(function)->most_given_bytes = size_t(value), 0;
  });
}
EXPORT cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned given,
                      void* stream, void** parameters, void**) {
  return call(__func__, [&] {
    const unsigned grid[3] = {gx, gy, gz}, group[3] = {x, y, z};
    if (!is_possible(function, grid, group, given)) return kInvalidValue;
    ++state().control.launches;
    return later(stream, [l = launch_of(function, grid, group, given, parameters)] { return run(l); });
  });
}
EXPORT cuGraphCreate(void** graph, unsigned) {
  return call(__func__, [&] { return ++state().control.graphs, *graph = new Nodes, 0; });
}
EXPORT cuGraphDestroy(void* graph) {
  return call(__func__, [&] { return --state().control.graphs, delete static_cast<Nodes*>(graph), 0; });
}
EXPORT cuGraphAddKernelNode_v2(void** node, void* graph, void* const* before, size_t count, const KernelNode* k) {
  return call(__func__, [&] {
    auto& nodes = static_cast<Nodes*>(graph)->nodes;
    if (count != (nodes.empty() ? 0u : 1u) || (count && *before != nodes.back())) return kInvalidValue;  // a chain is all that is used
    if (!is_possible(k->function, k->grid, k->group, k->shared_bytes)) return kInvalidValue;
    state().nodes.push_back(std::make_unique<Launch>(launch_of(k->function, k->grid, k->group, k->shared_bytes, k->parameters)));
    nodes.push_back(state().nodes.back().get());
    return *node = nodes.back(), 0;
  });
}
EXPORT cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return call(__func__, [&] { return ++state().control.graphs, *exec = new Nodes(*static_cast<Nodes*>(graph)), 0; });
}
EXPORT cuGraphExecDestroy(void* exec) {
  return call(__func__, [&] {
    run_everything();
    return --state().control.graphs, delete static_cast<Nodes*>(exec), 0;
  });
}
EXPORT cuGraphExecKernelNodeSetParams_v2(void*, void* node, const KernelNode* k) {
  return call(__func__, [&] {
    if (!is_possible(k->function, k->grid, k->group, k->shared_bytes)) return kInvalidValue;
    return *static_cast<Launch*>(node) = launch_of(k->function, k->grid, k->group, k->shared_bytes, k->parameters), 0;
  });
}
EXPORT cuGraphLaunch(void* exec, void* stream) {
  return call(__func__, [&] {
    ++state().control.graph_launches;
    for (const Launch* l : static_cast<Nodes*>(exec)->nodes) later(stream, [copy = *l] { return run(copy); });
    return 0;
  });
}

extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda() { return &state().control; }
// NOLINTEND(readability-identifier-naming)

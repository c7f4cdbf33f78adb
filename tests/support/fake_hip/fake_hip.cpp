// AMD's runtime in host memory, for tests of runtime/hip: streams hold what was given to them until somebody waits, as a GPU that is slow.
// Modules are texts "NAME" of functions that are known here.
#include "fake_hip.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace {

using tinygrad::test::FakeHip;

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotReady = 600, kInvalidImage = 200, kNotFound = 500, kLaunchFailure = 719,
              kNoDevice = 100;

struct HipStream {
  int device;
  std::deque<std::function<int()>> work;
};

struct Event {
  HipStream* stream = nullptr;  ///< that it was recorded in last
  bool done = true;
  double ms = 0;
};

struct Function {
  std::string name;
  size_t arguments;
  std::function<int(void** arguments, size_t items)> run;
};

struct Node {
  Function* function;
  std::vector<uint64_t> values;
  size_t items;
};

struct HipGraph {
  std::vector<Node*> nodes;
};

struct State {
  std::recursive_mutex mutex;
  FakeHip control;
  std::map<char*, size_t> memory;  // device and pinned
  std::set<HipStream*> streams;
  double now_ms = 0;
  std::vector<std::unique_ptr<Node>> nodes;
};

State& state() {
  static State& s = *new State;
  return s;
}

thread_local int current_device = 0;

/// The device's clock runs as the host's and was started at another time; no two things happen at once.
void step_clock() {
  const double now = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  constexpr double hour_ms = 3.6e6;
  state().now_ms = std::max(now + hour_ms, state().now_ms + 1e-5);
}

/// The error of a call that the test wants to fail, or 0.
int injected(const char* function) {
  FakeHip& c = state().control;
  if (c.failing != function || c.fail_after-- > 0) return 0;
  c.failing.clear();
  return c.error;
}

/// What every function does first.
template <class Body>
int call(const char* function, Body&& body) {
  const std::lock_guard lock(state().mutex);
  const int error = injected(function);
  return error ? error : body();
}

bool is_memory(const void* at, size_t bytes) {
  const auto* begin = static_cast<const char*>(at);
  auto next = state().memory.upper_bound(const_cast<char*>(begin));
  if (next == state().memory.begin()) return false;
  --next;
  return begin + bytes <= next->first + next->second;
}

/// What a stream holds, as far as an event.
int run_stream(HipStream& stream, const Event* end = nullptr) {
  while (!stream.work.empty() && !(end && end->done)) {
    const auto work = std::move(stream.work.front());
    stream.work.pop_front();
    step_clock();
    if (const int error = work()) {
      stream.work.clear();
      return error;
    }
  }
  return 0;
}

void run_everything() {
  for (HipStream* s : state().streams) run_stream(*s);
}

Function functions[] = {
    {"kernel_add", 4,
     [](void** a, size_t) {
       auto* const out = *static_cast<float**>(a[0]);
       const auto *x = *static_cast<float**>(a[1]), *y = *static_cast<float**>(a[2]);
       const auto n = *static_cast<int64_t*>(a[3]);
       if (!is_memory(out, size_t(n) * 4) || !is_memory(x, size_t(n) * 4) || !is_memory(y, size_t(n) * 4)) return kLaunchFailure;
       for (int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
       return 0;
     }},
    {"kernel_broken", 0, [](void**, size_t) { return kLaunchFailure; }},
};

int run(const Node& node) {
  std::vector<void*> pointers;
  for (const uint64_t& v : node.values) pointers.push_back(const_cast<uint64_t*>(&v));
  return node.function->run(pointers.data(), node.items);
}

Node node_of(void* function, size_t items, void** parameters) {
  auto* f = static_cast<Function*>(function);
  Node node{f, {}, items};
  for (size_t i = 0; i < f->arguments; ++i) node.values.push_back(*static_cast<uint64_t*>(parameters[i]));
  return node;
}

struct KernelNodeParams {
  unsigned group[3];
  void** extra;
  void* function;
  unsigned grid[3];
  void** parameters;
  unsigned shared_bytes;
};

int copy_later(void* stream, void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  if ((to_device && !is_memory(to, bytes)) || (from_device && !is_memory(from, bytes))) return kInvalidValue;
  static_cast<HipStream*>(stream)->work.push_back([=] {
    std::memmove(to, from, bytes);
    return 0;
  });
  return 0;
}

int allocate(void** memory, size_t bytes) {
  auto* made = static_cast<char*>(std::malloc(bytes));
  if (!made) return kOutOfMemory;
  state().memory[made] = bytes;
  ++state().control.allocations;
  *memory = made;
  return 0;
}

int free_memory(void* memory) {
  run_everything();
  if (!state().memory.erase(static_cast<char*>(memory))) return kInvalidValue;
  --state().control.allocations;
  std::free(memory);
  return 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming): HIP's names
EXPORT int hipInit(unsigned) {
  return call("hipInit", [&]() -> int { return state().control.devices == 0 ? kNoDevice : 0; });
}
EXPORT int hipRuntimeGetVersion(int* version) {
  return call("hipRuntimeGetVersion", [&]() -> int { return *version = state().control.version, 0; });
}
EXPORT int hipGetDeviceCount(int* count) {
  return call("hipGetDeviceCount", [&]() -> int { return *count = state().control.devices, 0; });
}
EXPORT int hipSetDevice(int device) {
  return call("hipSetDevice", [&]() -> int { return current_device = device, 0; });
}
EXPORT int hipGetDevicePropertiesR0600(void* properties, int) {
  return call("hipGetDevicePropertiesR0600", [&]() -> int {
    std::strcpy(static_cast<char*>(properties), "a fake gfx");
    std::strcpy(static_cast<char*>(properties) + 1160, state().control.arch);
    return 0;
  });
}
EXPORT int hipMalloc(void** memory, size_t bytes) {
  return call("hipMalloc", [&]() -> int { return allocate(memory, bytes); });
}
EXPORT int hipFree(void* memory) {
  return call("hipFree", [&]() -> int { return free_memory(memory); });
}
EXPORT int hipHostMalloc(void** memory, size_t bytes, unsigned) {
  return call("hipHostMalloc", [&]() -> int { return allocate(memory, bytes); });
}
EXPORT int hipHostFree(void* memory) {
  return call("hipHostFree", [&]() -> int { return free_memory(memory); });
}
EXPORT int hipMemcpyHtoDAsync(void* to, const void* from, size_t n, void* stream) {
  return call("hipMemcpyHtoDAsync", [&]() -> int { return copy_later(stream, to, from, n, true, false); });
}
EXPORT int hipMemcpyDtoHAsync(void* to, void* from, size_t n, void* stream) {
  return call("hipMemcpyDtoHAsync", [&]() -> int { return copy_later(stream, to, from, n, false, true); });
}
EXPORT int hipMemcpyDtoDAsync(void* to, void* from, size_t n, void* stream) {
  return call("hipMemcpyDtoDAsync", [&]() -> int {
    const auto *a = static_cast<char*>(to), *b = static_cast<char*>(from);
    if (a < b + n && b < a + n) return kInvalidValue;  // undefined in the real one
    return copy_later(stream, to, from, n, true, true);
  });
}
EXPORT int hipMemcpyPeerAsync(void* to, int, void* from, int, size_t n, void* stream) {
  return call("hipMemcpyPeerAsync", [&]() -> int {
    ++state().control.peer_copies;
    return copy_later(stream, to, from, n, true, true);
  });
}
EXPORT int hipDeviceCanAccessPeer(int* can, int, int) {
  return call("hipDeviceCanAccessPeer", [&]() -> int { return *can = 1, 0; });
}
EXPORT int hipDeviceEnablePeerAccess(int, unsigned) {
  return call("hipDeviceEnablePeerAccess", [&]() -> int { return 704; });
}
EXPORT int hipStreamCreateWithFlags(void** stream, unsigned) {
  return call("hipStreamCreateWithFlags", [&]() -> int {
    auto* made = new HipStream{current_device, {}};
    state().streams.insert(made);
    ++state().control.streams;
    return *stream = made, 0;
  });
}
EXPORT int hipStreamDestroy(void* stream) {
  return call("hipStreamDestroy", [&]() -> int {
    run_stream(*static_cast<HipStream*>(stream));
    state().streams.erase(static_cast<HipStream*>(stream));
    --state().control.streams;
    return delete static_cast<HipStream*>(stream), 0;
  });
}
EXPORT int hipStreamSynchronize(void* stream) {
  return call("hipStreamSynchronize", [&]() -> int { return ++state().control.waits, run_stream(*static_cast<HipStream*>(stream)); });
}
EXPORT int hipDeviceSynchronize() {
  return call("hipDeviceSynchronize", [&]() -> int { return run_everything(), 0; });
}
EXPORT int hipStreamWaitEvent(void* stream, void* event, unsigned) {
  return call("hipStreamWaitEvent", [&]() -> int {
    static_cast<HipStream*>(stream)->work.push_back([event] {
      auto* const e = static_cast<Event*>(event);
      return e->done ? 0 : run_stream(*e->stream, e);
    });
    return 0;
  });
}
EXPORT int hipEventCreateWithFlags(void** event, unsigned) {
  return call("hipEventCreateWithFlags", [&]() -> int { return ++state().control.events, *event = new Event, 0; });
}
EXPORT int hipEventDestroy(void* event) {
  return call("hipEventDestroy", [&]() -> int {
    run_everything();
    return --state().control.events, delete static_cast<Event*>(event), 0;
  });
}
EXPORT int hipEventRecord(void* event, void* stream) {
  return call("hipEventRecord", [&]() -> int {
    auto* e = static_cast<Event*>(event);
    e->done = false;
    e->stream = static_cast<HipStream*>(stream);
    static_cast<HipStream*>(stream)->work.push_back([e] { return e->done = true, e->ms = state().now_ms, 0; });
    return 0;
  });
}
EXPORT int hipEventSynchronize(void* event) {
  return call("hipEventSynchronize", [&]() -> int {
    ++state().control.waits;
    auto* const e = static_cast<Event*>(event);
    const int error = e->done ? 0 : run_stream(*e->stream, e);
    return error ? error : e->done ? 0 : kNotReady;
  });
}
EXPORT int hipEventElapsedTime(float* ms, void* from, void* to) {
  return call("hipEventElapsedTime", [&]() -> int {
    const auto *begin = static_cast<Event*>(from), *end = static_cast<Event*>(to);
    if (!begin->done || !end->done) return kNotReady;
    return *ms = float(end->ms - begin->ms), 0;
  });
}
EXPORT int hipModuleLoadData(void** module, const char* image) {
  return call("hipModuleLoadData", [&]() -> int {
    for (Function& f : functions)
      if (f.name == image) return ++state().control.modules, *module = &f, 0;
    return kInvalidImage;
  });
}
EXPORT int hipModuleUnload(void*) {
  return call("hipModuleUnload", [&]() -> int { return --state().control.modules, 0; });
}
EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  return call("hipModuleGetFunction", [&]() -> int {
    *function = module;
    return static_cast<Function*>(module)->name == name ? 0 : kNotFound;
  });
}
EXPORT int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned,
                                 void* stream, void** parameters, void**) {
  return call("hipModuleLaunchKernel", [&]() -> int {
    if (gx == 0 || gy == 0 || gz == 0 || x * y * z > 1024) return kInvalidValue;
    ++state().control.launches;
    static_cast<HipStream*>(stream)->work.push_back([node = node_of(function, x * y * z, parameters)] { return run(node); });
    return 0;
  });
}
EXPORT int hipGraphCreate(void** graph, unsigned) {
  return call("hipGraphCreate", [&]() -> int { return ++state().control.graphs, *graph = new HipGraph, 0; });
}
EXPORT int hipGraphDestroy(void* graph) {
  return call("hipGraphDestroy", [&]() -> int { return --state().control.graphs, delete static_cast<HipGraph*>(graph), 0; });
}
EXPORT int hipGraphAddKernelNode(void** node, void* graph, void* const* before, size_t count, const KernelNodeParams* p) {
  return call("hipGraphAddKernelNode", [&]() -> int {
    auto& nodes = static_cast<HipGraph*>(graph)->nodes;
    if (count != (nodes.empty() ? 0u : 1u) || (count && *before != nodes.back())) return kInvalidValue;  // a chain is all that is used
    state().nodes.push_back(std::make_unique<Node>(node_of(p->function, p->group[0], p->parameters)));
    nodes.push_back(state().nodes.back().get());
    return *node = nodes.back(), 0;
  });
}
EXPORT int hipGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return call("hipGraphInstantiateWithFlags",
              [&]() -> int { return ++state().control.graphs, *executable = new HipGraph(*static_cast<HipGraph*>(graph)), 0; });
}
EXPORT int hipGraphExecDestroy(void* graph) {
  return call("hipGraphExecDestroy", [&]() -> int {
    run_everything();
    return --state().control.graphs, delete static_cast<HipGraph*>(graph), 0;
  });
}
EXPORT int hipGraphExecKernelNodeSetParams(void*, void* node, const KernelNodeParams* p) {
  return call("hipGraphExecKernelNodeSetParams", [&]() -> int {
    *static_cast<Node*>(node) = node_of(p->function, p->group[0], p->parameters);
    return 0;
  });
}
EXPORT int hipGraphLaunch(void* graph, void* stream) {
  return call("hipGraphLaunch", [&]() -> int {
    ++state().control.graph_launches;
    for (const Node* node : static_cast<HipGraph*>(graph)->nodes)
      static_cast<HipStream*>(stream)->work.push_back([copy = *node] { return run(copy); });
    return 0;
  });
}

EXPORT const char* hipGetErrorName(int error) {
  return error == kLaunchFailure ? "hipErrorLaunchFailure" : error == kInvalidImage ? "hipErrorInvalidImage" : "hipErrorOther";
}
EXPORT const char* hipGetErrorString(int) { return "an error of the fake"; }
EXPORT FakeHip* fake_hip() { return &state().control; }
// NOLINTEND(readability-identifier-naming)

#include "program/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <unordered_map>

#include "base/log.h"
#include "codegen/opt/parse_opts.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

std::atomic<size_t> made{0};

/// DEBUG 3 to 6: what became of a kernel on the way.
void log_program(const UOp& sink, const RenderedProgram& p, const std::vector<codegen::Step>& steps) {
  if (log_enabled(3)) log_line(p.info.name + " " + opts_of(steps));
  if (log_enabled(5)) log_line(print_graph(sink));
  if (log_enabled(6)) log_line(print_graph(p.linear));
  if (log_enabled(4)) log_line(p.source);
}

std::shared_ptr<const Program> make_program(const UOp& sink, Device& device, const Options& options) {
  std::vector<codegen::Step> steps;
  RenderedProgram rendered = render_program(sink, device, options, log_enabled(3) ? &steps : nullptr);
  log_program(sink, rendered, steps);
  const std::string binary = device.compile(rendered.source);
  if (log_enabled(7)) log_line(device.disassemble(binary));
  auto program = std::make_shared<Program>();
  program->kernel = device.load(rendered.info, rendered.linear, binary);
  program->info = std::move(rendered.info);
  program->linear = std::move(rendered.linear);
  program->source = std::move(rendered.source);
  made.fetch_add(1, std::memory_order_relaxed);
  return program;
}

using ProgramFuture = std::shared_future<std::shared_ptr<const Program>>;

/// Never destroyed: kernels may be launched by the destructors of a user's globals.
struct ProgramCache {
  struct Key {
    UOp sink;
    const Device* device;  // never destroyed; one name may stand for several, which differ in their Target
    ContentKey code;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return hash_combine(hash_combine(k.sink->hash, std::hash<const Device*>()(k.device)), k.code.lo);
    }
  };
  std::mutex mutex;
  std::unordered_map<Key, ProgramFuture, Hash> programs;

  static ProgramCache& instance() {
    static ProgramCache* cache = new ProgramCache;
    return *cache;
  }
};

}  // namespace

std::string opts_of(const std::vector<codegen::Step>& steps) {
  const auto applied = std::ranges::find(steps, std::string_view("apply opts"), &codegen::Step::name);
  return applied == steps.end() ? "" : codegen::to_string(applied->result.arg_as<KernelArg>().opts);
}

RenderedProgram lower_program(const UOp& sink, const Device& device, const Options& options, std::vector<codegen::Step>* steps) {
  RenderedProgram p;
  p.linear = codegen::full_rewrite(sink, device.target(), codegen::CodegenOptions::from(options), steps);
  p.info = describe_kernel(p.linear, sink.arg_as<KernelArg>().name.str());
  return p;
}

void render_source(RenderedProgram& program, Device& device) { program.source = device.render(program.linear, program.info); }

RenderedProgram render_program(const UOp& sink, Device& device, const Options& options, std::vector<codegen::Step>* steps) {
  RenderedProgram p = lower_program(sink, device, options, steps);
  render_source(p, device);
  return p;
}

std::shared_ptr<const Program> get_program(const UOp& sink, Device& device, const Options& options) {
  ProgramCache& cache = ProgramCache::instance();
  const ProgramCache::Key key{sink, &device, options.code_key()};
  std::promise<std::shared_ptr<const Program>> promise;
  ProgramFuture waiting;
  {
    std::lock_guard lock(cache.mutex);
    auto [it, is_new] = cache.programs.try_emplace(key);
    if (is_new)
      it->second = promise.get_future().share();
    else
      waiting = it->second;
  }
  if (waiting.valid()) return waiting.get();
  try {
    auto program = make_program(sink, device, options);
    promise.set_value(program);
    return program;
  } catch (...) {
    promise.set_exception(std::current_exception());
    std::lock_guard lock(cache.mutex);
    cache.programs.erase(key);
    throw;
  }
}

size_t programs_made() { return made.load(std::memory_order_relaxed); }

}  // namespace tinygrad

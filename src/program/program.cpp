#include "program/program.h"

#include <fmt/core.h>
#include <pthread.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>

#include "base/build_id.h"
#include "base/disk_cache.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/recently_used.h"
#include "base/thread_pool.h"
#include "codegen/opt/parse_opts.h"
#include "kernel/describe_kernel.h"
#include "program/stored_programs.h"
#include "shape/listing.h"
#include "symbolic/bounds.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

std::atomic<size_t> made{0};
constexpr std::string_view kTable = "programs";  // of the disk cache

/// DEBUG 3 to 6: what became of a kernel on the way.
void log_program(const UOp& sink, const RenderedProgram& p, const std::vector<codegen::Step>& steps) {
  if (log_enabled(3)) log_line(p.info.name + " " + opts_of(steps));
  if (log_enabled(5)) log_line(print_listing(sink));
  if (log_enabled(6)) log_line(print_listing(p.linear));
  if (log_enabled(4)) log_line(p.source);
}

/// For tools/replay, which parts what is kept at these marks: the machine and the graph, by which it finds the same kernel of another
/// version of the library, then the name, the opts and the text, or the program where that is interpreted.
void keep_for_replay(const UOp& sink, const RenderedProgram& p, const std::vector<codegen::Step>& steps, const Target& t,
                     const Options& options) {
  const std::string made_from =
      fmt::format("{} {} {}\x1e{}", t.device.str(), t.renderer.str(), t.arch.str(), print_graph(std::span(&sink, 1)));
  const std::string key = ContentHasher().add(made_from).add(options.code_key()).finish().to_hex();
  const std::string text = p.source.empty() ? print_graph(std::span(&p.linear, 1)) : p.source;
  disk_cache().put("process_replay", key, fmt::format("{}\x1e{}\x1e{}\x1e{}", made_from, p.info.name, opts_of(steps), text));
}

/// MAX_BUFFER_SIZE. A size that depends on variables is that of the buffer, the greatest.
void check_sizes(const UOp& sink, const KernelInfo& info, const Options& options) {
  if (options.max_buffer_size == 0) return;
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    const int64_t size = symbolic::bounds(u.src(0)).max;
    if (size > options.max_buffer_size / int64_t(itemsize(u.dtype())))
      throw OutOfMemoryError(
          fmt::format("kernel {}: argument {} has {} elements of {}, and MAX_BUFFER_SIZE allows {} bytes; work on less at a time",
                      info.name, u.arg_as<ParamArg>().slot, size, repr(u.dtype()), options.max_buffer_size));
  }
}

/// `keep`: where what it is loaded from goes, unless that is more than a binary.
std::shared_ptr<const Program> make_program(const UOp& sink, Device& device, const Options& options, StoredProgram* keep) {
  std::vector<codegen::Step> steps;
  RenderedProgram rendered = render_program(sink, device, options, log_enabled(3) || options.capture_process_replay ? &steps : nullptr);
  log_program(sink, rendered, steps);
  if (options.capture_process_replay) keep_for_replay(sink, rendered, steps, device.target(), options);
  check_sizes(sink, rendered.info, options);
  check_interrupt();
  std::string binary = device.compile(rendered.source);
  check_interrupt();
  if (log_enabled(7)) log_line(device.disassemble(binary));
  auto program = std::make_shared<Program>();
  program->kernel = device.load(rendered.info, rendered.linear, binary);
  program->info = std::move(rendered.info);
  program->sink = sink;
  made.fetch_add(1, std::memory_order_relaxed);
  if (keep && !binary.empty()) *keep = {program->info, std::move(binary)};
  return program;
}

std::shared_ptr<const Program> load_program(StoredProgram stored, const UOp& sink, Device& device) {
  auto program = std::make_shared<Program>();
  program->kernel = device.load(stored.info, {}, stored.binary);
  program->info = std::move(stored.info);
  program->sink = sink;
  made.fetch_add(1, std::memory_order_relaxed);
  return program;
}

using ProgramFuture = std::shared_future<std::shared_ptr<const Program>>;

/// The last ones that were asked for; who runs a program holds it. Never destroyed: kernels may be launched by the destructors of a user's
/// globals.
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
  /// Each keeps memory, and on a CPU up to three of the 65,530 mappings that Linux lets a process have.
  static constexpr size_t most_programs = 8192;
  using Programs = RecentlyUsed<Key, ProgramFuture, Hash>;
  std::mutex mutex;
  Programs programs{most_programs};

  static ProgramCache& instance() {
    static ProgramCache* cache = new ProgramCache;
    [[maybe_unused]] static const int registered = pthread_atfork([] { cache->mutex.lock(); }, [] { cache->mutex.unlock(); },
                                                                  [] {
                                                                    cache->forget_unfinished();
                                                                    cache->mutex.unlock();
                                                                  });
    return *cache;
  }

 private:
  /// Drops programs that are being made, since a forked child does not have the threads that make them.
  void forget_unfinished() {
    programs.erase_if([](const ProgramFuture& p) { return p.wait_for(std::chrono::seconds(0)) != std::future_status::ready; });
  }
};

}  // namespace

std::string opts_of(const std::vector<codegen::Step>& steps) {
  const auto applied = std::ranges::find(steps, std::string_view("apply opts"), &codegen::Step::name);
  return applied == steps.end() ? "" : codegen::to_string(applied->result.arg_as<KernelArg>().opts);
}

RenderedProgram lower_program(const UOp& sink, const Target& target, const Options& options, std::vector<codegen::Step>* steps) {
  RenderedProgram p;
  p.linear = codegen::full_rewrite(sink, target, codegen::CodegenOptions::from(options), steps);
  p.info = describe_kernel(p.linear, sink);
  return p;
}

void render_source(RenderedProgram& program, Device& device) { program.source = device.render(program.linear, program.info); }

RenderedProgram render_program(const UOp& sink, Device& device, const Options& options, std::vector<codegen::Step>* steps) {
  RenderedProgram p = lower_program(sink, device.target(), options, steps);
  render_source(p, device);
  return p;
}

namespace {

/// What another thread makes; null where that was cancelled.
std::shared_ptr<const Program> made_by_other(const ProgramFuture& waiting) {
  while (waiting.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) check_interrupt();
  try {
    return waiting.get();
  } catch (const Cancelled&) {
    return nullptr;
  }
}

/// The program of the process's cache, put there by `make` if need be.
std::shared_ptr<const Program> find_or_make(const ProgramCache::Key& key, FunctionRef<std::shared_ptr<const Program>()> make) {
  ProgramCache& cache = ProgramCache::instance();
  std::promise<std::shared_ptr<const Program>> promise;
  ProgramFuture waiting;
  ProgramCache::Programs::Dropped dropped;  // a kernel may wait for its device when it goes
  {
    std::lock_guard lock(cache.mutex);
    if (const ProgramFuture* known = cache.programs.find(key))
      waiting = *known;
    else
      dropped = cache.programs.add(key, promise.get_future().share());
  }
  dropped.clear();
  if (waiting.valid()) {
    if (auto program = made_by_other(waiting)) return program;
    check_interrupt();
    return find_or_make(key, make);
  }
  try {
    auto program = make();
    promise.set_value(program);
    return program;
  } catch (...) {
    {
      std::lock_guard lock(cache.mutex);
      cache.programs.erase(key);  // first: who sees the exception may try again
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

bool is_known(const KernelOn& k, const ContentKey& code) {
  ProgramCache& cache = ProgramCache::instance();
  std::lock_guard lock(cache.mutex);
  return cache.programs.find({k.sink, k.device, code}) != nullptr;
}

/// Kernels of a list that are to be made, each once.
std::vector<KernelOn> missing_of(std::span<const KernelOn> kernels, const ContentKey& code) {
  NodeMap<std::vector<const Device*>> seen;
  std::vector<KernelOn> missing;
  for (const KernelOn& k : kernels) {
    if (!k.sink.is(Op::SINK) || is_known(k, code)) continue;
    std::vector<const Device*>& devices = seen[k.sink];
    if (std::ranges::find(devices, k.device) != devices.end()) continue;
    devices.push_back(k.device);
    missing.push_back(k);
  }
  return missing;
}

/// Empty where programs are not to be read: without an identity of this build, and for those who want to see or keep kernels on their way.
std::string key_of(std::span<const KernelOn> kernels, const ContentKey& code, const Options& options) {
  if (build_id().empty() || options.spec > 0 || log_enabled(3) || options.capture_process_replay) return {};
  ContentHasher key;
  key.add(build_id()).add(code);
  for (const KernelOn& k : kernels) key.add(content_key(k.sink)).add(k.device->target().key());
  return key.finish().to_hex();
}

std::vector<StoredProgram> read_programs(const std::string& key, size_t count) {
  const auto bytes = key.empty() ? std::nullopt : disk_cache().get(kTable, key);
  if (!bytes) return {};
  try {
    std::vector<StoredProgram> programs = unpack_programs(*bytes);
    if (programs.size() == count) return programs;
  } catch (const FormatError&) {  // as if it were not there
  }
  return {};
}

void make_missing(std::span<const KernelOn> kernels, const ContentKey& code, const Options& options) {
  const std::string key = key_of(kernels, code, options);
  std::vector<StoredProgram> stored = read_programs(key, kernels.size());
  const bool known = !stored.empty();
  stored.resize(kernels.size());
  task_pool().parallel_for(kernels.size(), [&](size_t i) {
    const auto& [sink, device] = kernels[i];
    find_or_make({sink, device, code}, [&] {
      return known ? load_program(std::move(stored[i]), sink, *device) : make_program(sink, *device, options, &stored[i]);
    });
  });
  const bool all_kept = std::ranges::none_of(stored, [](const StoredProgram& p) { return p.binary.empty(); });
  if (!known && all_kept && !key.empty()) disk_cache().put(kTable, key, pack_programs(stored));
}

}  // namespace

std::shared_ptr<const Program> get_program(const UOp& sink, Device& device, const Options& options) {
  return find_or_make({sink, &device, options.code_key()}, [&] { return make_program(sink, device, options, nullptr); });
}

std::vector<std::shared_ptr<const Program>> get_programs(std::span<const KernelOn> kernels, const Options& options) {
  const ContentKey code = options.code_key();
  if (const std::vector<KernelOn> missing = missing_of(kernels, code); !missing.empty()) make_missing(missing, code, options);
  std::vector<std::shared_ptr<const Program>> programs;
  for (const auto& [sink, device] : kernels)
    programs.push_back(sink.is(Op::SINK) ? find_or_make({sink, device, code}, [&] { return make_program(sink, *device, options, nullptr); })
                                         : nullptr);
  return programs;
}

size_t programs_made() { return made.load(std::memory_order_relaxed); }

}  // namespace tinygrad

// What a jitted function does with a call: record it, or replay what was captured.
#include <tinygrad/jit.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <list>
#include <mutex>
#include <shared_mutex>

#include <tinygrad/errors.h>

#include "base/log.h"
#include "base/options.h"
#include "engine/host_memory.h"
#include "jit/captured.h"
#include "tensor/handle.h"
#include "tensor/history.h"
#include "tensor/memory.h"
#include "tensor/realize.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::detail {

using namespace tensor;
using namespace jitted;
using namespace jitted;

void throw_out_of_host_memory() { engine::throw_out_of_host_memory(); }

void JitCollector::separate() {
  if (!out_.layout.empty() && std::string_view("[({ ").find(out_.layout.back()) == std::string_view::npos) out_.layout += ", ";
}
void JitCollector::text(std::string_view text) {
  separate();
  out_.layout += text;
}
void JitCollector::quoted(std::string_view t) { text(fmt::format("{:?}", t)); }
void JitCollector::number(double value) { text(fmt::format("{}", value)); }
void JitCollector::tensor(const Tensor& t) {
  text(t.defined() ? "Tensor" : "no Tensor");
  out_.tensors.push_back(t);
}
void JitCollector::variable(const Variable& v) {
  text(fmt::format("Variable {} of {} to {}", v.name(), v.min(), v.max()));
  if (v.value())
    out_.variables.push_back(v);
  else
    out_.layout += " without a value";
}
void JitCollector::object(const void* address) { text(fmt::format("object at {}", address)); }
void JitCollector::key(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  plain ? text(name) : quoted(name);
  out_.layout += ": ";
}
void JitCollector::open(std::string_view bracket) { text(bracket); }
void JitCollector::close(std::string_view bracket) { out_.layout += bracket; }

struct JitCore::State {
  /// Calls with arguments of one form.
  struct Entry {
    CallForm form;
    std::shared_ptr<CapturedCall> captured;
    std::shared_ptr<const Recording> last;  // what the latest call did, if it could be captured
    size_t calls = 0;
  };

  JitOptions options;
  mutable std::mutex mutex;                   // of `entries` and of what they have captured
  std::shared_mutex recording;                // held by the one call that runs the function; shared by replays that change state
  std::list<std::shared_ptr<Entry>> entries;  // the latest used one first

  std::shared_ptr<CapturedCall> captured_of(const Entry& entry) const {
    const std::lock_guard lock(mutex);
    return entry.captured;
  }
  void set(Entry& entry, std::shared_ptr<CapturedCall> call) {
    const std::lock_guard lock(mutex);
    std::swap(entry.captured, call);
  }
  /// Forgets a capture, unless it was replaced meanwhile.
  void drop(Entry& entry, const std::shared_ptr<CapturedCall>& call) {
    const std::lock_guard lock(mutex);
    if (entry.captured == call) entry.captured = nullptr;
  }
  /// What was captured in the latest call; JitError where there is nothing.
  std::shared_ptr<CapturedCall> latest() const {
    const std::lock_guard lock(mutex);
    for (const auto& e : entries)
      if (e->captured) return e->captured;
    throw JitError("jit: nothing is captured that could be saved; call the function two times first");
  }
  std::shared_ptr<Entry> entry_of(const CallArguments& arguments, const void* result_type);
  void record(Entry& entry, const CallArguments& arguments, const void* result_type, const Body& body);
  void compare(const Recording& before, const Recording& now);
  void keep(Entry& entry, Recorder& recorder, const CallArguments& arguments, const JitResults& results, const void* result_type);
};

/// Throws JitError for arguments that differ from captured ones in more than their form.
std::shared_ptr<JitCore::State::Entry> JitCore::State::entry_of(const CallArguments& arguments, const void* result_type) {
  CallForm form = form_of(arguments);
  form.checks_indices = current_options().check_oob;
  const std::lock_guard lock(mutex);
  for (auto it = entries.begin(); it != entries.end(); ++it)
    if ((*it)->form == form) {
      entries.splice(entries.begin(), entries, it);
      return entries.front();
    }
  for (const auto& e : entries)
    if (e->captured) e->captured->check_surroundings(arguments, result_type);
  entries.push_front(std::make_shared<Entry>());
  entries.front()->form = std::move(form);
  if (entries.size() > std::max<size_t>(options.captures, 1)) entries.pop_back();
  return entries.front();
}

JitCore::JitCore(const JitOptions& options) : state_(std::make_unique<State>()) { state_->options = options; }
JitCore::~JitCore() = default;

namespace {

/// The same memory as other nodes.
UOp renamed(const UOp& memory) {
  if (memory.is(Op::MSTACK)) {
    UOps parts;
    for (const UOp& part : memory.src()) parts.push_back(renamed(part));
    return memory.with_src(parts);
  }
  const auto& b = memory.arg_as<BufferArg>();
  return buffer(memory.dtype(), {.id = next_buffer_id(), .size = b.size, .device = b.device, .resource = b.resource});
}

/// The arguments' memory under names of its own.
std::vector<RecordedArgument> rename(const CallArguments& arguments) {
  std::vector<RecordedArgument> out;
  for (const CallArguments::Value& v : arguments.values) {
    RecordedArgument& r = out.emplace_back();
    if (v.buffer) r = {renamed(v.buffer), v.buffer, v.copied_from};
  }
  return out;
}

/// The tensors that the function gets.
std::vector<Tensor> argument_tensors(const CallArguments& arguments, const std::vector<RecordedArgument>& renamed) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < renamed.size(); ++i) {
    const CallArguments::Value& v = arguments.values[i];
    NodeMap<UOp> map;
    if (v.buffer) map[v.buffer] = renamed[i].buffer;
    out.push_back(v.node ? wrap_view(substitute(plain_view(v.node), map)).is_param_(v.is_param) : Tensor());
  }
  return out;
}

/// Computes what the call returns, and all it has made or changed that somebody keeps.
void realize_results(const Recorder& recorder, const JitResults& results) {
  std::vector<CellPtr> cells = recorder.changed_cells();
  for (const Tensor& t : results.tensors)
    if (t.defined() && recorder.is_outside(cell_of(t))) cells.push_back(cell_of(t).shared_from_this());
  std::erase_if(cells, [](const CellPtr& c) { return is_plain_memory(state_of_view(c->node())); });
  if (!cells.empty()) realize(cells);
}

/// What the call has of its arguments' memory is the caller's again. Gradients do not go into a call: a replay has no graph.
void give_arguments_back(const Recorder& recorder) {
  for (const CellPtr& c : recorder.changed_cells()) {
    UOp node = c->node();
    const UOp state = state_of_view(node);
    if (!is_plain_memory(state)) continue;
    if (history_of_view(node)) c->set_node(node = view_of(node, state));
    for (const RecordedArgument& a : recorder.arguments())
      if (a.buffer == state) {
        NodeMap<UOp> map;
        map[state] = a.original;
        c->set_node(substitute(node, map));
      }
  }
}

}  // namespace

void JitCore::State::record(Entry& entry, const CallArguments& arguments, const void* result_type, const Body& body) {
  std::vector<Symbol> variables;
  for (const auto& v : arguments.variables) variables.push_back(v.first);
  Recorder recorder(rename(arguments), std::move(variables), entry.calls > 0 || options.at_once);
  const struct AtEnd {
    const Recorder& recorder;
    ~AtEnd() { give_arguments_back(recorder); }
  } at_end{recorder};
  std::vector<Tensor> tensors = argument_tensors(arguments, recorder.arguments());
  const JitResults results = body(tensors);
  for (const Tensor& t : tensors)
    if (t.defined()) t.set_grad({});
  realize_results(recorder, results);
  tensors.clear();  // only now: a store into an argument waits on it
  ++entry.calls;
  if (const std::shared_ptr<CapturedCall> before = captured_of(entry))
    compare(before->recording(), recorder.recording());
  else
    keep(entry, recorder, arguments, results, result_type);
}

/// Checking mode.
void JitCore::State::compare(const Recording& before, const Recording& now) {
  const std::string change = difference(before, now);
  if (!change.empty()) throw JitError(fmt::format("jit: the function does not do what was captured: {}", change));
}

/// Captures a call if it did what the one before did.
void JitCore::State::keep(Entry& entry, Recorder& recorder, const CallArguments& arguments, const JitResults& results,
                          const void* result_type) {
  Recording& now = recorder.recording();
  const bool usable = now.host_use.empty();
  const std::string change = !usable           ? "it calls " + now.host_use
                             : options.at_once ? ""
                             : !entry.last     ? "there is none to compare with"
                                               : difference(*entry.last, now);
  if (change.empty()) {
    set(entry, std::make_shared<CapturedCall>(recorder, arguments, results, result_type, options.prune));
    entry.last = nullptr;
    return;
  }
  if (log_enabled(1) && entry.calls > 1) log_line(fmt::format("jit: call {} is not captured: {}", entry.calls, change));
  now.drop_memory();
  entry.last = usable ? std::make_shared<const Recording>(std::move(now)) : nullptr;
}

std::optional<JitResults> JitCore::call(const JitArguments& given, const void* result_type, const Body& body) {
  if (Observer::current() || current_options().jit == 0) {
    body(given.tensors);
    return std::nullopt;
  }
  const CallArguments arguments = prepare_arguments(given);
  const std::shared_ptr<State::Entry> entry = state_->entry_of(arguments, result_type);
  const auto replay = [&]() -> std::optional<JitResults> {
    const std::shared_ptr<CapturedCall> captured = state_->captured_of(*entry);
    if (!captured) return std::nullopt;
    captured->check(arguments, result_type);
    if (!captured->is_current()) {
      state_->drop(*entry, captured);
      return std::nullopt;
    }
    if (state_->options.check) return std::nullopt;
    return captured->replay(arguments);
  };
  if (const auto captured = state_->captured_of(*entry); captured && captured->writes_any()) {
    const std::shared_lock lock(state_->recording);  // a call that is recorded may be about to change the same state
    if (auto results = replay()) return results;
  } else if (auto results = replay()) {
    return results;
  }
  const std::lock_guard lock(state_->recording);
  if (auto results = replay()) return results;  // captured while this call waited
  state_->record(*entry, arguments, result_type, body);
  return std::nullopt;
}

void JitCore::reset() {
  if (Observer::current()) throw JitError("jit: reset() inside of a jitted function");
  const std::lock_guard recording(state_->recording);
  std::list<std::shared_ptr<State::Entry>> dropped;
  const std::lock_guard lock(state_->mutex);
  dropped.swap(state_->entries);
}

void JitCore::free_intermediates() {
  std::vector<std::shared_ptr<CapturedCall>> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& e : state_->entries)
      if (e->captured) all.push_back(e->captured);
  }
  for (const auto& c : all) c->free_intermediates();
}

void JitCore::save(const std::string& path) const { state_->latest()->save(path); }

std::pair<std::string, std::shared_ptr<const void>> JitCore::saved_form() const {
  const std::shared_ptr<CapturedCall> latest = state_->latest();
  return {latest->layout(), latest->skeleton()};
}

bool JitCore::captured() const {
  const std::lock_guard lock(state_->mutex);
  return std::any_of(state_->entries.begin(), state_->entries.end(), [](const auto& e) { return e->captured != nullptr; });
}

}  // namespace tinygrad::detail

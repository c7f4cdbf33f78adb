// What a jitted function does with a call: record it, or replay what was captured.
#include <tinygrad/jit.h>

#include <fmt/format.h>

#include <mutex>

#include <tinygrad/errors.h>

#include "base/log.h"
#include "base/options.h"
#include "tensor/captured.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/realize.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::detail {

using namespace tensor;

void JitCollector::separate() {
  if (!out_.layout.empty() && std::string_view("[({ ").find(out_.layout.back()) == std::string_view::npos) out_.layout += ", ";
}
void JitCollector::text(std::string_view text) {
  separate();
  out_.layout += text;
}
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
  text(name);
  out_.layout += ": ";
}
void JitCollector::open(std::string_view bracket) { text(bracket); }
void JitCollector::close(std::string_view bracket) { out_.layout += bracket; }

struct JitCore::State {
  JitOptions options;
  mutable std::mutex mutex;  // of `captured`
  std::mutex recording;      // held by the one call that runs the function
  std::shared_ptr<CapturedCall> captured;
  std::shared_ptr<const Recording> last;  // what the latest call did, if it could be captured
  size_t calls = 0;

  std::shared_ptr<CapturedCall> current() const {
    const std::lock_guard lock(mutex);
    return captured;
  }
  void set(std::shared_ptr<CapturedCall> call) {
    const std::lock_guard lock(mutex);
    std::swap(captured, call);
  }
  /// Forgets a capture, unless it was replaced meanwhile.
  void drop(const std::shared_ptr<CapturedCall>& call) {
    const std::lock_guard lock(mutex);
    if (captured == call) captured = nullptr;
  }
  void record(const CallArguments& arguments, const void* result_type, const Body& body);
  void compare(const Recording& before, const Recording& now);
  void keep(Recorder& recorder, const CallArguments& arguments, const JitResults& results, const void* result_type);
};

JitCore::JitCore(const JitOptions& options) : state_(std::make_unique<State>()) { state_->options = options; }
JitCore::~JitCore() = default;

namespace {

/// The arguments' memory under names of its own.
std::vector<RecordedArgument> rename(const CallArguments& arguments) {
  std::vector<RecordedArgument> out;
  for (const CallArguments::Value& v : arguments.values) {
    RecordedArgument& r = out.emplace_back();
    if (!v.buffer) continue;
    const auto& b = v.buffer.arg_as<BufferArg>();
    r = {buffer(v.buffer.dtype(), {.id = next_buffer_id(), .size = b.size, .device = b.device, .resource = b.resource}), v.buffer,
         v.is_copy};
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
    out.push_back(v.node ? wrap(substitute(v.node, map)).is_param_(v.is_param) : Tensor());
  }
  return out;
}

/// Computes what the call returns, and all it has made or changed that somebody keeps.
void realize_results(const Recorder& recorder) {
  std::vector<CellPtr> cells = recorder.changed_cells();
  std::erase_if(cells, [](const CellPtr& c) { return state_of_view(c->node()).is(Op::BUFFER); });
  if (!cells.empty()) realize(cells);
}

/// What the call has of its arguments' memory is the caller's again.
void give_arguments_back(const Recorder& recorder) {
  for (const CellPtr& c : recorder.changed_cells()) {
    const UOp node = c->node(), state = state_of_view(node);
    if (!state.is(Op::BUFFER)) continue;
    for (const RecordedArgument& a : recorder.arguments())
      if (a.buffer == state) {
        NodeMap<UOp> map;
        map[state] = a.original;
        c->set_node(substitute(node, map));
      }
  }
}

}  // namespace

void JitCore::State::record(const CallArguments& arguments, const void* result_type, const Body& body) {
  std::vector<Symbol> variables;
  for (const auto& v : arguments.variables) variables.push_back(v.first);
  Recorder recorder(rename(arguments), std::move(variables), calls > 0);
  const struct AtEnd {
    const Recorder& recorder;
    ~AtEnd() { give_arguments_back(recorder); }
  } at_end{recorder};
  std::vector<Tensor> tensors = argument_tensors(arguments, recorder.arguments());
  const JitResults results = body(tensors);
  for (const Tensor& t : tensors)
    if (t.defined()) t.set_grad({});
  realize_results(recorder);
  tensors.clear();  // only now: a store into an argument waits on it
  ++calls;
  if (const std::shared_ptr<CapturedCall> before = current())
    compare(before->recording(), recorder.recording());
  else
    keep(recorder, arguments, results, result_type);
}

/// Checking mode.
void JitCore::State::compare(const Recording& before, const Recording& now) {
  const std::string change = difference(before, now);
  if (!change.empty()) throw JitError(fmt::format("jit: the function does not do what was captured: {}", change));
}

/// Captures a call if it did what the one before did.
void JitCore::State::keep(Recorder& recorder, const CallArguments& arguments, const JitResults& results, const void* result_type) {
  Recording& now = recorder.recording();
  const bool usable = now.host_use.empty();
  const std::string change = !usable ? "it calls " + now.host_use : !last ? "there is none to compare with" : difference(*last, now);
  if (change.empty()) {
    set(std::make_shared<CapturedCall>(recorder, arguments, results, result_type));
    last = nullptr;
    return;
  }
  if (log_enabled(1) && calls > 1) log_line(fmt::format("jit: call {} is not captured: {}", calls, change));
  now.drop_memory();
  last = usable ? std::make_shared<const Recording>(std::move(now)) : nullptr;
}

std::optional<JitResults> JitCore::call(const JitArguments& given, const void* result_type, const Body& body) {
  if (Recorder::current() || current_options().jit == 0) {
    body(given.tensors);
    return std::nullopt;
  }
  const CallArguments arguments = prepare_arguments(given);
  const auto replay = [&]() -> std::optional<JitResults> {
    const std::shared_ptr<CapturedCall> captured = state_->current();
    if (!captured) return std::nullopt;
    captured->check(arguments, result_type);
    if (!captured->is_current()) {
      state_->drop(captured);
      return std::nullopt;
    }
    if (state_->options.check) return std::nullopt;
    return captured->replay(arguments);
  };
  if (auto results = replay()) return results;
  const std::lock_guard lock(state_->recording);
  if (auto results = replay()) return results;  // captured while this call waited
  state_->record(arguments, result_type, body);
  return std::nullopt;
}

void JitCore::reset() {
  if (Recorder::current()) throw JitError("jit: reset() inside of a jitted function");
  const std::lock_guard recording(state_->recording);
  state_->set(nullptr);
  state_->last = nullptr;
  state_->calls = 0;
}

bool JitCore::captured() const { return state_->current() != nullptr; }

}  // namespace tinygrad::detail

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tinygrad/errors.h>
#include <tinygrad/torch_export.h>

#include "frontend/torch_export/archive.h"
#include "frontend/torch_export/call.h"
#include "frontend/torch_export/listing.h"

namespace tinygrad::torch_export {

namespace {

Program load_from(frontend::FileBytes bytes, const LoadOptions& options, const std::string& model) {
  const Archive archive(std::move(bytes));
  if (archive.models().empty())
    throw FormatError(fmt::format("{}: no program: {}", archive.name(),
                                  archive.compiled().empty()
                                      ? "the archive has no models/*.json"
                                      : "it holds code that AOTInductor compiled, which is not run; use torch.export.save"));
  const std::string name = model.empty() ? archive.models().size() == 1 ? archive.models()[0] : "model" : model;
  if (std::ranges::find(archive.models(), name) == archive.models().end())
    throw FormatError(fmt::format("{}: no program is named '{}'; there are {}", archive.name(), name, fmt::join(archive.models(), ", ")));
  auto impl = std::make_shared<Program::Impl>();
  impl->replays = std::make_shared<Replays>();
  impl->file = archive.name();
  impl->program = archive.program(name);
  impl->options.device = options.device;
  impl->description = list_program(impl->program);
  std::map<std::string, std::string> first;  // which tensor was the first of a file
  for (const Payload& payload : archive.payloads(name)) {
    if (const auto [at, is_new] = first.emplace(payload.path, payload.name); !is_new) impl->shared.insert({at->second, payload.name});
    const Tensor t = archive.tensor(payload);
    impl->state.emplace(payload.name, options.device.empty() || t.device() == options.device ? t : t.to(options.device));
  }
  for (const InputSpec& spec : impl->program.inputs) {
    if (!spec.is_state()) continue;
    const auto found = impl->state.find(spec.target);
    if (found == impl->state.end()) throw FormatError(fmt::format("{}: the archive has no tensor '{}'", archive.name(), spec.target));
    check_tensor(impl->program, spec, found->second, archive.name());
  }
  return Program(impl);
}

}  // namespace

const std::vector<ValueInfo>& Program::inputs() const { return impl_->description.inputs; }
const std::vector<ValueInfo>& Program::outputs() const { return impl_->description.outputs; }
const std::vector<std::string>& Program::unsupported() const { return impl_->description.unsupported; }
const std::map<std::string, std::pair<int64_t, int64_t>>& Program::ranges() const { return impl_->description.ranges; }
const std::vector<std::pair<std::string, int64_t>>& Program::operators() const { return impl_->description.operators; }
const nn::state::StateDict& Program::state() const {
  impl_->replays->expose();
  return impl_->state;
}

std::vector<Tensor> Program::operator()(std::span<const Input> inputs) const { return call(*impl_, inputs); }
std::vector<Tensor> Program::run(std::span<const Input> inputs) const { return impl_->replays->call(*impl_, inputs); }
std::vector<Tensor> Program::operator()(std::span<const Tensor> inputs) const {
  const std::vector<Input> all(inputs.begin(), inputs.end());
  return call(*impl_, all);
}

std::vector<std::pair<std::string, Description>> describe(const std::string& path) {
  const Archive archive(frontend::FileBytes::map(path));
  std::vector<std::pair<std::string, Description>> out;
  for (const std::string& model : archive.models()) out.emplace_back(model, list_program(archive.program(model)));
  return out;
}

Program load(const std::string& path, const LoadOptions& options, const std::string& model) {
  return load_from(frontend::FileBytes::map(path), options, model);
}
Program load(const Tensor& bytes, const LoadOptions& options, const std::string& model) {
  return load_from(frontend::FileBytes::of(bytes), options, model);
}

}  // namespace tinygrad::torch_export

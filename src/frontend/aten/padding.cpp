// Tensors with elements around them.
#include <fmt/core.h>

#include "frontend/aten/convolution.h"

namespace tinygrad::aten {

namespace {

/// Pairs from the last axis on, as amounts of all axes.
ExtentPairs amounts_of(const Call& c, const Extents& pad, int rank) {
  if (pad.size() % 2 != 0 || int(pad.size() / 2) > rank) c.fail(fmt::format("{} amounts for {} axes", pad.size(), rank));
  ExtentPairs out(size_t(rank), {0, 0});
  for (size_t i = 0; i < pad.size() / 2; ++i) out[size_t(rank) - 1 - i] = {pad[2 * i], pad[2 * i + 1]};
  return out;
}
/// Integers are padded with integers, whatever kind of number is given.
Results constant(const Call& c) {
  const Tensor x = c.tensor("self");
  const ExtentPairs amounts = amounts_of(c, c.extents("pad"), x.ndim());
  const Value value = c.has("value") ? c["value"] : Value(0);
  if (is_float(x.dtype())) return one(x.pad(amounts, value.number()).cast(x.dtype()));
  constexpr double limit = 9223372036854775808.0;
  if (value.get_if<double>() && !(value.number() >= -limit && value.number() < limit)) c.fail("the value is no integer of 64 bits");
  const int64_t whole = value.get_if<double>() ? int64_t(value.number()) : value.integer();
  return one(x.pad(amounts, is_bool(x.dtype()) ? int64_t(value.number() != 0) : whole).cast(x.dtype()));
}
Tensor around(const Call& c, const Tensor& x, const Extents& pad, size_t axes, PadMode mode) {
  if (pad.size() != 2 * axes) c.fail(fmt::format("{} amounts for {} axes", pad.size(), axes));
  if (x.ndim() != int(axes) + 1 && x.ndim() != int(axes) + 2) c.fail(fmt::format("a tensor of {} axes", x.ndim()));
  return x.pad(amounts_of(c, pad, x.ndim()), 0, mode);
}
Results mirrored(const Call& c, size_t axes, PadMode mode) { return one(around(c, c.tensor("self"), c.extents("padding"), axes, mode)); }
Results mirrored_backward(const Call& c, size_t axes, PadMode mode) {
  const Tensor x = c.tensor("self");
  const auto f = [&](std::span<const Tensor> at) { return around(c, at[0], c.extents("padding"), axes, mode); };
  return one(gradients(c, f, {x.cast(wide_type(x.dtype()))}, c.tensor("grad_output"))[0].cast(x.dtype()));
}
Results by_mode(const Call& c) {
  const std::string_view mode = c.text("mode");
  const Tensor x = c.tensor("self");
  const Extents pad = c.extents("pad");
  if (mode == "constant") return constant(c);
  constexpr std::pair<std::string_view, PadMode> modes[] = {
      {"reflect", PadMode::reflect}, {"replicate", PadMode::replicate}, {"circular", PadMode::circular}};
  for (const auto& [name, how] : modes)
    if (mode == name) return one(x.pad(amounts_of(c, pad, x.ndim()), 0, how));
  c.fail(fmt::format("the mode '{}'", mode));
}

}  // namespace

std::vector<Row> padding_operators() {
  std::vector<Row> rows = {
      {"aten.constant_pad_nd.default(Tensor self, SymInt[] pad, Scalar value=0)", constant},
      {"aten.pad.default(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None)", by_mode},
  };
  const auto add = [&](std::string_view forward, std::string_view backward, size_t axes, PadMode mode) {
    rows.push_back({forward, [=](const Call& c) { return mirrored(c, axes, mode); }});
    rows.push_back({backward, [=](const Call& c) { return mirrored_backward(c, axes, mode); }});
  };
  add("aten.reflection_pad1d.default(Tensor self, SymInt[2] padding)",
      "aten.reflection_pad1d_backward.default(Tensor grad_output, Tensor self, SymInt[2] padding)", 1, PadMode::reflect);
  add("aten.reflection_pad2d.default(Tensor self, SymInt[4] padding)",
      "aten.reflection_pad2d_backward.default(Tensor grad_output, Tensor self, SymInt[4] padding)", 2, PadMode::reflect);
  add("aten.reflection_pad3d.default(Tensor self, SymInt[6] padding)",
      "aten.reflection_pad3d_backward.default(Tensor grad_output, Tensor self, SymInt[6] padding)", 3, PadMode::reflect);
  add("aten.replication_pad1d.default(Tensor self, SymInt[2] padding)",
      "aten.replication_pad1d_backward.default(Tensor grad_output, Tensor self, SymInt[2] padding)", 1, PadMode::replicate);
  add("aten.replication_pad2d.default(Tensor self, SymInt[4] padding)",
      "aten.replication_pad2d_backward.default(Tensor grad_output, Tensor self, SymInt[4] padding)", 2, PadMode::replicate);
  add("aten.replication_pad3d.default(Tensor self, SymInt[6] padding)",
      "aten.replication_pad3d_backward.default(Tensor grad_output, Tensor self, SymInt[6] padding)", 3, PadMode::replicate);
  return rows;
}

}  // namespace tinygrad::aten

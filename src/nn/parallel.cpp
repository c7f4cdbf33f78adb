#include <tinygrad/parallel.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tinygrad/errors.h>
#include <tinygrad/nn.h>
#include <tinygrad/optim.h>
#include <tinygrad/state.h>

#include "shape/device.h"
#include "shape/sharding.h"
#include "tensor/handle.h"
#include "tensor/memory.h"

namespace tinygrad::nn::parallel {

namespace {

/// Parts may have so much more memory than what they are parts of, if an axis behind this one has less padding.
constexpr double most_padding = 1.02;

/// The value, and where it is, in memory there.
void put(Tensor tensor, const ShardingArg& where) {
  const bool is_param = tensor.is_param();
  tensor.replace(tensor::wrap(tensor::placed(tensor.uop(), where)).clone()).is_param_(is_param).realize();
}

/// The axis along which equal parts have least padding: the first one that has next to none. Nothing for a number.
std::optional<int> axis_to_cut(const Shape& shape, const ShardingArg& where, int count) {
  const Shape have = shard_shape(shape, where.axes);
  std::optional<int> best;
  double least = 0;
  for (size_t axis = 0; axis < have.size(); ++axis) {
    const int64_t n = have[axis].max();
    if (n < 2) continue;
    const int64_t in_parts = (n + count - 1) / count * count;
    const double padding = double(in_parts) / double(n);
    if (!best || padding < least) best = int(axis), least = padding;
    if (least <= most_padding) break;
  }
  return best;
}

ShardingArg placement_on(const Tensor& tensor, const Mesh& mesh, const char* function) {
  const ShardingArg now = tensor::Placements().of(tensor.uop());
  const Devices devices = tensor::named_devices(fmt::format("{}", fmt::join(mesh.devices(), ","))).apart();
  if (!now.devices.are_several()) return {devices, {}};
  if (!now.devices.has_same_shards(devices))
    throw ValueError(fmt::format("{}: {} is on other devices than the mesh's; shard its module once", function, tensor.to_string()));
  return {devices, now.axes};
}

MeshAxis along(const Mesh& mesh, std::string_view direction) { return {mesh.size(direction), mesh.stride(direction)}; }

void add_cut(const Tensor& tensor, ShardingArg& where, const ShardedAxis& cut, const char* function) {
  for (const ShardedAxis& a : where.axes)
    if (overlap(a.mesh, cut.mesh))
      throw ValueError(fmt::format("{}: {} is cut along this direction already", function, tensor.to_string()));
  where.axes.push_back(cut);
}

/// Where tensors are to be, each once, however many names it has; all are known before the first is moved.
class Places {
 public:
  template <class F>
  void add(const Tensor& tensor, F&& where) {
    if (seen_.insert(&tinygrad::detail::cell_of(tensor)).second) all_.emplace_back(tensor, where());
  }
  void apply() const {
    for (const auto& [tensor, where] : all_) put(tensor, where);
  }

 private:
  std::unordered_set<const void*> seen_;
  std::vector<std::pair<Tensor, ShardingArg>> all_;
};

void cut_layer(const Linear& layer, const Mesh& mesh, std::string_view direction, int axis, const char* function) {
  Places places;
  for (const Tensor& t : {layer.weight, layer.bias})
    if (t.defined())
      places.add(t, [&] {
        ShardingArg where = placement_on(t, mesh, function);
        if (axis < t.ndim()) add_cut(t, where, {axis, along(mesh, direction)}, function);
        return where;
      });
  places.apply();
}

}  // namespace

void replicate(const Module& module, const std::vector<std::string>& devices) {
  const Mesh mesh(devices);
  Places places;
  for (const Tensor& t : state::get_parameters(module))
    places.add(t, [&] { return ShardingArg{placement_on(t, mesh, "replicate").devices, {}}; });
  places.apply();
}

void fully_shard(const Module& module, const std::vector<std::string>& devices) { fully_shard(module, Mesh(devices), "shards"); }

void fully_shard(const Module& module, const Mesh& mesh, std::string_view direction) {
  const MeshAxis line = along(mesh, direction);
  Places places;
  for (const Tensor& t : state::get_parameters(module))
    places.add(t, [&] {
      ShardingArg where = placement_on(t, mesh, "fully_shard");
      if (t.is_param() && t.is_floating_point())
        if (const std::optional<int> axis = axis_to_cut(shape_of(t.uop()), where, line.count))
          add_cut(t, where, {*axis, line, true}, "fully_shard");
      return where;
    });
  places.apply();
}

void shard_state(const optim::Optimizer& optimizer) {
  if (optimizer.fused())
    throw ValueError("shard_state: a fused optimizer has the state of all parameters as one tensor; make it with fused off");
  const Tensor& first = optimizer.params().at(0);
  const ShardingArg devices = tensor::Placements().of(first.uop());
  if (!devices.devices.are_several())
    throw ValueError("shard_state: the parameters are on one device; replicate() the module before the optimizer is made");
  const auto count = int(devices.devices.size());
  for (const Tensor& t : state::get_parameters(optimizer)) {
    ShardingArg where = tensor::Placements().of(t.uop());
    if (!where.devices.are_several() || !where.axes.empty()) continue;
    const std::optional<int> axis = axis_to_cut(shape_of(t.uop()), where, count);
    if (axis) put(t, {where.devices, {{*axis, {count, 1}}}});
  }
}

void shard_outputs(const Linear& layer, const Mesh& mesh, std::string_view direction) {
  cut_layer(layer, mesh, direction, 0, "shard_outputs");
}

void shard_inputs(const Linear& layer, const Mesh& mesh, std::string_view direction) {
  cut_layer(layer, mesh, direction, 1, "shard_inputs");
}

}  // namespace tinygrad::nn::parallel

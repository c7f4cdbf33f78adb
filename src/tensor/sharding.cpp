// Tensors on several devices.
#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/mesh.h>

#include "device/device.h"
#include "ops/elementwise.h"
#include "shape/device.h"
#include "shape/sharding.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include "uop/build.h"

namespace tinygrad {

using namespace tensor;

Mesh::Mesh(std::vector<std::string> devices, std::vector<Direction> directions)
    : devices_(std::move(devices)), directions_(std::move(directions)) {
  int64_t shards = 1;
  for (size_t i = 0; i < directions_.size(); ++i) {
    const auto& [name, size] = directions_[i];
    if (size < 1) throw ValueError(fmt::format("Mesh: direction {} has {} shards, expects at least 1", name, size));
    shards *= size;
    for (size_t j = 0; j < i; ++j)
      if (directions_[j].name == name) throw ValueError(fmt::format("Mesh: two directions have the name {}", name));
  }
  if (devices_.empty() || shards != int64_t(devices_.size()))
    throw ValueError(fmt::format("Mesh: {} devices for {} shards", devices_.size(), shards));
}

Mesh::Mesh(std::vector<std::string> devices) : Mesh(devices, {{"shards", static_cast<int>(devices.size())}}) {}

size_t Mesh::number(std::string_view direction) const {
  const auto at = std::ranges::find(directions_, direction, &Direction::name);
  if (at == directions_.end()) throw ValueError(fmt::format("Mesh: no direction {} in {}", direction, to_string()));
  return size_t(at - directions_.begin());
}

int Mesh::stride(std::string_view direction) const {
  int stride = 1;
  for (size_t i = number(direction) + 1; i < directions_.size(); ++i) stride *= directions_[i].size;
  return stride;
}

int Mesh::size(std::string_view direction) const { return directions_[number(direction)].size; }

std::string Mesh::to_string() const {
  std::string out;
  for (const auto& [name, size] : directions_) out += fmt::format("{}{}={}", out.empty() ? "" : " x ", name, size);
  return fmt::format("Mesh({})", out);
}

namespace tensor {

Devices named_devices(std::string_view list) {
  if (list.empty()) return Device::default_name();
  const Devices given = Devices::parse(list);
  std::vector<Symbol> names;
  for (size_t s = 0; s < given.size(); ++s) names.push_back(Device::get(given[s].str()).name());
  return Devices::of(names);
}

UOp placed(const UOp& x, const ShardingArg& where) {
  for (size_t s = 0; s < where.devices.size(); ++s)
    if (is_storage(where.devices[s]))
      throw DeviceError(
          fmt::format("shard: {} only holds data; a tensor on several devices needs ones that compute", where.devices[s].str()));
  if (!where.devices.are_several())
    return ops::copy_to(is_storage(x) ? copied_from_storage(x, where.devices.only()) : x, where.devices.only());
  const UOp there = is_storage(x) ? copied_from_storage(x, where.devices.first()) : x;
  return UOp(Op::SHARD, there.dtype(), {there}, where);
}

UOp placed_like(const UOp& other, const UOp& x) {
  if (!devices_of(other).are_several()) return x;
  const ShardingArg where = Placements().of(other);
  return placed(x, {where.devices, stored_axes(where)});
}

UOp placed_as_memory(const UOp& other, const UOp& x) { return devices_of(other).are_several() ? placed(x, Placements().of(other)) : x; }

}  // namespace tensor

namespace {

Devices devices_of_list(const std::vector<std::string>& devices) {
  if (devices.empty()) throw ValueError("shard: no devices; name them as {\"CPU\", \"CPU:1\"}");
  std::vector<Symbol> names;
  for (const std::string& d : devices) names.push_back(Device::get(d).name());
  return Devices::of(names);
}

int checked_axis(const Tensor& x, int axis) {
  const int rank = x.ndim(), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    throw ShapeError(fmt::format("shard: axis {} is not one of the {} axes of {}", axis, rank, to_string(shape_of(x.uop()))));
  if (!shape_of(x.uop())[size_t(at)].known())
    throw ShapeError(fmt::format("shard: axis {} of {} has no size that is known before launch", axis, to_string(shape_of(x.uop()))));
  return at;
}

}  // namespace

std::vector<std::string> Tensor::devices() const {
  const Devices d = devices_of(uop());
  std::vector<std::string> out;
  for (size_t s = 0; s < d.size(); ++s) out.emplace_back(d[s].str());
  if (out.empty()) out.emplace_back(Device::default_name().str());
  return out;
}

Tensor Tensor::shard(const std::vector<std::string>& devices, std::optional<int> axis) const {
  ShardingArg where{devices_of_list(devices), {}};
  if (axis) where.axes.push_back({checked_axis(*this, *axis), {static_cast<int32_t>(devices.size()), 1}});
  return wrap_view(placed(uop(), where)).is_param_(is_param());
}

Tensor Tensor::shard(const Mesh& mesh, const std::vector<MeshCut>& cuts) const {
  ShardingArg where{devices_of_list(mesh.devices()), {}};
  for (size_t i = 0; i < cuts.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (cuts[j].direction == cuts[i].direction) throw ValueError(fmt::format("shard: direction {} is given twice", cuts[i].direction));
    const MeshAxis along{mesh.size(cuts[i].direction), mesh.stride(cuts[i].direction)};
    where.axes.push_back({checked_axis(*this, cuts[i].axis), along, cuts[i].is_gathered});
  }
  return wrap_view(placed(uop(), where)).is_param_(is_param());
}

Tensor Tensor::shard_like(const Tensor& y) const {
  const ShardingArg where = Placements().of(y.uop());
  for (const ShardedAxis& a : where.axes) checked_axis(*this, a.axis);
  return wrap_view(placed(uop(), {where.devices, stored_axes(where)})).is_param_(is_param());
}

Tensor& Tensor::shard_(const std::vector<std::string>& devices, std::optional<int> axis) & { return replace(shard(devices, axis)); }
Tensor& Tensor::shard_(const Mesh& mesh, const std::vector<MeshCut>& cuts) & { return replace(shard(mesh, cuts)); }

std::string Tensor::placement() const {
  const UOp x = uop();
  const ShardingArg where = Placements().of(x);
  const Shape& shape = shape_of(x);
  std::string out = fmt::format("{} {}", tinygrad::to_string(shape), repr(dtype()));
  if (!where.devices.are_several()) return out + fmt::format(" on {}\n", where.devices.only().str());
  out += fmt::format(" on {} shards, {}\n", where.devices.size(), tinygrad::to_string(std::span(where.axes.begin(), where.axes.size())));
  size_t width = 0;
  for (size_t s = 0; s < where.devices.size(); ++s) width = std::max(width, where.devices[s].str().size());
  for (size_t s = 0; s < where.devices.size(); ++s) {
    std::string box;
    for (int axis = 0; axis < int(shape.size()); ++axis) {
      if (axis) box += ", ";
      int64_t begin = 0, size = shape[size_t(axis)].max();
      int64_t end = size;
      bool is_cut = false;
      for (const ShardedAxis& a : where.axes) {
        if (a.axis != axis) continue;
        is_cut = true;
        size = (size + a.mesh.count - 1) / a.mesh.count;
        begin = std::min(begin + size * a.mesh.at(s), end);
        end = std::min(begin + size, end);
      }
      box += is_cut ? fmt::format("{}:{}", begin, end) : ":";
    }
    out += fmt::format("  {:<{}}  [{}]\n", where.devices[s].str(), width, box);
  }
  return out;
}

}  // namespace tinygrad

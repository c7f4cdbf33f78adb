// Meshes, and modules on several devices.
#include <algorithm>

#include <nanobind/stl/map.h>

#include <tinygrad/mesh.h>
#include <tinygrad/optim.h>
#include <tinygrad/parallel.h>

#include "common.h"

namespace tinygrad::python {

namespace {

using NamedTensors = std::map<std::string, Tensor>;

/// The tensors of a Python object, as a module.
struct Named : nn::Module {
  explicit Named(const NamedTensors& all) : tensors(all) {}
  const NamedTensors& tensors;
  void add_fields(nn::Fields& fields) const override {
    for (const auto& [name, tensor] : tensors) fields.add(name, tensor);
  }
};

std::vector<Mesh::Direction> directions_of(const nb::dict& directions) {
  std::vector<Mesh::Direction> out;
  for (const auto& [name, size] : directions)
    out.push_back({cast_to<std::string>(name, "Mesh", "the name of a direction"), cast_to<int>(size, "Mesh", "the size of a direction")});
  return out;
}

std::vector<MeshCut> cuts_of(const nb::dict& cuts, const std::vector<std::string>& gathered) {
  std::vector<MeshCut> out;
  for (const auto& [direction, axis] : cuts) {
    const auto name = cast_to<std::string>(direction, "shard", "the name of a direction");
    out.push_back({name, cast_to<int>(axis, "shard", "an axis"), std::ranges::find(gathered, name) != gathered.end()});
  }
  for (const std::string& g : gathered)
    if (std::ranges::find(out, g, &MeshCut::direction) == out.end())
      throw ValueError("shard: the direction " + g + " is to be gathered, but no axis is cut along it");
  return out;
}

}  // namespace

Tensor shard_on(const Tensor& t, const Mesh& mesh, const nb::dict& cuts, const std::vector<std::string>& gathered) {
  return t.shard(mesh, cuts_of(cuts, gathered));
}

void bind_mesh(nb::module_& m) {
  nb::class_<Mesh>(m, "Mesh")
      .def(
          "__init__",
          [](Mesh* self, const DeviceName& devices, const std::optional<nb::dict>& directions) {
            directions ? new (self) Mesh(to_list(devices), directions_of(*directions)) : new (self) Mesh(to_list(devices));
          },
          "devices"_a, "directions"_a = nb::none(),
          "Devices in a grid: `Mesh(devices, {\"data\": 2, \"model\": 2})`; without directions a line of \"shards\".")
      .def_prop_ro("devices", [](const Mesh& mesh) { return nb::tuple(nb::cast(mesh.devices())); })
      .def_prop_ro("directions",
                   [](const Mesh& mesh) {
                     nb::dict out;
                     for (const auto& [name, size] : mesh.directions()) out[nb::str(name.c_str())] = size;
                     return out;
                   })
      .def("__repr__", &Mesh::to_string);
}

void bind_parallel(nb::module_& m) {
  m.def(
      "replicate",
      [](const NamedTensors& tensors, const DeviceName& devices) { nn::parallel::replicate(Named(tensors), to_list(devices)); },
      "tensors"_a, "devices"_a);
  m.def(
      "fully_shard",
      [](const NamedTensors& tensors, const DeviceName& devices) { nn::parallel::fully_shard(Named(tensors), to_list(devices)); },
      "tensors"_a, "devices"_a);
  m.def(
      "fully_shard_on_mesh",
      [](const NamedTensors& tensors, const Mesh& mesh, const std::string& direction) {
        nn::parallel::fully_shard(Named(tensors), mesh, direction);
      },
      "tensors"_a, "mesh"_a, "direction"_a);
  m.def("shard_state", [](const nn::optim::Optimizer& optimizer) { nn::parallel::shard_state(optimizer); }, "optimizer"_a);
}

}  // namespace tinygrad::python

// Meshes, and modules on several devices.
#include <algorithm>

#include <nanobind/stl/map.h>

#include <tinygrad/mesh.h>
#include <tinygrad/optim.h>
#include <tinygrad/parallel.h>

#include "common.h"

namespace tinygrad::python {

namespace {

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
  using nn::state::StateDict;
  // Without Python's lock, until Ctrl-C.
  const auto place = [](const StateDict& tensors, auto&& function) {
    const NamedTensors module(tensors);
    const Interruptible interruptible;
    const Released released;
    function(module);
  };
  m.def(
      "replicate",
      [place](const StateDict& tensors, const DeviceName& devices) {
        place(tensors, [list = to_list(devices)](const nn::Module& module) { nn::parallel::replicate(module, list); });
      },
      "tensors"_a, "devices"_a);
  m.def(
      "fully_shard",
      [place](const StateDict& tensors, const DeviceName& devices) {
        place(tensors, [list = to_list(devices)](const nn::Module& module) { nn::parallel::fully_shard(module, list); });
      },
      "tensors"_a, "devices"_a);
  m.def(
      "fully_shard_on_mesh",
      [place](const StateDict& tensors, const Mesh& mesh, const std::string& direction) {
        place(tensors, [&](const nn::Module& module) { nn::parallel::fully_shard(module, mesh, direction); });
      },
      "tensors"_a, "mesh"_a, "direction"_a);
  m.def(
      "shard_state",
      [](const nn::optim::Optimizer& optimizer) {
        const Interruptible interruptible;
        const Released released;
        nn::parallel::shard_state(optimizer);
      },
      "optimizer"_a);
}

}  // namespace tinygrad::python

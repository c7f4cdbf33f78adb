#pragma once
/// Devices in a grid, over which tensors are divided.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/export.h>

namespace tinygrad {

/// A grid of shards whose directions have names: `Mesh({"CPU", "CPU:1", "CPU:2", "CPU:3"}, {{"data", 2}, {"model", 2}})`. Shards are in
/// row-major order. A device may be named several times, and has several shards then: programs that have the same shards compute the same
/// bits, however many devices there are.
class TINYGRAD_EXPORT Mesh {
 public:
  struct Direction {
    std::string name;
    int size = 1;
  };
  /// ValueError unless the sizes, each at least 1, multiply to the number of devices, and for two directions of one name.
  Mesh(std::vector<std::string> devices, std::vector<Direction> directions);
  /// A mesh of one direction, "shards".
  explicit Mesh(std::vector<std::string> devices);

  const std::vector<std::string>& devices() const { return devices_; }
  const std::vector<Direction>& directions() const { return directions_; }
  /// How many shards lie between two that are neighbours along a direction; ValueError for a name that there is not.
  int stride(std::string_view direction) const;
  int size(std::string_view direction) const;
  std::string to_string() const;

 private:
  size_t number(std::string_view direction) const;

  std::vector<std::string> devices_;
  std::vector<Direction> directions_;
};

/// Along which direction of a mesh an axis of a tensor is cut; negative axes count from the end. One axis may be cut along several.
struct MeshCut {
  std::string direction;
  int axis = 0;
  /// Only memory is cut: whoever computes with the tensor does so as if it was not, and gathers it for that. What was gathered is not kept
  /// for long, and gradients are divided as the memory is.
  bool is_gathered = false;
};

}  // namespace tinygrad

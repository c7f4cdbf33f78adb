#pragma once
/// The graph of a model file, whatever its format, as people read it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::apps {

struct Graph {
  struct Value {
    std::string name = {}, type = {};
  };
  /// An operator that is not supported; of ONNX with its domain, version and nodes.
  struct Missing {
    std::string name = {}, domain = {};
    int64_t version = 0;
    std::vector<std::string> nodes = {};

    /// As among the operators.
    std::string full_name() const;
    std::string described() const;
  };
  std::vector<Value> inputs = {}, outputs = {};
  std::map<std::string, int64_t> operators = {};
  std::vector<Missing> unsupported = {};
};

/// Nothing for a format that has none. Of several programs in one file, the names begin with the program's.
std::optional<Graph> graph_of(const std::string& path, std::string_view format);

}  // namespace tinygrad::apps

#pragma once
/// What is looked at in a model before anything runs.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/walk.h"

namespace tinygrad::onnx {

struct Findings {
  std::map<std::string, int64_t> operators = {};  ///< with the number of nodes
  std::vector<UnsupportedOperator> unsupported = {};
};

/// Goes through a model's graphs and functions. With `reads_tensors` the tensors of attributes and of graphs are read, too. Throws
/// FormatError for names that nothing gives, functions without end and tensors that are not of their size.
Findings check(Program& program, bool reads_tensors);

/// Of each input of the graph whose elements select rows of a tensor: the rows of the smallest such tensor whose sizes the file says.
std::map<std::string, int64_t> index_bounds(const proto::Graph& graph);

}  // namespace tinygrad::onnx

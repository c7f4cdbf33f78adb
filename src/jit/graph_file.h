#pragma once
/// Graphs as bytes, for files that any process reads: little-endian, and nothing in them is trusted.

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "uop/graph.h"

namespace tinygrad::jitted {

class GraphWriter : public ByteWriter {
 public:
  /// A node written before, or null.
  void put_node(const UOp& u);
  /// All nodes below the roots, bodies included, sources first. ValueError for a node that files cannot hold.
  void put_graph(std::span<const UOp> roots);

 private:
  void put_arg(const UOp& u);

  NodeCache<uint32_t> numbers_;  // of nodes, from 1
};

class GraphReader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  DType take_dtype();
  UOp take_node();
  void take_graph();

 private:
  Arg take_arg(Op op, DType dtype);

  std::vector<UOp> nodes_;
};

}  // namespace tinygrad::jitted

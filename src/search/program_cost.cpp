#include "search/program_cost.h"

#include <algorithm>
#include <vector>

#include "shape/shape.h"
#include "symbolic/mean.h"
#include "target/costs.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::search {
namespace {

constexpr double unknown_trips = 16;

int64_t bytes_of(const UOp& value) {
  int64_t elements = 1;
  for (const auto& n : shape_of(value)) elements *= std::max<int64_t>(n.value(), 1);
  return elements * int64_t(std::max<size_t>(itemsize(value.dtype()), 1));
}

bool is_private(const UOp& memory) { return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::reg; }

/// Private memory that registers hold: no index into it is computed.
class Registers {
 public:
  explicit Registers(const UOp& linear) {
    for (const UOp& u : linear.src())
      if (u.is(Op::INDEX) && is_private(u.src(0)) && !u.src(1).is(Op::CONST)) indexed_.insert(u.src(0));
  }
  bool hold(const UOp& memory) const { return is_private(memory) && !indexed_.contains(memory); }

 private:
  NodeSet indexed_;
};

/// Lanes that lie apart are an access each.
double accesses(const UOp& index, double registers) {
  const auto lanes = shape_of(index.src(1));
  return lanes.empty() ? registers : double(std::max<int64_t>(lanes[0].value(), 1));
}

}  // namespace

ProgramCost program_cost(const UOp& linear, const Target& target) {
  const double vector_bytes = std::max(8.0, target.vector_bits / 8.0);
  const InstructionCosts& costs = general_costs().instructions;
  const Registers registers_of(linear);
  std::vector<double> trips{1};
  double kept = 0;
  ProgramCost cost;
  const auto registers = [&](const UOp& value) { return std::max(1.0, double(bytes_of(value)) / vector_bytes); };
  const auto add = [&](double instructions, double cycles) {
    cost.size += instructions;
    cost.run += trips.back() * instructions * cycles;
  };
  for (const UOp& u : linear.src()) switch (u.op()) {
      case Op::RANGE: {
        const UOp size = symbolic::mean(u.src(0));
        const Scalar* n = const_value(size);
        trips.push_back(trips.back() * (n ? n->as_double() : unknown_trips));
        add(1, 1);
        break;
      }
      case Op::END:
        for (size_t i = 1; i < u.src_count() && trips.size() > 1; ++i) trips.pop_back();
        break;
      case Op::BUFFER:
        if (registers_of.hold(u)) kept += double(u.arg_as<BufferArg>().size * int64_t(itemsize(u.dtype())));
        break;
      case Op::LOAD:
      case Op::STORE: {
        const UOp& value = u.is(Op::LOAD) ? u : u.src(1);
        add(accesses(u.src(0), registers(value)), registers_of.hold(u.src(0).src(0)) ? 0 : costs.access);
        break;
      }
      case Op::FETCH: add(1, costs.access); break;
      default:
        if (u.in(Group::alu) || u.is(Op::CAST) || u.is(Op::WMMA))
          add(registers(u), is_float(u.dtype()) ? costs.float_vector : costs.other_vector);
    }
  const double fits = std::max(8, target.vector_registers) * vector_bytes;
  if (kept > fits) cost.run *= 1 + kept / fits;
  return cost;
}

}  // namespace tinygrad::search

#include "tensor/undo.h"

#include <utility>

namespace tinygrad::tensor {

namespace {

thread_local Undo* active = nullptr;

}  // namespace

Undo::Undo() : outer_(std::exchange(active, this)), first_new_(detail::next_cell_number()) {}
Undo::~Undo() { active = outer_; }

void Undo::note(detail::TensorCell& cell) {
  for (Undo* u = active; u; u = u->outer_)
    if (cell.number < u->first_new_ && !u->entries_.contains(cell.number))
      u->entries_.emplace(cell.number, Entry{cell.weak_from_this(), cell.node()});
}

std::vector<Undo::Change> Undo::changes() const {
  std::vector<Change> out;
  for (const auto& [number, e] : entries_)
    if (detail::CellPtr alive = e.cell.lock()) out.push_back({std::move(alive), e.before});
  return out;
}

}  // namespace tinygrad::tensor

#pragma once
#include <vector>

#include "schedule/effects.h"
#include "schedule/placement.h"
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// A prepared graph in its walking order, and what placing must know of it.
struct PlacedGraph {
  const std::vector<UOp>& order;
  const std::vector<const UOp*>& joinable;  ///< joinable_reduces(order)
  const Effects& effects;
  const TargetOf& target_of;
  SourcePlaces& places;  ///< that were asked for
  int32_t first_temporary;
  bool explains = false;  ///< notes what is decided
};

/// From outputs to inputs, gives each value the places that it is needed at, and decides what is stored: `forced`, for the reasons given,
/// and what pays if the values of `expected` are in memory.
Placement place_values(const PlacedGraph& graph, const NodeMap<Reason>& forced, const NodeSet& expected);

}  // namespace tinygrad::schedule

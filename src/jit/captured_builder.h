#pragma once
/// From what a call did to what replays it.

#include <unordered_map>

#include "jit/captured.h"

namespace tinygrad::jitted {

class CapturedCall::Builder {
 public:
  Builder(CapturedCall& out, Recorder& recorder, bool prune) : out_(out), recorder_(recorder), prune_(prune) {}
  void build(const CallArguments& arguments, const detail::JitResults& results);

 private:
  using Variables = std::vector<std::pair<Symbol, std::optional<int64_t>>>;
  void find_kept(const detail::JitResults& results);
  void add_arguments(const CallArguments& arguments);
  void add_results(const detail::JitResults& results);
  void add_slots();
  void add_checks();
  engine::CapturedSlot slot_of(const RecordedBuffer& b);
  void add_uploads();
  void add_calls();
  void add_result_copies();
  void add_found();
  void prune(const Variables& variables);
  void finish();
  Result result_of(const Tensor& t);
  uint32_t add_slot(engine::CapturedSlot slot);
  void add_copy(uint32_t to, uint32_t from);

  CapturedCall& out_;
  Recorder& recorder_;
  const bool prune_;
  std::unordered_map<uint64_t, BufferPtr> kept_;  // memory made by the call that others than the results have, by the id of its BUFFER
  std::unordered_set<uint64_t> returned_;         // memory made by the call that results have
  std::vector<engine::RecordedCall> calls_;
};

}  // namespace tinygrad::jitted

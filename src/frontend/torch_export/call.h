#pragma once
/// What a program is, and calls of it.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tinygrad/torch_export.h>

#include "frontend/aten/aten.h"
#include "frontend/torch_export/schema.h"

namespace tinygrad::torch_export {

class Replays;

struct Program::Impl {
  std::string file;
  ExportedProgram program;
  aten::CallOptions options;
  Description description;
  nn::state::StateDict state;
  std::shared_ptr<Replays> replays;
};

/// The results as lazy tensors.
std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given);

/// Calls that were captured. The program outlives it.
class Replays {
 public:
  Replays();
  ~Replays();
  /// The results, realized.
  std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given);
  /// From now on the caller may change the state: what is computed of it alone is computed in each call.
  void expose();

 private:
  struct Captured;
  std::vector<Tensor> replay(const Program::Impl& impl, std::span<const Input> given);

  std::mutex mutex_;
  bool is_exposed_ = false;
  bool reads_values_ = false;                                                ///< of tensors, so that no call can be captured
  std::vector<std::pair<std::string, std::unique_ptr<Captured>>> captured_;  ///< by the inputs that are no tensors, used last comes last
};

}  // namespace tinygrad::torch_export

#pragma once
/// What a program is, and calls of it.

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/jit.h>
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
  std::set<std::string> shared;  ///< those of the state that lie in memory which another one lies in, too
  std::shared_ptr<Replays> replays;
};

/// The results as lazy tensors.
std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given);

/// Calls that were captured, one set of them for each of the inputs that are no tensors. The program outlives it.
class Replays {
 public:
  /// The results, realized.
  std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given);
  /// From now on the caller may change the state: what is computed of it alone is computed in each call.
  void expose();

 private:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  struct Captured {
    std::string numbers;                            ///< the inputs that are no tensors
    std::shared_ptr<std::vector<bool>> is_defined;  ///< of the results
    Jit<Body> function;
  };
  Captured make(const Program::Impl& impl, std::span<const Input> given) const;
  std::vector<Tensor> replay(const Program::Impl& impl, std::span<const Input> given);

  std::mutex mutex_;
  bool is_exposed_ = false;
  bool reads_values_ = false;     ///< of tensors, so that no call can be captured
  std::list<Captured> captured_;  ///< used last comes first
};

}  // namespace tinygrad::torch_export

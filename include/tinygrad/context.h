#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tinygrad/export.h>

namespace tinygrad {

struct Options;

/// The options that a Context changes; what is not named stays as it is. The fields are the environment variables of
/// docs/environment.md in lower case, in alphabetical order.
struct ContextArgs {
  /// Once a stop is requested of its source, what computes tensors under the Context throws Cancelled, also in threads that work for it:
  /// between kernels and between pieces of one, while it compiles, searches, loads and copies. All tensors are as they were, so kernels
  /// that change existing memory are run to the end of their schedule or jitted call, and so is a compiler's work on one kernel.
  std::optional<std::stop_token> cancel{};
#define TG_OPTION(type, field, ...) std::optional<type> field{};
#include <tinygrad/options.def>
#undef TG_OPTION
};

/// Changes options for the calling thread until it goes out of scope: `Context guard{{.debug = 2, .training = true}};`.
/// Contexts nest, and must end in the thread and in the reverse order in which they began.
class TINYGRAD_EXPORT Context {
 public:
  /// Throws ValueError, changing nothing, for a value that the option does not allow.
  explicit Context(const ContextArgs& args);
  /// Brings options of another thread, from `current()`, into this one.
  explicit Context(std::shared_ptr<const Options> options) noexcept;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Changes options for the rest of the calling thread's innermost Context or, outside of all, for every thread that is outside of all,
  /// for as long as the process lives. Throws ValueError, changing nothing, for a value that the option does not allow.
  static void set(const ContextArgs& args);
  /// The calling thread's options, to be handed to another thread. Throws ValueError for a bad environment variable.
  static std::shared_ptr<const Options> current();

 private:
  friend const Options& current_options();
  static const std::shared_ptr<const Options>& pointer();

  std::shared_ptr<const Options> options_;
  std::vector<std::shared_ptr<const Options>> before_;  ///< what set() has replaced: somebody may have a reference
  Context* previous_;
};

}  // namespace tinygrad

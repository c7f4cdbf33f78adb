#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace tinygrad {

/// What SPEC is where nobody sets it: the verifiers run in builds with TG_VERIFY.
#ifdef TINYGRAD_VERIFY
inline constexpr int default_spec = 1;
#else
inline constexpr int default_spec = 0;
#endif

/// Typed values of all options; include/tinygrad/options.def is the list. Read once at an API call and passed down.
struct Options {
  std::stop_token cancel;  ///< of what the thread computes
#define TG_OPTION(type, field, name, default_value, ...) type field = default_value;
#include <tinygrad/options.def>
#undef TG_OPTION

  /// The defaults, changed by the environment as it is now. An empty variable counts as unset. Throws ValueError naming the
  /// variable, what it got and what it expects.
  static Options from_environment();

  /// A key of the options that change generated code or schedules: part of the key of every cache.
  ContentKey code_key() const;

  friend bool operator==(const Options&, const Options&) = default;
};

/// The calling thread's options: the environment as it was at the first use, changed by the thread's Contexts. The reference
/// holds until the innermost Context ends.
const Options& current_options();

/// What values an option allows.
struct OptionRule {
  double low = 0, high = 0;       ///< a range, where low < high
  std::string_view choices = {};  ///< names separated by ", ", where not empty
  bool any_text_is_true = false;  ///< a flag that is set by being there
};

/// One line of options.def, as text.
struct OptionInfo {
  std::string_view field, variable, type, default_value;
  OptionRule rule;
  bool affects_code;
  std::string_view documentation;
};

/// All options, in the order of options.def.
std::span<const OptionInfo> option_table();

/// The text of docs/environment.md.
std::string environment_markdown();

}  // namespace tinygrad

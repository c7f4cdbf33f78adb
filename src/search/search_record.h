#pragma once
/// What searches have found out, in the disk cache: by the kernel's content, the machine and the options that code depends on.

#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/options.h"
#include "device/device.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// How a kernel is optimized. Without opts: not at all.
struct Winner {
  bool heuristic = true;  ///< as without a search
  std::vector<Opt> opts = {};
  double budget_s = 0;  ///< the time that the search was cut off after, 0 if it was not
  friend bool operator==(const Winner&, const Winner&) = default;
};

/// What became of a candidate: its time, or why it is none.
struct Verdict {
  double seconds = 0;
  std::string bad = {};
};

class SearchRecord {
 public:
  SearchRecord(const UOp& sink, const Device& device, const Options& options);

  /// The winner of an earlier search by this build of the library, if that search had finished or had at least as much time as this one may
  /// take.
  std::optional<Winner> winner() const;
  /// False for the winner of a search that had less time than this one may take.
  bool accepts(const Winner& winner) const;
  void set_winner(const Winner& winner) const;
  /// The verdict on a candidate, by the content of its source.
  std::optional<Verdict> verdict(const ContentKey& code) const;
  void set_verdict(const ContentKey& code, const Verdict& verdict) const;

  /// The key of the kernel on this machine.
  const ContentKey& key() const { return key_; }

 private:
  ContentKey key_, winner_key_;
  double budget_s_;
  bool ignored_;
};

}  // namespace tinygrad::search

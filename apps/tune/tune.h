#pragma once

namespace tinygrad::apps {

struct TuneOptions {
  bool forget = false;  ///< go back to the numbers of the processor's kind
  bool json = false;
};

/// Measures the numbers of this machine's cores and keeps them in the disk cache.
void tune(const TuneOptions& o);

}  // namespace tinygrad::apps

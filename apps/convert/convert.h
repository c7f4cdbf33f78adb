#pragma once
#include <string>
#include <vector>

namespace tinygrad::apps {

struct ConvertArgs {
  std::string from, to;
  std::string quantize;  ///< a format of blocks; empty: values stay as they are
  bool json = false;
};

/// The formats that `quantize` takes.
std::vector<std::string> quantized_formats();

/// tg convert FROM TO: writes what is in a model file as another one, by a progress bar on standard error, and prints what was written.
/// Throws FormatError, IoError and ValueError, and then leaves no file.
void convert(const ConvertArgs& args);

}  // namespace tinygrad::apps

#pragma once
#include <string>

namespace tinygrad::apps {

/// tg inspect FILE: prints what is in a model file: its tensors with shapes, types and bytes, and what is said beside them. Nothing of the
/// tensors is read. Throws FormatError and IoError.
void inspect(const std::string& path, bool json);

}  // namespace tinygrad::apps

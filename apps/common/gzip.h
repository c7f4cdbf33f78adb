#pragma once
#include <cstddef>
#include <string>

namespace tinygrad::apps {

/// The bytes of a file, unpacked if they are gzip. Throws IoError, and FormatError for a damaged file or for more than `limit` bytes.
std::string read_gzip(const std::string& path, size_t limit);

}  // namespace tinygrad::apps

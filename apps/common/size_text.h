#pragma once
#include <cstdint>
#include <string>

namespace tinygrad::apps {

/// For people to read: "1.5 GiB".
std::string size_text(int64_t bytes);

}  // namespace tinygrad::apps

#pragma once
#include <string>

namespace tinygrad::apps {

/// Fetches `url` into a file, which appears only when it is complete and its MD5 (hexadecimal, lower case) is right. Throws IoError for
/// what the network or the disk refuses, FormatError for other bytes than expected.
void download(const std::string& url, const std::string& md5, const std::string& path);

}  // namespace tinygrad::apps

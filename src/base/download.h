#pragma once
/// Files from the network. libcurl and libcrypto are opened at run time; without them a download is an IoError.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tinygrad {

/// The bytes at a URL, at most `limit`. `progress`, if there is one, hears of the bytes that came, again and again. Throws IoError.
std::string download(const std::string& url, size_t limit, const std::function<void(int64_t bytes)>& progress = {});

/// MD5 in hexadecimal: what the publishers of data sets list. Throws IoError.
std::string md5_of(const std::string& bytes);

/// Where files of this kind are kept between runs: $XDG_CACHE_HOME/tinygrad_cpp/NAME, or below ~/.cache. Throws IoError where neither
/// variable is set.
std::string cache_folder(const std::string& name);

}  // namespace tinygrad

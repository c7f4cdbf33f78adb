#include "base/download.h"

#define CURL_DISABLE_TYPECHECK  // its macros would name functions that are not linked
#include <curl/curl.h>
#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>

#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/dylib.h"

#undef curl_easy_setopt

namespace tinygrad {

namespace {

/// What is used of libcurl. Never closed: it leaves threads and exit handlers behind.
struct Curl {
  const DynamicLibrary library = DynamicLibrary::open({"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"});
  decltype(::curl_easy_init)* const init = library.symbol<decltype(::curl_easy_init)>("curl_easy_init");
  decltype(::curl_easy_cleanup)* const cleanup = library.symbol<decltype(::curl_easy_cleanup)>("curl_easy_cleanup");
  decltype(::curl_easy_setopt)* const set = library.symbol<decltype(::curl_easy_setopt)>("curl_easy_setopt");
  decltype(::curl_easy_perform)* const perform = library.symbol<decltype(::curl_easy_perform)>("curl_easy_perform");
  decltype(::curl_easy_strerror)* const error_text = library.symbol<decltype(::curl_easy_strerror)>("curl_easy_strerror");
  const CURLcode started = library.symbol<decltype(::curl_global_init)>("curl_global_init")(CURL_GLOBAL_DEFAULT);

  static const Curl& get() {
    static const Curl& curl = *new Curl;
    return curl;
  }
};

/// Opens a library; that it is missing is the system's fault, as a network that is down.
template <class T>
const T& opened(const char* what) {
  try {
    return T::get();
  } catch (const DeviceError& e) {
    throw IoError(fmt::format("{}: {}", what, e.what()));
  }
}

struct Received {
  std::string bytes;
  size_t limit;
  const std::function<void(int64_t)>& progress;
};

size_t receive(char* data, size_t size, size_t count, void* to) {
  auto& received = *static_cast<Received*>(to);
  if (size * count > received.limit - received.bytes.size()) return 0;  // which curl takes as an error
  received.bytes.append(data, size * count);
  if (received.progress) received.progress(static_cast<int64_t>(size * count));
  return size * count;
}

/// Called now and then, also while nothing comes. Nothing must be thrown through curl.
int interrupted(void* error, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  try {
    check_interrupt();
    return 0;
  } catch (...) {
    *static_cast<std::exception_ptr*>(error) = std::current_exception();
    return 1;
  }
}

struct Crypto {
  const DynamicLibrary library = DynamicLibrary::open({"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"});
  using Digest = int(const void* data, size_t size, unsigned char* digest, unsigned int* digest_size, const void* type, void* engine);
  Digest* const digest = library.symbol<Digest>("EVP_Digest");
  const void* (*const md5)() = library.symbol<const void*()>("EVP_md5");

  static const Crypto& get() {
    static const Crypto& crypto = *new Crypto;
    return crypto;
  }
};

}  // namespace

std::string download(const std::string& url, size_t limit, const std::function<void(int64_t)>& progress) {
  const Curl& lib = opened<Curl>("download");
  const std::unique_ptr<CURL, decltype(lib.cleanup)> curl(lib.started == CURLE_OK ? lib.init() : nullptr, lib.cleanup);
  if (!curl) throw IoError("download: libcurl cannot start");
  Received received{{}, limit, progress};
  lib.set(curl.get(), CURLOPT_URL, url.c_str());
  lib.set(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  lib.set(curl.get(), CURLOPT_FAILONERROR, 1L);
  lib.set(curl.get(), CURLOPT_CONNECTTIMEOUT, 10L);
  lib.set(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1000L);  // bytes a second, over the next line's seconds
  lib.set(curl.get(), CURLOPT_LOW_SPEED_TIME, 20L);
  lib.set(curl.get(), CURLOPT_NOSIGNAL, 1L);
  lib.set(curl.get(), CURLOPT_WRITEFUNCTION, receive);
  lib.set(curl.get(), CURLOPT_WRITEDATA, &received);
  std::exception_ptr stopped;
  lib.set(curl.get(), CURLOPT_NOPROGRESS, 0L);
  lib.set(curl.get(), CURLOPT_XFERINFOFUNCTION, interrupted);
  lib.set(curl.get(), CURLOPT_XFERINFODATA, &stopped);
  const CURLcode code = lib.perform(curl.get());
  if (stopped) std::rethrow_exception(stopped);
  if (code != CURLE_OK) throw IoError(fmt::format("cannot download {}: {}", url, lib.error_text(code)));
  return std::move(received.bytes);
}

std::string md5_of(const std::string& bytes) {
  const Crypto& lib = opened<Crypto>("checksum");
  unsigned char digest[64];
  unsigned int size = 0;
  if (!lib.digest(bytes.data(), bytes.size(), digest, &size, lib.md5(), nullptr)) throw IoError("checksum: libcrypto has no MD5");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string cache_folder(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::filesystem::path(cache) / "tinygrad_cpp" / name;
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache" / "tinygrad_cpp" / name;
  throw IoError(fmt::format("{}: neither XDG_CACHE_HOME nor HOME says where to keep the files; name a folder", name));
}

}  // namespace tinygrad

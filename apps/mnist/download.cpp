#include "mnist/download.h"

#include <curl/curl.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

namespace {

constexpr size_t most_bytes = size_t{64} << 20;

size_t append(char* data, size_t size, size_t count, void* to) {
  auto& bytes = *static_cast<std::string*>(to);
  if (bytes.size() + size * count > most_bytes) return 0;  // which curl takes as an error
  bytes.append(data, size * count);
  return size * count;
}

std::string fetch(const std::string& url) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(started == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (!curl) throw IoError("download: libcurl cannot start");
  std::string bytes;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1000L);  // bytes a second, over the next line's seconds
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, 20L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &bytes);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    throw IoError(fmt::format("cannot download {}: {}", url, curl_easy_strerror(code)));
  return bytes;
}

std::string md5_of(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr)) throw IoError("download: libcrypto has no MD5");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace

void download(const std::string& url, const std::string& md5, const std::string& path) {
  const std::string bytes = fetch(url);
  if (const std::string got = md5_of(bytes); got != md5)
    throw FormatError(fmt::format("{}: MD5 {}, expected {}; the file was not kept", url, got, md5));
  const std::string unfinished = fmt::format("{}.{}", path, getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    std::filesystem::remove(unfinished, error);
    throw IoError(fmt::format("{}: cannot be written", path));
  }
}

}  // namespace tinygrad::apps

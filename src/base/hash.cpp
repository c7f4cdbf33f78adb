#include "base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/core.h>
#include <xxhash.h>

#include <charconv>
#include <new>

namespace tinygrad {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) noexcept { return XXH3_64bits_withSeed(data, size, seed); }

ContentKey content_key(const void* data, size_t size) noexcept {
  XXH128_hash_t h = XXH3_128bits(data, size);
  return {.lo = h.low64, .hi = h.high64};
}

std::string ContentKey::to_hex() const { return fmt::format("{:016x}{:016x}", hi, lo); }

std::optional<ContentKey> ContentKey::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  auto word = [](std::string_view digits, uint64_t& out) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  ContentKey key;
  if (!word(text.substr(0, 16), key.hi) || !word(text.substr(16), key.lo)) return std::nullopt;
  return key;
}

namespace {
XXH3_state_t* as_state(unsigned char* storage) { return std::launder(reinterpret_cast<XXH3_state_t*>(storage)); }
const XXH3_state_t* as_state(const unsigned char* storage) { return std::launder(reinterpret_cast<const XXH3_state_t*>(storage)); }
}  // namespace

ContentHasher::ContentHasher() noexcept {
  static_assert(sizeof(XXH3_state_t) <= sizeof(state_) && alignof(XXH3_state_t) <= 64);
  XXH3_128bits_reset(new (state_) XXH3_state_t);
}

ContentHasher& ContentHasher::bytes(const void* data, size_t size) noexcept {
  XXH3_128bits_update(as_state(state_), data, size);
  return *this;
}

ContentHasher& ContentHasher::add(std::string_view text) noexcept { return add(uint64_t{text.size()}).bytes(text.data(), text.size()); }

ContentHasher& ContentHasher::add(const ContentKey& key) noexcept { return add(key.hi).add(key.lo); }

ContentKey ContentHasher::finish() const noexcept {
  XXH128_hash_t h = XXH3_128bits_digest(as_state(state_));
  return {.lo = h.low64, .hi = h.high64};
}

}  // namespace tinygrad

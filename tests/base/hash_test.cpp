#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <unordered_set>

namespace tinygrad {
namespace {

TEST(Hash, BytesFollowXxh3) {
  EXPECT_EQ(hash_bytes("", 0), 0x2D06800538D394C2ULL);  // XXH3_64bits of nothing, from the xxHash specification
  EXPECT_NE(hash_bytes("a", 1), hash_bytes("a", 1, 1));
}

TEST(Hash, ValuesAreToldApart) {
  EXPECT_NE(hash_value(0.0), hash_value(-0.0));
  EXPECT_NE(hash_all(1, 2), hash_all(2, 1));
  EXPECT_NE(hash_all(1), hash_all(1, 0));
  EXPECT_EQ(hash_all(1, "x", true), hash_all(1, std::string("x"), true));
}

TEST(Hash, CombineSpreadsSmallNumbersOverLowBits) {
  std::set<uint64_t> low;
  for (uint64_t i = 0; i < 4096; i++) low.insert(hash_value(i) & 0xFFFFF);
  EXPECT_GT(low.size(), 4060u);  // about 8 collisions are expected from a random function
}

TEST(ContentKey, StreamingEqualsOneShot) {
  std::string text(5000, 'x');
  for (size_t i = 0; i < text.size(); i++) text[i] = static_cast<char>(i * 31);
  for (size_t cut : {size_t{0}, size_t{1}, size_t{240}, size_t{241}, size_t{4999}}) {
    ContentHasher hasher;
    hasher.bytes(text.data(), cut).bytes(text.data() + cut, text.size() - cut);
    EXPECT_EQ(hasher.finish(), content_key(text)) << cut;
  }
}

TEST(ContentKey, PiecesKeepTheirBorders) {
  EXPECT_NE(ContentHasher().add("ab").add("c").finish(), ContentHasher().add("a").add("bc").finish());
  EXPECT_NE(ContentHasher().add(1).finish(), ContentHasher().add(int64_t{1}).finish());
  ContentHasher base;
  base.add("prefix");
  ContentHasher copy = base;
  EXPECT_EQ(copy.add(7).finish(), base.add(7).finish());
}

TEST(ContentKey, HexRoundTrips) {
  ContentKey key{.lo = 0x0123456789abcdefULL, .hi = 0xfULL};
  EXPECT_EQ(key.to_hex(), "000000000000000f0123456789abcdef");
  EXPECT_EQ(ContentKey::from_hex(key.to_hex()), key);
  for (const char* bad :
       {"", "0123", "000000000000000f0123456789abcdeg", "000000000000000f0123456789abcdef0", "-00000000000000f0123456789abcdef"})
    EXPECT_FALSE(ContentKey::from_hex(bad)) << bad;
}

TEST(ContentKey, OrdersByHighWordFirst) {
  EXPECT_LT((ContentKey{.lo = 9, .hi = 1}), (ContentKey{.lo = 0, .hi = 2}));
  EXPECT_LT((ContentKey{.lo = 1, .hi = 2}), (ContentKey{.lo = 2, .hi = 2}));
  EXPECT_FALSE(ContentKey{});
  EXPECT_TRUE(content_key(""));
  EXPECT_EQ((std::unordered_set<ContentKey>{content_key("a"), content_key("a"), content_key("b")}.size()), 2u);
}

}  // namespace
}  // namespace tinygrad

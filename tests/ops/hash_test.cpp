#include "ops/hash.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <array>
#include <bit>

#include "ops/gradient.h"
#include "ops/movement.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using Bytes = std::vector<uint8_t>;

std::string hex(const Bytes& bytes) {
  std::string out;
  for (uint8_t b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

/// Keccak-f[1600] one lane at a time, its constants made as FIPS 202 defines them (algorithms 2 and 5).
void permute_state(std::array<uint64_t, 25>& a) {
  uint32_t lfsr = 1;
  for (int round = 0; round < 24; ++round) {
    uint64_t c[5], b[25];
    for (size_t x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
    for (size_t i = 0; i < 25; ++i) a[i] ^= c[(i + 4) % 5] ^ std::rotl(c[(i + 1) % 5], 1);
    size_t x = 1, y = 0;
    b[0] = a[0];
    for (int t = 0; t < 24; ++t) {
      const size_t next_y = (2 * x + 3 * y) % 5;
      b[next_y * 5 + y] = std::rotl(a[y * 5 + x], (t + 1) * (t + 2) / 2 % 64);
      x = y, y = next_y;
    }
    for (size_t i = 0; i < 25; ++i) a[i] = b[i] ^ (~b[i / 5 * 5 + (i + 1) % 5] & b[i / 5 * 5 + (i + 2) % 5]);
    for (int j = 0; j <= 6; ++j) {
      if (lfsr & 1) a[0] ^= uint64_t{1} << ((1 << j) - 1);
      lfsr = (lfsr << 1) ^ (lfsr & 0x80 ? 0x171 : 0);
    }
  }
}

Bytes reference(Bytes message, const KeccakConfig& c) {
  const auto rate = size_t(c.rate);
  message.push_back(c.suffix);
  message.resize((message.size() + rate - 1) / rate * rate);
  message.back() ^= 0x80;
  std::array<uint64_t, 25> state{};
  for (size_t at = 0; at < message.size(); at += rate) {
    for (size_t i = 0; i < rate; ++i) state[i / 8] ^= uint64_t(message[at + i]) << (i % 8 * 8);
    permute_state(state);
  }
  Bytes out;
  for (size_t i = 0; i < size_t(c.digest); ++i) out.push_back(uint8_t(state[i / 8] >> (i % 8 * 8)));
  return out;
}

class HashTest : public OpsTest {
 protected:
  UOp text(const std::string& s) { return tensor({int64_t(s.size())}, Values(s.begin(), s.end()), DType::uint8); }
  Bytes bytes_of(const UOp& u) {
    EXPECT_EQ(u.dtype(), DType::uint8);
    const spec::Array a = evaluated(u);
    return Bytes(a.as<uint8_t>().begin(), a.as<uint8_t>().end());
  }
  Bytes random_bytes(size_t count) {
    Bytes out;
    for (double v : numbers(count, 0, 256)) out.push_back(uint8_t(v));
    return out;
  }
  UOp of_bytes(const Bytes& b) { return tensor({int64_t(b.size())}, Values(b.begin(), b.end()), DType::uint8); }
};

TEST_F(HashTest, PublishedVectors) {
  // The examples of FIPS 202 on csrc.nist.gov and the SHA-3 vectors of the secure hash standard validation system.
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::tuple<const char*, std::string, const char*> vectors[] = {
      {"sha3_224", "", "6b4e03423667dbb73b6e15454f0eb1abd4597f9a1b078e3f5b5a6bc7"},
      {"sha3_256", "", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"},
      {"sha3_224", "abc", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"},
      {"sha3_256", "abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"},
      {"sha3_384", "abc", "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25"},
      {"sha3_512", "abc",
       "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0"},
      {"sha3_256", two_blocks, "41c0dba2a9d6240849100376a8235e2c82e1b9998a999e21db32dd97496d3376"},
      {"sha3_256", std::string(200, '\xa3'), "79f38adec5c20307a98ef76e8324afbfd46cfd81b22e3973c65fa1bd9de31787"},
      {"shake_128", "", "7f9c2ba4e88f827d616045507605853e"},
      {"shake_128", "abc", "5881092dd818bf5cf8a3ddb793fbcba7"},
      {"shake_256", "", "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f"}};
  for (const auto& [name, message, want] : vectors)
    EXPECT_EQ(hex(bytes_of(keccak(text(message), KeccakConfig::named(name)))), want) << name << " of " << message;
  EXPECT_EQ(hex(bytes_of(keccak(text("abc"), KeccakConfig::of(136, 6)))), std::get<2>(vectors[3]));
}

TEST_F(HashTest, LengthsAroundTheRate) {
  const KeccakConfig sha = KeccakConfig::named("sha3_256"), shake = KeccakConfig::named("shake_128");
  EXPECT_EQ(hex(reference({}, sha)), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
  for (size_t n : {1u, 135u, 136u, 137u, 272u, 300u}) {
    const Bytes message = random_bytes(n);
    EXPECT_EQ(bytes_of(keccak(of_bytes(message))), reference(message, sha)) << n << " bytes";
  }
  for (size_t n : {167u, 168u}) {
    const Bytes message = random_bytes(n);
    EXPECT_EQ(bytes_of(keccak(of_bytes(message), shake)), reference(message, shake)) << n << " bytes";
  }
}

TEST_F(HashTest, HashesTheLastAxis) {
  const Bytes data = random_bytes(2 * 3 * 10);
  const UOp x = tensor({2, 3, 10}, Values(data.begin(), data.end()), DType::uint8);
  const UOp y = keccak(x);
  expect_shape(y, "(2, 3, 32)");
  Bytes want, across;
  for (size_t i = 0; i < 6; ++i) {
    const Bytes one = reference(Bytes(data.begin() + long(i) * 10, data.begin() + long(i) * 10 + 10), {});
    want.insert(want.end(), one.begin(), one.end());
  }
  EXPECT_EQ(bytes_of(y), want);
  // Of a view: column (0, :, 4).
  for (size_t i = 0; i < 3; ++i) across.push_back(data[i * 10 + 4]);
  EXPECT_EQ(bytes_of(keccak(ops::squeeze(shrink_axis(ops::squeeze(shrink_axis(x, 0, 0, 1), 0), 1, 4, 5), 1))), reference(across, {}));
  expect_shape(keccak(tensor({0, 7}, {}, DType::uint8)), "(0, 32)");
  expect_shape(keccak(tensor({2, 0}, {}, DType::uint8)), "(2, 32)");
}

TEST_F(HashTest, OtherDtypesAreTheirBytes) {
  const std::array<uint32_t, 3> words = {0x3f800000, 0xc0490fdb, 0x80000000};
  Bytes bytes;
  for (uint32_t w : words)
    for (int k = 0; k < 4; ++k) bytes.push_back(uint8_t(w >> (8 * k)));
  const UOp x = tensor({3}, {1, double(std::bit_cast<float>(words[1])), -0.0}, DType::float32);
  EXPECT_EQ(bytes_of(keccak(x)), reference(bytes, {}));
  const UOp loss = tinygrad::cast(keccak(x), DType::float32);
  EXPECT_FALSE(gradient(loss, loss, std::span(&x, 1))[0]) << "integers have no gradient";
}

TEST_F(HashTest, HashOfPieces) {
  const UOp x = text("Hello World!");
  expect_shape(hash(x), "(16,)");
  EXPECT_EQ(hex(bytes_of(hash(x))), "e02b050b7b6e9bb60f9c033633502ee3");
  expect_shape(hash(tensor({}, {1}, DType::float32)), "(16,)");
  expect_shape(hash(tensor({0}, {}, DType::float32)), "(16,)");
  // Two pieces, their digests in one more.
  expect_shape(hash(ops::expand(tensor({1}, {1}, DType::uint8), Shape{(1 << 20) + 1})), "(16,)");
}

TEST_F(HashTest, Errors) {
  const UOp x = text("abc");
  EXPECT_EQ(message_of<ValueError>([&] { KeccakConfig::named("md5"); }),
            "keccak: \"md5\", expects sha3_224, sha3_256, sha3_384, sha3_512, shake_128 or shake_256");
  EXPECT_EQ(message_of<ValueError>([&] { keccak(x, KeccakConfig::of(200, 6)); }),
            "keccak: a rate of 200 bytes, expects a multiple of 8 below 200");
  EXPECT_EQ(message_of<ValueError>([&] { keccak(x, KeccakConfig::of(60, 6)); }),
            "keccak: a rate of 60 bytes, expects a multiple of 8 below 200");
  EXPECT_EQ(message_of<ValueError>([&] { keccak(x, KeccakConfig::of(136, 0)); }), "keccak: the suffix 0x0, expects 1 to 0x7f");
  EXPECT_EQ(message_of<ValueError>([&] { keccak(x, KeccakConfig::of(64, 6)); }),
            "keccak: a digest of 68 bytes, expects at most the rate, 64");
  EXPECT_EQ(message_of<ShapeError>([&] { keccak(tensor({}, {1}, DType::uint8)); }),
            "keccak: expects at least one axis, of bytes to hash, got ()");
}

}  // namespace
}  // namespace tinygrad::ops

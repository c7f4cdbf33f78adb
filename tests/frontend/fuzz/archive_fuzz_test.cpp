// Damaged archives: each is read, or is a FormatError.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "base/archive/gzip.h"
#include "base/archive/tar.h"
#include "base/archive/zip.h"
#include "base/archives.h"
#include "support/test_scale.h"

namespace tinygrad::archive {
namespace {

std::string random_text(std::mt19937_64& random) { return std::string(random() % 700, static_cast<char>('a' + random() % 26)); }

void damage(std::string& bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size();
  switch (random() % 6) {
    case 0: bytes[at] = static_cast<char>(random()); break;
    case 1: bytes[at] ^= static_cast<char>(1 << random() % 8); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 600)); break;
    case 4: bytes.erase(at, random() % 600); break;
    default: bytes.replace(at, std::min<size_t>(4, bytes.size() - at), std::string(std::min<size_t>(4, bytes.size() - at), '\xff'));
  }
}

/// Damages archives that `make` gives and reads them with `read`, which returns the bytes read.
void fuzz(const auto& make, const auto& read) {
  std::mt19937_64 random(test::seed());
  int good = 0, refused = 0;
  for (int i = 0; i < 5'000 * test::test_scale(); ++i) {
    std::string archive = make(random);
    const size_t limit = 1100 * archive.size() + 100'000;
    for (uint64_t change = random() % 4; change > 0 && !archive.empty(); --change) damage(archive, random);
    try {
      ASSERT_LE(read(archive), limit);
      ++good;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(good, 500);
  EXPECT_GT(refused, 500);
}

TEST(ArchiveFuzz, Gzip) {
  fuzz(
      [](std::mt19937_64& random) { return test::gzipped(random_text(random)) + (random() % 2 ? test::gzipped(random_text(random)) : ""); },
      [](const std::string& archive) { return gunzip(test::bytes_of(archive), "f", 1 << 20).size(); });
}

TEST(ArchiveFuzz, Tar) {
  const auto make = [](std::mt19937_64& random) {
    std::vector<test::TarMember> members;
    for (uint64_t n = random() % 4; n > 0; --n) {
      if (random() % 3 == 0) members.push_back({"p", test::pax_record("path", "long") + test::pax_record("size", "3"), 'x'});
      if (random() % 3 == 0) members.push_back({"l", "name", 'L'});
      members.push_back({"f", random_text(random)});
    }
    return test::tar_of(members);
  };
  fuzz(make, [](const std::string& archive) {
    size_t bytes = 0;
    for (const TarFile& f : read_tar(test::bytes_of(archive), "f")) {
      for (const std::byte b : f.bytes) bytes += b != std::byte{0};
      EXPECT_FALSE(f.name.empty());
    }
    return bytes;
  });
}

TEST(ArchiveFuzz, Zip) {
  const auto make = [](std::mt19937_64& random) {
    std::vector<test::ZipMember> members;
    for (uint64_t n = random() % 4; n > 0; --n)
      members.push_back({std::to_string(n), random_text(random), random() % 2 == 0, random() % 3 == 0});
    return test::zip_of(members, random() % 2, random() % 2 ? "comment" : "");
  };
  fuzz(make, [](const std::string& archive) {
    size_t bytes = 0;
    for (const ZipFile& f : read_zip(test::bytes_of(archive), "f")) bytes += f.unpack("f").size();
    return bytes;
  });
}

}  // namespace
}  // namespace tinygrad::archive

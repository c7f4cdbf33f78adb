// Archives: gzip, tar and zip, whole and damaged.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "base/archive/gzip.h"
#include "base/archive/tar.h"
#include "base/archive/zip.h"
#include "base/archives.h"

namespace tinygrad::archive {
namespace {

using test::bytes_of;
using test::gzipped;
using test::pax_record;
using test::tar_of;
using test::text_of;
using test::zip_of;

using Files = std::vector<std::pair<std::string, std::string>>;

std::string unpacked(const std::string& packed, size_t limit = 1 << 20) { return text_of(gunzip(bytes_of(packed), "f", limit)); }
Files tar_files(const std::string& archive) {
  Files out;
  for (const TarFile& f : read_tar(bytes_of(archive), "f")) out.emplace_back(f.name, text_of(f.bytes));
  return out;
}
Files zip_files(const std::string& archive) {
  Files out;
  for (const ZipFile& f : read_zip(bytes_of(archive), "f")) out.emplace_back(f.name, text_of(f.unpack("f")));
  return out;
}

TEST(Gzip, MembersAreJoined) {
  EXPECT_EQ(unpacked(gzipped("hello")), "hello");
  EXPECT_EQ(unpacked(gzipped("hello") + gzipped(", world") + std::string(5, '\0')), "hello, world");
  EXPECT_EQ(unpacked(gzipped("")), "");
  const std::string large(300'000, 'z');
  EXPECT_EQ(unpacked(gzipped(large)), large);
  EXPECT_EQ(unpacked(gzipped(large), 300'000), large);
}

TEST(Gzip, DamageIsAFormatError) {
  const std::string good = gzipped("hello, hello, hello");
  EXPECT_THROW(unpacked(""), FormatError);
  EXPECT_THROW(unpacked("hello"), FormatError);
  EXPECT_THROW(unpacked(good + "x"), FormatError);
  EXPECT_THROW(unpacked(good, 18), FormatError);
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(unpacked(good.substr(0, size)), FormatError) << size;
  std::string wrong = good;
  wrong[good.size() - 6] ^= 1;  // in the checksum
  EXPECT_THROW(unpacked(wrong), FormatError);
}

TEST(Tar, RegularFilesOfEveryKind) {
  const std::string long_name(150, 'n'), binary_size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12);
  EXPECT_EQ(
      tar_files(tar_of({{"a", "text"},
                        {"folder/", "", '5'},
                        {"link", "", '1'},
                        {"b", "", '\0'},
                        {"c", std::string(512, 'c'), '0', "some/prefix"},
                        {"././@LongLink", long_name + std::string(1, '\0'), 'L'},
                        {"nnn", "gnu"},
                        {"pax", pax_record("mtime", "1.5") + pax_record("path", "new/name"), 'x'},
                        {"old", "pax"},
                        {"global", pax_record("comment", "c"), 'g'},
                        {"d", "bin", '0', "", binary_size}})),
      (Files{{"a", "text"}, {"b", ""}, {"some/prefix/c", std::string(512, 'c')}, {long_name, "gnu"}, {"new/name", "pax"}, {"d", "bin"}}));
  EXPECT_EQ(tar_files(tar_of({{"a", "x"}}, false)), (Files{{"a", "x"}}));
}

TEST(Tar, WhatDoesNotFitIsAFormatError) {
  const std::string good = tar_of({{"a", "text"}});
  std::vector<std::string> bad{"",
                               "x",
                               good.substr(0, 100),
                               good.substr(0, 514),
                               std::string(512, 'x'),
                               tar_of({{"", "x"}}),
                               tar_of({{"s", "x", 'S'}}),
                               tar_of({{"p", "5 a=b", 'x'}, {"a", "x"}}),
                               tar_of({{"p", "99 a=b\n", 'x'}, {"a", "x"}}),
                               tar_of({{"p", "6 ab c\n", 'x'}, {"a", "x"}}),
                               tar_of({{"p", pax_record("size", "-1"), 'x'}, {"a", "x"}}),
                               tar_of({{"p", pax_record("size", "99999999999999999999"), 'x'}, {"a", "x"}}),
                               tar_of({{"p", pax_record("GNU.sparse.major", "1"), 'x'}, {"a", "x"}}),
                               tar_of({{"a", "x", '0', "", "77777777777 "}}),
                               tar_of({{"a", "x", '0', "", "0000000000z "}}),
                               tar_of({{"a", "x", '0', "", std::string("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)}}),
                               tar_of({{"a", "x", '0', "", std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)}}),
                               tar_of({{"l", "x", 'L', "", "00077777777 "}, {"a", "x"}})};
  std::string damaged = good;
  damaged[3] = 'q';
  bad.push_back(damaged);
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_THROW(tar_files(bad[i]), FormatError) << i;
}

TEST(Zip, StoredDeflatedAndZip64) {
  const std::string long_text(5000, 'a');
  const Files files{{"stored", "text"}, {"folder/", ""}, {"deflated", long_text}, {"large", "64"}};
  for (const bool zip64 : {false, true})
    EXPECT_EQ(zip_files(zip_of({{"stored", "text"}, {"folder/", ""}, {"deflated", long_text, true}, {"large", "64", false, true}}, zip64,
                               "a comment")),
              files);
  EXPECT_TRUE(zip_files(zip_of({})).empty());
}

TEST(Zip, WhatDoesNotFitIsAFormatError) {
  const std::string good = zip_of({{"a", "hello hello hello", true}, {"b", "x"}});
  const auto damaged = [&](const std::string& find, size_t offset, char value) {
    std::string out = good;
    out[out.find(find) + offset] = value;
    return out;
  };
  const std::string entry = test::little<uint32_t>(0x02014b50), local = test::little<uint32_t>(0x04034b50);
  const std::vector<std::string> bad{"",
                                     "x",
                                     good.substr(0, good.size() - 1),
                                     good + "x",
                                     good.substr(30),
                                     zip_of({{"a", "x"}, {"a", "y"}}),
                                     zip_of({{"a", "x", false, false, 1}}),
                                     zip_of({{"a", "x", false, false, 0, 12}}),
                                     damaged(entry, 0, 'x'),
                                     damaged(local, 0, 'x'),
                                     damaged(local, 30, 'x'),     // another name
                                     damaged(entry, 16, '\x01'),  // the checksum
                                     damaged(entry, 20, '\x7f'),  // the packed size
                                     damaged(entry, 24, '\x01'),  // the size
                                     damaged(entry, 27, '\x7f'),  // gigabytes
                                     damaged(entry, 42, '\x01'),  // where it is
                                     damaged(entry, 45, '\x7f')};
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_THROW(zip_files(bad[i]), FormatError) << i;
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(zip_files(good.substr(0, size)), FormatError) << size;
}

TEST(Zip, StoredFilesHaveTheChecksumThatIsListed) {
  std::string archive = zip_of({{"a", "stored as it is"}});
  EXPECT_EQ(zip_files(archive), (Files{{"a", "stored as it is"}}));
  archive[archive.find("stored")] = 'S';
  EXPECT_THROW(zip_files(archive), FormatError);
}

TEST(Zip, FilesThatOverlapAreRefused) {
  std::string archive = zip_of({{"a", "xxxx"}, {"b", "yyyy"}});
  const size_t second = archive.rfind(test::little<uint32_t>(0x02014b50));
  archive.replace(second + 42, 4, std::string(4, '\0'));  // the second file is where the first is
  archive[second + 46] = 'a';                             // and named so
  EXPECT_THROW(zip_files(archive), FormatError);
  archive[second + 46] = 'b';
  EXPECT_THROW(zip_files(archive), FormatError);
}

}  // namespace
}  // namespace tinygrad::archive

#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/temp_dir.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

using test::message_of;

class File : public TempDir {
 protected:
  size_t files() const {
    auto entries = std::filesystem::directory_iterator(path(""));
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
};

TEST_F(File, RoundTripsBytes) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{100000}}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(i * 7);
    write_file_atomic(path("data"), bytes);
    EXPECT_EQ(read_file(path("data")), bytes);
    MappedFile mapped(path("data"));
    ASSERT_EQ(mapped.size(), size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped.data()), mapped.size()), bytes);
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, ReadsFilesWithoutASize) { EXPECT_NE(read_file("/proc/self/status").find("Name:"), std::string::npos); }

TEST_F(File, ErrorsNameThePathAndTheReason) {
  EXPECT_EQ(message_of<IoError>([&] { read_file(path("none")); }), "cannot open '" + path("none") + "': No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { MappedFile(path("none")); }), "cannot open '" + path("none") + "': No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { read_file("/tmp"); }), "cannot read '/tmp': Is a directory");
  EXPECT_NE(message_of<IoError>([&] { write_file_atomic(path("no/folder"), "x"); }).find("No such file or directory"), std::string::npos);
}

TEST_F(File, AWriteThatFailsLeavesNothingBehind) {
  std::filesystem::create_directory(path("target"));
  EXPECT_THROW(write_file_atomic(path("target"), "x"), IoError);
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, ReplacingKeepsTheMode) {
  write_file_atomic(path("script"), "a");
  ::chmod(path("script").c_str(), 0751);
  write_file_atomic(path("script"), "b");
  struct stat info{};
  ASSERT_EQ(::stat(path("script").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0751u);
}

TEST_F(File, ReadersSeeWholeVersions) {
  write_file_atomic(path("shared"), std::string(5000, 'a'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 60; i++) write_file_atomic(path("shared"), std::string(5000, static_cast<char>('a' + i % 26)));
    stop = true;
  });
  while (!stop) {
    std::string seen = read_file(path("shared"));
    ASSERT_EQ(seen.size(), 5000u);
    ASSERT_EQ(std::ranges::count(seen, seen[0]), 5000);
  }
  writer.join();
}

TEST_F(File, MapsMove) {
  write_file_atomic(path("data"), "hello");
  MappedFile a(path("data"));
  MappedFile b = std::move(a);
  EXPECT_EQ(a.size(), 0u);
  EXPECT_EQ(b.size(), 5u);
  a = std::move(b);
  EXPECT_EQ(a.bytes().size(), 5u);
}

}  // namespace
}  // namespace tinygrad

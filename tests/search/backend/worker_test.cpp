#include "search/worker.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <cstring>

#include <tinygrad/errors.h>

#include "base/temp_dir.h"
#include "search/backend/broken_kernels.h"
#include "search/memory_file.h"

namespace tinygrad::search {
namespace {

constexpr uint64_t page = 4096;

/// A buffer that kernels read and one that they write.
struct Bench {
  MemoryFile memory{4 * page};
  WorkerSetup setup{.threads = 2,
                    .cold_bytes = page,
                    .buffers = {{.bytes = page}, {.bytes = page, .content = page, .written = true, .result = 2 * page}}};
  Worker worker{program(), memory.descriptor(), setup};

  static std::string program() {
    std::string why;
    const std::string path = find_worker("", why);
    EXPECT_NE(path, "") << why;
    return path;
  }
};

WorkerRequest request_of(std::string object) {
  return {.symbol = "kernel_k", .object = std::move(object), .repetitions = 5, .enough_s = 1, .hopeless_s = 1, .limit_s = 5};
}

/// bufs[1][0] = bufs[0][0] + bufs[1][0]
std::string adding() {
  return test::object_of("kernel_k",
                         "  %a = load ptr, ptr %bufs\n  %q = getelementptr ptr, ptr %bufs, i64 1\n  %b = load ptr, ptr %q\n"
                         "  %x = load i32, ptr %a\n  %y = load i32, ptr %b\n  %s = add i32 %x, %y\n  store i32 %s, ptr %b\n  ret void\n");
}

TEST(Worker, RunsAKernelOnItsBuffers) {
  Bench b;
  const int32_t three = 3, four = 4;
  std::memcpy(b.memory.bytes().data(), &three, 4);
  std::memcpy(b.memory.bytes().data() + page, &four, 4);
  Worker late(Bench::program(), b.memory.descriptor(), b.setup);
  for (int i = 0; i < 2; ++i) {  // what is written begins anew
    const WorkerResult r = late.run(request_of(adding()));
    ASSERT_TRUE(r.ran()) << r.error;
    EXPECT_EQ(r.seconds.size(), 6u);
    int32_t result = 0;
    std::memcpy(&result, b.memory.bytes().data() + 2 * page, 4);
    EXPECT_EQ(result, 7);
  }
}

TEST(Worker, HopelessKernelsAreRunNoMore) {
  Bench b;
  WorkerRequest r = request_of(test::idle("kernel_k"));
  r.hopeless_s = 0;
  EXPECT_EQ(b.worker.run(r).seconds.size(), 1u);
}

TEST(Worker, EndlessKernelsAreEnded) {
  Bench b;
  WorkerRequest r = request_of(test::endless("kernel_k"));
  r.limit_s = 0.1;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(b.worker.run(r).kind, WorkerResult::Kind::endless);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_FALSE(b.worker.alive());
  EXPECT_FALSE(b.worker.run(r).ran());
}

TEST(Worker, CrashesStayInTheWorker) {
  Bench b;
  const WorkerResult r = b.worker.run(request_of(test::crashing("kernel_k")));
  EXPECT_EQ(r.kind, WorkerResult::Kind::crashed);
  EXPECT_FALSE(b.worker.alive());
}

TEST(Worker, RefusesWhatIsNoKernelAndGoesOn) {
  Bench b;
  EXPECT_EQ(b.worker.run(request_of("no object")).kind, WorkerResult::Kind::refused);
  EXPECT_EQ(b.worker.run(request_of(test::idle("kernel_other"))).kind, WorkerResult::Kind::refused);
  EXPECT_TRUE(b.worker.run(request_of(test::idle("kernel_k"))).ran());
}

TEST(Worker, BuffersMustBeInsideOfTheMemory) {
  Bench b;
  b.setup.buffers[0].content = 4 * page;
  EXPECT_THROW(Worker(Bench::program(), b.memory.descriptor(), b.setup), DeviceError);
  b.setup.buffers[0].content = ~uint64_t{0} - 100;
  EXPECT_THROW(Worker(Bench::program(), b.memory.descriptor(), b.setup), DeviceError);
}

class OtherPrograms : public TempDir {};

TEST_F(OtherPrograms, AreFoundOut) {
  Bench b;
  EXPECT_THROW(Worker("/bin/true", b.memory.descriptor(), b.setup), DeviceError);
  EXPECT_THROW(Worker("/nonexistent/tg-worker", b.memory.descriptor(), b.setup), DeviceError);
  const std::string path = this->path("chatty");
  FILE* f = std::fopen(path.c_str(), "w");
  std::fputs("#!/bin/sh\nhead -c 200 /dev/zero >&0\n", f);
  std::fclose(f);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_THROW(Worker(path, b.memory.descriptor(), b.setup), DeviceError);
}

TEST(FindWorker, SaysWhereItLooked) {
  std::string why;
  EXPECT_EQ(find_worker("/nonexistent/tg-worker", why), "");
  EXPECT_EQ(why, "WORKER_PATH: /nonexistent/tg-worker is no program");
}

}  // namespace
}  // namespace tinygrad::search

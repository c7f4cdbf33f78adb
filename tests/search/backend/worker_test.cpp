#include "search/worker.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>

#include <tinygrad/errors.h>

#include "base/memory_file.h"
#include "base/temp_dir.h"
#include "search/backend/broken_kernels.h"

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

void put(const MemoryFile& memory, uint64_t at, int32_t value) { std::memcpy(memory.at(at, 4).data(), &value, 4); }
int32_t get(const MemoryFile& memory, uint64_t at) {
  int32_t value = 0;
  std::memcpy(&value, memory.at(at, 4).data(), 4);
  return value;
}

TEST(Worker, RunsAKernelOnItsBuffers) {
  Bench b;
  put(b.memory, 0, 3);
  put(b.memory, page, 4);
  Worker late(Bench::program(), b.memory.descriptor(), b.setup);
  for (int i = 0; i < 2; ++i) {  // what is written begins anew
    const WorkerResult r = late.run(request_of(adding()));
    ASSERT_TRUE(r.ran()) << r.error;
    EXPECT_EQ(r.seconds.size(), 6u);
    EXPECT_EQ(get(b.memory, 2 * page), 7);
  }
}

/// Stores a byte to buffer `buffer`, so many bytes behind its begin.
std::string storing(int buffer, int64_t at) {
  return test::object_of("kernel_k", fmt::format("  %p = getelementptr ptr, ptr %bufs, i64 {}\n  %b = load ptr, ptr %p\n"
                                                 "  %q = getelementptr i8, ptr %b, i64 {}\n  store i8 1, ptr %q\n  ret void\n",
                                                 buffer, at));
}

TEST(Worker, StoresOutsideOfBuffersAreFoundAndUndone) {
  Bench b;
  put(b.memory, 0, 3);
  put(b.memory, page, 4);
  Worker late(Bench::program(), b.memory.descriptor(), b.setup);
  const struct {
    int buffer;
    int64_t at;
    const char* error;
  } wrong[] = {{0, -1, "it stored to what lies before argument 0"},
               {0, 0, "it stored to argument 0, which it only reads"},
               {0, page, "it stored to what lies before argument 1"},
               {1, page, "it stored to what lies behind its arguments"},
               {1, page + 100000, "it stored to what lies behind its arguments"}};
  for (const auto& [buffer, at, error] : wrong) {
    const WorkerResult r = late.run(request_of(storing(buffer, at)));
    EXPECT_EQ(r.kind, WorkerResult::Kind::refused);
    EXPECT_EQ(r.error, error);
    ASSERT_TRUE(late.run(request_of(adding())).ran());
    EXPECT_EQ(get(b.memory, 2 * page), 7);
  }
  EXPECT_TRUE(late.run(request_of(storing(1, page - 1))).ran());
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

TEST(Worker, NeedsItsMemory) { EXPECT_THROW(Worker(Bench::program(), -1, Bench().setup), DeviceError); }

// Then its number may be another process's when the worker is to be killed.
TEST(Worker, MayBeReapedByOthers) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  {
    Bench b;
    EXPECT_EQ(b.worker.run(request_of(test::crashing("kernel_k"))).error, "it has ended");
    EXPECT_FALSE(b.worker.alive());
  }
  std::signal(SIGCHLD, before);
}

/// A script instead of tg-worker.
class OtherPrograms : public TempDir {
 protected:
  std::string script(const std::string& text) {
    const std::string file = path("script");
    std::ofstream(file) << "#!/bin/sh\n" << text << "\n";
    EXPECT_EQ(::chmod(file.c_str(), 0755), 0);
    return file;
  }
  /// One that says this, whatever it is asked.
  std::string answering(const std::string& bytes) {
    std::ofstream(path("answer")) << bytes;
    return script("cat " + path("answer") + " >&0");
  }
  std::string complaint_of(const std::string& program) {
    try {
      Bench b;
      Worker(program, b.memory.descriptor(), b.setup);
    } catch (const DeviceError& e) {
      return e.what();
    }
    return {};
  }
};

TEST_F(OtherPrograms, AreFoundOut) {
  EXPECT_NE(complaint_of("/bin/true"), "");
  EXPECT_NE(complaint_of("/nonexistent/tg-worker"), "");
  EXPECT_NE(complaint_of(script("head -c 200 /dev/zero >&0")), "");
  EXPECT_NE(complaint_of(script("exec cat " + Bench::program() + " >&0")), "");
}

TEST_F(OtherPrograms, OfAnotherBuildAreNamed) {
  std::string answer = encode(WorkerReply{});
  ++answer[0];
  const std::string program = answering(answer);
  EXPECT_EQ(complaint_of(program), "search: " + program +
                                       " does not work: tg-worker: the other side speaks another protocol than this library: use the "
                                       "tg-worker that is installed with it");
}

TEST_F(OtherPrograms, AnswersAreNotBelieved) {
  std::string answer = encode(WorkerReply{});
  answer[frame_header_bytes - 3] = 1;  // of the length
  const std::string program = answering(answer);
  EXPECT_EQ(complaint_of(program), "search: " + program + " does not work: tg-worker: a message of 1099511627784 bytes");
}

TEST(FindWorker, SaysWhereItLooked) {
  std::string why;
  EXPECT_EQ(find_worker("/nonexistent/tg-worker", why), "");
  EXPECT_EQ(why, "WORKER_PATH: /nonexistent/tg-worker is no program");
}

}  // namespace
}  // namespace tinygrad::search

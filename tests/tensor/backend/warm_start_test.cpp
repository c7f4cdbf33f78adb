// A start with a filled disk cache neither lowers nor compiles: the kernels of a whole schedule are one entry.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <tinygrad/tinygrad.h>

#include "base/sqlite.h"
#include "base/temp_dir.h"

namespace tinygrad {
namespace {

/// Several kernels, some with variables, on the terms of one child process.
void compute_and_exit(const std::string& cache, const char* llvm) {
  // Verifiers are off: they see each kernel on its way, so that nothing is read.
  const Context terms{{.cachedb = cache, .llvm_path = llvm, .spec = 0}};
  try {
    const Tensor x = (Tensor::arange(96).reshape({8, 12}) * 0.25).realize();
    const Variable n("n", 1, 8);
    const Tensor head = x.shrink({{0, n.bind(3)}, {0, 12}}).sum();
    std::fprintf(stderr, "results %g %g %g", x.matmul(x.transpose()).softmax().sum().item(), x.max().item(), head.item());
  } catch (const Error& e) {
    std::fprintf(stderr, "failed: %s", e.what());
  }
  std::exit(0);
}

class WarmStartDeathTest : public TempDir {};

int64_t entries(const std::string& cache, const std::string& table) {
  sqlite::Database database(cache, SQLITE_OPEN_READWRITE, 1000);
  return database.query_integer(("SELECT COUNT(*) FROM tinygrad_cache WHERE name='" + table + "'").c_str());
}

TEST_F(WarmStartDeathTest, ReadsProgramsAndNeedsNoCompiler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The children run this from its beginning; the cache is that of the first.
  if (!std::getenv("TG_WARM_START_CACHE")) setenv("TG_WARM_START_CACHE", path("cache.db").c_str(), 0);
  const std::string cache = std::getenv("TG_WARM_START_CACHE"), missing = "/no/such/libLLVM.so", expected = "results 8 23.75 157.5";
  EXPECT_EXIT(compute_and_exit(cache, missing.c_str()), testing::ExitedWithCode(0), "failed: ");
  EXPECT_EXIT(compute_and_exit(cache, ""), testing::ExitedWithCode(0), expected);
  EXPECT_GT(entries(cache, "programs"), 0);
  // Without the objects that sources are looked up by, what is left are programs by graph.
  sqlite::Database(cache, SQLITE_OPEN_READWRITE, 1000).execute("DELETE FROM tinygrad_cache WHERE name='llvm_object'");
  EXPECT_EXIT(compute_and_exit(cache, missing.c_str()), testing::ExitedWithCode(0), expected);
}

}  // namespace
}  // namespace tinygrad

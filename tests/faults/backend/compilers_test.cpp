// Compilers that are missing, too old, or fail; kernels that do not end.
#include <gtest/gtest.h>

#include <filesystem>

#include <tinygrad/tinygrad.h>

#include "support/temp_folder.h"

namespace tinygrad {
namespace {

template <class Failure>
std::string message(const Tensor& t) {
  try {
    t.realize();
  } catch (const Failure& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// Kernels that no cache knows: each use has another size.
class Compilers : public testing::Test {
 protected:
  static Tensor fresh() {
    static int64_t size = 100;
    return (Tensor::arange(++size, {.dtype = DType::float32}) * 3 + 1).contiguous();
  }
  std::string script(const std::string& text) const {
    const std::string path = folder_.write("compiler", "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  test::TempFolder folder_;
  /// A disk cache of its own, so that what a broken compiler has left in it shows.
  Context cache_{{.cachedb = folder_.path("cache.db")}};
};

TEST_F(Compilers, ThatIsKilled) {
  const Tensor x = fresh();
  {
    Context broken{{.clang_path = script("cat >/dev/null; kill -9 $$"), .dev = "CPU:CLANG"}};
    EXPECT_NE(message<CompileError>(x).find("failed"), std::string::npos);
  }
  Context working{{.dev = "CPU:CLANG"}};
  EXPECT_EQ(x.sum().item(), double(x.numel() * (x.numel() - 1) / 2 * 3 + x.numel()));
}

TEST_F(Compilers, ThatFailsInItsOwnWords) {
  const Tensor x = fresh();
  Context broken{{.clang_path = script("cat >/dev/null; echo 'internal compiler error' >&2; exit 70"), .dev = "CPU:CLANG"}};
  const std::string why = message<CompileError>(x);
  EXPECT_NE(why.find("internal compiler error"), std::string::npos) << why;
  EXPECT_NE(why.find("70"), std::string::npos) << why;
}

TEST_F(Compilers, ThatDoesNotReadItsInput) {
  const Tensor x = fresh();
  Context broken{{.clang_path = script("exec <&-; exit 1"), .dev = "CPU:CLANG"}};
  EXPECT_NE(message<CompileError>(x).find("failed"), std::string::npos);
}

TEST_F(Compilers, ThatWritesNonsenseIsNotRemembered) {
  const Tensor x = fresh();
  {
    Context broken{{.clang_path = script("cat >/dev/null; echo 'this is fine'"), .dev = "CPU:CLANG"}};
    EXPECT_NE(message<CompileError>(x).find("no object file"), std::string::npos);
  }
  Context working{{.dev = "CPU:CLANG"}};
  EXPECT_NO_THROW(x.realize());
}

TEST_F(Compilers, ThatAreMissingOrOfAnotherVersion) {
  const Tensor x = fresh();
  for (const char* path : {"/nonexistent/libLLVM.so", "libz.so.1"}) {
    Context broken{{.dev = "CPU:LLVM", .llvm_path = path}};
    const std::string why = message<CompileError>(x);
    EXPECT_NE(why.find("apt-get install"), std::string::npos) << why;
    EXPECT_NE(why.find(path), std::string::npos) << why;
  }
  Context working{{.dev = "CPU:LLVM"}};
  EXPECT_NO_THROW(x.realize());
}

TEST_F(Compilers, AKernelThatDoesNotEnd) {
  Context interpreted{{.dev = "INTERP"}};
  const Tensor x = Tensor::ones({64, 64}).contiguous().realize();
  {
    Context limit{{.interp_steps = 1000}};
    const Tensor product = x.matmul(x);
    const std::string why = message<DeviceError>(product);
    EXPECT_NE(why.find("INTERP_STEPS"), std::string::npos) << why;
  }
  EXPECT_EQ(x.matmul(x).max().item(), 64);
}

}  // namespace
}  // namespace tinygrad

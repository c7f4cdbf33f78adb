#include "base/dylib.h"

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

TEST(DynamicLibrary, OpensTheFirstThatIsThere) {
  DynamicLibrary libm = DynamicLibrary::open({"libno_such_thing.so.1", "libm.so.6"});
  EXPECT_EQ(libm.name(), "libm.so.6");
  EXPECT_EQ(libm.symbol<double(double)>("sqrt")(9.0), 3.0);
  EXPECT_EQ(libm.find<void()>("no_such_symbol"), nullptr);
}

TEST(DynamicLibrary, SaysWhatWasTried) {
  std::string why;
  EXPECT_FALSE(DynamicLibrary::try_open({"libno_such_a.so", "/proc/version", "libno_such_b.so"}, &why));
  EXPECT_NE(why.find("tried libno_such_a.so, /proc/version ("), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with("), libno_such_b.so")) << why;
  try {
    DynamicLibrary::open({"libno_such_a.so"});
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("tried libno_such_a.so"), std::string::npos);
  }
}

TEST(DynamicLibrary, AMissingSymbolIsATypedError) {
  DynamicLibrary libm = DynamicLibrary::open({"libm.so.6"});
  try {
    libm.symbol<void()>("no_such_symbol");
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("libm.so.6 has no symbol 'no_such_symbol'"), std::string::npos);
  }
}

TEST(DynamicLibrary, Moves) {
  DynamicLibrary a = DynamicLibrary::open({"libm.so.6"});
  DynamicLibrary b = std::move(a);
  a = std::move(b);
  EXPECT_NE(a.find<double(double)>("cos"), nullptr);
}

}  // namespace
}  // namespace tinygrad

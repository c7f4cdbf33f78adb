#include "base/build_id.h"

#include <gtest/gtest.h>

namespace tinygrad {
namespace {

TEST(BuildId, IsOfThisFile) {
  EXPECT_GE(build_id().size(), 8u);
  EXPECT_EQ(&build_id(), &build_id());
}

}  // namespace
}  // namespace tinygrad

#include "search/worker_bench.h"

#include <gtest/gtest.h>

#include <vector>

namespace tinygrad::search {
namespace {

double span_of(std::vector<double> pieces, size_t processors) { return makespan(pieces, processors); }

TEST(Makespan, IsThatOfTheProcessorWithMostToDo) {
  EXPECT_EQ(span_of({3}, 1), 3);
  EXPECT_EQ(span_of({1, 2, 3}, 1), 6);
  EXPECT_EQ(span_of({1, 1, 1, 1}, 2), 2);
  EXPECT_EQ(span_of({1, 1, 1}, 2), 2);
  EXPECT_EQ(span_of({8, 1, 1, 1}, 2), 8);
  EXPECT_EQ(span_of({1, 1, 8, 1}, 2), 9);
  EXPECT_EQ(span_of({1, 0, 0, 1}, 4), 1);
}

}  // namespace
}  // namespace tinygrad::search

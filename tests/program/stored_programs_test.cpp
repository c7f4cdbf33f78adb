#include "program/stored_programs.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "program/example_program.h"

namespace tinygrad {
namespace {

TEST(StoredPrograms, ComeBackAsTheyWere) {
  const StoredProgram programs[] = {test::example_program(), {}};
  const auto back = unpack_programs(pack_programs(programs));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0], programs[0]);
  EXPECT_EQ(back[1], programs[1]);
  EXPECT_TRUE(unpack_programs(pack_programs({})).empty());
}

TEST(StoredPrograms, AnyDamageIsAFormatErrorOrOtherPrograms) {
  const StoredProgram programs[] = {test::example_program()};
  const std::string bytes = pack_programs(programs);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(unpack_programs(std::string_view(bytes).substr(0, n)), FormatError) << n;
  EXPECT_THROW(unpack_programs(bytes + "x"), FormatError);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char c : {'\0', '\x7f', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = c;
      try {
        for (const StoredProgram& p : unpack_programs(damaged)) p.info.launch_dims(std::vector<int64_t>(p.info.variables.size(), 5));
      } catch (const FormatError&) {}
    }
  }
}

// More than any machine has, if they were made before they are read.
TEST(StoredPrograms, ACountIsNotBelieved) {
  std::string bytes(size_t{1} << 27, '\xff');
  for (int i = 0; i < 4; ++i) bytes[size_t(i)] = "\xff\xff\xff\x07"[i];
  EXPECT_THROW(unpack_programs(bytes), FormatError);
}

TEST(IndexExpr, ValidityCoversWhatEvaluationReads) {
  using Step = IndexExpr::Step;
  const auto step = [](Op op, int64_t value = 0, int32_t a = 0, int32_t b = 0) {
    return Step{.op = op, .a = a, .b = b, .c = 0, .value = value};
  };
  const auto valid = [](std::vector<Step> steps) { return IndexExpr(std::move(steps)).is_valid(1); };
  const Step five = step(Op::CONST, 5), first = step(Op::VAR, 0);
  EXPECT_TRUE(valid({}));
  EXPECT_TRUE(valid({five, first, step(Op::ADD, 0, 0, 1)}));
  EXPECT_FALSE(valid({step(Op::VAR, 1)}));
  EXPECT_FALSE(valid({step(Op::VAR, -1)}));
  EXPECT_FALSE(valid({five, step(Op::ADD, 0, 0, 1)}));
  EXPECT_FALSE(valid({five, step(Op::ADD, 0, 0, -1)}));
  EXPECT_FALSE(valid({five, step(Op::LOAD)}));
}

}  // namespace
}  // namespace tinygrad

#include "program/stored_programs.h"

#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "program/example_program.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

// Any bytes are programs that can be launched, or a FormatError; sanitizers see the rest.
TEST(StoredProgramsFuzz, DamagedBytes) {
  const StoredProgram programs[] = {test::example_program(), {}};
  const std::string whole = pack_programs(programs);
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (size_t n = random() % 8; n > 0; --n) bytes[random() % bytes.size()] = char(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 16));
    try {
      for (const StoredProgram& p : unpack_programs(bytes)) p.info.launch_dims(std::vector<int64_t>(p.info.variables.size(), 5));
    } catch (const FormatError&) {}
  }
}

}  // namespace
}  // namespace tinygrad

// Damaged programs of torch.export: each is read, and perhaps runs, or is a typed error.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>
#include <tinygrad/tinygrad.h>
#include <tinygrad/torch_export.h>

#include "frontend/torch_export/archive_file.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using namespace test::pt2;

void damage(std::string& text, std::mt19937_64& random) {
  static constexpr std::string_view interesting = "{}[]\":,0123456789-.eENaul'()";
  static const std::vector<std::string> words{"as_int", "as_tensor", "as_graph", "as_none", "null", "9223372036854775807",
                                              "-1",     "\"x\"",     "[]",       "{}",      "1e999"};
  if (text.empty()) return;
  const size_t at = random() % text.size();
  switch (random() % 7) {
    case 0: text[at] = static_cast<char>(random()); break;
    case 1: text[at] = interesting[random() % interesting.size()]; break;
    case 2: text.resize(at); break;
    case 3: text.insert(at, text.substr(random() % text.size(), random() % 80)); break;
    case 4: text.erase(at, random() % 20); break;
    case 5: text.insert(at, words[random() % words.size()]); break;
    default: text[at] ^= static_cast<char>(1 << random() % 8);
  }
}

TEST(TorchExportFuzz, DamagedProgramsAreReadOrRefused) {
  std::mt19937_64 random(test::seed());
  int good = 0, refused = 0;
  for (int i = 0; i < 400 * test::test_scale(); ++i) {
    std::string json = program(), config = weights();
    for (uint64_t changes = random() % 3; changes > 0; --changes) damage(random() % 4 ? json : config, random);
    std::string file = archive(json, {{"data/weights/model_weights_config.json", config}}, random() % 2);
    if (random() % 3 == 0) damage(file, random);
    try {
      const torch_export::Program net = torch_export::load(Tensor(std::vector<uint8_t>(file.begin(), file.end()), {.device = "CPU"}));
      if (!net.unsupported().empty()) continue;
      net({Tensor::ones({3, 2})});
      ++good;
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tinygrad

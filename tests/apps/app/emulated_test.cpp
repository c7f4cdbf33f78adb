// The demo on processors that are not the host's, under an emulator: its first steps are those of the interpreted device.
#include <gtest/gtest.h>

#include <tinygrad/device.h>
#include <nlohmann/json.hpp>

#include "apps/support.h"
#include "digits/data.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

/// The first digits, as many as make one step of an epoch.
std::string some_digits() {
  const apps::ImageSet all = apps::load_digits(TINYGRAD_DATA_DIR "/digits.csv.gz");
  std::string csv;
  for (int64_t i = 0; i < 85; ++i) {
    for (int64_t p = 0; p < 64; ++p) csv += std::to_string(all.pixels[size_t(i * 64 + p)]) + ",";
    csv += std::to_string(all.labels[size_t(i)]) + "\n";
  }
  return csv;
}

/// Of each step, and the accuracy on the test.
std::vector<double> losses(const std::string& device, const std::string& data) {
  const Ran ran = run_tg("train digits --epochs 3 --json --png '' --data '" + data + "'", "DEV=" + device);
  EXPECT_EQ(ran.status, 0) << device << ": " << ran.err;
  std::vector<double> out;
  for (const std::string& line : ran.lines()) {
    const auto said = nlohmann::json::parse(line);
    out.push_back(said.contains("loss") ? said["loss"].get<double>() : said["test_accuracy"].get<double>());
  }
  return out;
}

TEST(EmulatedDigits, TrainAsOnTheInterpretedDevice) {
  for (const DeviceStatus& d : available_devices())
    if (d.name == "DSP" && !d.works) GTEST_SKIP() << d.reason;
  const TempFolder folder;
  const std::string data = folder.path("digits.csv");
  std::ofstream(data) << some_digits();
  const std::vector<double> expected = losses("INTERP", data);
  ASSERT_EQ(expected.size(), 4u);
  for (const std::string& device : sampled(std::vector<std::string>{"DSP", "CPU:LLVM:neoverse-n1", "CPU:CLANG:rv64gcv"})) {
    const std::vector<double> got = losses(device, data);
    ASSERT_EQ(got.size(), expected.size()) << device;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4) << device << ", step " << i;
  }
}

}  // namespace
}  // namespace tinygrad::test

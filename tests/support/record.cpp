// With TG_TEST_RECORD=FILE each test appends a line of JSON to the file: what came of it, why it was skipped, and for each device that it
// opened how many kernels ran there. tools/backends makes docs/backends.md of the lines.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <tinygrad/device.h>
#include <nlohmann/json.hpp>

namespace tinygrad {

// Weak: tests of what is below the devices are linked without them.
[[gnu::weak]] std::vector<DeviceStatistics> opened_devices();

namespace test {
namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, uint64_t> kernels_by_device() {
  std::map<std::string, uint64_t> out;
  if (!opened_devices) return out;
  for (const DeviceStatistics& d : opened_devices()) out[d.name + " " + d.target] += d.kernels;
  return out;
}

std::string skip_reason(const testing::TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    const std::string text = result.GetTestPartResult(i).message();
    if (result.GetTestPartResult(i).skipped()) return text.starts_with("Skipped\n") ? text.substr(8) : text;
  }
  return {};
}

/// In one piece: tests of other processes append to the same file.
void append_line(const char* path, const std::string& line) {
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::fprintf(stderr, "TG_TEST_RECORD=%s: %s\n", path, std::strerror(errno));
    std::exit(1);
  }
  ::close(file);
}

class Record final : public testing::EmptyTestEventListener {
 public:
  explicit Record(const char* path) : path_(path) {}

  void OnTestStart(const testing::TestInfo&) override { before_ = kernels_by_device(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    Json line{{"program", program_invocation_short_name},
              {"test", std::string(test.test_suite_name()) + "." + test.name()},
              {"result", result.Failed()    ? "failed"
                         : result.Skipped() ? "skipped"
                                            : "passed"}};
    if (result.Skipped()) line["reason"] = skip_reason(result);
    for (int i = 0; i < result.test_property_count(); ++i)
      line["properties"][result.GetTestProperty(i).key()] = result.GetTestProperty(i).value();
    for (const auto& [device, kernels] : kernels_by_device())
      if (const auto known = before_.find(device); known == before_.end() || known->second != kernels)
        line["devices"][device] = kernels - (known == before_.end() ? 0 : known->second);
    append_line(path_, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

 private:
  const char* const path_;
  std::map<std::string, uint64_t> before_;
};

[[maybe_unused]] const bool recorded = [] {
  const char* path = std::getenv("TG_TEST_RECORD");
  if (path && *path) testing::UnitTest::GetInstance()->listeners().Append(new Record(path));
  return true;
}();

}  // namespace
}  // namespace test
}  // namespace tinygrad

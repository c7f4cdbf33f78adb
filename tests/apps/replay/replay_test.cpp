// Kernels of the models, for Targets that do not depend on the host, compared with those on record in kernels.txt: a change of the
// compiler that is meant to leave kernels alone must leave this test alone. One that is not writes the record anew:
//   TG_UPDATE_REPLAY=1 build/release/bin/test_apps_replay
// To see what changed: `tg compile MODEL --device DEVICE --sources FOLDER` before and after.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include <tinygrad/tinygrad.h>

#include "models/models.h"

namespace tinygrad::test {
namespace {

const char* const record_path = TG_REPLAY_RECORD;
const char* const devices[] = {"NULL:LLVM:x86-64-v3", "NULL:LLVM:x86-64-v4"};

/// FNV-1a, 64 bits.
uint64_t hash_of(const CompileReport& report) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const KernelSource& k : report.sources)
    for (const char c : k.source) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

std::map<std::string, std::string> read_record() {
  std::map<std::string, std::string> lines;
  std::ifstream file(record_path);
  std::string model, device, rest;
  while (file >> model >> device && std::getline(file, rest)) lines[model + " " + device] = rest.substr(1);
  return lines;
}

TEST(Replay, KernelsAreThoseOnRecord) {
  const bool update = std::getenv("TG_UPDATE_REPLAY") != nullptr;
  std::map<std::string, std::string> recorded = read_record(), now;
  for (const char* device : devices) {
    const Context on_device{{.dev = device}};
    for (const std::string& model : apps::model_names()) {
      const apps::Workload work = apps::make_workload(model);
      const CompileReport report = compile_report(work.results, {.sources = true});
      ASSERT_EQ(report.sources.size(), report.unique_kernels);
      const std::string key = model + " " + device;
      now[key] = fmt::format("{} kernels, {} unique, {:016x}", report.kernels, report.unique_kernels, hash_of(report));
      if (update) continue;
      EXPECT_EQ(now[key], recorded[key]) << key << ": other kernels than on record";
    }
  }
  if (update) {
    std::ofstream file(record_path);
    for (const auto& [key, line] : now) file << key << " " << line << "\n";
    EXPECT_TRUE(file.flush());
  }
}

}  // namespace
}  // namespace tinygrad::test

// What tg says to mistakes: on standard error, with a status that is not 0, and nothing on standard output.
#include <gtest/gtest.h>

#include "apps/support.h"

namespace tinygrad::test {
namespace {

constexpr int usage = 0;  // any status but 0 and 1, as CLI11 numbers usage errors

void expect_error(const Ran& ran, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(ran.out, "");
  if (status == usage)
    EXPECT_GT(ran.status, 1) << ran.err;
  else
    EXPECT_EQ(ran.status, status) << ran.err;
  for (const std::string& part : parts) EXPECT_NE(ran.err.find(part), std::string::npos) << part << " is not in: " << ran.err;
}

TEST(TgErrors, Usage) {
  expect_error(run_tg(""), usage, {"--help"});
  expect_error(run_tg("train"), usage, {"--help"});
  expect_error(run_tg("train digits --no-such-flag"), usage, {"no-such-flag"});
  expect_error(run_tg("train digits --seed x"), usage, {"--seed"});
  expect_error(run_tg("train digits --epochs 0"), usage, {"--epochs"});
  expect_error(run_tg("train digits --shards 0"), usage, {"--shards"});
  expect_error(run_tg("train digits --devices 2"), 1, {"tg: ", "--devices 2", "--shards"});
  expect_error(run_tg("compile"), usage, {"MODEL"});
  expect_error(run_tg("compile resnet51"), usage, {"resnet51", "resnet50-train", "gpt2-12", "gpt2-2-train", "mnist-train"});
  expect_error(run_tg("--profile /nonexistent/trace.json devices"), usage, {"/nonexistent", "no such folder"});  // said before any work
}

TEST(TgErrors, Bench) {
  expect_error(run_tg("bench"), usage, {"KERNEL"});
  expect_error(run_tg("bench matmull"), usage, {"matmull", "matvec"});
  expect_error(run_tg("bench matmul --size 1,x"), usage, {"--size"});
  expect_error(run_tg("bench matmul --size 1,2"), 1, {"tg: ", "2 numbers", "expects 3", "M,N,K"});
  expect_error(run_tg("bench sum --causal"), 1, {"tg: ", "--causal", "attention"});
  const Ran nowhere = run_tg("bench sum --size 100 --budget 0.01 --roofline /nonexistent/a.png");
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("/nonexistent/a.png"), std::string::npos) << nowhere.err;
  const Ran no_arithmetic = run_tg("bench transpose --size 10 --budget 0.01 --roofline a.png");
  EXPECT_EQ(no_arithmetic.status, 1);
  EXPECT_NE(no_arithmetic.err.find("no arithmetic"), std::string::npos) << no_arithmetic.err;
}

TEST(TgErrors, Devices) {
  expect_error(run_tg("compile mnist-train --device NOPE"), 1, {"tg: ", "NOPE", "CPU"});
  expect_error(run_tg("train digits", "DEV=NOPE"), 1, {"tg: ", "NOPE"});
  expect_error(run_tg("train digits", "DEBUG=x"), 1, {"tg: ", "DEBUG"});
}

TEST(TgErrors, Files) {
  const TempFolder folder;
  expect_error(run_tg("train digits --data " + folder.path("absent.csv")), 1, {"tg: ", "absent.csv", "No such file"});
  expect_error(run_tg("train digits --data " + folder.write("bad.csv", "1,2,3\n")), 1, {"tg: ", "bad.csv:1: "});
  expect_error(run_tg("train mnist --data " + folder.path("absent")), 1,
               {"tg: ", "absent", "train-images-idx3-ubyte", "t10k-labels-idx1-ubyte", ".gz"});
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    folder.write(name, "no idx file");
  expect_error(run_tg("train mnist --data " + folder.path()), 1, {"tg: ", "train-images-idx3-ubyte", "IDX"});
}

TEST(TgErrors, Offline) {
  const TempFolder folder;
  const std::string nowhere = "http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 no_proxy= NO_PROXY= XDG_CACHE_HOME=";
  expect_error(run_tg("train mnist --fashion", nowhere + folder.path()), 1,
               {"tg: fashion-mnist: cannot download", "train-images-idx3-ubyte", folder.path("tinygrad_cpp/fashion-mnist")});
}

TEST(TgErrors, NowhereToWrite) { EXPECT_EQ(run_tg("devices >/dev/full").status, 1); }

}  // namespace
}  // namespace tinygrad::test

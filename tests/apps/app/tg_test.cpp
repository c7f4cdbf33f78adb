// The program's contract: what scripts may rely on.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "apps/support.h"
#include "digits/data.h"
#include "support/idx.h"

namespace tinygrad::test {
namespace {

using Json = nlohmann::json;

TEST(Tg, HelpAndVersion) {
  for (const char* arguments : {"--help", "train --help", "train digits --help", "train mnist --help", "compile --help", "bench --help",
                                "devices --help", "inspect --help", "convert --help"}) {
    const Ran ran = run_tg(arguments);
    EXPECT_EQ(ran.status, 0) << arguments;
    EXPECT_NE(ran.out.find("Usage: tg"), std::string::npos) << arguments;
  }
  EXPECT_EQ(run_tg("--version").out.substr(0, 3), "tg ");
}

TEST(Tg, BenchJson) {
  const std::vector<std::string> kernels{
      "matmul --size 32,48,40",
      "matvec --size 64",
      "conv --size 4,8,12,3 --batch 2",
      "attention --size 2,16,8 --causal --backward",
      "softmax --size 16,24",
      "layernorm --size 16,24",
      "elementwise --size 1000 --op gelu",
      "sum --size 1000",
      "transpose --size 2,3,4,5 --order 0,2,1,3",
      "attention --size 4,1,8 --keys 9 --kv-heads 2",
      "conv --size 2,4,5,3 --batch 2 --stride 2 --backward",
  };
  for (const std::string& kernel : kernels) {
    const Ran ran = run_tg("bench " + kernel + " --budget 0.05 --json");
    ASSERT_EQ(ran.status, 0) << kernel << ": " << ran.err;
    ASSERT_EQ(ran.lines().size(), 1u) << kernel;
    const Json r = Json::parse(ran.lines()[0]);
    for (const char* key : {"ms", "gb_s", "roofline", "peak_gflops", "peak_gb_s"})
      EXPECT_GT(r[key].get<double>(), 0) << kernel << " " << key;
    EXPECT_GE(r["gflops"].get<double>(), 0) << kernel;
    EXPECT_LE(r["error"].get<double>(), r["tolerance"].get<double>()) << kernel;
    EXPECT_TRUE(r["target"].get<std::string>().starts_with("CPU:")) << kernel;
    ASSERT_GE(r["opts"].size(), 1u) << kernel;
    for (const Json& k : r["opts"]) EXPECT_TRUE(k["kernel"].is_string() && k["opts"].is_string()) << kernel;
  }
}

TEST(Tg, BenchDrawsTheRoofline) {
  const TempFolder folder;
  const Ran ran = run_tg("bench matmul --size 64 --budget 0.05 --roofline " + folder.path("roof.png"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read_text(folder.path("roof.png")).substr(1, 3), "PNG");
}

TEST(Tg, Devices) {
  const Ran text = run_tg("devices"), json = run_tg("devices --json");
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(text.lines().size(), json.lines().size());
  std::vector<std::string> names;
  for (const std::string& line : json.lines()) {
    const Json d = Json::parse(line);
    names.push_back(d["device"]);
    EXPECT_EQ(d["works"].get<bool>(), d["reason"].get<std::string>().empty());
  }
  for (const char* name : {"CPU", "CPU:CLANG", "INTERP", "NULL"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
}

TEST(Tg, DevicesKnowTheRendererThatDevChooses) {
  EXPECT_TRUE(std::regex_search(run_tg("devices", "DEV=CPU:CLANG").out, std::regex("(^|\n)CPU:CLANG +works \\(default\\)")));
  EXPECT_TRUE(std::regex_search(run_tg("devices", "DEV=CPU").out, std::regex("(^|\n)CPU +works \\(default\\)")));
  const auto target = [](const char* name, const char* environment) {
    return Json::parse(run_tg(std::string("devices --json ") + name, environment).out)["target"].get<std::string>().substr(0, 9);
  };
  EXPECT_EQ(target("CPU", "DEV=CPU:CLANG"), "CPU:CLANG");
  EXPECT_EQ(target("cpu", "DEV=CPU:CLANG"), "CPU:CLANG");
  EXPECT_EQ(target("CPU:LLVM", "DEV=CPU:CLANG"), "CPU:LLVM:");
  EXPECT_EQ(target("CPU", "DEV=INTERP"), "CPU:LLVM:");
}

TEST(Tg, DevicesSayWhyOneDoesNotWork) {
  const Ran ran = run_tg("devices", "LLVM_PATH=/nonexistent/libLLVM.so");
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(std::regex_search(ran.out, std::regex("(^|\n)CPU +does not work: "))) << ran.out;
}

TEST(Tg, DevicesSayWhatToInstall) {
  const Ran ran = run_tg("devices", "OCL_ICD_VENDORS=/nonexistent");
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(std::regex_search(ran.out, std::regex("(^|\n)CL +does not work: [^\n]*pocl-opencl-icd"))) << ran.out;
}

// With its kernels in the disk cache a program compiles nothing: it runs where there is no LLVM.
TEST(Tg, ProfileOfARun) {
  const test::TempFolder folder;
  const std::string path = folder.path("trace.json");
  const test::Ran r = test::run_tg("--profile " + path + " bench elementwise --size 1000 --budget 0.01", "DEV=CPU");
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.err.find(" x  kernel: "), std::string::npos) << r.err;
  const std::string trace = test::read_text(path);
  EXPECT_NE(trace.find("\"traceEvents\""), std::string::npos);
  EXPECT_NE(trace.find("\"name\":\"CPU\""), std::string::npos) << "the device is a row of its own";
}

TEST(Tg, SecondRunNeedsNoLlvm) {
  const TempFolder folder;
  const std::string cache = "DEV=CPU:LLVM CACHEDB='" + folder.path("cache.db") + "' ", no_llvm = "LLVM_PATH=/nonexistent/libLLVM.so ";
  const std::string train = "train digits --epochs 1 --png ''";
  EXPECT_NE(run_tg(train, cache + no_llvm).status, 0);
  const Ran cold = run_tg(train, cache), warm = run_tg(train, cache + no_llvm);
  EXPECT_EQ(cold.status, 0) << cold.err;
  EXPECT_EQ(warm.status, 0) << warm.err;
  EXPECT_EQ(warm.out, cold.out);
}

TEST(Tg, CompileTellsStepsRulesAndSources) {
  const TempFolder folder;
  const Ran ran = run_tg("compile gpt2-12 --device NULL --json --steps --rules --sources '" + folder.path("new/sources") + "'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Json report = Json::parse(ran.lines().at(0));
  const auto names = [&](const char* part, const char* key) {
    std::vector<std::string> all;
    for (const Json& entry : report[part]) all.push_back(entry[key]);
    return all;
  };
  const std::vector<std::string> steps = names("steps", "step"), rules = names("rules", "name");
  for (const char* step : {"rangeify", "apply opts", "linearize"}) EXPECT_EQ(std::count(steps.begin(), steps.end(), step), 1) << step;
  EXPECT_GT(rules.size(), 20U);
  for (const Json& rule : report["rules"]) EXPECT_LE(rule["hits"], rule["tries"]);
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path("new/sources")), {});
  EXPECT_EQ(files, report["unique_kernels"]);
}

TEST(Tg, CompilesEveryModel) {
  for (const std::string model : {"resnet50", "resnet50-train", "gpt2-12", "gpt2-2-train", "mnist-train"}) {
    const Ran ran = run_tg("compile " + model + " --device NULL --json");
    ASSERT_EQ(ran.status, 0) << ran.err;
    ASSERT_EQ(ran.lines().size(), 1U);
    const Json report = Json::parse(ran.lines()[0]);
    EXPECT_EQ(report["model"], model);
    EXPECT_GT(report["unique_kernels"], 5);
    EXPECT_GE(report["kernels"], report["unique_kernels"]);
    double sum = 0;
    for (const char* stage : {"schedule", "lower", "render"}) sum += report["stages"][stage].get<double>();
    EXPECT_NEAR(report["seconds"].get<double>(), sum, 1e-5);
    EXPECT_EQ(report["stages"].size(), 3U);
  }
}

TEST(Tg, CompilingIsRepeatable) {
  const auto counts = [](const std::string& environment) {
    const Json report = Json::parse(run_tg("compile mnist-train --json", environment).out);
    return std::pair(report["kernels"].get<int>(), report["unique_kernels"].get<int>());
  };
  EXPECT_EQ(counts(""), counts("PARALLEL=0"));
}

/// An MNIST in small: the digits three times as large, with a margin.
void write_small_mnist(const TempFolder& folder) {
  const apps::ImageSet digits = apps::load_digits(TINYGRAD_DATA_DIR "/digits.csv.gz");
  for (const auto& [name, begin, count] : {std::tuple("train", 0, 256), std::tuple("t10k", 256, 64)}) {
    std::string images, labels;
    for (int64_t i = begin; i < begin + count; ++i) {
      for (int64_t p = 0; p < int64_t{28} * 28; ++p) {
        const int64_t y = p / 28 - 2, x = p % 28 - 2;
        const bool inside = y >= 0 && x >= 0 && y < 24 && x < 24;
        images += static_cast<char>(inside ? std::min(255, digits.image(i)[y / 3 * 8 + x / 3] * 16) : 0);
      }
      labels += static_cast<char>(digits.labels[static_cast<size_t>(i)]);
    }
    const auto n = static_cast<uint32_t>(count);
    folder.write(std::string(name) + "-images-idx3-ubyte", idx_bytes({n, 28, 28}, images));
    folder.write(std::string(name) + "-labels-idx1-ubyte", idx_bytes({n}, labels));
  }
}

TEST(Tg, TrainsOnIdxFiles) {
  const TempFolder folder;
  write_small_mnist(folder);
  const Ran ran = run_tg("train mnist --epochs 2 --json --data " + folder.path() + " --png " + folder.path("m.png"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  ASSERT_EQ(ran.lines().size(), 3U);
  EXPECT_EQ(Json::parse(ran.lines()[0])["epoch"], 1);
  EXPECT_LT(Json::parse(ran.lines()[1])["loss"], Json::parse(ran.lines()[0])["loss"]);
  EXPECT_TRUE(Json::parse(ran.lines()[2]).contains("test_accuracy"));
  EXPECT_EQ(read_text(folder.path("m.png")).substr(0, 4), "\x89PNG");

  const std::string sharded = "train mnist --epochs 1 --json --png '' --shards 3 --data " + folder.path();
  const Ran one = run_tg(sharded), two = run_tg(sharded + " --devices 2");
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(one.lines().size(), 2U);
  EXPECT_EQ(two.out, one.out) << two.err;
  EXPECT_NEAR(Json::parse(one.lines()[0])["loss"].get<double>(), Json::parse(ran.lines()[0])["loss"].get<double>(), 0.01);
}

TEST(Tg, TrainsTheSameForAnyNumberOfThreads) {
  const std::string command = "train digits --seed 3 --epochs 1 --json --png ''";
  const Ran first = run_tg(command, "NUM_CPU_THREADS=1");
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(first.lines().size(), 2U);
  EXPECT_EQ(run_tg(command, "NUM_CPU_THREADS=2").out, first.out);
  EXPECT_EQ(run_tg(command, "NUM_CPU_THREADS=3").out, first.out);
  EXPECT_NE(run_tg("train digits --seed 4 --epochs 1 --json --png ''").out, first.out);
}

TEST(Tg, TrainsTheSameForAnyNumberOfDevices) {
  const std::string command = "train digits --seed 3 --epochs 1 --json --png '' --shards 4";
  const Ran first = run_tg(command);
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(first.lines().size(), 2U);
  EXPECT_EQ(run_tg(command + " --devices 2").out, first.out);
  EXPECT_EQ(run_tg(command + " --devices 3").out, first.out);
  EXPECT_EQ(run_tg(command + " --devices 4").out, first.out);
  EXPECT_EQ(run_tg(command + " --devices 2", "DEV=CPU:1").out, first.out);
  const Ran plain = run_tg("train digits --seed 3 --epochs 1 --json --png ''");
  EXPECT_NEAR(Json::parse(plain.lines()[0])["loss"].get<double>(), Json::parse(first.lines()[0])["loss"].get<double>(), 0.01);
}

TEST(Tg, TrainsTheSameForAnyNumberOfRanks) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun";
  const std::string command = "train digits --seed 3 --epochs 1 --json --png '' --shards 4";
  const Ran alone = run_tg(command);
  ASSERT_EQ(alone.status, 0) << alone.err;
  for (const char* ranks : {"2", "3", "4"}) {
    const Ran together = run_tg(
        command,
        std::string("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated mpirun --oversubscribe -n ") + ranks);
    EXPECT_EQ(together.status, 0) << together.err;
    EXPECT_EQ(together.out, alone.out) << ranks;
  }
}

TEST(Tg, GoesOnFromACheckpoint) {
  const TempFolder folder;
  const std::string train = "train digits --seed 3 --json --png '' --shards 4 --checkpoint " + folder.path("run"),
                    command = train + " --epochs 3";
  const Ran whole = run_tg(command);
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(whole.lines().size(), 4U);
  // As if it had been killed in the third epoch; the devices are others when it goes on.
  std::filesystem::remove_all(folder.path("run/step-00000003"));
  const Ran rest = run_tg(command + " --devices 2");
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.err.find("going on behind epoch 2 of 3"), std::string::npos) << rest.err;
  EXPECT_EQ(rest.lines(), (std::vector<std::string>{whole.lines()[2], whole.lines()[3]}));
  EXPECT_EQ(run_tg(command).lines(), std::vector<std::string>{whole.lines()[3]});
  const Ran other = run_tg(train + " --epochs 4");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("a checkpoint of epochs 3, here it is 4"), std::string::npos) << other.err;
}

TEST(Tg, Simulates) {
  const TempFolder folder;
  const std::string slow = folder.write("slow.json", R"({"between": {"latency_us": 0, "gb_s": 0.001}})"),
                    nodes = folder.write("nodes.json", R"({"ranks_per_node": 2, "within": {"latency_us": 1, "gb_s": 100},
                                                           "between": {"latency_us": 10, "gb_s": 10}})");
  const auto run = [](const std::string& options) {
    const Ran ran = run_tg("simulate mnist-train --json " + options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return Json::parse(ran.out);
  };
  const Json two = run("--mesh 2 --network " + slow), eight = run("--mesh 8 --network " + slow), parts = run("--mesh 8 --fully-sharded");
  const double weights = 4.0 * (32 * 26 + 32 * (32 * 25 + 1) + 64 * (32 * 9 + 1) + 64 * (64 * 9 + 1) + 2 * 96 + 5770);
  EXPECT_NEAR(two["bytes_per_link"].get<double>(), weights, 0.02 * weights);  // and statistics of batches
  EXPECT_NEAR(eight["bytes_per_link"].get<double>(), weights * 7 / 4, 0.2 * weights);
  EXPECT_NEAR(two["exchange_s"].get<double>(), two["bytes_per_link"].get<double>() / 1e6, 1e-6);
  EXPECT_NEAR(two["step_s"].get<double>(), two["compute_s"].get<double>() + two["exchange_s"].get<double>(), 1e-9);
  EXPECT_GT(two["compute_s"].get<double>(), 0);
  EXPECT_LT(parts["memory_per_rank"].get<double>(), eight["memory_per_rank"].get<double>() - 2 * weights);
  EXPECT_GT(run("--mesh 4 --network " + nodes)["bytes_per_link"].get<double>(), weights);
  EXPECT_EQ(run_tg("simulate mnist-train --mesh 3 --network " + nodes).status, 1);
  EXPECT_EQ(run_tg("simulate mnist-train --mesh 2 --network " + folder.write("bad.json", R"({"between": {"gb_s": 1}})")).status, 1);
  EXPECT_NE(run_tg("simulate mnist-train").status, 0);
}

TEST(Tg, ReadsDigits) {
  const TempFolder folder;
  const Ran ran = run_tg("train digits --png " + folder.path("digits.png"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  double percent = 0;
  ASSERT_EQ(ran.lines().size(), 1U);
  ASSERT_EQ(std::sscanf(ran.lines()[0].c_str(), "test accuracy: %lf %%", &percent), 1) << ran.out;
  EXPECT_GE(percent, 98);
  EXPECT_EQ(read_text(folder.path("digits.png")).substr(0, 4), "\x89PNG");
}

}  // namespace
}  // namespace tinygrad::test

// Files that PyTorch and NumPy wrote, beside what their own readers find in them: python/tests/model_files.py makes both in the folder
// TG_MODEL_FILES. `make oracle-full` runs it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "base/file.h"
#include "frontend/npy/npy.h"
#include "frontend/torch/globals.h"
#include "frontend/torch/torch.h"

namespace tinygrad {
namespace {

class ModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("TG_MODEL_FILES");
    if (!folder) GTEST_SKIP() << "TG_MODEL_FILES is not set";
    folder_ = folder;
  }
  std::filesystem::path folder_;
};

std::unique_ptr<formats::Reader> open(const std::filesystem::path& path) {
  const frontend::FileBytes file = frontend::FileBytes::map(path.string());
  if (path.extension() == ".npy") return frontend::open_npy(file);
  if (path.extension() == ".npz") return frontend::open_npz(file);
  return frontend::open_torch(file);
}

TEST_F(ModelFiles, AreWhatTheirOwnReadersFind) {
  int files = 0, tensors = 0, others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::filesystem::path path = folder_ / entry.path().stem();
    const nn::state::StateDict expected = nn::state::safe_load(entry.path().string());
    const std::unique_ptr<formats::Reader> reader = open(path);
    nn::state::StateDict found;
    for (size_t i = 0; i < reader->tensors().size(); ++i) {
      const formats::TensorInfo& info = reader->tensors()[i];
      if (!expected.contains(info.name)) {
        EXPECT_THROW(reader->tensor(i), FormatError) << path << info.name;  // complex, sparse, ...
        ++others;
        continue;
      }
      const Tensor& want = expected.at(info.name);
      const Tensor t = reader->tensor(i);
      EXPECT_EQ(t.dtype(), want.dtype()) << path << info.name;
      EXPECT_EQ(t.shape(), want.shape()) << path << info.name;
      EXPECT_EQ(t.data(), want.data()) << path << info.name;
      EXPECT_TRUE(found.emplace(info.name, t).second) << path << info.name;
    }
    EXPECT_EQ(found.size(), expected.size()) << path;
    ++files;
    tensors += static_cast<int>(found.size());
    if (path.extension() == ".npy") continue;
    std::erase_if(found, [](const auto& item) { return is_fp8(item.second.dtype()) || item.second.dtype() == DType::bfloat16; });
    formats::npz_save(found, path.string() + ".ours.npz");
  }
  std::printf("%d files with %d tensors, and %d that are not read\n", files, tensors, others);
  EXPECT_GT(files, 100);
}

TEST_F(ModelFiles, AllowedNamesAreThoseOfTorch) {
  std::string ours;
  for (const auto& [name, global] : frontend::torch::allowed_globals()) ours += name + "\n";
  EXPECT_EQ(ours, read_file((folder_ / "names.txt").string()));
}

}  // namespace
}  // namespace tinygrad

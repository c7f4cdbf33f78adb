#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace tinygrad {

/// A fresh folder for each test, removed at its end.
class TempDir : public testing::Test {
 protected:
  TempDir() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ =
        std::filesystem::path(testing::TempDir()) / ("tg_" + std::to_string(getpid()) + "_" + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(dir_);
  }
  ~TempDir() override { std::filesystem::remove_all(dir_); }

  /// Where no test asks, there is no folder: a child of a death test would leave it behind.
  std::string path(const std::string& name) const {
    std::filesystem::create_directories(dir_);
    return (dir_ / name).string();
  }

 private:
  std::filesystem::path dir_;
};

}  // namespace tinygrad

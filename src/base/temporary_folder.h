#pragma once
#include <string>
#include <string_view>

namespace tinygrad {

/// A folder for files that other programs read or write; removed with all that is in it. Throws IoError.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file in it.
  std::string file(std::string_view name) const;
  /// The same, of one that now has these bytes.
  std::string put(std::string_view name, std::string_view bytes) const;
  /// One that may be run.
  std::string put_program(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace tinygrad

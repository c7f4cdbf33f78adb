#pragma once
#include <map>
#include <mutex>
#include <string>

#include <tinygrad/allocator.h>

namespace tinygrad::runtime {

/// A file as memory: every allocation is the file from its beginning, which is made as long as that asks for. It is open while it is in
/// use; where another file has taken its name meanwhile, that one is opened besides.
///
/// Bytes are read and written by calls, not through a mapping: copies go straight between the page cache and where they are wanted, and a
/// file that others shorten, or a disk that is full or broken, is an IoError and no signal.
class FileMemory final : public Allocator {
 public:
  FileMemory(std::string device, std::string path) : Allocator(std::move(device)), path_(std::move(path)) {}
  ~FileMemory() override;

  void* offset(void* handle, size_t bytes) const override;
  std::byte* host_pointer(void*) const override { return nullptr; }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override;
  void copy_out(std::byte* to, void* handle, size_t bytes) override;
  void copy(void* to, void* from, size_t bytes) override;

 private:
  void* take(size_t bytes, const BufferSpec& spec) override;
  void give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;
  struct File {
    int descriptor = -1;
    bool created = false, read_only = false;
    size_t users = 0;
  };
  /// A place in one of the files.
  struct Place {
    const File& file;
    size_t at = 0;
  };

  File open() const;
  void close(const File& file) const noexcept;
  /// Whether the path still names it.
  bool is_current(const File& file) const;
  void grow(const File& file, size_t bytes) const;
  Place place(const void* handle) const;
  void transfer(std::byte* memory, const Place& place, size_t bytes, bool write) const;
  [[noreturn]] void fail(std::string_view what, int error) const;

  const std::string path_;
  mutable std::mutex mutex_;         // of what follows, but for reads and writes of an open file
  std::map<uintptr_t, File> files_;  // by the handle of their beginning; the last is the newest
};

}  // namespace tinygrad::runtime

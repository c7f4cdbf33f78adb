#pragma once
#include <mutex>
#include <string>

#include <tinygrad/allocator.h>

namespace tinygrad::runtime {

/// A file as memory: every allocation is the file from its beginning, which is made as long as that asks for. It is open while it is in
/// use.
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
  void open();
  void close() noexcept;
  void grow(size_t bytes);
  void transfer(std::byte* memory, size_t at, size_t bytes, bool write);
  [[noreturn]] void fail(std::string_view what, int error) const;

  const std::string path_;
  std::mutex mutex_;  // of what follows, but for reads and writes of an open file
  size_t users_ = 0;
  int file_ = -1;
  bool created_ = false, read_only_ = false;
};

}  // namespace tinygrad::runtime

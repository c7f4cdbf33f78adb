#include "runtime/emulated/runner.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/temporary_folder.h"

namespace tinygrad::runtime {
namespace {

// What it can be asked for: compiler/image/runner.cpp has the other end.
enum What : uint64_t { load_image = 1, unload_image = 2, run_kernel = 3 };

bool send_all(int socket, const void* bytes, size_t size) {
  for (auto at = static_cast<const std::byte*>(bytes); size > 0;) {
    const ssize_t n = ::send(socket, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* bytes, size_t size) {
  for (auto at = static_cast<std::byte*>(bytes); size > 0;) {
    const ssize_t n = ::recv(socket, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

Runner::Runner(std::string device, SharedHeap& heap, std::vector<std::string> emulator, std::function<std::string()> make_program)
    : device_(std::move(device)), heap_(heap), emulator_(std::move(emulator)), make_program_(std::move(make_program)), owner_(::getpid()) {}

void Runner::run(const Image& image, Place& place, std::span<void* const> buffers, std::span<const int64_t> variables, int64_t chunks,
                 const void* scratch) {
  const std::lock_guard lock(mutex_);
  if (::getpid() != owner_) throw DeviceError(device_ + ": a forked child cannot use the device that its parent has opened");
  if (!process_) start();
  if (place.process != number_) load(image, place);
  const size_t behind = (buffers.size() * image.pointer_bytes + 7) / 8 * 8;
  if (behind + variables.size_bytes() > SharedHeap::mailbox_bytes) throw DeviceError(device_ + ": a kernel has too many arguments");
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint64_t at = address_of(buffers[i]);  // the lower half comes first
    std::memcpy(heap_.base() + i * image.pointer_bytes, &at, image.pointer_bytes);
  }
  if (!variables.empty()) std::memcpy(heap_.base() + behind, variables.data(), variables.size_bytes());
  ask({run_kernel, place.address + image.entry, behind, static_cast<uint64_t>(chunks), address_of(scratch)});
}

uint64_t Runner::address_of(const void* memory) const { return memory ? memory_ + heap_.offset(memory) : 0; }

void Runner::start() {
  const TemporaryFolder folder;  // the program is open when it answers
  std::vector<std::string> command = emulator_;
  command.push_back(folder.put_program("runner", make_program_()));
  process_ = std::make_unique<ChildProcess>(command, heap_.file());
  ++number_;
  const uint64_t size = SharedHeap::bytes;
  memory_ = exchange(&size, sizeof size);
  if (memory_ != 0) return;
  process_.reset();
  throw DeviceError(device_ + ": the process that runs kernels cannot map its memory");
}

void Runner::load(const Image& image, Place& place) {
  const size_t size = image.bytes.size();
  void* staged = heap_.allocate(size);
  if (!staged) throw OutOfMemoryError(fmt::format("{}: no memory for the {} bytes of a kernel's code", device_, size));
  std::memcpy(staged, image.bytes.data(), size);
  try {
    place.address = ask({load_image, heap_.offset(staged), size});
  } catch (...) {
    heap_.free(staged, size);
    throw;
  }
  heap_.free(staged, size);
  if (place.address == 0) throw OutOfMemoryError(fmt::format("{}: no memory for the {} bytes of a kernel's code", device_, size));
  place.process = number_;
}

void Runner::unload(const Image& image, Place place) noexcept {
  const std::lock_guard lock(mutex_);
  if (!process_ || place.process != number_ || ::getpid() != owner_) return;
  try {
    ask({unload_image, place.address, image.bytes.size()});
  } catch (const Error&) {  // the process is gone, and its memory
  }
}

uint64_t Runner::ask(const Request& request) { return exchange(&request, sizeof request); }

uint64_t Runner::exchange(const void* bytes, size_t size) {
  uint64_t answer = 0;
  if (!send_all(process_->socket(), bytes, size) || !receive_all(process_->socket(), &answer, sizeof answer)) lost();
  return answer;
}

/// The next launch starts another process.
void Runner::lost() {
  process_->wait(1);  // the socket may be closed a little earlier than the process ends
  const std::optional<int> status = process_->end();
  process_.reset();
  const std::string how = !status                ? "is gone"
                          : WIFSIGNALED(*status) ? fmt::format("was ended by signal {}", WTERMSIG(*status))
                                                 : fmt::format("has ended with status {}", WEXITSTATUS(*status));
  throw DeviceError(fmt::format("{}: the process that runs kernels {}", device_, how));
}

}  // namespace tinygrad::runtime

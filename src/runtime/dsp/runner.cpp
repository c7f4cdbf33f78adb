#include "runtime/dsp/runner.h"

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

// What it can be asked for: compiler/hexagon/runner.cpp has the other end.
enum What : uint32_t { load_image = 1, unload_image = 2, run_kernel = 3 };

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

Runner::Runner(SharedHeap& heap, std::string emulator, std::string program)
    : heap_(heap), emulator_(std::move(emulator)), program_(std::move(program)), owner_(::getpid()) {}

void Runner::run(const Image& image, Place& place, std::span<void* const> buffers, std::span<const int64_t> variables,
                 const void* scratch) {
  const std::lock_guard lock(mutex_);
  if (::getpid() != owner_) throw DeviceError("DSP: a forked child cannot use the device that its parent has opened");
  if (!process_) start();
  if (place.process != number_) load(image, place);
  const size_t behind = (buffers.size() * sizeof(uint32_t) + 7) / 8 * 8;
  if (behind + variables.size_bytes() > SharedHeap::mailbox_bytes) throw DeviceError("DSP: a kernel has too many arguments");
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint32_t at = address_of(buffers[i]);
    std::memcpy(heap_.base() + i * sizeof at, &at, sizeof at);
  }
  if (!variables.empty()) std::memcpy(heap_.base() + behind, variables.data(), variables.size_bytes());
  ask({run_kernel, place.address + image.entry, address_of(scratch), static_cast<uint32_t>(behind)});
}

uint32_t Runner::address_of(const void* memory) const { return memory ? memory_ + static_cast<uint32_t>(heap_.offset(memory)) : 0; }

void Runner::start() {
  const TemporaryFolder folder;  // the program is open when it answers
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{emulator_, folder.put("runner", program_)}, heap_.file());
  ++number_;
  const auto size = static_cast<uint32_t>(SharedHeap::bytes);
  memory_ = exchange(&size, sizeof size);
  if (memory_ == 0) {
    process_.reset();
    throw DeviceError("DSP: the process that runs kernels cannot map its memory");
  }
}

void Runner::load(const Image& image, Place& place) {
  const size_t size = image.bytes.size();
  void* staged = heap_.allocate(size);
  if (!staged) throw OutOfMemoryError(fmt::format("DSP: no memory for the {} bytes of a kernel's code", size));
  std::memcpy(staged, image.bytes.data(), size);
  try {
    place.address = ask({load_image, static_cast<uint32_t>(heap_.offset(staged)), static_cast<uint32_t>(size)});
  } catch (...) {
    heap_.free(staged, size);
    throw;
  }
  heap_.free(staged, size);
  if (place.address == 0) throw OutOfMemoryError(fmt::format("DSP: no memory for the {} bytes of a kernel's code", size));
  place.process = number_;
}

void Runner::unload(const Image& image, Place place) noexcept {
  const std::lock_guard lock(mutex_);
  if (!process_ || place.process != number_ || ::getpid() != owner_) return;
  try {
    ask({unload_image, place.address, static_cast<uint32_t>(image.bytes.size())});
  } catch (const Error&) {  // the process is gone, and its memory
  }
}

uint32_t Runner::ask(const Request& request) { return exchange(&request, sizeof request); }

uint32_t Runner::exchange(const void* bytes, size_t size) {
  uint32_t answer = 0;
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
  throw DeviceError(fmt::format("DSP: the process that runs kernels {}", how));
}

}  // namespace tinygrad::runtime

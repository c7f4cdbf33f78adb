#include "device/device.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/file.h"
#include "device/launch_log.h"

namespace tinygrad {
namespace {

constexpr std::string_view kFiles = "DISK", kSharedMemory = "shm:";

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace

Kernel::~Kernel() = default;
Graph::~Graph() = default;

Device::Device(std::string_view name, const Target& target, std::unique_ptr<Allocator> allocator, const CodePath& code)
    : name_(name), target_(target), code_(code), allocator_(std::move(allocator)), launches_(std::make_unique<LaunchLog>()) {}
Device::~Device() = default;

const CodePath& Device::code_path() const {
  if (!code_.render)
    throw DeviceError(fmt::format("{}: it only holds data; copy that to a device that computes, with to(\"CPU\")", name_.str()));
  return code_;
}

std::string Device::compile(const std::string& source) const {
  const CodePath& code = code_path();
  return code.compile ? code.compile(target_, source) : source;
}

std::string Device::disassemble(const std::string& binary) const {
  return code_.disassemble ? code_.disassemble(target_, binary) : std::string();
}

std::unique_ptr<Graph> Device::make_graph(std::span<const GraphLaunch>) { return nullptr; }

void Device::wait() {
  if (is_async()) launches_->add_wait();
  const uint64_t mark = launches_->mark();
  try {
    synchronize();
  } catch (const std::exception& e) {
    launches_->failed(e.what());
    throw;
  }
  launches_->passed(mark);
}

DeviceChoice DeviceChoice::parse(std::string_view text) {
  if (const size_t colon = text.find(':'); colon != 0 && colon != text.npos && colon + 1 < text.size()) {
    DeviceChoice choice;
    choice.name = upper(text.substr(0, colon));
    if (choice.name == kFiles || text[colon + 1] == '/' || text[colon + 1] == '.') {
      choice.path = text.substr(colon + 1);
      // One file has one name, wherever the process is.
      if (choice.name == kFiles && !choice.path.starts_with(kSharedMemory)) choice.path = absolute_path(choice.path);
      return choice;
    }
  }
  std::vector<std::string_view> parts;
  const auto refuse = [&]() -> DeviceError {
    return DeviceError(fmt::format(
        "device '{}': expected NAME[:INDEX][:RENDERER[:ARCH]], such as CPU, CUDA:1 or CPU:LLVM:x86-64-v3, or NAME[:INDEX]@RANK", text));
  };
  const auto number = [](std::string_view digits, int& value) {
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && stop == digits.data() + digits.size();
  };
  const size_t at = text.find('@');
  for (std::string_view rest = text.substr(0, at);;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == rest.npos) break;
    rest.remove_prefix(colon + 1);
  }
  const auto empty = [](std::string_view part) { return part.empty(); };
  DeviceChoice choice;
  size_t next = 1;
  if (parts.size() > 1 && !parts[1].empty()) {
    if (number(parts[1], choice.index)) next = 2;
  }
  if (parts.size() > next + 2 || choice.index < 0 || std::any_of(parts.begin(), parts.end(), empty)) throw refuse();
  if (at != text.npos) {
    int rank = 0;
    if (!number(text.substr(at + 1), rank) || rank < 0 || parts.size() > next) throw refuse();
    choice.rank = rank;
  }
  choice.name = upper(parts[0]);
  if (parts.size() > next) choice.renderer = upper(parts[next]);
  if (parts.size() > next + 1) choice.arch = parts[next + 1];
  return choice;
}

std::string DeviceChoice::canonical() const {
  if (!path.empty()) return fmt::format("{}:{}", name, path);
  const std::string here = index == 0 ? name : fmt::format("{}:{}", name, index);
  return rank ? fmt::format("{}@{}", here, *rank) : here;
}

}  // namespace tinygrad

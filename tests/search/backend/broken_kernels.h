#pragma once
/// Objects of kernels that go wrong, by CPU:LLVM.

#include <string>

#include <fmt/core.h>

#include "device/device.h"

namespace tinygrad::search::test {

inline Device& cpu() { return Device::get("CPU"); }

inline std::string object_of(const std::string& symbol, const std::string& body) {
  return cpu().compile(
      fmt::format("target triple = \"x86_64-unknown-linux-gnu\"\n"
                  "define void @{}(ptr %bufs, ptr %vars, i64 %begin, i64 %end, ptr %scratch) {{\n{}}}\n",
                  symbol, body));
}
inline std::string endless(const std::string& symbol) { return object_of(symbol, "  br label %again\nagain:\n  br label %again\n"); }
inline std::string crashing(const std::string& symbol) { return object_of(symbol, "  store volatile i8 1, ptr null\n  ret void\n"); }
inline std::string idle(const std::string& symbol) { return object_of(symbol, "  ret void\n"); }

}  // namespace tinygrad::search::test

#pragma once
/// Loads and stores of neighbouring elements, in vectors as wide as their alignment allows.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "renderer/ptx/emitter.h"
#include "uop/uop.h"

namespace tinygrad::renderer::ptx {

/// A place in memory: `space` is "global", "global.nc", "shared" or "local".
struct Place {
  std::string_view space;
  std::string pointer;    ///< a register
  int64_t offset = 0;     ///< bytes beyond it
  int64_t alignment = 1;  ///< bytes
};

/// The elements there. Those that a gate, a predicate, leaves out are those of `other`; both are empty without one.
std::vector<std::string> emit_load(Emitter& out, const Place& place, DType dtype, size_t count, const std::string& gate,
                                   const std::vector<std::string>& other);
void emit_store(Emitter& out, const Place& place, DType dtype, const std::vector<std::string>& values, const std::string& gate);

/// Begins to copy 4, 8 or 16 bytes from global to shared memory: zeros where the predicate `valid` is false, nothing where `gate` is; both
/// may be empty.
void emit_fetch(Emitter& out, const Place& to, const Place& from, int bytes, const std::string& valid, const std::string& gate);

}  // namespace tinygrad::renderer::ptx

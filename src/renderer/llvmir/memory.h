#pragma once
/// Loads and stores of elements, runs of them and lanes that are apart, with masks or without.

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "renderer/llvmir/aliases.h"
#include "renderer/llvmir/emitter.h"
#include "target/target.h"

namespace tinygrad::renderer::llvmir {

/// The address of an INDEX: of one element or a run of them, or one per lane.
struct Address {
  std::vector<std::string> pointers;
  int lanes = 1;
  bool per_lane = false;
  int32_t memory = -1;   ///< its number among those that Aliases tells apart
  bool streams = false;  ///< what is stored there goes past the caches
};

/// The pointer so many elements on: "i64 3". Not inbounds, since what a gate keeps from being accessed may be anywhere.
std::string offset_pointer(Emitter& out, const std::string& pointer, const std::string& element, const std::string& count);

class Memory {
 public:
  Memory(Emitter& out, const Target& target, const Aliases& aliases) : out_(out), target_(target), aliases_(aliases) {}

  /// Lanes [first, first + lanes) of a mask, with their type.
  using MaskPart = FunctionRef<std::string(int first, int lanes)>;

  Value load(const Address& a, DType dtype);
  /// Lanes that the mask leaves out are those of `alternative`.
  Value load(const Address& a, const Value& alternative, MaskPart mask);
  void store(const Address& a, const Value& x);
  void store(const Address& a, const Value& x, MaskPart mask);
  /// `written`: it will be stored to.
  void prefetch(const Address& a, bool written);
  /// Behind the last store: others may see those that went past the caches.
  void finish();

 private:
  bool has_masked_loads(DType dtype) const;
  /// Opens the block of a branch on whether all lanes of a mask are set, and gives its label; its other side is LABEL.part.
  std::string opened_if_whole(const std::string& lanes, int count, const std::string& name);
  /// All lanes, where a mask has them, or what `masked` loads.
  std::string whole_or(const std::string& lanes, int count, const std::string& type, const std::string& from, const std::string& access,
                       FunctionRef<std::string()> masked);
  /// What is stored is "TYPE VALUE", and where to "ptr PLACE".
  void store_run(const Address& a, const std::string& stored, const std::string& to, DType dtype, int lanes);
  void stream(const Address& a, const std::string& stored, const std::string& to, DType dtype, int lanes);
  int lanes_at_once(const Address& a, DType dtype) const;
  std::string access(const Address& a, DType dtype) const;
  std::string gathered(const Address& a, DType dtype);
  std::string from_memory(const std::string& loaded, DType dtype, int lanes);
  std::string to_memory(const Value& x);
  std::string pointer(const Address& a, const std::string& element, int first);
  std::string pointers(const Address& a, int first, int lanes);

  Emitter& out_;
  const Target& target_;
  const Aliases& aliases_;
  bool streams_ = false;
};

}  // namespace tinygrad::renderer::llvmir

#pragma once
#include <cstdint>
#include <string_view>

namespace tinygrad {

/// What an operation may be treated as; a set of flags.
enum class Group : uint16_t {
  none = 0,
  movement = 1,
  unary = 2,
  convert = 4,
  binary = 8,
  ternary = 16,
  commutative = 32,
  comparison = 64,
  identity = 128,
  memory = 256,
  effect = 512,
  alu = unary | binary | ternary,
  elementwise = alu | convert,
};

constexpr Group operator|(Group a, Group b) { return Group(uint16_t(a) | uint16_t(b)); }
constexpr bool any(Group a, Group b) { return (uint16_t(a) & uint16_t(b)) != 0; }

enum class Op : uint8_t {
#define TG_OP(name, groups, arity, doc) name,
#include "uop/ops.def"
#undef TG_OP
};

struct OpInfo {
  std::string_view name;
  Group groups;
  int arity;  ///< number of sources, -1 for any number
  std::string_view doc;
};

inline constexpr OpInfo op_infos[] = {
#define TG_OP(name, groups, arity, doc) {#name, groups, arity, doc},
#include "uop/ops.def"
#undef TG_OP
};

inline constexpr int op_count = int(sizeof(op_infos) / sizeof(op_infos[0]));

constexpr const OpInfo& info(Op op) { return op_infos[int(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }
constexpr bool in_group(Op op, Group group) { return any(info(op).groups, group); }

}  // namespace tinygrad

#include "ops/hash.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <array>

#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rows.h"
#include "ops/steps.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

// The state of Keccak-f[1600] is 5 by 5 lanes (y, x) of 64 bits (FIPS 202, section 3.2 has the steps and their names). Messages are the
// last axis here, so that one instruction works on the same lane of several.

constexpr int side = 5;
constexpr int lanes = side * side;
constexpr int state_bytes = lanes * 8;

/// The amounts of rho, by which lane (y, x) is rotated.
constexpr std::array<uint64_t, lanes> rotations = {0,  1,  62, 28, 27,  //
                                                   36, 44, 6,  55, 20,  //
                                                   3,  10, 43, 25, 39,  //
                                                   41, 45, 15, 21, 8,   //
                                                   18, 2,  61, 56, 14};

constexpr std::array<uint64_t, 24> round_constants = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

/// Lane (y, x + by) at (y, x).
UOp from_right(const UOp& lanes_of, int axis, int64_t by) { return roll(lanes_of, std::array{-by}, {axis}); }

/// Every lane ^ the parities of the column to its left and, rotated by one bit, of that to its right.
UOp theta(const UOp& state) {
  Expr parity = shrink_axis(state, 0, 0, 1);
  for (int y = 1; y < side; ++y) parity = parity ^ shrink_axis(state, 0, y, y + 1);
  const UOp right = from_right(parity, 1, 1);
  return Expr(state) ^ from_right(parity, 1, -1) ^ lshift(right, 1) ^ rshift(right, 63);
}

/// The lanes rotated; `amounts` are those of rho, (y, x, 1).
UOp rho(const UOp& state, const UOp& amounts) {
  // The shift by 64 - n is two shifts, as a shift by all 64 bits has no meaning.
  return bitwise_or(lshift(state, amounts), rshift(rshift(state, 1), sub(63, amounts)));
}

/// Lane (x, x + 3y) at (y, x).
UOp pi(const UOp& state) {
  const SInt messages = shape_of(state)[2];
  // Rows side by side, each after twice its own length and one: row x begins at its element x.
  const UOp twice = ops::reshape(ops::repeat(state, Shape{1, 2, 1}), Shape{2 * lanes, messages});
  const UOp sheared = ops::unflatten(pad_axis(twice, 0, 0, side), 0, Shape{side, 2 * side + 1});
  const UOp diagonals = ops::transpose(shrink_axis(sheared, 1, 0, side), 0, 1);
  const UOp every_third = ops::unflatten(ops::repeat(diagonals, Shape{3, 1, 1}), 0, Shape{side, 3});
  return ops::squeeze(shrink_axis(every_third, 1, 0, 1), 1);
}

UOp chi(const UOp& state) { return bitwise_xor(state, bitwise_and(bitwise_not(from_right(state, 1, 1)), from_right(state, 1, 2))); }

/// Lane (0, 0) takes the constant of the round, a vector of one.
UOp add_constant(const UOp& state, const UOp& value) {
  const UOp is_first = bitwise_and(ops::eq(iota_along(0, 3, side), 0), ops::eq(iota_along(1, 3, side), 0));
  return bitwise_xor(state, ops::where(is_first, ops::reshape(value, Shape{1, 1, 1}), 0));
}

UOp table(std::span<const uint64_t> values) {
  UOps nodes;
  for (uint64_t v : values) nodes.push_back(constant(Scalar::of(v, DType::uint64)));
  return contiguous(tinygrad::stack(nodes));
}

/// What the rounds read from memory, so that one kernel does for all of them.
struct Tables {
  UOp amounts = ops::reshape(table(rotations), Shape{side, side, 1}), constants = table(round_constants);
  UOps rounds = step_numbers(int64_t(round_constants.size()));
};

UOp permuted(UOp state, const Tables& tables) {
  // A round's results depend on eleven lanes each: a kernel of several rounds would compute the same many times.
  for (const UOp& i : tables.rounds)
    state = contiguous(add_constant(chi(pi(rho(theta(state), tables.amounts))), gather_rows(tables.constants, 0, i)));
  return state;
}

/// The bytes of each message filled up to whole blocks: the suffix follows the message, and the last bit is set.
UOp filled(const UOp& bytes, const KeccakConfig& config) {
  const int64_t n = shape_of(bytes)[1].value(), whole = (n / config.rate + 1) * config.rate;
  const UOp position = iota(whole);
  auto only_at = [&](int64_t at, int value) { return ops::where(ops::eq(position, at), constant(DType::uint8, value), 0); };
  return Expr(pad_axis(bytes, 1, 0, whole - n)) ^ only_at(n, config.suffix) ^ only_at(whole - 1, 0x80);
}

void check(const KeccakConfig& c) {
  if (c.rate <= 0 || c.rate >= state_bytes || c.rate % 8 != 0)
    throw ValueError(fmt::format("keccak: a rate of {} bytes, expects a multiple of 8 below {}", c.rate, state_bytes));
  if (c.suffix == 0 || c.suffix >= 0x80) throw ValueError(fmt::format("keccak: the suffix {:#x}, expects 1 to 0x7f", c.suffix));
  if (c.digest < 0 || c.digest > c.rate)
    throw ValueError(fmt::format("keccak: a digest of {} bytes, expects at most the rate, {}", c.digest, c.rate));
}

UOp shake_128(const UOp& x) { return keccak(x, KeccakConfig::named("shake_128")); }

constexpr int64_t piece = int64_t{1} << 20, message = 4096;

/// The digests (rows, 16) of rows of 1 MiB.
UOp hash_pieces(const UOp& rows) {
  const SInt& count = shape_of(rows)[0];
  return shake_128(ops::reshape(shake_128(ops::reshape(rows, Shape{count, piece / message, message})), Shape{count, message}));
}

}  // namespace

KeccakConfig KeccakConfig::named(std::string_view name) {
  if (name == "sha3_224") return {.rate = 144, .suffix = 0x06, .digest = 28};
  if (name == "sha3_256") return {.rate = 136, .suffix = 0x06, .digest = 32};
  if (name == "sha3_384") return {.rate = 104, .suffix = 0x06, .digest = 48};
  if (name == "sha3_512") return {.rate = 72, .suffix = 0x06, .digest = 64};
  if (name == "shake_128") return {.rate = 168, .suffix = 0x1f, .digest = 16};
  if (name == "shake_256") return {.rate = 136, .suffix = 0x1f, .digest = 32};
  throw ValueError(fmt::format("keccak: \"{}\", expects sha3_224, sha3_256, sha3_384, sha3_512, shake_128 or shake_256", name));
}

UOp keccak(const UOp& x, const KeccakConfig& config) {
  check(config);
  if (rank_of(x) == 0) throw ShapeError("keccak: expects at least one axis, of bytes to hash, got ()");
  const UOp bytes = ops::bitcast(x, DType::uint8);
  Shape out = shape_of(bytes);
  const SInt n = out.back();
  out.back() = config.digest;
  const SInt messages = numel(Shape(out.begin(), out.end() - 1));
  if (!n.known()) throw ShapeError(fmt::format("keccak: the length {} of the messages must be known", to_string(n)));

  // (blocks, y, x, messages), absent lanes 0.
  const UOp blocks = ops::unflatten(filled(ops::reshape(bytes, Shape{messages, n}), config), 1, Shape{-1, config.rate});
  const UOp words = pad_axis(ops::bitcast(blocks, DType::uint64), 2, 0, lanes - config.rate / 8);
  const UOp data = contiguous(ops::unflatten(ops::permute(words, {1, 2, 0}), 1, Shape{side, side}));

  const Tables tables;
  UOp state;
  for (const UOp& k : step_numbers(shape_of(data)[0].value())) {
    const UOp block = ops::squeeze(gather_rows(data, 0, k), 0);
    state = permuted(contiguous(state ? bitwise_xor(state, block) : block), tables);
  }
  const UOp squeezed = ops::reshape(ops::permute(state, {2, 0, 1}), Shape{messages, lanes});
  return ops::reshape(shrink_axis(ops::bitcast(squeezed, DType::uint8), 1, 0, config.digest), out);
}

UOp hash(const UOp& x) {
  UOp bytes = ops::bitcast(ops::flatten(x), DType::uint8);
  if (!shape_of(bytes)[0].known()) throw ShapeError(fmt::format("hash: the size of {} must be known", to_string(shape_of(x))));
  for (;;) {
    const int64_t n = shape_of(bytes)[0].value(), pieces = std::max<int64_t>((n + piece - 1) / piece, 1);
    const UOp rows = ops::unflatten(pad_axis(bytes, 0, 0, pieces * piece - n), 0, Shape{pieces, piece});
    bytes = ops::flatten(hash_pieces(rows));
    if (pieces == 1) return bytes;
  }
}

}  // namespace tinygrad::ops

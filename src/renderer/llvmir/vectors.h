#pragma once
/// Vectors put together and taken apart. `element` is the name of a type, since a bool in memory has another one than in registers.

#include <span>
#include <string>
#include <vector>

#include "renderer/llvmir/emitter.h"
#include "uop/arg.h"

namespace tinygrad::renderer::llvmir {

/// "<8 x float> %x"
std::string typed(const Value& v);
/// One lane, or the scalar itself.
Value lane_of(Emitter& out, const Value& v, int64_t lane);
Value splat(Emitter& out, const Value& scalar, int lanes);
/// One vector of scalars.
Value vector_of(Emitter& out, std::span<const Value> scalars, DType dtype);
/// The first lane of each vector, the second lane of each, ...
Value interleave(Emitter& out, std::span<const Value> vectors);

/// Lanes of a vector, in any order.
Value shuffled(Emitter& out, const Value& vector, std::span<const int64_t> order);
/// Lanes [first, first + count) of a vector.
std::string run_of_lanes(Emitter& out, const std::string& element, const std::string& vector, int64_t lanes, int64_t first, int64_t count);
/// Vectors of `lanes` each, one after another.
std::string concatenated(Emitter& out, const std::string& element, std::vector<std::string> vectors, int64_t lanes);

/// A WMMA whose items are lanes: `a` is the row that all lanes share, or has one for each. Throws InternalError for an instruction that
/// CPUs do not have. `turned` has the bits of each number of 32 bits of a that are turned over.
Value dot_product(Emitter& out, const WmmaArg& arg, const Value& a, uint32_t turned, const Value& b, const Value& c);
/// Whether its instruction adds to the sum, so that no other one does.
bool adds_itself(const WmmaArg& arg);

/// Floats rounded to the nearest integer, ties to even.
Value nearest(Emitter& out, const Value& x);
/// x * 2^n, by AVX-512.
std::string scaled(Emitter& out, const Value& x, const Value& n);
/// The greater, as LLVM's `maximum` has it, of vectors that are a register of AVX-512, where that is shorter: LLVM compares signs first.
std::string greater(Emitter& out, const Value& x, const Value& y);
bool has_greater(const Emitter& out, const Value& x);

}  // namespace tinygrad::renderer::llvmir

#pragma once
/// Random values as functions of a key and a counter (Threefry-2x32; Salmon et al., SC 2011): the same bits on every device. The caller
/// keeps both in memory and advances the counter by what a call used.

#include <optional>

#include "ops/operand.h"

namespace tinygrad::ops {

/// Two uint32 vectors of length 2, low word first.
struct RandomState {
  UOp key;
  UOp counter;
};

/// `count` uint32 words.
UOp random_bits(const RandomState& state, int64_t count);
/// 32-bit words that `rand` of that many elements uses: what to advance the counter by.
int64_t random_words(int64_t count, DType dtype);

/// Uniform over [0, 1): the mantissa's bits are random, the exponent that of 1, minus 1.
UOp rand(const RandomState& state, const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// Standard normal by Box and Muller, from float32; uses random_words(2 * count, float32).
UOp randn(const RandomState& state, const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// Integers over [low, high), which the dtype must hold (ValueError). Each is floor(w (high - low) / 2^b) of random bits w, b of them: 32
/// up to 2^16 different numbers, 64 up to 2^32, and 128 beyond, so that their probabilities differ by at most 2^-16, 2^-32 and 2^-64 of
/// them.
UOp randint(const RandomState& state, const Shape& shape, int64_t low = 0, int64_t high = 10, DType dtype = DType::int32,
            const OpsContext& ctx = {});
/// 32-bit words that randint uses for each.
int64_t randint_words(int64_t low, int64_t high);
/// Float32 where they do not take a dtype, as the following.
UOp uniform(const RandomState& state, const Shape& shape, double low = 0.0, double high = 1.0, std::optional<DType> dtype = {},
            const OpsContext& ctx = {});
UOp normal(const RandomState& state, const Shape& shape, double mean = 0.0, double std = 1.0, std::optional<DType> dtype = {},
           const OpsContext& ctx = {});
/// Uniform over +-1/sqrt(number of elements).
UOp scaled_uniform(const RandomState& state, const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// Glorot and Bengio (2010): +-sqrt(6 / (fan in + fan out)).
UOp glorot_uniform(const RandomState& state, const Shape& shape, std::optional<DType> dtype = {}, const OpsContext& ctx = {});
/// He et al. (2015), for leaky ReLUs of slope a.
UOp kaiming_uniform(const RandomState& state, const Shape& shape, double a = 0.01, std::optional<DType> dtype = {},
                    const OpsContext& ctx = {});
UOp kaiming_normal(const RandomState& state, const Shape& shape, double a = 0.01, std::optional<DType> dtype = {},
                   const OpsContext& ctx = {});
/// A permutation of 0 .. n-1, by sorting `rand`.
UOp randperm(const RandomState& state, int64_t n, DType dtype = DType::int32, const OpsContext& ctx = {});
/// Indices drawn with these weights (a vector or a row each), int32.
UOp multinomial(const RandomState& state, const UOp& weights, int64_t samples = 1, bool replacement = false, const OpsContext& ctx = {});
/// Elements zeroed with probability p, the others divided by 1 - p; uses one default-float `rand` of x's shape unless p is 0 or 1.
UOp dropout(const RandomState& state, const UOp& x, double p = 0.5, const OpsContext& ctx = {});

}  // namespace tinygrad::ops

#pragma once
/// The vectors that blocks of the IQ formats name by their numbers: the grids of GGML (ggml-common.h), each vector in 16 bits.

#include <cstdint>
#include <span>

namespace tinygrad::frontend {

enum class Codebook : uint8_t {
  iq2_xxs,  ///< the IQ2 ones: eight digits of 2 bits, for 8, 25 and 43
  iq2_xs,
  iq2_s,
  iq3_xxs,  ///< four digits of 3 bits, for 4, 12, 20, 28, 36, 44, 52 and 62
  iq3_s,    ///< four digits of 3 bits, for the odd numbers from 1
  iq1,      ///< eight digits of 2 bits, for -1, 0 and 1
};

/// The vectors in order, the first digit lowest.
std::span<const uint16_t> codebook(Codebook book);

}  // namespace tinygrad::frontend

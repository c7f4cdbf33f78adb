#pragma once
#include <string_view>
#include <vector>

#include "target/target.h"

namespace tinygrad::tensor_core_families {

/// The tensor cores of machines of one kind, best first.
struct Family {
  std::string_view name;
  std::vector<TensorCore> cores;
};

using Bits = std::vector<TensorCore::Bit>;

/// "i2 i3 e1": bits of the item and of the element, lowest first.
inline Bits bits(std::string_view text) {
  Bits out;
  for (size_t i = 0; i + 1 < text.size(); i += 3) out.push_back({text[i] == 'e', uint8_t(text[i + 1] - '0')});
  return out;
}

/// An instruction that adds dot products: to the sum of each lane comes the product of a row of a, the same for all lanes, and the lane's
/// own column of b, of which the elements are neighbours. 4, 8 or 16 lanes, k is 2 or 4.
TensorCore dot_product(Symbol name, int lanes, int k, DType a, DType b, DType out);

std::vector<Family> nvidia();
std::vector<Family> x86();
/// Of ARM's processors: dot products, and products of matrices in a vector.
std::vector<Family> arm();
std::vector<Family> amd();
std::vector<Family> apple();
std::vector<Family> intel();
/// "small": none of a real machine, for tests.
std::vector<Family> small();

}  // namespace tinygrad::tensor_core_families

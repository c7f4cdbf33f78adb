// The smallest program with a result.
#include <cstdio>

#include <tinygrad/tinygrad.h>

int main() { std::printf("%g\n", (tinygrad::Tensor::arange(1000) * 2 + 1).sum().item()); }

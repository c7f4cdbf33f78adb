#pragma once
#include <tinygrad/device.h>

/// Makes the device TOY known: memory of its own that the host does not reach, and kernels in C that the system's clang compiles.
void register_toy();
/// Kernels that TOY has run.
long toy_launches();

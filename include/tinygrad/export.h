#pragma once

#if __cplusplus < 202002L
#error "tinygrad.cpp needs C++20: compile with -std=c++20 or newer"
#endif

/// Marks what libtinygrad.so exports; everything else in it is hidden.
#define TINYGRAD_EXPORT __attribute__((visibility("default")))

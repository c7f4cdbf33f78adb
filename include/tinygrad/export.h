#pragma once

/// Marks what libtinygrad.so exports; everything else in it is hidden.
#define TINYGRAD_EXPORT __attribute__((visibility("default")))

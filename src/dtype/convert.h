#pragma once
/// Conversion of numbers between element types: single values in their 64-bit form, and arrays.

#include <cstddef>
#include <cstdint>

#include <tinygrad/dtype.h>

namespace tinygrad {

// A number of any dtype has a 64-bit form: a float is the bits of a double, a signed integer or `index` is sign-extended, an unsigned
// integer or bool zero-extended. A conversion widens to this form, changes form between integer and float, and narrows.

/// The 64-bit form of `storage`, the itemsize(d) bytes of an element; a bool is true for any byte but 0.
uint64_t widen(DType d, uint64_t storage);
/// The bytes, zero-extended, of the element nearest to a number in 64-bit form: floats round once to nearest even, integers wrap.
uint64_t narrow(DType d, uint64_t wide);
/// From the 64-bit form of `from` to that of `to`, which is not rounded or wrapped yet, so that narrow() rounds correctly.
uint64_t change_form(DType to, DType from, uint64_t wide);

/// Writes `count` elements of type `to` from elements of type `from`, each by the rules of Scalar::cast; the same type is copied byte
/// by byte. A NaN keeps its sign. The arrays must not overlap; they need no alignment. Throws DTypeError for `void_`.
void convert_array(DType to, void* dst, DType from, const void* src, size_t count);

}  // namespace tinygrad

#pragma once
/// The header of a file of NumPy (numpy.lib.format): a magic text, a version, and a dict as Python writes it:
/// {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tinygrad/dtype.h>
#include <tinygrad/variable.h>

namespace tinygrad::frontend {

struct NpyHeader {
  std::string descr;           ///< "<f8"; of an array of records what stands there
  std::optional<DType> dtype;  ///< nothing for what there is no Tensor of: complex numbers, texts, times, objects, records
  int64_t item_bytes = 0;      ///< of an element; 0 where that is not known: of objects and records
  bool is_big_endian = false;
  bool is_column_major = false;  ///< "fortran_order"
  Sizes shape = {};
  uint64_t data_start = 0;  ///< byte at which the elements begin

  /// Nothing where that is more than 63 bits, or not known.
  std::optional<int64_t> data_bytes() const;
};

/// Whether bytes begin as those of a file of NumPy do.
bool is_npy(std::span<const std::byte> bytes);

/// Reads it from the beginning of a file, of which it needs no more than the header. Nothing of it is evaluated. Throws FormatError, naming
/// the file, the field and its place.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& name);

/// How many of the first bytes of a file the header needs: as many as are given are looked at.
uint64_t npy_header_bytes(std::span<const std::byte> first, const std::string& name);

/// Whether NumPy has such elements.
bool has_numpy(DType dtype);

/// The bytes before row-major elements of this dtype, a multiple of 64. Throws DTypeError for dtypes that NumPy lacks.
std::string make_npy_header(DType dtype, const Sizes& shape);

}  // namespace tinygrad::frontend

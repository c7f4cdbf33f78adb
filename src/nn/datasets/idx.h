#pragma once
/// The files of data sets: IDX, which MNIST has (two zero bytes, an element type, the number of axes, a big-endian size for each, the
/// elements), and CIFAR-10's records (a label, then the pixels of a picture).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tinygrad::nn::datasets {

/// An array of bytes in a file's memory.
struct IdxView {
  std::vector<int64_t> shape;
  std::span<const std::byte> elements;
};

/// Reads the header of an unsigned-byte IDX file. Throws FormatError, naming the file, unless the bytes are exactly what the header says.
IdxView parse_idx(std::span<const std::byte> file, const std::string& name);

/// Pictures of this height and width with as many classes from 0 to 9. Throws FormatError.
void check_images(const IdxView& images, const std::string& images_name, const IdxView& labels, const std::string& labels_name,
                  int64_t height, int64_t width);

inline constexpr int64_t cifar_pixels = 3 * 32 * 32, cifar_record = 1 + cifar_pixels;
/// The number of records in a file of CIFAR-10. Throws FormatError.
int64_t check_cifar(std::span<const std::byte> file, const std::string& name);

}  // namespace tinygrad::nn::datasets

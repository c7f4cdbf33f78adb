#pragma once
/// Data sets of labelled pictures. They are downloaded once, checked against the publishers' checksums and kept in
/// $XDG_CACHE_HOME/tinygrad_cpp (or ~/.cache/tinygrad_cpp); files that are there already, or in a folder that is named, are used without a
/// network. Files are checked before they are used. Throws IoError for files that are missing and cannot be had, FormatError for others
/// than expected.

#include <string>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn::datasets {

/// Pictures (count, channels, height, width) and their classes (count), 0 to 9, all uint8.
struct LabelledImages {
  Tensor x_train, y_train, x_test, y_test;
};

struct MnistOptions {
  std::string device = {};  ///< by default the default device
  bool fashion = false;     ///< Fashion-MNIST
  std::string folder = {};  ///< has train-images-idx3-ubyte and the other three, plain or .gz; nothing is downloaded then
  bool verbose = true;      ///< a progress bar for a download
};

/// Handwritten digits (LeCun, Cortes and Burges) or clothes (Xiao, Rasul and Vollgraf, 2017): 60000 and 10000 pictures (1, 28, 28).
TINYGRAD_EXPORT LabelledImages mnist(const MnistOptions& options = {});

struct CifarOptions {
  std::string device = {};
  std::string folder = {};  ///< has data_batch_1.bin to data_batch_5.bin and test_batch.bin, or cifar-10-binary.tar.gz
  bool verbose = true;
};

/// CIFAR-10 (Krizhevsky, 2009): 50000 and 10000 pictures (3, 32, 32).
TINYGRAD_EXPORT LabelledImages cifar(const CifarOptions& options = {});

}  // namespace tinygrad::nn::datasets

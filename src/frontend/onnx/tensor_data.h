#pragma once
/// The elements of tensors in files: in the message, or in a file of external data.

#include <map>
#include <memory>
#include <string>

#include "frontend/file_bytes.h"
#include "frontend/onnx/proto.h"
#include "frontend/onnx/value.h"

namespace tinygrad::onnx {

/// A model's file, and the files of external data beside it.
struct Files {
  frontend::FileBytes file;
  proto::Source source;
  std::string folder;  ///< of external data; empty where there is none
  bool follow_links = false;
  std::map<std::string, frontend::FileBytes> external = {};

  static Files of(frontend::FileBytes file);
  /// Throws FormatError for a path that leaves the folder, IoError for what cannot be read.
  const frontend::FileBytes& external_file(const proto::TensorProto& t);
};

/// The bytes that the elements take in raw data. Throws FormatError where 64 bits do not count them, and where raw data are there and are
/// more or fewer.
int64_t stored_bytes(const Files& files, const proto::TensorProto& t);
/// The value of a tensor; it stays in the file's memory where it can. Throws FormatError where the bytes are not those of its shape.
Value read_value(Files& files, const proto::TensorProto& t);
/// A sparse tensor with its zeros.
Value read_value(Files& files, const proto::SparseTensorProto& t);

}  // namespace tinygrad::onnx

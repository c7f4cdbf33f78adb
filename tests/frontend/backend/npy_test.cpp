// Values of NumPy's files, read and written.
#include <gtest/gtest.h>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "base/archive/zip.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "frontend/npy/arrays.h"
#include "frontend/npy/npy.h"

namespace tinygrad {
namespace {

using namespace std::string_literals;
using formats::npy_save;
using formats::npz_save;
using test::npy_of;

class NpyFile : public TempDir {
 protected:
  Tensor read(const std::string& bytes) {
    write_file_atomic(path("f"), bytes);
    return frontend::open_npy(frontend::FileBytes::map(path("f")))->tensor(0);
  }
};

TEST_F(NpyFile, OrdersOfBytesAndAxes) {
  using V = std::vector<int>;
  EXPECT_EQ(read(npy_of("<i2", "(2, 2)", "\x01\x00\x02\x00\x03\x00\x04\x00"s)).tolist<int>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(read(npy_of(">i2", "(2, 2)", "\x00\x01\x00\x02\x00\x03\x00\x04"s)).tolist<int>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(read(npy_of("<i2", "(2, 2)", "\x01\x00\x02\x00\x03\x00\x04\x00"s, "True")).tolist<int>(), (V{1, 3, 2, 4}));
  EXPECT_EQ(read(npy_of(">i2", "(2, 2)", "\x00\x01\x00\x02\x00\x03\x00\x04"s, "True")).tolist<int>(), (V{1, 3, 2, 4}));
  EXPECT_EQ(read(npy_of("|u1", "(1, 2, 3)", "\x01\x02\x03\x04\x05\x06", "True")).tolist<int>(), (V{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(read(npy_of("|u1", "()", "\x05")).tolist<int>(), V{5});
  EXPECT_EQ(read(npy_of("|u1", "()", "\x05", "True")).shape(), Sizes{});
  EXPECT_EQ(read(npy_of("<f8", "(0, 3)", "")).shape(), (Sizes{0, 3}));
  EXPECT_EQ(read(npy_of("<f8", "(0, 3)", "", "True")).shape(), (Sizes{0, 3}));
  EXPECT_EQ(read(npy_of(">f8", "()", "\x3f\xf8\x00\x00\x00\x00\x00\x00"s)).item(), 1.5);
}

TEST_F(NpyFile, WhatIsWrittenIsReadBack) {
  nn::state::StateDict out;
  for (const DType d : dtypes::all) {
    if (is_fp8(d) || d == DType::bfloat16) {
      EXPECT_THROW(npy_save(Tensor::zeros({2}, {.dtype = d}), path("refused")), DTypeError);
      EXPECT_FALSE(std::filesystem::exists(path("refused")));
      continue;
    }
    std::vector<std::byte> bytes(6 * itemsize(d));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(is_bool(d) ? i % 2 : 37 * i + 200);
    out["t." + std::string(repr(d))] = Tensor(bytes, d, {2, 3});
  }
  out["scalar"] = Tensor(2.5);
  out["empty"] = Tensor::zeros({0, 4});
  out["lazy"] = Tensor({1.0, 2.0}) * 2;
  out["view"] = Tensor::arange(6).reshape({2, 3}).permute({1, 0});
  npz_save(out, path("a.npz"));
  const frontend::FileBytes file = frontend::FileBytes::map(path("a.npz"));
  const auto reader = frontend::open_npz(file);
  ASSERT_EQ(reader->tensors().size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const formats::TensorInfo& info = reader->tensors()[i];
    const Tensor &expected = out.at(info.name), found = reader->tensor(i);
    EXPECT_EQ(found.dtype(), expected.dtype()) << info.name;
    EXPECT_EQ(found.shape(), expected.shape()) << info.name;
    EXPECT_EQ(found.data(), expected.data()) << info.name;
    EXPECT_EQ(info.offset % 64, 0) << info.name;
    npy_save(expected, path("a.npy"));
    EXPECT_EQ(frontend::open_npy(frontend::FileBytes::map(path("a.npy")))->tensor(0).data(), expected.data());
  }
  for (const archive::ZipFile& member : archive::read_zip(file.bytes, "f")) EXPECT_NO_THROW(member.check_stored("f"));
  EXPECT_THROW(npz_save(std::vector<std::pair<std::string, Tensor>>{{"a", Tensor(1)}, {"a", Tensor(2)}}, path("b.npz")), ValueError);
  EXPECT_THROW(npz_save({{std::string(70000, 'x'), Tensor(1)}}, path("b.npz")), ValueError);
  EXPECT_FALSE(std::filesystem::exists(path("b.npz")));
}

TEST_F(NpyFile, AFileMayBeWrittenOverWhatWasReadOfIt) {
  npy_save(Tensor({1.0, 2.0}), path("a"));
  const Tensor a = frontend::open_npy(frontend::FileBytes::map(path("a")))->tensor(0);
  npy_save(a + 1, path("a"));
  EXPECT_EQ(a.tolist(), (std::vector<float>{1, 2}));
  EXPECT_EQ(frontend::open_npy(frontend::FileBytes::map(path("a")))->tensor(0).tolist(), (std::vector<float>{2, 3}));
}

TEST_F(NpyFile, PackedMembersAreChecked) {
  std::string bytes = test::zip_of({{"a.npy", npy_of("<f4", "(500,)", std::string(2000, 'q')), true}});
  bytes[bytes.find("PK\x01\x02") + 16] ^= 1;  // the checksum in the directory
  write_file_atomic(path("f"), bytes);
  EXPECT_THROW(frontend::open_npz(frontend::FileBytes::map(path("f")))->tensor(0), FormatError);
}

}  // namespace
}  // namespace tinygrad

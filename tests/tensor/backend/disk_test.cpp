// Files and arrays of the host as devices.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <tinygrad/tinygrad.h>

#include "support/temp_folder.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class Disk : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path(name); }
  std::string device(const std::string& name) const { return "DISK:" + file(name); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return device(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  template <class Failure, class F>
  static std::string message(F f) {
    try {
      f();
    } catch (const Failure& e) {
      return e.what();
    }
    return "nothing was thrown";
  }

  test::TempFolder folder_;
};

std::string bytes_of(const Floats& values) { return {reinterpret_cast<const char*>(values.data()), values.size() * 4}; }
Tensor bytes_on(const std::string& device, int64_t n) { return Tensor::empty({n}, {.dtype = DType::uint8, .device = device}); }

TEST_F(Disk, AFileIsATensor) {
  Floats values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor raw = bytes_on(write("x", bytes_of(values)), 96);
  EXPECT_EQ(raw.device(), device("x")) << "a path keeps its case";
  const Tensor x = raw.bitcast(DType::float32).reshape({2, 3, 4});
  EXPECT_EQ(x.device(), device("x"));
  EXPECT_EQ(x.tolist(), values);
  EXPECT_EQ(x.to("CPU").tolist(), values);
  EXPECT_EQ((x[{1, 2}].tolist()), (Floats{20, 21, 22, 23}));
  EXPECT_EQ(x[{1}].to("INTERP").sum().item(), 210);
  EXPECT_EQ(((x.to("CPU") * 2)[{0, 0, 1}].item()), 2);
}

TEST_F(Disk, LazyTensorsWithoutElements) {
  EXPECT_EQ(Tensor::zeros({0}, {.dtype = dtypes::uint8}).to(device("zero")).to("CPU").shape(), (Sizes{0}));
  const Tensor two = Tensor({1.0, 2.0}) + 1, none = two[{Slice{1, 1}}].to(device("none"));
  EXPECT_EQ(none.numel(), 0);
}

TEST_F(Disk, FilesByTheirPaths) {
  write("x", bytes_of({1, 2, 3}));
  const Tensor x = Tensor::from_file(file("x"));
  EXPECT_EQ(x.device(), device("x"));
  EXPECT_EQ(x.dtype(), DType::uint8);
  EXPECT_EQ(x.shape(), (Sizes{12}));
  const Tensor floats(std::filesystem::path(file("x")), {.dtype = DType::float32});
  EXPECT_EQ(floats.device(), device("x"));
  EXPECT_EQ(floats.tolist(), (Floats{1, 2, 3}));
  const Tensor here = Tensor::from_file(file("x"), {.dtype = DType::float32, .device = "CPU"});
  EXPECT_EQ(here.device(), "CPU");
  EXPECT_EQ((here * 2).tolist(), (Floats{2, 4, 6}));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  EXPECT_EQ(Tensor::from_file("x", {.dtype = DType::float32}).tolist(), (Floats{1, 2, 3})) << "where one is does not matter later";
  std::filesystem::current_path(before);
}

TEST_F(Disk, PathsThatAreNoFilesToRead) {
  EXPECT_NE(message<IoError>([&] { Tensor::from_file(file("absent")); }).find("No such file"), std::string::npos);
  EXPECT_NE(::access(file("absent").c_str(), F_OK), 0) << "reading makes no file";
  EXPECT_NE(message<IoError>([&] { Tensor::from_file(folder_.path()); }).find("directory"), std::string::npos);
  EXPECT_NE(message<IoError>([&] { Tensor::from_file("/dev/zero"); }).find("no file with a size"), std::string::npos);
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_THROW(Tensor::from_file(file("pipe")), IoError) << "nor does it wait for one who writes";
  write("x", "abcde");
  EXPECT_NE(message<ValueError>([&] { Tensor::from_file(file("x"), {.dtype = DType::float32}); }).find("5 bytes"), std::string::npos);
}

TEST_F(Disk, AFileThatTookTheNameOfAnotherIsAnother) {
  write("x", bytes_of({1, 2, 3}));
  const Tensor before = Tensor::from_file(file("x"), {.dtype = DType::float32});
  write("y", bytes_of({4, 5, 6, 7}));
  std::filesystem::rename(file("y"), file("x"));
  const Tensor after = Tensor::from_file(file("x"), {.dtype = DType::float32});
  EXPECT_EQ(after.tolist(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(before.tolist(), (Floats{1, 2, 3})) << "which is still open";
  Tensor first = after[{Slice{.stop = 1}}];
  first.assign(Tensor({9.0f}));
  EXPECT_EQ(read("x"), bytes_of({9, 5, 6, 7}));
  EXPECT_EQ(before.tolist(), (Floats{1, 2, 3}));
}

TEST_F(Disk, EmptyFilesAreEmptyTensors) {
  write("x", "");
  const Tensor x = Tensor::from_file(file("x"), {.dtype = DType::float32});
  EXPECT_EQ(x.shape(), (Sizes{0}));
  EXPECT_EQ(x.tolist(), Floats{});
  EXPECT_EQ((x.to("CPU") + 1).sum().item(), 0);
}

TEST_F(Disk, ElementsMayBeginAnywhere) {
  write("x", "abc" + bytes_of({1, 2, 3}) + "d");
  const Tensor floats = Tensor::from_file(file("x"))[{Slice{.start = 3, .stop = 15}}].bitcast(DType::float32);
  EXPECT_EQ(floats.tolist(), (Floats{1, 2, 3}));
  for (const DeviceStatus& d : available_devices()) {
    const bool renders_only = d.name == "NULL", holds_data = d.name == "DISK" || d.name == "NPY";
    if (!d.works || renders_only || holds_data || d.name.find(':') != std::string::npos) continue;
    EXPECT_EQ((floats.to(d.name) * 2).tolist(), (Floats{2, 4, 6})) << d.name;
    EXPECT_EQ(floats[{Slice{.start = 1}}].to(d.name).tolist(), (Floats{2, 3})) << d.name;
  }
}

TEST_F(Disk, AFileThatGetsShorterAfterItWasOpenedIsAnErrorOnEveryDevice) {
  write("x", std::string(100000, 'a'));
  const Tensor x = Tensor::from_file(file("x"));
  ASSERT_EQ(::truncate(file("x").c_str(), 5000), 0);
  for (const DeviceStatus& d : available_devices()) {
    const bool renders_only = d.name == "NULL", holds_data = d.name == "DISK" || d.name == "NPY";
    if (!d.works || renders_only || holds_data || d.name.find(':') != std::string::npos) continue;
    EXPECT_THROW(x.to(d.name).realize(), IoError) << d.name;
    EXPECT_EQ(x[{Slice{.stop = 5000}}].to(d.name).cast(DType::int32).sum().item<int>(), 5000 * 97) << d.name;
  }
}

TEST_F(Disk, ViewsThatAreNotOnePieceAreMadeAtTheirDestination) {
  Floats values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor x = bytes_on(write("x", bytes_of(values)), 96).bitcast(DType::float32).reshape({4, 6});
  const Tensor here = x.to("CPU");
  const auto same = [&](const auto& view) { EXPECT_EQ(view(x).to("CPU").tolist(), view(here).tolist()); };
  same([](const Tensor& t) { return t.permute({1, 0}); });
  same([](const Tensor& t) { return t[{Slice{.start = 1, .stop = 3}, Slice{.start = 2, .stop = 4}}]; });
  same([](const Tensor& t) { return t[{Slice{.start = 1, .stop = 3}}].flip({1}); });
  same([](const Tensor& t) { return t[{2}].reshape({1, 6}).expand({3, 6}); });
  same([](const Tensor& t) { return t[{1, Slice{.start = 2, .stop = 5}}]; });
}

TEST_F(Disk, OnlyWhatIsAskedForIsRead) {
  const Tensor x = bytes_on(write("x", std::string(1000, 'a')), 1000);
  const Tensor first = x[{Slice{.stop = 10}}].to("CPU");
  ASSERT_EQ(::truncate(file("x").c_str(), 10), 0);
  EXPECT_EQ(first.sum().item(), 970);
}

TEST_F(Disk, CopiesMakeFiles) {
  const Tensor x = Tensor::arange(6, {.dtype = DType::float32}).reshape({2, 3});
  (x + 1).to(device("new")).realize();
  EXPECT_EQ(read("new"), bytes_of({1, 2, 3, 4, 5, 6}));
  x.to("INTERP").to(device("other")).realize();
  EXPECT_EQ(read("other"), bytes_of({0, 1, 2, 3, 4, 5}));
  bytes_on(device("new"), 24).to(device("copy")).realize();
  EXPECT_EQ(read("copy"), read("new"));
}

TEST_F(Disk, AssignWritesNow) {
  const Tensor x = bytes_on(write("x", bytes_of({1, 2, 3, 4})), 16).bitcast(DType::float32);
  const Tensor before = x.to("CPU") * 10;
  Tensor part = x[{Slice{.start = 1, .stop = 3}}];
  part.assign(Tensor({7.0f, 8.0f}));
  EXPECT_EQ(read("x"), bytes_of({1, 7, 8, 4}));
  EXPECT_EQ(before.tolist(), (Floats{10, 20, 30, 40})) << "a lazy value means its value where it was written";
  EXPECT_EQ(x.tolist(), (Floats{1, 7, 8, 4}));
}

TEST_F(Disk, WritesWithGapsKeepWhatIsBetween) {
  const Floats start = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto writes = [&](const auto& view_of, const Floats& expected) {
    const Tensor x = bytes_on(write("x", "head" + bytes_of(start) + "tail"), 56)[{Slice{.start = 4, .stop = 52}}].bitcast(DType::float32);
    Tensor view = view_of(x.reshape({3, 4}));
    const Sizes shape = view.shape();
    view.assign(Tensor::arange(view.numel(), {.dtype = DType::float32}).reshape(Extents(shape.begin(), shape.end())) + 20);
    EXPECT_EQ(read("x"), "head" + bytes_of(expected) + "tail");
    EXPECT_EQ(x.tolist(), expected);
  };
  writes([](const Tensor& x) { return x[{Slice{}, 1}]; }, {0, 20, 2, 3, 4, 21, 6, 7, 8, 22, 10, 11});
  writes([](const Tensor& x) { return x[{Slice{}, Slice{.step = 2}}]; }, {20, 1, 21, 3, 22, 5, 23, 7, 24, 9, 25, 11});
  writes([](const Tensor& x) { return x[{Slice{.start = 1}, Slice{.start = 1, .stop = 3}}]; }, {0, 1, 2, 3, 4, 20, 21, 7, 8, 22, 23, 11});
  writes([](const Tensor& x) { return x[{1}].flip({0}); }, {0, 1, 2, 3, 23, 22, 21, 20, 8, 9, 10, 11});
  writes([](const Tensor& x) { return x.permute({1, 0}); }, {20, 23, 26, 29, 21, 24, 27, 30, 22, 25, 28, 31});
  const Tensor x = bytes_on(write("x", bytes_of(start)), 48).bitcast(DType::float32);
  EXPECT_THROW((x[{Slice{.stop = 1}}].expand({3}).assign(Tensor({1.0f, 2.0f, 3.0f}))), ValueError);
  EXPECT_EQ(read("x"), bytes_of(start));
}

/// Values that are written are made elsewhere: memory of a file is what it holds already.
TEST_F(Disk, ItemsAreWrittenWhereTheyAre) {
  Tensor x = Tensor({1, 2, 3, 4}).to(device("x"));
  x.set_item({{Slice{.start = 2, .stop = 4}}}, Tensor({8, 9}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{1, 2, 8, 9}));
  x.set_item({{1}}, 7.9);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{1, 7, 8, 9})) << "as a cast to its dtype";
  x.set_item({{Slice{.step = 3}}}, Tensor({-1.0f, -2.0f}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{-1, 7, 8, -2}));
  const Tensor places({3, 0}), mask({false, true, true, false});
  x.set_item({{places}}, Tensor({30, 40}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{40, 7, 8, 30}));
  x.set_item({{mask}}, 5);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{40, 5, 5, 30}));
  x.set_item({{mask}}, Tensor({1, 2}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{40, 1, 2, 30}));
  x.set_item({{Slice{.stop = 2}}}, x[{Slice{.start = 1, .stop = 3}}]);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{1, 2, 2, 30})) << "of itself, where they overlap";
  x.set_item({{Slice{.start = 5}}}, 1);
  EXPECT_EQ(Tensor::from_file(file("x"), {.dtype = DType::int32}).tolist<int>(), (std::vector<int>{1, 2, 2, 30}));
  EXPECT_THROW(x.set_item({{Slice{.stop = 2}}}, Tensor({1, 2, 3})), ShapeError);
  EXPECT_THROW(x.assign(Tensor({1.0f, 2.0f, 3.0f, 4.0f})), DTypeError);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{1, 2, 2, 30}));
}

TEST_F(Disk, NoHiddenMemoryIsTheFile) {
  Tensor x = Tensor({1, 2, 3, 4}).to(device("x"));
  const std::string before = read("x");
  EXPECT_THROW(x.clone(), DeviceError);
  EXPECT_THROW(Tensor::rand({2}, {.device = device("x")}).realize(), DeviceError);
  EXPECT_THROW(Tensor::zeros({2}, {.device = device("x")}).contiguous().realize(), DeviceError);
  EXPECT_THROW(x.flip({0}).contiguous().realize(), DeviceError);
  EXPECT_THROW((x + Tensor({1, 2, 3, 4}, {.device = "CPU"})).realize(), DeviceError);
  EXPECT_EQ(read("x"), before);
}

TEST_F(Disk, ReadingNeedsNoCopyByHand) {
  const Tensor x = Tensor({1.5f, -2.0f, 3.0f, 0.0f}).to(device("x"));
  EXPECT_EQ(x[{1}].item(), -2);
  EXPECT_EQ(x.tolist<double>(), (std::vector<double>{1.5, -2, 3, 0}));
  EXPECT_EQ(x.reshape({2, 2}).permute({1, 0}).tolist(), (Floats{1.5, 3, -2, 0}));
  EXPECT_EQ(std::memcmp(x.host_memory().get(), bytes_of({1.5, -2, 3, 0}).data(), 16), 0);
  EXPECT_EQ(std::memcmp(x[{Slice{.start = 1}}].data().data(), bytes_of({-2, 3, 0}).data(), 12), 0);
  const Tensor flags = Tensor({true, false, true}).to(device("flags"));
  EXPECT_EQ(flags.tolist<int>(), (std::vector<int>{1, 0, 1}));
  const Tensor halves = Tensor({1.5f, -2.0f}, {.dtype = DType::bfloat16}).to(device("halves"));
  EXPECT_EQ(halves.tolist(), (Floats{1.5, -2}));
}

TEST_F(Disk, CopiesAreThereAtOnce) {
  const Tensor x = Tensor({1, 2, 3, 4}).to(device("x"));
  EXPECT_EQ(read("x").size(), 16u);
  EXPECT_EQ(x[{Slice{.start = 2}}].to("CPU").tolist<int>(), (std::vector<int>{3, 4}));
  EXPECT_EQ(Tensor({5, 6}, {.device = device("y")}).tolist<int>(), (std::vector<int>{5, 6}));
  EXPECT_EQ(Tensor::from_file(file("y"), {.dtype = DType::int32}).tolist<int>(), (std::vector<int>{5, 6}));
  const Tensor late = x.to("CPU") * 2;
  Tensor({7, 8}).to(device("x"));
  EXPECT_EQ(late.tolist<int>(), (std::vector<int>{2, 4, 6, 8})) << "a lazy value means its value where it was written";
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{7, 8, 3, 4})) << "memory of a file is its beginning";
  EXPECT_THROW((x + 1).to(device("none")), DeviceError);
  EXPECT_NE(::access(file("none").c_str(), F_OK), 0) << "nothing is left of what failed";
}

TEST_F(Disk, ViewsSeeWhatIsWrittenByAnyWay) {
  const Tensor x = Tensor({1, 2, 3, 4}).to(device("x")), again = Tensor::from_file(file("x"), {.dtype = DType::int32});
  const Tensor before = x[{Slice{.start = 1, .stop = 3}}];
  Tensor(again[{Slice{.start = 2}}]).assign(Tensor({30, 40}));
  const Tensor after = x[{Slice{.start = 1, .stop = 3}}];
  EXPECT_EQ(before.tolist<int>(), (std::vector<int>{2, 30}));
  EXPECT_EQ(after.tolist<int>(), (std::vector<int>{2, 30}));
  Tensor bits = x.bitcast(DType::float32), bytes = x.bitcast(DType::uint8);
  bits[{0}].assign(Tensor(1.0f));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{0x3f800000, 2, 30, 40}));
  bytes.set_item({{Slice{.start = 4, .stop = 8}}}, Tensor(std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{0x3f800000, 257, 30, 40}));
  EXPECT_THROW((x.reshape({2, 2})[{Slice{}, 0}].bitcast(DType::float32)), DeviceError);
  Tensor more = Tensor::empty({6}, {.dtype = DType::int32, .device = device("x")});
  EXPECT_EQ(read("x").size(), 24u) << "a file grows with what is asked for";
  more.set_item({{Slice{.start = 3}}}, Tensor({4, 5, 6}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{0x3f800000, 257, 30, 4}));
  EXPECT_EQ(more.tolist<int>(), (std::vector<int>{0x3f800000, 257, 30, 4, 5, 6}));
}

TEST_F(Disk, OtherNamesOfAFile) {
  const Tensor x = Tensor({1, 2}).to("disk:" + file("x"));
  EXPECT_EQ(x.device(), device("x"));
  std::filesystem::create_symlink(file("x"), file("link"));
  const Tensor late = x.to("CPU") + 1;
  Tensor linked = Tensor::from_file(file("link"), {.dtype = DType::int32});
  linked.assign(Tensor({5, 6}));
  EXPECT_EQ(late.tolist<int>(), (std::vector<int>{2, 3}));
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{5, 6}));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  const Tensor here = Tensor({7}).to("disk:y"), named = Tensor({8}).to("DISK:123");
  EXPECT_EQ(here.device(), device("y"));
  std::filesystem::current_path(before);
  EXPECT_EQ(here.tolist<int>(), (std::vector<int>{7}));
  EXPECT_EQ(named.device(), device("123"));
}

TEST_F(Disk, SharedMemory) {
  const std::string name = "tg_test_" + std::to_string(::getpid());
  struct Unlink {
    std::string path;
    ~Unlink() { ::unlink(path.c_str()); }
  } const unlink{"/dev/shm/" + name};
  Tensor x = Tensor({1, 2, 3}).to("disk:shm:" + name);
  EXPECT_EQ(x.device(), "DISK:shm:" + name);
  Tensor other = Tensor::empty({3}, {.dtype = DType::int32, .device = "DISK:shm:" + name});
  other.set_item({{1}}, 20);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{1, 20, 3}));
  EXPECT_EQ(Tensor::from_file(unlink.path, {.dtype = DType::int32}).tolist<int>(), (std::vector<int>{1, 20, 3}));
  EXPECT_NE(message<DeviceError>([&] { bytes_on("DISK:shm:a/b", 1); }).find("without '/'"), std::string::npos);
}

TEST_F(Disk, NothingIsComputedThere) {
  const Tensor x = bytes_on(write("x", "abcd"), 4);
  const std::string why = message<DeviceError>([&] { (x + 1).realize(); });
  EXPECT_NE(why.find("only holds data"), std::string::npos) << why;
  EXPECT_EQ(read("x"), "abcd");
  EXPECT_EQ((x.to("CPU") + 1).sum().item(), 398);
}

TEST_F(Disk, NamesThatAreNoFiles) {
  EXPECT_NE(message<DeviceError>([&] { Tensor::empty({1}, {.device = "DISK"}); }).find("DISK:PATH"), std::string::npos);
  EXPECT_NE(message<IoError>([&] { bytes_on("DISK:" + folder_.path(), 1); }).find("directory"), std::string::npos);
  EXPECT_NE(message<IoError>([&] { bytes_on(device("no/such/folder"), 1); }).find("No such file"), std::string::npos);
  EXPECT_NE(message<IoError>([&] { bytes_on("DISK:/dev/zero", 1); }).find("no file with a size"), std::string::npos);
}

TEST_F(Disk, AFileThatIsNotToBeWrittenCanBeRead) {
  if (::geteuid() == 0) {  // may write everything: a running program is what nobody may write
    const Tensor self = bytes_on("DISK:/proc/self/exe", 4);
    EXPECT_EQ(self.tolist<int>(), (std::vector<int>{0x7f, 'E', 'L', 'F'}));
    Tensor first = self[{Slice{.stop = 1}}];
    EXPECT_THROW(first.assign(Tensor::zeros({1}, {.dtype = DType::uint8})), IoError);
    EXPECT_THROW(bytes_on("DISK:/proc/self/exe", int64_t{1} << 40), IoError) << "nor made longer";
    return;
  }
  write("x", "abcd");
  ASSERT_EQ(::chmod(file("x").c_str(), 0444), 0);
  Tensor x = bytes_on(device("x"), 4);
  EXPECT_EQ(x.tolist<int>(), (std::vector<int>{'a', 'b', 'c', 'd'}));
  EXPECT_THROW(x.assign(Tensor::zeros({4}, {.dtype = DType::uint8})), IoError);
  EXPECT_EQ(read("x"), "abcd");
}

TEST_F(Disk, AFileThatGetsShorterIsAnErrorAndNoSignal) {
  const std::string name = write("x", std::string(100000, 'a'));
  const Tensor x = bytes_on(name, 100000);
  ASSERT_EQ(::truncate(file("x").c_str(), 5000), 0);
  const std::string why = message<IoError>([&] { x.to("CPU").realize(); });
  EXPECT_NE(why.find("shorter"), std::string::npos) << why;
  EXPECT_EQ(x[{Slice{.stop = 5000}}].to("CPU").sum().item(), 5000 * 97) << "what is there is still there";
}

/// A limit on the size of files stands for a disk that is full, until it goes out of scope.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Disk, AFullDiskLosesNothing) {
  const Tensor x = Tensor::ones({100000}).contiguous().realize();
  write("old", bytes_of({1, 2}));
  {
    const FullDisk full(8192);
    EXPECT_THROW(x.to(device("new")).realize(), IoError);
    EXPECT_NE(::access(file("new").c_str(), F_OK), 0) << "no part of it is left";
    EXPECT_THROW(bytes_on(device("old"), 100000), IoError);
    EXPECT_EQ(read("old"), bytes_of({1, 2}));
  }
  EXPECT_EQ(x.sum().item(), 100000);
  x.to(device("new")).realize();
  EXPECT_EQ(read("new").size(), 400000u);
}

/// Its size is known, but not that there are blocks for all of it.
TEST_F(Disk, AFileWithHolesOnAFullDisk) {
  write("holes", "");
  std::filesystem::resize_file(file("holes"), 100000);
  Tensor x = bytes_on(device("holes"), 100000);
  const Tensor ones = Tensor::ones({100000}, {.dtype = DType::uint8}).contiguous().realize();
  {
    const FullDisk full(8192);
    EXPECT_THROW(x.assign(ones), IoError);
    EXPECT_EQ(read("holes"), std::string(8192, 1) + std::string(100000 - 8192, 0));
  }
  x.assign(ones);
  EXPECT_EQ(read("holes"), std::string(100000, 1));
}

TEST_F(Disk, AFileTooLargeForAnything) {
  EXPECT_THROW(bytes_on(device("huge"), int64_t{1} << 61), IoError);
  EXPECT_NE(::access(file("huge").c_str(), F_OK), 0);
  EXPECT_THROW(bytes_on(device("huge"), INT64_MAX), IoError);
}

TEST_F(Disk, FilesAreClosedWithTheirTensors) {
  const auto open_files = [] {
    auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  write("x", "abcd");
  const auto before = open_files();
  {
    const Tensor x = bytes_on(device("x"), 4), y = x[{Slice{.stop = 2}}].to("CPU").realize();
    EXPECT_EQ(open_files(), before + 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(Disk, CapturedCallsSeeWhatIsInTheFile) {
  const Tensor x = bytes_on(write("x", bytes_of({1, 2})), 8).bitcast(DType::float32);
  const auto f = jit([&](const Tensor& y) { return x.to("CPU") + y; });
  const Tensor one({1.0f, 1.0f});
  for (float i = 0; i < 5; ++i) {
    write("x", bytes_of({i, i + 1}));
    EXPECT_EQ(f(one).tolist(), (Floats{i + 1, i + 2})) << i;
  }
}

TEST(HostArrays, AreSharedWithTheCpu) {
  alignas(64) float values[] = {1, 2, 3, 4};
  const Tensor there = Tensor::from_blob(values, {2, 2}, {.dtype = DType::float32, .device = "NPY"});
  EXPECT_EQ(there.device(), "NPY");
  const Tensor here = there.to("CPU");
  EXPECT_EQ(here.host_memory().get(), reinterpret_cast<std::byte*>(values)) << "no copy";
  EXPECT_EQ((here * 2).tolist(), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(there.permute({1, 0}).to("CPU").tolist(), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(there.tolist(), (Floats{1, 2, 3, 4}));
  EXPECT_THROW((there + 1).realize(), DeviceError);
  Tensor row = there[{1}];
  row.assign(Tensor({8.0f, 9.0f}));
  EXPECT_EQ(values[3], 9);
}

TEST(HostArrays, AreKeptByWhatSharesThem) {
  auto owner = std::make_shared<std::vector<float>>(4, 5.0f);
  const std::weak_ptr<void> watched = owner;
  Tensor here;
  {
    const Tensor there = Tensor::from_blob(owner->data(), {4}, {.dtype = DType::float32, .device = "NPY"}, owner);
    owner.reset();
    here = there.to("CPU");
  }
  EXPECT_EQ(here.sum().item(), 20);
  here = Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST(HostArrays, OtherDevicesDoNotTakeThem) {
  float values[] = {1, 2};
  EXPECT_THROW(Tensor::from_blob(values, {2}, {.dtype = DType::float32, .device = "NULL"}), DeviceError);
}

}  // namespace
}  // namespace tinygrad

#include "frontend/torch/torch.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <tinygrad/state.h>

#include "base/archive/zip.h"
#include "frontend/byte_cursor.h"
#include "frontend/torch/elements.h"
#include "frontend/torch/flatten.h"
#include "frontend/torch/unpickle.h"

namespace tinygrad::frontend {

namespace {

using namespace torch;

/// A checkpoint whose pickle is read.
class TorchReader final : public formats::Reader {
 public:
  TorchReader(std::string_view format, std::unique_ptr<Heap> heap, std::unique_ptr<Elements> elements, Flattened contents)
      : format_(format), heap_(std::move(heap)), elements_(std::move(elements)), contents_(std::move(contents)) {
    for (const auto& [name, tensor] : contents_.tensors) infos_.push_back(elements_->describe(name, *tensor));
  }

  std::string_view format() const override { return format_; }
  const formats::Metadata& metadata() const override { return contents_.metadata; }
  const std::vector<formats::TensorInfo>& tensors() const override { return infos_; }
  Tensor tensor(size_t place) const override {
    const std::string& name = tensors_at(place).name;
    return elements_->tensor(name, *contents_.tensors[place].second);
  }

 private:
  const std::string_view format_;
  const std::unique_ptr<Heap> heap_;  ///< holds the records of the tensors
  const std::unique_ptr<Elements> elements_;
  const Flattened contents_;
  std::vector<formats::TensorInfo> infos_;
};

/// The archive that torch.save writes: all in one folder.
class Archive {
 public:
  explicit Archive(const FileBytes& file) : file_(file), members_(archive::read_zip(file.bytes, file.name)) {
    if (members_.empty()) fail("an empty archive");
    root_ = members_[0].name.substr(0, members_[0].name.find('/') + 1);
    for (const archive::ZipFile& m : members_) by_name_.emplace(m.name, &m);
  }

  std::unique_ptr<formats::Reader> read() {
    refuse_programs();
    check_version();
    check_byte_order();
    auto heap = std::make_unique<Heap>();
    const archive::ZipFile* pickle = find("data.pkl");
    const Value root = read_pickle(*pickle, *heap);
    auto elements = std::make_unique<Elements>(file_);
    for (const Storage& storage : heap->storages())
      if (const archive::ZipFile* member = find("data/" + storage.key->text)) elements->add(storage.key, *member);
    Flattened contents = flatten(root, pickle->size, *heap, file_.name);
    return std::make_unique<TorchReader>("torch", std::move(heap), std::move(elements), std::move(contents));
  }

 private:
  [[noreturn]] void fail(std::string_view why) const { throw FormatError(fmt::format("{}: {}", file_.name, why)); }

  const archive::ZipFile* find(std::string_view name) const {
    const auto found = by_name_.find(root_ + std::string(name));
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// The few letters of a member, without space around them.
  std::string short_text(const archive::ZipFile& member) const {
    constexpr uint64_t most = 64;
    if (member.size > most) fail(fmt::format("'{}' has {} bytes, expects at most {}", member.name, member.size, most));
    const std::vector<std::byte> bytes =
        member.is_deflated ? member.unpack(file_.name) : std::vector(member.packed.begin(), member.packed.end());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
    return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
  }

  void refuse_programs() const {
    const bool has_code = std::ranges::any_of(members_, [&](const auto& m) { return m.name.starts_with(root_ + "code/"); });
    if (find("constants.pkl") || has_code)
      fail("a TorchScript archive (it has constants.pkl or code/), a program that is not run here; save its state_dict() by torch.save");
    if (find("archive_format"))
      fail("an archive of torch.export (it has archive_format), a program that is not run here; save its state_dict by torch.save");
    if (!find("data.pkl")) fail(fmt::format("no PyTorch file: the archive has no '{}data.pkl'", root_));
  }
  void check_version() const {
    constexpr int newest = 10;  // caffe2::serialize::kMaxSupportedFileFormatVersion
    const archive::ZipFile* member = find("version");
    if (!member) member = find(".data/version");
    if (!member) fail(fmt::format("no PyTorch file: the archive has no '{}version'", root_));
    const std::string text = short_text(*member);
    int version = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (error != std::errc{} || end != text.data() + text.size() || version < 1 || version > newest)
      fail(fmt::format("'{}' is '{}', expects 1 to {}", member->name, text, newest));
  }
  void check_byte_order() const {
    const archive::ZipFile* member = find("byteorder");
    if (!member) return;
    const std::string order = short_text(*member);
    if (order == "big")
      fail(fmt::format("'{}' is big, and only little-endian checkpoints are read; save it again on another machine", member->name));
    if (order != "little") fail(fmt::format("'{}' is '{}', expects little", member->name, order));
  }

  Value read_pickle(const archive::ZipFile& member, Heap& heap) const {
    if (!member.is_deflated) {
      const auto begin = static_cast<uint64_t>(member.packed.data() - file_.bytes.data());
      return read_pickle(file_.bytes.first(begin + member.packed.size()), file_.name, begin, heap);
    }
    // What is packed can be a thousand times larger than the file, and its values more again; those of networks are some 5 times larger.
    constexpr uint64_t always = uint64_t{1} << 19, most = uint64_t{1} << 26, expansion = 32;
    const uint64_t allowed = std::clamp(expansion * member.packed.size(), always, most);
    if (member.size > allowed)
      fail(fmt::format("'{}' has {} bytes, packed into {}, of which at most {} are read", member.name, member.size, member.packed.size(),
                       allowed));
    return read_pickle(member.unpack(file_.name), fmt::format("{}: '{}'", file_.name, member.name), 0, heap);
  }
  static Value read_pickle(std::span<const std::byte> bytes, const std::string& name, uint64_t begin, Heap& heap) {
    ByteCursor in(bytes, name, begin);
    const Value out = unpickle(in, name, heap);
    if (in.left() != 0) Place{name, "STOP", in.at() - 1}.fail(fmt::format("{} bytes follow", in.left()));
    return out;
  }

  const FileBytes& file_;
  const std::vector<archive::ZipFile> members_;
  std::string root_;
  std::map<std::string, const archive::ZipFile*> by_name_;
};

constexpr std::string_view stream_magic = "119547037146038801333356";  // 0x1950a86a20f9469cfc6c

/// Pickles one after another: the magic number, the version, what machine it was, the object, the keys of its storages; and their bytes.
class Stream {
 public:
  explicit Stream(const FileBytes& file) : file_(file), in_(file.bytes, file.name) {}

  std::unique_ptr<formats::Reader> read() {
    check_magic();
    check_version();
    check_machine();
    const uint64_t begin = in_.at();
    const Value root = unpickle(in_, file_.name, *heap_);
    const uint64_t pickle_bytes = in_.at() - begin;
    auto elements = std::make_unique<Elements>(file_);
    read_storages(*elements);
    Flattened contents = flatten(root, pickle_bytes, *heap_, file_.name);
    return std::make_unique<TorchReader>("torch-legacy", std::move(heap_), std::move(elements), std::move(contents));
  }

 private:
  Value next(std::string_view field) {
    place_ = {file_.name, field, in_.at()};
    return unpickle(in_, file_.name, *heap_);
  }

  void check_magic() {
    const Value magic = next("the magic number");
    const LongInteger* const* number = std::get_if<const LongInteger*>(&magic);
    if (!number || (*number)->digits != stream_magic) place_.fail("not that of PyTorch files, but some other pickle");
  }
  void check_version() {
    constexpr int64_t known = 1001;
    const Value version = next("the version");
    const int64_t* number = std::get_if<int64_t>(&version);
    if (!number) place_.fail(fmt::format("{}, expects a number", kind_of(version)));
    if (*number != known) place_.fail(fmt::format("{}, expects {}", *number, known));
  }
  void check_machine() {
    const Value machine = next("the description of the machine");
    Dict* const* dict = std::get_if<Dict*>(&machine);
    if (!dict) place_.fail(fmt::format("{}, expects a dict", kind_of(machine)));
    if ((*dict)->find("little_endian").value_or(false) != Value(true))
      place_.fail("a big-endian one, and only little-endian checkpoints are read; save it again on another machine");
  }

  void read_storages(Elements& elements) {
    std::unordered_map<const Text*, const Storage*> named;
    for (const Storage& storage : heap_->storages()) named.try_emplace(storage.key, &storage);
    const Value keys = next("the keys of the storages");
    List* const* list = std::get_if<List*>(&keys);
    if (!list) place_.fail(fmt::format("{}, expects a list", kind_of(keys)));
    for (const Value& key : (*list)->items) {
      const Text* const* text = std::get_if<const Text*>(&key);
      if (!text) place_.fail(fmt::format("a key is {}, expects a text", kind_of(key)));
      const auto found = named.find(*text);
      if (found == named.end()) place_.fail(fmt::format("no tensor has the storage '{}', or it is there twice", (*text)->text));
      const Storage& storage = *found->second;
      const auto count = in_.number<int64_t>("the size of a storage");
      if (count != storage.count)
        in_.fail("the size of a storage", fmt::format("{} elements, where the pickle has {}", count, storage.count));
      elements.add(*text, in_.take(static_cast<uint64_t>(storage.bytes()), "the bytes of a storage"));
      named.erase(found);
    }
    if (in_.left() != 0) in_.fail("the last storage", fmt::format("{} bytes follow", in_.left()));
  }

  const FileBytes& file_;
  ByteCursor in_;
  std::unique_ptr<Heap> heap_ = std::make_unique<Heap>();
  Place place_;  ///< of the pickle that is read
};

bool begins_with(std::span<const std::byte> bytes, size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

nn::state::StateDict load(const FileBytes& file) {
  const std::unique_ptr<formats::Reader> reader = open_torch(file);
  nn::state::StateDict out;
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    const std::string& name = reader->tensors()[i].name;
    if (!out.emplace(name, reader->tensor(i)).second) throw FormatError(fmt::format("{}: two tensors are named '{}'", file.name, name));
  }
  return out;
}

}  // namespace

bool is_torch_stream(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  constexpr std::string_view number = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
  constexpr size_t protocol = 2, frame = 9;  // bytes of what comes before; frames are of protocol 4 and later
  return begins_with(bytes, protocol, number) || begins_with(bytes, protocol + frame, number) ||
         begins_with(bytes, 0, fmt::format("L{}L", stream_magic));
}

std::unique_ptr<formats::Reader> open_torch(const FileBytes& file) {
  constexpr size_t tar_magic_at = 257;
  if (begins_with(file.bytes, 0, "PK")) return Archive(file).read();
  if (begins_with(file.bytes, tar_magic_at, "ustar"))
    throw FormatError(
        fmt::format("{}: the .tar format of PyTorch before 0.1.12, which is not read; load it there and save it again", file.name));
  if (!begins_with(file.bytes, 0, "\x80") && !begins_with(file.bytes, 0, "L"))
    throw FormatError(fmt::format("{}: no PyTorch file: neither a zip archive nor a pickle", file.name));
  return Stream(file).read();
}

}  // namespace tinygrad::frontend

namespace tinygrad::nn::state {

StateDict torch_load(const std::string& path) { return frontend::load(frontend::FileBytes::map(path)); }
StateDict torch_load(const Tensor& bytes) { return frontend::load(frontend::FileBytes::of(bytes)); }

}  // namespace tinygrad::nn::state

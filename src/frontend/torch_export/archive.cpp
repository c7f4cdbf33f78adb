#include "frontend/torch_export/archive.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "frontend/torch/strided.h"
#include "frontend/torch/torch.h"

namespace tinygrad::torch_export {

namespace {

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

bool is_pt2(const std::vector<archive::ZipFile>& members) {
  return std::ranges::any_of(members, [](const archive::ZipFile& m) { return last_part(m.name) == "archive_format"; });
}

Archive::Archive(frontend::FileBytes file) : file_(std::move(file)), members_(archive::read_zip(file_.bytes, file_.name)) {
  const auto format = std::ranges::find_if(members_, [](const archive::ZipFile& m) { return last_part(m.name) == "archive_format"; });
  if (format == members_.end()) fail("no archive of torch.export: it has no 'archive_format'");
  root_ = format->name.substr(0, format->name.size() - last_part(format->name).size());
  for (const archive::ZipFile& m : members_)
    if (m.name.starts_with(root_)) by_name_.emplace(m.name.substr(root_.size()), &m);
  if (text("archive_format") != "pt2") fail("'archive_format' is not 'pt2'");
  if (const std::string version = text("archive_version"); version != "0")
    fail(fmt::format("'archive_version' is '{}', expects 0", version));
  if (find("byteorder") && text("byteorder") != "little") fail("'byteorder' is not little");
  constexpr std::string_view models = "models/", json = ".json", compiled = "data/aotinductor/";
  for (const auto& [name, member] : by_name_) {
    if (name.starts_with(models) && name.ends_with(json))
      models_.push_back(name.substr(models.size(), name.size() - models.size() - json.size()));
    if (name.starts_with(compiled)) compiled_.push_back(name);
  }
}

void Archive::fail(std::string_view why) const { throw FormatError(fmt::format("{}: {}", file_.name, why)); }

const archive::ZipFile* Archive::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}
const archive::ZipFile& Archive::expect(const std::string& name) const {
  const archive::ZipFile* found = find(name);
  if (!found) fail(fmt::format("the archive has no '{}'", name));
  return *found;
}

std::span<std::byte> Archive::bytes_of(const archive::ZipFile& member) const {
  if (!member.is_deflated) {
    if (member.packed.empty()) return {};
    return file_.bytes.subspan(size_t(member.packed.data() - file_.bytes.data()), member.packed.size());
  }
  auto [place, is_new] = unpacked_.try_emplace(&member);
  if (is_new) place->second = member.unpack(file_.name);
  return place->second;
}
std::string Archive::text(const std::string& name) const {
  const std::span<const std::byte> bytes = bytes_of(expect(name));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ExportedProgram Archive::program(const std::string& model) const {
  const std::string name = fmt::format("models/{}.json", model);
  const std::string where = fmt::format("{}: '{}'", file_.name, name);
  const Json document = parse_json(text(name), where);
  return parse_program(Field(document, where + ": "));
}

void Archive::add_payloads(const std::string& folder, const std::string& model, const std::string& kind, std::vector<Payload>& out) const {
  const std::string name = fmt::format("{}{}_{}_config.json", folder, model, kind);
  if (!find(name) && find(fmt::format("{}{}.pt", folder, model)))
    fail(fmt::format("'{}{}.pt': tensors in the format of PyTorch before 2.9; export the program again", folder, model));
  if (!find(name) && kind == "constants") return;
  const std::string where = fmt::format("{}: '{}'", file_.name, name);
  const Json document = parse_json(text(name), where);
  for (const auto& [key, entry] : Field(document, where + ": ").at("config").entries()) {
    entry.allow({"path_name", "is_param", "use_pickle", "tensor_meta"});
    const std::string path = entry.at("path_name").text();
    if (!entry.has("tensor_meta")) entry.fail("an object of a custom class, which is not supported");
    Payload payload{.name = key,
                    .path = folder + path,
                    .is_param = entry.at("is_param").boolean(),
                    .is_pickled = entry.at("use_pickle").boolean(),
                    .meta = parse_tensor_meta(entry.at("tensor_meta"))};
    for (const auto* sizes : {&payload.meta.sizes, &payload.meta.strides})
      if (!std::ranges::all_of(*sizes, &Expression::is_number)) entry.fail("a tensor of a size that is not known");
    if (!payload.meta.offset.is_number()) entry.fail("a tensor at an offset that is not known");
    expect(payload.path);
    out.push_back(std::move(payload));
  }
}
std::vector<Payload> Archive::payloads(const std::string& model) const {
  std::vector<Payload> out;
  add_payloads("data/weights/", model, "weights", out);
  add_payloads("data/constants/", model, "constants", out);
  return out;
}

Tensor Archive::vector_of(const archive::ZipFile& member, DType dtype) const {
  auto [place, is_new] = vectors_.try_emplace({&member, dtype});
  if (is_new) {
    const std::span<std::byte> bytes = bytes_of(member);
    const auto count = int64_t(bytes.size() / itemsize(dtype));
    const auto used = bytes.first(size_t(count) * itemsize(dtype));
    // What is unpacked lives in this archive alone.
    place->second =
        member.is_deflated ? Tensor(used, dtype, {count}, {.device = "CPU"}) : frontend::tensor_over(file_, used, dtype, {count});
  }
  return place->second;
}

Tensor Archive::tensor(const Payload& payload) const {
  const TensorMeta& meta = payload.meta;
  if (!meta.dtype || !meta.is_strided) fail(fmt::format("'{}' is a tensor of {}, which is not supported", payload.name, meta.type));
  const archive::ZipFile& member = expect(payload.path);
  Sizes sizes, strides;
  for (const Expression& e : meta.sizes) sizes.push_back(e.number());
  for (const Expression& e : meta.strides) strides.push_back(e.number());
  if (payload.is_pickled) {
    const std::span<std::byte> bytes = bytes_of(member);
    const frontend::FileBytes inner{file_.owner, bytes, fmt::format("{}: '{}'", file_.name, payload.path)};
    const std::unique_ptr<formats::Reader> reader = frontend::open_torch(inner);
    if (reader->tensors().size() != 1) fail(fmt::format("'{}' holds {} tensors, expects one", payload.path, reader->tensors().size()));
    const Tensor out = reader->tensor(0);
    if (out.dtype() != *meta.dtype || out.shape() != sizes)
      fail(fmt::format("'{}' is another tensor than '{}'", payload.path, payload.name));
    return member.is_deflated ? out.clone().realize() : out;
  }
  if (meta.offset.number() < 0 || std::ranges::any_of(strides, [](int64_t s) { return s < 0; }))
    fail(fmt::format("'{}' has a negative stride", payload.name));
  int64_t count = 1;
  for (int64_t s : sizes)
    if (__builtin_mul_overflow(count, s, &count)) fail(fmt::format("'{}' has sizes beyond 64 bits", payload.name));
  const std::optional<int64_t> end = frontend::torch::strided_end(meta.offset.number(), sizes, strides);
  if (!end || *end > int64_t(member.size / itemsize(*meta.dtype)))
    fail(fmt::format("'{}' reaches beyond the {} bytes of '{}'", payload.name, member.size, payload.path));
  return frontend::torch::strided(vector_of(member, *meta.dtype), meta.offset.number(), sizes, strides);
}

formats::TensorInfo Archive::describe(const Payload& payload) const {
  formats::TensorInfo out{
      .name = payload.name, .type = payload.meta.type, .dtype = payload.meta.is_strided ? payload.meta.dtype : std::nullopt};
  int64_t count = 1;
  for (const Expression& e : payload.meta.sizes) {
    out.shape.push_back(e.number());
    if (__builtin_mul_overflow(count, e.number(), &count)) fail(fmt::format("'{}' has sizes beyond 64 bits", payload.name));
  }
  const int64_t size = payload.meta.dtype ? int64_t(itemsize(*payload.meta.dtype)) : 0;
  if (__builtin_mul_overflow(count, size, &out.bytes)) fail(fmt::format("'{}' has sizes beyond 64 bits", payload.name));
  const archive::ZipFile& member = expect(payload.path);
  if (!payload.is_pickled && !member.is_deflated && payload.meta.is_plain())
    out.offset = member.packed.empty() ? -1 : int64_t(reinterpret_cast<const std::byte*>(member.packed.data()) - file_.bytes.data());
  return out;
}

}  // namespace tinygrad::torch_export

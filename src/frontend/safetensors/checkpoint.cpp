// Checkpoints: folders of safetensors files, written by all ranks together.
#include <tinygrad/checkpoint.h>

#include <fcntl.h>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "base/file.h"
#include "base/options.h"
#include "comm/group.h"
#include "device/buffer.h"
#include "device/device.h"
#include "frontend/safetensors/header.h"
#include "frontend/safetensors/write.h"
#include "tensor/memory.h"

namespace tinygrad::nn::state {

namespace {

namespace fs = std::filesystem;
using Named = std::vector<std::pair<std::string, Tensor>>;

constexpr std::string_view prefix = "step-", unfinished = ".partial", index_name = "model.safetensors.index.json";

/// The step of a folder's name; nothing for another name.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix)) return {};
  int64_t step = 0;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [at, error] = std::from_chars(begin, end, step);
  return error == std::errc() && at == end && step >= 0 ? std::optional(step) : std::nullopt;
}

fs::path folder_of(const std::string& folder, int64_t step) { return fs::path(folder) / fmt::format("{}{:08}", prefix, step); }

/// Those that are complete, from the first to the last.
std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (const auto step = step_of(at->path().filename().string()); step && fs::exists(folder_of(folder, *step) / index_name))
      out.push_back(*step);
  if (error && fs::exists(folder)) throw IoError(fmt::format("{}: {}", folder, error.message()));
  std::ranges::sort(out);
  return out;
}

/// Which tensors each rank writes: the largest first, to whoever has least.
std::vector<Named> parts_of(const StateDict& tensors, int ranks) {
  Named by_size(tensors.begin(), tensors.end());
  std::ranges::stable_sort(by_size, [](const auto& a, const auto& b) { return a.second.nbytes() > b.second.nbytes(); });
  std::vector<Named> parts(static_cast<size_t>(ranks));
  std::vector<int64_t> bytes(parts.size());
  for (auto& entry : by_size) {
    const auto least = static_cast<size_t>(std::ranges::min_element(bytes) - bytes.begin());
    bytes[least] += entry.second.nbytes();
    parts[least].push_back(std::move(entry));
  }
  return parts;
}

std::string file_name(size_t rank, size_t ranks) { return fmt::format("model-{:05}-of-{:05}.safetensors", rank + 1, ranks); }

/// Does something on this rank. If that fails on one, all throw what it was.
class Together {
 public:
  explicit Together(std::string what) : what_(std::move(what)) {}

  template <class F>
  void operator()(F&& f) const {
    std::string problem(most_bytes, '\0');
    std::exception_ptr own;
    try {
      f();
    } catch (const std::exception& e) {
      own = std::current_exception();
      problem = e.what();
      if (problem.empty()) problem = "it failed";
      problem.resize(std::min(problem.size(), most_bytes - 1));
      while (!problem.empty() && (problem.back() & 0xC0) == 0x80) problem.pop_back();  // no parts of characters
      if (!problem.empty() && problem.back() < 0) problem.pop_back();
      problem.resize(most_bytes);
    }
    const auto all = comm::said_by_all(std::span(problem), std::vector<size_t>(size_t(comm::group().size()), most_bytes), comm::about_files,
                                       what_, current_options().comm_timeout);
    if (own) std::rethrow_exception(own);
    for (size_t r = 0; r < all.size(); ++r)
      if (all[r][0] != '\0') throw IoError(fmt::format("{}: rank {} on {}: {}", what_, r, comm::group().host(int(r)), all[r].data()));
  }

 private:
  static constexpr size_t most_bytes = 512;
  const std::string what_;
};

/// What fails in the file system, as an IoError.
template <class F>
void change_files(F&& f) {
  try {
    f();
  } catch (const fs::filesystem_error& e) {
    throw IoError(fmt::format("{}: {}", e.path1().string(), e.code().message()));
  }
}

/// What a rank has on its own device, for itself: read as any tensor of one rank it would go to all of them.
Tensor own(const Tensor& t) {
  if (comm::group().size() == 1) return t;
  if (t.numel() == 0) return Tensor::zeros(t.shape(), {.dtype = t.dtype(), .device = "CPU"});
  Buffer& memory = buffer_of(tensor::whole_buffer(t.uop()));
  memory.check_readable();
  memory.device().wait();
  return Tensor(std::span(memory.data(), memory.nbytes()), t.dtype(), t.shape(), {.device = "CPU"});
}

void write_file(const Named& part, const fs::path& path, const std::map<std::string, std::string>& metadata) {
  std::vector<frontend::OutgoingTensor> entries;
  for (const auto& [name, tensor] : part) entries.push_back({name, tensor.dtype(), tensor.shape()});
  frontend::write_safetensors(entries, path.string(), metadata, [&](size_t i) { return own(part[i].second); });
}

void write_index(const fs::path& folder, const std::vector<Named>& parts, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json;
  json["metadata"] = metadata;
  nlohmann::ordered_json& map = json["weight_map"] = nlohmann::ordered_json::object();
  for (size_t r = 0; r < parts.size(); ++r)
    for (const auto& [name, tensor] : parts[r]) map[name] = file_name(r, parts.size());
  write_file_atomic((folder / index_name).string(), json.dump(1));
}

void check(int64_t step, const StateDict& tensors, const CheckpointOptions& options) {
  if (step < 0) throw ValueError(fmt::format("save_checkpoint: step {}, expects at least 0", step));
  if (options.keep < 1) throw ValueError(fmt::format("save_checkpoint: keep {}, expects at least 1", options.keep));
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw ValueError("save_checkpoint: no tensor can be named __metadata__");
    if (!frontend::safetensors_name(tensor.dtype()))
      throw DTypeError(fmt::format("save_checkpoint: '{}' is {}, which safetensors lacks; cast it", name, tensor.to_string()));
  }
}

/// Gives a complete folder its name, also where another one has it: whoever looks finds one of them.
void publish(const fs::path& partial, const fs::path& complete) {
  if (fs::exists(complete) && ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, complete.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(partial);
    return;
  }
  fs::remove_all(complete);  // file systems that cannot exchange names
  fs::rename(partial, complete);
}

/// The oldest complete ones but some, and what was never completed.
void remove_old(const std::string& folder, int64_t step, int keep) {
  const std::vector<int64_t> all = steps_in(folder);
  for (size_t i = 0; i + size_t(keep) < all.size(); ++i)
    if (all[i] != step) fs::remove_all(folder_of(folder, all[i]));
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string();
        name.ends_with(unfinished) && step_of(name.substr(0, name.size() - unfinished.size())))
      left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove_all(path);
}

}  // namespace

void save_checkpoint(const std::string& folder, int64_t step, const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                     const CheckpointOptions& options) {
  check(step, tensors, options);
  const auto rank = size_t(comm::group().rank());
  const fs::path complete = folder_of(folder, step), partial = complete.string() + std::string(unfinished);
  const Together together("saving a checkpoint");
  together([&] {
    if (rank != 0) return;
    change_files([&] {
      fs::remove_all(partial);
      fs::create_directories(partial);
    });
  });

  std::vector<Named> parts = parts_of(tensors, comm::group().size());
  std::vector<Tensor> moved;
  for (size_t r = 0; r < parts.size(); ++r)
    for (auto& [name, tensor] : parts[r]) {
      tensor = parts.size() > 1 ? tensor.detach().to(fmt::format("CPU@{}", r)).clone() : tensor.detach().to("CPU");
      moved.push_back(tensor);
    }
  try {
    Tensor::realize(moved);
    together([&] {
      if (!parts[rank].empty() || rank == 0) write_file(parts[rank], partial / file_name(rank, parts.size()), metadata);
    });
    together([&] {
      if (rank != 0) return;
      write_index(partial, parts, metadata);
      change_files([&] {
        publish(partial, complete);
        remove_old(folder, step, options.keep);
      });
    });
  } catch (...) {
    std::error_code ignored;
    if (rank == 0) fs::remove_all(partial, ignored);
    throw;
  }
}

std::optional<Checkpoint> load_checkpoint(const std::string& folder) {
  int64_t last = -1;
  const Together together("loading a checkpoint");
  together([&] {
    if (const std::vector<int64_t> steps = steps_in(folder); !steps.empty()) last = steps.back();
  });
  const auto found = comm::said_by_all(std::span(&last, 1), std::vector<size_t>(size_t(comm::group().size()), 1), comm::about_files,
                                       "loading a checkpoint", current_options().comm_timeout);
  for (size_t r = 1; r < found.size(); ++r)
    if (found[r] != found[0])
      throw CommError(fmt::format("{}: rank 0 finds step {} there, and rank {} step {} (-1: none); all need the same folder", folder,
                                  found[0][0], r, found[r][0]));
  if (last < 0) return {};
  Checkpoint out{.step = last, .path = folder_of(folder, last).string()};
  together([&] {
    const std::string index = (fs::path(out.path) / index_name).string();
    const auto reader = formats::open(index);
    for (size_t i = 0; i < reader->tensors().size(); ++i) out.tensors.emplace(reader->tensors()[i].name, reader->tensor(i));
    for (const auto& [key, value] : reader->metadata())
      if (const auto* text = std::get_if<std::string>(&value.value)) out.metadata.emplace(key, *text);
  });
  return out;
}

}  // namespace tinygrad::nn::state

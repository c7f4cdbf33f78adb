#include "compiler/image/image.h"

#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "base/disk_cache.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/profile.h"
#include "base/subprocess.h"
#include "base/temporary_folder.h"
#include "compiler/clang/clang.h"
#include "compiler/image/sources.h"

namespace tinygrad::compiler {
namespace {

constexpr std::string_view kVersion = "image-1";

// One segment, without alignment to pages: the image is copied. What is left of relocations is an error.
constexpr const char* kImageFlags[] = {"-pie", "--no-dynamic-linker", "-z", "text", "-z", "norelro", "-N", "--gc-sections"};

bool is_hexagon(const Target& target) { return std::string_view(processor_names(target.arch.str()).triple).starts_with("hexagon"); }

/// The first version of an LLVM tool that is in PATH; empty if there is none.
std::string find_tool(std::string_view name) {
  for (const std::string_view suffix : {"-19", "", "-20", "-21", "-18"})
    if (std::string found = find_program(fmt::format("{}{}", name, suffix)); !found.empty()) return found;
  return {};
}

std::string run_tool(std::vector<std::string> command) {
  ProcessResult result = run_process(command, "");
  if (result.exit_code != 0) throw CompileError(fmt::format("{} failed ({}): {}", command[0], result.exit_code, result.err));
  return std::move(result.out);
}

std::string linked(const std::vector<std::string>& objects, const std::vector<std::string>& flags) {
  ContentHasher hasher;
  hasher.add(kVersion).add(fmt::format("{}", fmt::join(flags, " ")));
  for (const std::string& o : objects) hasher.add(o);
  const std::string key = hasher.finish().to_hex();
  if (std::optional<std::string> known = disk_cache().get("linked_image", key)) return std::move(*known);
  ProfileSpan span("lld", "compile");
  const TemporaryFolder folder;
  std::vector<std::string> command{find_tool("ld.lld")};
  if (command[0].empty()) throw CompileError(image_missing());
  command.insert(command.end(), flags.begin(), flags.end());
  for (size_t i = 0; i < objects.size(); ++i) command.push_back(folder.put(fmt::format("{}.o", i), objects[i]));
  command.insert(command.end(), {"-o", folder.file("image")});
  run_tool(command);
  std::string image = read_file(folder.file("image"));
  disk_cache().put("linked_image", key, image);
  return image;
}

}  // namespace

std::string image_missing() {
  std::string missing = clang_missing();
  if (missing.empty() && find_tool("ld.lld").empty()) missing = "lld: no ld.lld in PATH. Install it (`apt-get install lld-19`)";
  return missing;
}

std::string link_image(const std::string& object, std::string_view entry, const Target& target) {
  std::vector<std::string> objects{object, compile_c(memory_functions(), target)};
  if (is_hexagon(target)) objects.push_back(compile_c(hexagon_functions(), target));
  std::vector<std::string> flags(std::begin(kImageFlags), std::end(kImageFlags));
  flags.insert(flags.end(), {"-e", std::string(entry)});
  return linked(objects, flags);
}

std::string compile_runner(const Target& target) { return linked({compile_c(runner_program(), target)}, {"-static"}); }

}  // namespace tinygrad::compiler

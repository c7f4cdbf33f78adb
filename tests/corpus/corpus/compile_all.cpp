#include "corpus/compile_all.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <tinygrad/compile_report.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "corpus/workloads.h"

namespace tinygrad::test {
namespace {

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%' || c == '$'; }

/// Batches of sources, as indices: those of many bytes first, which take long.
std::vector<std::vector<size_t>> batches_of(std::span<const std::string> sources, size_t most_bytes) {
  struct Batch {
    std::vector<size_t> members;
    size_t bytes = 0;
    std::set<std::string> names;
  };
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return sources[i].size(); });
  std::vector<Batch> batches;
  for (size_t i : order) {
    const size_t bytes = sources[i].size();
    const std::string name = kernel_in(sources[i]);
    auto fits = std::ranges::find_if(batches, [&](const Batch& b) { return b.bytes + bytes <= most_bytes && !b.names.contains(name); });
    if (fits == batches.end()) fits = batches.emplace(fits);
    fits->members.push_back(i);
    fits->bytes += bytes;
    fits->names.insert(name);
  }
  std::vector<std::vector<size_t>> out;
  for (Batch& b : batches) out.push_back(std::move(b.members));
  return out;
}

}  // namespace

std::string structure_of(std::string_view source) {
  if (source.starts_with("//")) source.remove_prefix(source.find('\n'));
  std::string out;
  while (!source.empty()) {
    const size_t length = size_t(std::ranges::find_if_not(source, is_of_word) - source.begin());
    const std::string_view word = source.substr(0, std::max<size_t>(length, 1));
    source.remove_prefix(word.size());
    const bool number = std::isdigit(static_cast<unsigned char>(word[0]));
    out += number ? "0" : word.starts_with("kernel_") ? "kernel" : word;
  }
  return out;
}

std::string kernel_in(const std::string& source) {
  const size_t begin = source.find("kernel_");
  return source.substr(begin, source.find('(', begin) - begin);
}

std::string as_one_text(std::span<const std::string> sources) {
  if (sources.size() == 1) return sources[0];
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i) text += fmt::format("namespace alone{} {{\n{}}}\n", i, sources[i]);
  return text;
}

std::vector<std::string> rendered_corpus(const std::string& renderer, const std::string& arch) {
  std::set<std::string> known;
  std::vector<std::string> out;
  for (const Corpus& c : corpus()) {
    const Context context{{.allow_tf32 = c.allow_tf32, .default_float = c.default_float, .dev = fmt::format("NULL:{}:{}", renderer, arch)}};
    for (KernelSource& k : compile_report(c.make().results, {.sources = true}).sources)
      if (known.insert(structure_of(k.source)).second) out.push_back(std::move(k.source));
  }
  return out;
}

Compiled compile_all(std::span<const std::string> sources, size_t most_bytes,
                     const std::function<void(std::span<const std::string> sources)>& compile) {
  Compiled result{.kernels = sources.size()};
  std::mutex mutex;
  const auto compiles = [&](std::span<const std::string> some, bool last_word) {
    try {
      compile(some);
      return true;
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      if (last_word && result.failed++ == 0) result.first_failure = e.what();
      return false;
    }
  };
  const auto batches = batches_of(sources, most_bytes);
  task_pool().parallel_for(batches.size(), [&](size_t i) {
    std::vector<std::string> batch;
    for (size_t member : batches[i]) batch.push_back(sources[member]);
    if (compiles(batch, batch.size() == 1) || batch.size() == 1) return;
    for (const std::string& source : batch) compiles({&source, 1}, true);
  });
  return result;
}

}  // namespace tinygrad::test

#include "corpus/compile_all.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "corpus/workloads.h"

namespace tinygrad::test {
namespace {

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%' || c == '$'; }

/// Batches of kernels, as indices: those of many bytes first, which take long.
std::vector<std::vector<size_t>> batches_of(std::span<const KernelSource> kernels, size_t most_bytes) {
  struct Batch {
    std::vector<size_t> members;
    size_t bytes = 0;
    std::set<std::string> names;
  };
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return kernels[i].source.size(); });
  std::vector<Batch> batches;
  for (size_t i : order) {
    const size_t bytes = kernels[i].source.size();
    const std::string name = kernel_symbol(kernels[i].name);
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

std::string as_one_text(std::span<const KernelSource> kernels) {
  if (kernels.size() == 1) return kernels[0].source;
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) text += fmt::format("namespace alone{} {{\n{}}}\n", i, kernels[i].source);
  return text;
}

std::vector<KernelSource> rendered_corpus(const std::string& renderer, const std::string& arch) {
  std::set<std::string> known;
  std::vector<KernelSource> out;
  for (const Corpus& c : corpus()) {
    const Context context{{.allow_tf32 = c.allow_tf32, .default_float = c.default_float, .dev = fmt::format("NULL:{}:{}", renderer, arch)}};
    for (KernelSource& k : compile_report(c.make().results, {.sources = true}).sources)
      if (known.insert(structure_of(k.source)).second) out.push_back(std::move(k));
  }
  return out;
}

Compiled compile_all(std::span<const KernelSource> kernels, size_t most_bytes,
                     const std::function<void(std::span<const KernelSource> kernels)>& compile) {
  Compiled result{.kernels = kernels.size()};
  std::mutex mutex;
  const auto compiles = [&](std::span<const KernelSource> some, bool last_word) {
    try {
      compile(some);
      return true;
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      if (last_word && result.failed++ == 0) result.first_failure = e.what();
      return false;
    }
  };
  const auto batches = batches_of(kernels, most_bytes);
  task_pool().parallel_for(batches.size(), [&](size_t i) {
    std::vector<KernelSource> batch;
    for (size_t member : batches[i]) batch.push_back(kernels[member]);
    if (compiles(batch, batch.size() == 1) || batch.size() == 1) return;
    for (const KernelSource& kernel : batch) compiles({&kernel, 1}, true);
  });
  return result;
}

}  // namespace tinygrad::test

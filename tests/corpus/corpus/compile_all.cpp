#include "corpus/compile_all.h"

#include <mutex>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "corpus/workloads.h"

namespace tinygrad::test {

Compiled compile_all(const std::string& renderer, const std::string& arch, const std::function<void(const std::string& source)>& compile,
                     std::string_view tensor_core) {
  std::set<std::string> sources;
  for (const Corpus& c : corpus()) {
    const Context context{{.default_float = c.default_float, .dev = fmt::format("NULL:{}:{}", renderer, arch)}};
    for (std::string& source : c.sources()) sources.insert(std::move(source));
  }
  const std::vector<std::string> all(sources.begin(), sources.end());
  Compiled result{.kernels = all.size()};
  for (const std::string& s : all) result.with_tensor_cores += s.find(tensor_core) != s.npos;
  std::mutex mutex;
  const auto options = Context::current();
  task_pool().parallel_for(all.size(), [&](size_t i) {
    const Context as_outside(options);
    try {
      compile(all[i]);
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      if (result.failed++ == 0) result.first_failure = e.what();
    }
  });
  return result;
}

}  // namespace tinygrad::test

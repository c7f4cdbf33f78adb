#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "renderer/cstyle/prelude.h"

namespace tinygrad::renderer::cstyle {
namespace {

constexpr Definition kDefinitions[] = {
    {"llong", "typedef long long llong;"},
    {"ullong", "typedef unsigned long long ullong;"},
    {"less", "#define less(a, b) (__builtin_HEXAGON_F2_sfcmpgt(b, a) & 1)"},
    {"less64", "#define less64(a, b) (__builtin_HEXAGON_F2_dfcmpgt(b, a) & 1)"},
    {"LONG_MIN", "#define LONG_MIN (-0x7fffffffffffffffll - 1)"},
};

/// These, and what else C has.
std::span<const Definition> definitions() {
  static const auto& all = *new std::vector<Definition>([] {
    std::vector<Definition> out(std::begin(kDefinitions), std::end(kDefinitions));
    for (const Definition& d : clang_dialect().definitions)
      if (std::ranges::find(kDefinitions, d.word, &Definition::word) == std::end(kDefinitions)) out.push_back(d);
    return out;
  }());
  return all;
}

/// LLVM makes `sfmax` of `a < b ? b : a`, and `!(a == inf)` of `a < inf`, which are wrong for NaNs.
Expr less(Prelude& prelude, DType dtype, const Expr& a, const Expr& b) {
  return {fmt::format("{}({}, {})", prelude.word(dtype == DType::float64 ? "less64" : "less"), a.text, b.text)};
}

std::string kernel(const KernelText& text) { return cpu_kernel(text, "long long"); }

}  // namespace

const Dialect& hexagon_dialect() {
  static const Dialect dialect = [] {
    Dialect d = clang_dialect();
    d.name = "C for Hexagon";
    const auto rename = [&](DType dtype, std::string_view type, std::string_view suffix) {
      d.types[static_cast<size_t>(dtype)] = type;
      d.literal_suffixes[static_cast<size_t>(dtype)] = suffix;
    };
    rename(DType::int64, "llong", "ll");
    rename(DType::uint64, "ullong", "ull");
    d.definitions = definitions();
    d.less = less;
    d.kernel = kernel;
    return d;
  }();
  return dialect;
}

}  // namespace tinygrad::renderer::cstyle

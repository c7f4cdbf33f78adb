#include "renderer/llvmir/aliases.h"

#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tinygrad::renderer::llvmir {

Aliases::Aliases(const KernelInfo& info, int32_t places) {
  for (const KernelParam& p : info.params)
    if (p.alias != 0) scopes_[p.alias] = 0;
  for (int32_t i = 0; i < places; ++i) scopes_[number_of_place(i)] = 0;
  int next = 2;  // !0 is the empty node, !1 the domain
  for (auto& [id, scope] : scopes_) {
    scope = next;
    next += 3;  // the scope, the list of it alone, the list of the others
  }
  for (const KernelParam& p : info.params)
    if (p.alias != 0) by_number_[p.slot] = scopes_[p.alias];
  for (int32_t i = 0; i < places; ++i) by_number_[number_of_place(i)] = scopes_[number_of_place(i)];
}

std::string Aliases::suffix(int32_t number) const {
  const auto at = by_number_.find(number);
  if (scopes_.size() < 2 || at == by_number_.end()) return {};
  return fmt::format(FMT_COMPILE(", !alias.scope !{}, !noalias !{}"), at->second + 1, at->second + 2);
}

std::string Aliases::metadata() const {
  std::string text = "!0 = !{}\n";
  if (scopes_.size() < 2) return "\n" + text;
  text += "!1 = distinct !{!1, !\"kernel\"}\n";
  for (const auto& [id, scope] : scopes_) {
    std::vector<std::string> others;
    for (const auto& [other_id, other] : scopes_)
      if (other != scope) others.push_back(fmt::format("!{}", other));
    text += fmt::format("!{} = distinct !{{!{}, !1, !\"class {}\"}}\n!{} = !{{!{}}}\n!{} = !{{{}}}\n", scope, scope, id, scope + 1, scope,
                        scope + 2, fmt::join(others, ", "));
  }
  return "\n" + text;
}

}  // namespace tinygrad::renderer::llvmir

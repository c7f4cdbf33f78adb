#include "renderer/cstyle/prelude.h"

#include <fmt/format.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::cstyle {

void Prelude::add(std::vector<std::string>& to, std::string text) {
  if (known_.insert(text).second) to.push_back(std::move(text));
}

std::string Prelude::type(DType dtype, int lanes) {
  const std::string_view scalar = dialect_.types[static_cast<int>(dtype)];
  if (scalar.empty()) throw InternalError(fmt::format("{}: {} must be lowered before rendering", dialect_.name, repr(dtype)));
  for (const Definition& d : dialect_.definitions)
    if (d.word == scalar) add(types_, std::string(d.text));
  if (lanes == 1) return std::string(scalar);
  add(types_, dialect_.vector_type(scalar, lanes, static_cast<int>(itemsize(dtype))));
  return fmt::format("{}{}", scalar, lanes);
}

std::string_view Prelude::word(std::string_view word) {
  for (const Definition& d : dialect_.definitions) {
    if (d.word != word) continue;
    add(words_, std::string(d.text));
    return d.spelled.empty() ? word : d.spelled;
  }
  return word;
}

Expr Prelude::literal(const Scalar& value) {
  const auto dtype = static_cast<size_t>(value.dtype());
  Expr text = cstyle::literal(value, dialect_.literal_suffixes[dtype]);
  for (const std::string_view w : {"INFINITY", "NAN"})
    if (text.text.ends_with(w)) text.text.replace(text.text.size() - w.size(), w.size(), word(w));
  return dialect_.literal_prefixes[dtype].empty() ? text : prefixed(dialect_.literal_prefixes[dtype], text);
}

std::string Prelude::helper_name(std::string_view name, std::string_view type) const {
  return dialect_.overloads ? std::string(name) : fmt::format("{}_{}", name, type);
}

void Prelude::function(const std::string& text) { add(functions_, fmt::format("{} {}", word(dialect_.helper), text)); }

std::string Prelude::text() const {
  std::string out(dialect_.preamble);
  for (const auto* part : {&types_, &words_, &functions_}) {
    for (const std::string& line : *part)
      if (!line.empty()) out += line + "\n";
  }
  if (out.size() > dialect_.preamble.size()) out += "\n";
  return out;
}

}  // namespace tinygrad::renderer::cstyle

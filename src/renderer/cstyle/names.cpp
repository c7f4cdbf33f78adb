#include "renderer/cstyle/names.h"

#include <algorithm>

namespace tinygrad::renderer::cstyle {
namespace {

/// Words that a user's variable may be called and that mean something in a language of the family or in the text around it.
constexpr std::string_view kWords[] = {
    "auto",        "bool",      "break",    "case",     "char",          "const",    "constexpr", "continue", "default",     "do",
    "double",      "else",      "enum",     "extern",   "false",         "float",    "for",       "goto",     "half",        "if",
    "inline",      "int",       "llong",    "long",     "nullptr",       "register", "restrict",  "return",   "run",         "short",
    "signed",      "sizeof",    "static",   "struct",   "switch",        "true",     "typedef",   "typeof",   "uchar",       "uint",
    "ullong",      "ulong",     "union",    "unsigned", "ushort",        "void",     "volatile",  "while",    "begin",       "end",
    "bufs",        "vars",      "abs",      "max",      "sqrt",          "trunc",    "rint",      "signbit",  "convert",     "shuffle",
    "quotient",    "remainder", "gather",   "scatter",  "inlined",       "load",     "store",     "maximum",  "at_least",    "shift_left",
    "shift_right", "and",       "asm",      "barrier",  "bfloat",        "bitand",   "bitor",     "catch",    "char8_t",     "class",
    "compl",       "concept",   "constant", "decltype", "delete",        "device",   "explicit",  "export",   "friend",      "global",
    "kernel",      "local",     "metal",    "mutable",  "namespace",     "new",      "noexcept",  "not",      "operator",    "or",
    "private",     "protected", "public",   "requires", "static_assert", "template", "this",      "thread",   "threadgroup", "throw",
    "try",         "typeid",    "typename", "using",    "variables",     "virtual",  "xor",       "less",     "less_lanes",
};

/// Also "float8", "as_int", "to_long".
bool is_word(std::string_view name) {
  const std::string_view letters = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return letters.starts_with("as_") || letters.starts_with("to_") || std::ranges::find(kWords, letters) != std::end(kWords);
}

std::string identifier(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    if (!plain) c = '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
  return out;
}

}  // namespace

std::string Names::fresh(std::string_view hint) {
  std::string base = identifier(hint);
  if (is_word(base)) base += '_';
  return taken_.insert(base).second ? base : numbered(base);
}

std::string Names::numbered(std::string_view hint) {
  for (int& number = next_[std::string(hint)];;) {
    std::string name = std::string(hint) + std::to_string(number++);
    if (taken_.insert(name).second) return name;
  }
}

std::string Names::fresh_with_number(std::string_view hint, int number) {
  std::string name = std::string(hint) + std::to_string(number);
  return taken_.insert(name).second ? name : numbered(name + "_");
}

}  // namespace tinygrad::renderer::cstyle

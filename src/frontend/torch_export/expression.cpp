#include "frontend/torch_export/expression.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <tinygrad/errors.h>

namespace tinygrad::torch_export {

struct Expression::Parser {
  std::string_view text;
  const std::string& path;
  size_t at = 0;

  [[noreturn]] void fail(std::string_view why) const { throw FormatError(fmt::format("{}: '{}': {} at {}", path, text, why, at)); }
  void skip() {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  bool take(char ch) {
    skip();
    if (at >= text.size() || text[at] != ch) return false;
    ++at;
    return true;
  }
  std::string_view word() {
    skip();
    const size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '-' || text[at] == '.'))
      ++at;
    if (at == begin) fail("a name is expected");
    return text.substr(begin, at - begin);
  }
  std::string quoted() {
    skip();
    const char quote = at < text.size() ? text[at] : ' ';
    const size_t end = quote == '\'' || quote == '"' ? text.find(quote, at + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("a name in quotes is expected");
    const std::string out(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return out;
  }
  /// name=value, which says what kind of symbol it is.
  void skip_rest() {
    while (!take(')')) {
      if (!take(',')) fail("')' is expected");
      word();
      if (!take('=')) fail("'=' is expected");
      word();
    }
  }
  Expression parse(int depth) {
    constexpr int most = 100;
    if (depth > most) fail("it nests too deep");
    const std::string_view name = word();
    Expression out;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && end == name.data() + name.size()) return Expression(number);
    if (!take('(')) {
      out.kind_ = name;
      return out;
    }
    if (name == "Integer") {
      out = parse(depth + 1);
      if (!out.is_number() || !take(')')) fail("an integer is expected");
      return out;
    }
    out.kind_ = name;
    if (name == "Symbol" || name == "Float") {
      out.name_ = quoted();
      skip_rest();
      if (name == "Float") {
        const char* const last = out.name_.data() + out.name_.size();
        const auto [stop, wrong] = std::from_chars(out.name_.data(), last, out.real_);
        if (wrong != std::errc{} || stop != last || !std::isfinite(out.real_)) fail("a finite number is expected");
      }
      return out;
    }
    if (take(')')) return out;
    do {
      const size_t before = at;
      const std::string_view key = word();
      if (take('=')) {  // evaluate=False
        word();
        continue;
      }
      at = before;
      static_cast<void>(key);
      out.args_.push_back(parse(depth + 1));
    } while (take(','));
    if (!take(')')) fail("')' is expected");
    return out;
  }
};

Expression Expression::parse(std::string_view text, const std::string& path) {
  Parser parser{text, path};
  Expression out = parser.parse(0);
  parser.skip();
  if (parser.at != text.size()) parser.fail("the end is expected");
  return out;
}

std::optional<int64_t> Linear::number_for(int64_t size) const {
  int64_t rest = 0;
  if (__builtin_sub_overflow(size, offset, &rest) || rest == INT64_MIN || rest % factor != 0) return {};
  return rest / factor;
}

std::optional<Linear> Expression::linear() const {
  if (kind_ == "Symbol") return Linear{name_};
  if (kind_ != "Add" && kind_ != "Mul") return {};
  std::optional<Linear> out;
  int64_t number = kind_ == "Mul";
  for (const Expression& a : args_) {
    if (const std::optional<int64_t> n = a.value({})) {
      if (kind_ == "Add" ? __builtin_add_overflow(number, *n, &number) : __builtin_mul_overflow(number, *n, &number)) return {};
    } else if (std::exchange(out, a.linear()) || !out) {
      return {};  // two symbols, or another function
    }
  }
  if (!out || (kind_ == "Mul" && number == 0)) return {};
  const bool overflows = kind_ == "Add" ? __builtin_add_overflow(out->offset, number, &out->offset)
                                        : __builtin_mul_overflow(out->offset, number, &out->offset) ||
                                              __builtin_mul_overflow(out->factor, number, &out->factor);
  return overflows ? std::nullopt : out;
}

std::optional<double> Expression::real(const Symbols& symbols) const {
  if (kind_ == "Float") return real_;
  if (kind_ == "ToFloat" && args_.size() == 1) return args_[0].real(symbols);
  if (kind_ != "Add" && kind_ != "Mul" && kind_ != "FloatTrueDiv" && kind_ != "IntTrueDiv") {
    const std::optional<int64_t> number = value(symbols);
    return number ? std::optional(double(*number)) : std::nullopt;
  }
  std::optional<double> out;
  for (const Expression& a : args_) {
    const std::optional<double> v = a.real(symbols);
    if (!v) return {};
    out = !out ? *v : kind_ == "Add" ? *out + *v : kind_ == "Mul" ? *out * *v : *out / *v;
  }
  return out;
}

std::optional<int64_t> Expression::rounded(const Symbols& symbols) const {
  const std::optional<double> x = args_.size() == 1 ? args_[0].real(symbols) : std::nullopt;
  if (!x) return {};
  const double whole = kind_ == "TruncToInt" ? std::trunc(*x) : kind_ == "FloorToInt" ? std::floor(*x) : std::ceil(*x);
  constexpr double most = 9e15;  // up to which a double has all integers
  return std::abs(whole) <= most ? std::optional(int64_t(whole)) : std::nullopt;
}

std::optional<int64_t> Expression::value(const Symbols& symbols) const {
  if (is_number()) return number_;
  if (kind_ == "TruncToInt" || kind_ == "FloorToInt" || kind_ == "CeilToInt") return rounded(symbols);
  if (kind_ == "Symbol") {
    const auto found = symbols.find(name_);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<int64_t> args;
  for (const Expression& a : args_) {
    const std::optional<int64_t> v = a.value(symbols);
    if (!v) return {};
    args.push_back(*v);
  }
  int64_t out = 0;
  if (kind_ == "Add" || kind_ == "Mul") {
    out = kind_ == "Mul";
    for (int64_t a : args)
      if (kind_ == "Add" ? __builtin_add_overflow(out, a, &out) : __builtin_mul_overflow(out, a, &out)) return {};
    return out;
  }
  if (args.empty()) return {};
  if (kind_ == "Max") return *std::ranges::max_element(args);
  if (kind_ == "Min") return *std::ranges::min_element(args);
  if (args.size() != 2 || (args[1] == -1 && args[0] == INT64_MIN)) return {};
  const int64_t a = args[0], b = args[1];
  if (kind_ == "Pow") {
    out = 1;
    if (b < 0 || b > 64) return {};
    for (int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(out, a, &out)) return {};
    return out;
  }
  if (b == 0) return {};
  const int64_t quotient = a / b - int64_t(a % b != 0 && (a < 0) != (b < 0));
  if (kind_ == "FloorDiv" || kind_ == "CleanDiv") return quotient;
  if (kind_ == "Mod" || kind_ == "PythonMod") return a - quotient * b;
  if (kind_ == "CeilDiv") return quotient + int64_t(a % b != 0);
  return {};
}

std::string Expression::text() const {
  if (is_number()) return fmt::format("{}", number_);
  if (kind_ == "Symbol" || kind_ == "Float") return name_;
  const std::string_view infix = kind_ == "Add" ? " + " : kind_ == "Mul" ? "*" : kind_ == "FloorDiv" ? "//" : "";
  std::string out;
  for (const Expression& a : args_) out += (out.empty() ? "" : infix.empty() ? ", " : std::string(infix)) + a.text();
  return infix.empty() ? fmt::format("{}({})", kind_, out) : kind_ == "Add" ? fmt::format("({})", out) : out;
}

}  // namespace tinygrad::torch_export

// Operators on texts, all of them on the host.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <clocale>
#include <cwctype>
#include <numeric>
#include <regex>
#include <set>
#include <unordered_map>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// A text in another case, by the rules of Unicode that the system has.
std::string in_case(const std::string& text, bool is_upper) {
  static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const unsigned char first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 1;
    if (length == 1 || i + length > text.size()) {
      const char c = text[i++];
      out += first >= 0x80 ? c : char(is_upper ? std::toupper(first) : std::tolower(first));
      continue;
    }
    uint32_t code = first & (0x7fU >> length);
    for (size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    i += length;
    if (unicode) code = uint32_t(is_upper ? towupper_l(wint_t(code), unicode) : towlower_l(wint_t(code), unicode));
    if (code < 0x80) {
      out += char(code);
    } else if (code < 0x800) {
      out += {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
    } else if (code < 0x10000) {
      out += {char(0xe0 | code >> 12), char(0x80 | (code >> 6 & 0x3f)), char(0x80 | (code & 0x3f))};
    } else {
      out += {char(0xf0 | code >> 18), char(0x80 | (code >> 12 & 0x3f)), char(0x80 | (code >> 6 & 0x3f)), char(0x80 | (code & 0x3f))};
    }
  }
  return out;
}

Results string_normalizer(Call& c) {
  const Strings& x = c.value(0).strings();
  const std::string action = c.choice("case_change_action", {"NONE", "LOWER", "UPPER"});
  // Those of other languages are changed alike.
  const std::string language = c.attribute("locale", "en_US").substr(0, 2);
  if (language == "tr" || language == "az" || language == "lt") c.fail(fmt::format("the case of letters in the language '{}'", language));
  const bool is_case_sensitive = c.flag("is_case_sensitive");
  const std::vector<std::string> words = c.texts("stopwords");
  if (x.shape.size() > 2 || (x.shape.size() == 2 && x.shape[0] != 1)) c.fail("expects one row of texts");
  std::set<std::string> stop;
  for (const std::string& w : words) stop.insert(is_case_sensitive ? w : in_case(w, false));
  Strings out;
  for (const std::string& t : x.values) {
    if (t.empty() || stop.contains(is_case_sensitive ? t : in_case(t, false))) continue;
    out.values.push_back(action == "LOWER" ? in_case(t, false) : action == "UPPER" ? in_case(t, true) : t);
  }
  if (out.values.empty()) out.values.emplace_back();
  out.shape = {int64_t(out.values.size())};
  if (x.shape.size() == 2) out.shape.insert(out.shape.begin(), 1);
  return {out};
}

Results string_concat(Call& c) {
  const Strings &a = c.value(0).strings(), &b = c.value(1).strings();
  const Sizes shapes[] = {a.shape, b.shape};
  Strings out{.shape = broadcast_shape(shapes)};
  const auto places = [&](const Strings& s) {
    std::vector<int64_t> all(s.values.size());
    std::iota(all.begin(), all.end(), 0);
    Sizes shape(out.shape.size() - s.shape.size(), 1);
    shape.insert(shape.end(), s.shape.begin(), s.shape.end());
    return Tensor(all, shape).expand(out.shape).tolist<int64_t>();
  };
  host_count(c, out.shape);
  const std::vector<int64_t> in_a = places(a), in_b = places(b);
  for (size_t i = 0; i < in_a.size(); ++i) out.values.push_back(a.values[size_t(in_a[i])] + b.values[size_t(in_b[i])]);
  return {out};
}

/// At most `most` cuts; without a delimiter at runs of blanks.
std::vector<std::string> pieces(const std::string& text, const std::string& delimiter, int64_t most) {
  constexpr const char* blanks = " \t\n\r\f\v";
  std::vector<std::string> out;
  size_t at = 0;
  if (delimiter.empty()) {
    while ((at = text.find_first_not_of(blanks, at)) != std::string::npos) {
      if (int64_t(out.size()) == most) {
        const size_t end = text.find_last_not_of(blanks);
        out.push_back(text.substr(at, end + 1 - at));
        return out;
      }
      const size_t end = std::min(text.find_first_of(blanks, at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end;
    }
    return out;
  }
  for (size_t end; int64_t(out.size()) < most && (end = text.find(delimiter, at)) != std::string::npos; at = end + delimiter.size())
    out.push_back(text.substr(at, end - at));
  out.push_back(text.substr(at));
  return out;
}

Results string_split(Call& c) {
  const Strings& x = c.value(0).strings();
  const int64_t named = c.attribute("maxsplit", -1), most = named < 0 ? std::numeric_limits<int64_t>::max() : named;
  std::vector<std::vector<std::string>> all;
  std::vector<int64_t> counts;
  for (const std::string& t : x.values) {
    all.push_back(pieces(t, c.attribute("delimiter", ""), most));
    counts.push_back(int64_t(all.back().size()));
  }
  const int64_t width = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  Strings out{.shape = x.shape};
  out.shape.push_back(width);
  host_count(c, out.shape);
  for (auto& list : all) {
    list.resize(size_t(width));
    out.values.insert(out.values.end(), list.begin(), list.end());
  }
  return {out, host_value(HostArray::of(ElementType::int64, x.shape, counts))};
}

/// The code points of a text in UTF-8.
std::wstring code_points(const Call& c, const std::string& text) {
  std::wstring out;
  for (size_t i = 0; i < text.size();) {
    const unsigned char first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (length == 0 || i + length > text.size()) c.fail("a text that is no UTF-8");
    uint32_t code = length == 1 ? first : first & (0x7fU >> length);
    for (size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    out += wchar_t(code);
    i += length;
  }
  return out;
}

/// How many states the expression may have. ValueError for what the operator's syntax (RE2) and that of the library do not share.
int64_t states_of(const Call& c, const std::string& pattern) {
  constexpr int64_t most = 4096;
  int64_t repeats = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char now = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (now == '\\') {
      if (std::isalnum(static_cast<unsigned char>(next)) && std::string_view("dDwWsSbBtnrfvx").find(next) == std::string_view::npos)
        c.fail(fmt::format("the pattern '{}': \\{} is not supported", pattern, next));
      ++i;
    } else if (now == '(' && next == '?' && (i + 2 >= pattern.size() || pattern[i + 2] != ':')) {
      c.fail(fmt::format("the pattern '{}': (? without : is not supported", pattern));
    } else if (now == '{') {
      int64_t count = 0, greatest = 1;
      for (size_t k = i + 1; k < pattern.size() && pattern[k] != '}'; ++k) {
        count = pattern[k] == ',' ? 0 : std::clamp<int64_t>(count * 10 + (pattern[k] - '0'), 0, most);
        greatest = std::max(greatest, count);
      }
      repeats = std::min(repeats * greatest, most + 1);
    }
  }
  const int64_t states = std::min(int64_t(pattern.size()), most + 1) * repeats;
  if (states > most) c.fail(fmt::format("a pattern of {} characters that are repeated {} times", pattern.size(), repeats));
  return states;
}

Results regex_full_match(Call& c) {
  const Strings& x = c.value(0).strings();
  const std::string pattern = c.attribute("pattern", "");
  const int64_t states = states_of(c, pattern);
  std::vector<int64_t> out;
  try {
    // In a time that grows with states times characters, whatever the pattern.
    const std::wregex expression(code_points(c, pattern), std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
    for (const std::string& t : x.values) {
      c.take_steps(int64_t(t.size()) * states / 128 + 1);
      out.push_back(std::regex_match(code_points(c, t), expression));
    }
  } catch (const std::regex_error& e) {
    c.fail(fmt::format("the pattern '{}': {}", pattern, e.what()));
  }
  return {host_value(HostArray::of(ElementType::bool_, x.shape, out))};
}

/// Counts n-grams of a pool of numbers or texts, with elements left out between.
Results tf_idf_vectorizer(Call& c) {
  const std::vector<int64_t> begins = c.required_integers("ngram_counts"), columns = c.required_integers("ngram_indexes");
  const int64_t least = c.required_integer("min_gram_length"), most = c.required_integer("max_gram_length"),
                skips = c.required_integer("max_skip_count");
  if (least < 1 || most < least || skips < 0) c.fail(fmt::format("grams of {} to {} items, {} left out", least, most, skips));
  const std::string mode = c.choice("mode", {"TF", "IDF", "TFIDF"});
  const std::vector<double> weights = c.attribute("weights", std::vector<double>());
  // Texts and numbers are both numbered.
  std::unordered_map<std::string, int64_t> number_of;
  std::vector<int64_t> pool, items;
  const bool of_texts = c.has_attribute("pool_strings");
  const auto number = [&](const std::string& t) { return number_of.try_emplace(t, int64_t(number_of.size())).first->second; };
  if (of_texts) {
    for (const std::string& t : c.texts("pool_strings")) pool.push_back(number(t));
    for (const std::string& t : c.value(0).strings().values) items.push_back(number(t));
  } else {
    pool = c.attribute("pool_int64s", pool);
    items = c.integers(0);
  }
  std::map<std::vector<int64_t>, int64_t> grams;  // to columns
  int64_t id = 0;
  for (size_t n = 1; n <= begins.size(); ++n) {
    const int64_t end = n < begins.size() ? begins[n] : int64_t(pool.size());
    if (begins[n - 1] < 0 || begins[n - 1] > end || end > int64_t(pool.size())) c.fail("counts that do not fit the pool");
    for (int64_t at = begins[n - 1]; at + int64_t(n) <= end; at += int64_t(n), ++id) {
      if (id >= int64_t(columns.size())) c.fail("counts that do not fit the columns");
      if (int64_t(n) >= least && int64_t(n) <= most)
        grams.try_emplace({pool.begin() + at, pool.begin() + at + int64_t(n)}, columns[size_t(id)]);
    }
  }
  constexpr int64_t most_columns = int64_t{1} << 24;
  if (std::any_of(columns.begin(), columns.end(), [](int64_t x) { return x < 0 || x >= most_columns; }))
    c.fail("columns outside of the output");
  const int64_t width = columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1;
  const Sizes in = c.shape(0);
  if (in.size() > 2) c.fail(fmt::format("expects a vector or a matrix, got ({})", fmt::join(in, ", ")));
  if (!weights.empty() && int64_t(weights.size()) < width) c.fail(fmt::format("{} weights for {} columns", weights.size(), width));
  const int64_t rows = in.size() == 2 ? in[0] : 1, length = in.empty() ? 1 : in.back();
  std::vector<double> out(size_t(host_count(c, {rows, width})), 0.0);
  // Longer grams than those of the pool are in none, and items further apart than the row is long.
  const int64_t longest = std::min(most, int64_t(begins.size())), furthest = std::min(skips, length) + 1;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = least; n <= longest; ++n) {
      for (int64_t distance = 1; distance <= (n == 1 ? 1 : furthest); ++distance) {
        c.take_steps(std::max<int64_t>(length - distance * (n - 1), 0) / 64 + 1);
        for (int64_t at = 0; at + distance * (n - 1) < length; ++at) {
          std::vector<int64_t> gram;
          for (int64_t k = 0; k < n; ++k) gram.push_back(items[size_t(r * length + at + k * distance)]);
          if (const auto found = grams.find(gram); found != grams.end()) ++out[size_t(r * width + found->second)];
        }
      }
    }
  }
  // Weights are those of columns, as the reference has it.
  for (size_t i = 0; i < out.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i % size_t(width)];
    if (mode == "IDF")
      out[i] = out[i] > 0 ? weight : 0;
    else if (mode == "TFIDF")
      out[i] *= weight;
  }
  Sizes shape{width};
  if (in.size() == 2) shape.insert(shape.begin(), rows);
  return {host_value(HostArray::of(ElementType::float32, shape, out))};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "RegexFullMatch", 20, regex_full_match},    {onnx_domain, "StringConcat", 20, string_concat},
    {onnx_domain, "StringNormalizer", 10, string_normalizer}, {onnx_domain, "StringSplit", 20, string_split},
    {onnx_domain, "TfIdfVectorizer", 9, tf_idf_vectorizer},
};

}  // namespace

std::span<const OperatorRow> text_operators() { return rows; }

}  // namespace tinygrad::onnx

#include "codegen/opt/parse_opts.h"

#include <charconv>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::codegen {

std::string to_string(std::span<const Opt> opts) {
  std::string out;
  for (const Opt& o : opts) out += (out.empty() ? "" : " ") + tinygrad::to_string(o);
  return out;
}

namespace {

class OptParser {
 public:
  explicit OptParser(std::string_view text) : text_(text) {}

  std::vector<Opt> run() {
    std::vector<Opt> out;
    for (skip_spaces(); at_ < text_.size(); skip_spaces()) out.push_back(opt());
    return out;
  }

 private:
  Opt opt() {
    Opt o{.op = one_of<OptOp>("an opt", opt_op_count), .axis = 0, .arg = 0};
    expect('(');
    o.axis = number();
    expect(',');
    if (o.op != OptOp::STAGE) {
      o.arg = number();
    } else {
      StageOpt s{.slot = number()};
      expect(',');
      s.scope = one_of<Scope>("a scope", int(Scope::device) + 1);
      expect(',');
      s.depth = number();
      if (s.slot < 0 || s.slot >= 1 << 20 || s.depth < 0 || s.depth > 31) fail("a slot below 2^20 and a depth below 32");
      if (constexpr std::string_view flag = ",computed"; text_.substr(at_).starts_with(flag)) s.computed = true, at_ += flag.size();
      o.arg = s.arg();
    }
    expect(')');
    return o;
  }

  template <class E>
  E one_of(std::string_view what, int count) {
    const size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] | 32) >= 'a' && (text_[at_] | 32) <= 'z') ++at_;
    for (int i = 0; i < count; ++i)
      if (name(E(i)) == text_.substr(begin, at_ - begin)) return E(i);
    at_ = begin;
    fail(what);
  }

  int32_t number() {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number");
    at_ = size_t(end - text_.data());
    return value;
  }

  void expect(char c) {
    if (at_ == text_.size() || text_[at_] != c) fail(fmt::format("'{}'", c));
    ++at_;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    throw ValueError(fmt::format("opts '{}': at position {}: expects {}, as in \"UPCAST(0,4) STAGE(2,1,group,2)\"", text_, at_, expected));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Opt> parse_opts(std::string_view text) { return OptParser(text).run(); }

}  // namespace tinygrad::codegen

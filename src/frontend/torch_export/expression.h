#pragma once
/// Sizes as torch.export writes them: numbers, and expressions of symbols in sympy's notation, "Mul(Integer(2), Symbol('s0'))".

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::torch_export {

/// Values of symbols by their names.
using Symbols = std::map<std::string, int64_t, std::less<>>;

/// factor * symbol + offset.
struct Linear {
  std::string symbol = {};
  int64_t factor = 1, offset = 0;

  /// For which number it is that size; nothing where it is for none.
  std::optional<int64_t> number_for(int64_t size) const;
};

class Expression {
 public:
  Expression() = default;
  explicit Expression(int64_t number) : number_(number) {}
  /// FormatError, at `path`, for what is no such text or nests more than 100 deep.
  static Expression parse(std::string_view text, const std::string& path);

  bool is_number() const { return kind_.empty(); }
  int64_t number() const { return number_; }
  /// Nothing for a number, and for what is not of that form or not in 64 bits; the factor is never 0.
  std::optional<Linear> linear() const;
  /// Nothing where a symbol has no value, a function is not known, or 64 bits do not hold it.
  std::optional<int64_t> value(const Symbols& symbols) const;
  /// "s0*2 + 1".
  std::string text() const;

 private:
  struct Parser;
  /// As a number that need not be whole.
  std::optional<double> real(const Symbols& symbols) const;
  /// Of a function that makes an integer of such a number.
  std::optional<int64_t> rounded(const Symbols& symbols) const;

  std::string kind_ = {};  ///< of the function; empty for a number
  std::string name_ = {};
  int64_t number_ = 0;
  double real_ = 0;
  std::vector<Expression> args_ = {};
};

}  // namespace tinygrad::torch_export

#pragma once
#include <string>
#include <string_view>

#include "dtype/scalar.h"

namespace tinygrad::renderer::cstyle {

/// C's precedence: what comes first binds tighter.
enum class Binds : uint8_t { primary, unary, product, sum, shift, order, equality, bit_and, bit_xor, bit_or, logic_and, logic_or, choice };

/// A piece of text and how tightly it holds together.
struct Expr {
  std::string text = {};
  Binds binds = Binds::primary;
};

/// `a token b`, with the parentheses that C or its reader needs.
Expr binary(const Expr& a, std::string_view token, Binds binds, const Expr& b);
/// "-" or "(float)" before an operand.
Expr prefixed(std::string_view prefix, const Expr& x);
/// The expression as the operand of "." or "[".
std::string atom(const Expr& x);
/// An operand in parentheses as an argument, which needs none.
std::string_view without_parentheses(std::string_view operand);
/// `condition ? yes : no`
Expr choice(const Expr& condition, const Expr& yes, const Expr& no);

/// A number as a language with these suffixes writes it: "1.5f", "7", "0x1bd11bdau", "INFINITY".
Expr literal(const Scalar& value, std::string_view suffix);

}  // namespace tinygrad::renderer::cstyle

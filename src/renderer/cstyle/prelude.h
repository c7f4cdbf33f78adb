#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "renderer/cstyle/dialect.h"

namespace tinygrad::renderer::cstyle {

/// What stands before the kernel: the types and functions that its text uses, in the order of their use.
class Prelude {
 public:
  explicit Prelude(const Dialect& dialect) : dialect_(dialect) {}

  const Dialect& dialect() const { return dialect_; }

  /// "float", "float8"; bool for a scalar bool. The type is defined from now on.
  std::string type(DType dtype, int lanes = 1);
  /// A word of the dialect's list of definitions, as the language spells it.
  std::string_view word(std::string_view word);
  /// A number.
  Expr literal(const Scalar& value);
  /// What a helper function for a type is called.
  std::string helper_name(std::string_view name, std::string_view type) const;
  /// Adds a helper function, "T name(T x) { ... }", unless it is there.
  void function(const std::string& text);

  std::string text() const;

 private:
  void add(std::vector<std::string>& to, std::string text);

  const Dialect& dialect_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> types_, words_, functions_;
};

}  // namespace tinygrad::renderer::cstyle

#pragma once
/// How values stand in WGSL. Its vectors have two to four elements and drivers take them apart: each lane is a scalar here.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/scalar.h"
#include "renderer/cstyle/expression.h"
#include "uop/op.h"

namespace tinygrad::renderer::wgsl {

using cstyle::Binds;
using cstyle::Expr;

/// One lane.
struct Term {
  Expr expr;
  DType dtype = DType::void_;
  std::optional<Scalar> constant = {};
};

/// The functions that a kernel's text uses, in the order of their use.
class Prelude {
 public:
  /// Adds a function; returns its name.
  std::string_view function(std::string_view name, std::string text);
  void use_float16() { has_float16_ = true; }
  std::string text() const;

 private:
  std::set<std::string, std::less<>> known_;
  std::string text_;
  bool has_float16_ = false;
};

/// "i32" of int32, int16 and int8, ... Throws CompileError for a dtype that WGSL does not have.
std::string_view type_of(Prelude& prelude, DType dtype);
bool is_narrow(DType dtype);  ///< an integer of 8 or 16 bits

Expr call(std::string_view function, std::initializer_list<std::string_view> arguments);
Expr select(const Expr& condition, const Expr& yes, const Expr& no);
Expr number(Prelude& prelude, const Scalar& value);
/// x is not y. Of floats that are not ordered, naga's != is false.
Expr differs(const Expr& x, const Expr& y, DType dtype);

Expr write_alu(Prelude& prelude, Op op, std::span<const Term> sources);
Expr write_cast(Prelude& prelude, const Term& x, DType to);
Expr write_bitcast(Prelude& prelude, const Term& x, DType to);

}  // namespace tinygrad::renderer::wgsl

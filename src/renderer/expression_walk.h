#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "renderer/cstyle/inlining.h"
#include "renderer/cstyle/names.h"
#include "renderer/cstyle/private_memory.h"
#include "renderer/walk.h"

namespace tinygrad::renderer {

/// What renderers of languages with expressions and blocks do alike: they write lines, name loops, and know which values may stand inside
/// the expression that uses them.
class ExpressionWalk : public Walk {
 protected:
  ExpressionWalk(std::string_view language, const UOp& linear, const KernelInfo& info, bool fuses_halves)
      : Walk(language, linear, info), private_(linear), inlining_(linear, private_, fuses_halves) {}

  static constexpr size_t longest_inline = 120;  ///< characters of an expression before it gets a name

  void line(std::string_view text);
  void open(std::string_view text);
  void close();
  void close_loop() override;
  void close_if() override { close(); }

  /// A name for the counter of a loop, until that ends: "i", "j", ... by depth, not counting a loop over chunks.
  std::string name_loop(bool is_over_chunks = false);
  /// "in1", "out0", or "data2" for what is read and written.
  std::string name_parameter(const KernelParam& p);
  /// What the names of variables for an instruction's values begin with.
  static std::string_view hint(const UOp& u, DType dtype);

  const cstyle::PrivateMemory private_;
  const cstyle::Inlining inlining_;
  cstyle::Names names_;
  std::string body_;

 private:
  std::vector<std::string> loops_;
  int depth_ = 0;
};

}  // namespace tinygrad::renderer

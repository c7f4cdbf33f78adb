#include "renderer/cstyle/cuda_matrix.h"

#include <algorithm>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/names.h"
#include "renderer/nvidia_matrix.h"
#include "uop/arg.h"

namespace tinygrad::renderer::cstyle {
namespace {

/// One matrix as the registers of an instruction.
struct Registers {
  std::string_view type, constraint;
  int count = 0;
  Registers(DType d, int lanes)
      : type(d == DType::float64   ? "double"
             : d == DType::float32 ? "float"
                                   : "unsigned int"),
        constraint(d == DType::float64   ? "d"
                   : d == DType::float32 ? "f"
                                         : "r"),
        count(int(size_t(lanes) * itemsize(d) / (d == DType::float64 ? 8 : 4))) {}
  /// "{%4, %5}"
  std::string numbers(int& next) const {
    std::string out;
    for (int i = 0; i < count; ++i) out += fmt::format("{}%{}", i ? ", " : "", next++);
    return fmt::format("{{{}}}", out);
  }
  std::string operands(std::string_view name, std::string_view written) const {
    std::string out;
    for (int i = 0; i < count; ++i) out += fmt::format("{}\"{}{}\"({}[{}])", i ? ", " : "", written, constraint, name, i);
    return out;
  }
};

/// The asm's operands for sums of 32 bits: "+f"(z.at[0]), ...
std::string changed(const Value& sums) {
  std::string out;
  for (int i = 0; i < sums.lanes; ++i)
    out += fmt::format("{}\"+{}\"(z.at[{}])", i ? ", " : "", sums.dtype == DType::float32 ? "f" : "r", i);
  return out;
}

/// Sums of 16 bits are two in a register, and moved there and back: nothing may go on beside that.
bool is_packed(const Value& sums) { return itemsize(sums.dtype) == 2; }

/// Has the compiler take the sums for changed here, so that nothing that uses them moves to the other side.
std::string pin(Prelude& prelude, const Value& sums) {
  prelude.function(
      fmt::format("void pin({}& z) {{ asm volatile(\"\" : {} : : \"memory\"); }}", prelude.type(sums.dtype, sums.lanes), changed(sums)));
  return fmt::format("pin({});", sums.expr.text);
}

constexpr std::string_view kBegin = "wgmma.fence.sync.aligned;",
                           kEnd = "wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;";

/// The function that a core's product is: of packed sums from its beginning to its end.
void define_product(Prelude& prelude, const TensorCore& core, const Value& sums) {
  const Registers z(sums.dtype, sums.lanes);
  int next = 0;
  const std::string d = z.numbers(next);
  std::string product = wgmma_instruction(core, d, fmt::format("%{}", next), fmt::format("%{}", next + 1), "adds");
  std::string before, behind, operands = changed(sums);
  if (is_packed(sums)) {
    product = fmt::format("{}\\n{}\\n{}", kBegin, product, kEnd);
    before = fmt::format("  unsigned int c[{}];\n  memcpy(c, &z, sizeof z);\n", z.count);
    behind = "  memcpy(&z, c, sizeof z);\n";
    operands = z.operands("c", "+");
  }
  prelude.function(
      fmt::format("void {0}({1}& z, {2} x, {2} y) {{\n{3}  asm volatile(\"{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, 1, 0;\\n{4}\\n}}\"\n"
                  "               : {5} : \"l\"(x + {6}ul), \"l\"(y + {7}ul) : \"memory\");\n{8}}}",
                  core.name.str(), prelude.type(sums.dtype, sums.lanes), prelude.type(DType::uint64), before, product, operands,
                  matrix_descriptor(core, 0), matrix_descriptor(core, 1), behind));
}

/// Products of a warpgroup, whose sums are in registers.
class Warpgroup : public AsyncProducts {
 public:
  Warpgroup(Prelude& prelude, Names& names) : prelude_(prelude), names_(names) {}

  Value begin(const UOp& product, const TensorCore& core, std::string_view a, std::string_view b, const Value* given,
              Lines& lines) override {
    if (!core.a.in_memory) throw InternalError(fmt::format("CUDA: there is no tensor core {}", core.name.str()));
    Value sums = *given;
    const bool goes_on = std::ranges::find(under_way_, sums.expr.text, [](const Value& v) { return v.expr.text; }) != under_way_.end();
    if (!goes_on) {
      const std::string name = names_.numbered(is_float(sums.dtype) ? "y" : "n");
      lines.push_back(fmt::format("{} {} = {};", prelude_.type(sums.dtype, sums.lanes), name, sums.expr.text));
      sums = {.expr = {name}, .dtype = product.dtype(), .lanes = sums.lanes};
      under_way_.push_back(sums);
    }
    prelude_.function(
        fmt::format("{0} matrix(const void* p) {{ {0} x; asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(x) : \"l\"(p)); return x >> 4; }}",
                    prelude_.type(DType::uint64)));
    define_product(prelude_, core, sums);
    std::string call = fmt::format("{}({}, matrix({}), matrix({}));", core.name.str(), sums.expr.text, a, b);
    if (!is_packed(sums) && !goes_on) call = fmt::format("{} asm volatile(\"{}\" : : : \"memory\"); {}", pin(prelude_, sums), kBegin, call);
    lines.push_back(std::move(call));
    return sums;
  }

  Lines wait() override {
    Lines lines;
    if (!is_packed(under_way_[0])) {
      lines.push_back(fmt::format("asm volatile(\"{}\" : : : \"memory\");", kEnd));
      for (const Value& v : under_way_) lines[0] += " " + pin(prelude_, v);
    }
    under_way_.clear();
    return lines;
  }

  Lines barrier() override { return {"asm volatile(\"fence.proxy.async.shared::cta;\" : : : \"memory\");", "__syncthreads();"}; }

 private:
  Prelude& prelude_;
  Names& names_;
  std::vector<Value> under_way_;  ///< sums that products are added to
};

}  // namespace

Expr warp_product(Prelude& prelude, const WmmaArg& core, const Value& a, const Value& b, const Value& c) {
  const Registers x(core.a, a.lanes), y(core.b, b.lanes), z(core.out, c.lanes);
  const auto type = [&](const Value& v) { return prelude.type(v.dtype, v.lanes); };
  const std::string sum = type(c), out = std::string(element_name(core.out, false));
  const bool rounds = core.a == DType::float32;
  const std::string_view kept = rounds ? "unsigned int" : x.type, kept_constraint = rounds ? "r" : x.constraint;
  Registers p = x, q = y;
  p.constraint = q.constraint = kept_constraint;
  int next = 0;
  const std::string d = z.numbers(next), first = p.numbers(next), second = q.numbers(next);
  std::string body = fmt::format("{0} c[{1}];\n  memcpy(c, &z, sizeof z);\n", z.type, z.count);
  if (rounds) {
    body += fmt::format("  {0} a[{1}], b[{2}];\n", kept, x.count, y.count);
    for (const auto& [name, from, count] : {std::tuple("a", "x", x.count), std::tuple("b", "y", y.count)})
      body += fmt::format("  for (int i = 0; i < {}; ++i) asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"({}[i]) : \"f\"({}.at[i]));\n", count,
                          name, from);
  } else {
    body += fmt::format("  {0} a[{1}], b[{2}];\n  memcpy(a, &x, sizeof x);\n  memcpy(b, &y, sizeof y);\n", kept, x.count, y.count);
  }
  prelude.function(
      fmt::format("{0} {1}({2} x, {3} y, {0} z) {{\n  {4}  asm volatile(\"mma.sync.aligned.m{5}n{6}k{7}.row.col.{8}.{9}.{10}.{8} {11}, "
                  "{12}, {13}, {11};\"\n"
                  "               : {14} : {15}, {16});\n  memcpy(&z, c, sizeof z);\n  return z;\n}}",
                  sum, core.name.str(), type(a), type(b), body, core.m, core.n, core.k, out, element_name(core.a, true),
                  element_name(core.b, true), d, first, second, z.operands("c", "+"), p.operands("a", ""), q.operands("b", "")));
  return {fmt::format("{}({}, {}, {})", core.name.str(), a.expr.text, b.expr.text, c.expr.text)};
}

std::unique_ptr<AsyncProducts> warpgroup_products(Prelude& prelude, Names& names) { return std::make_unique<Warpgroup>(prelude, names); }

}  // namespace tinygrad::renderer::cstyle

#include "frontend/torch_export/sharing.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace tinygrad::torch_export {

namespace {

using aten::Value;
using Names = std::set<std::string_view>;

bool is_view(std::string_view target) {
  static const Names& names = *new Names{"aten.view.default",
                                         "aten.view.dtype",
                                         "aten.expand.default",
                                         "aten.expand_as.default",
                                         "aten.permute.default",
                                         "aten.transpose.int",
                                         "aten.swapaxes.default",
                                         "aten.swapdims.default",
                                         "aten.t.default",
                                         "aten.numpy_T.default",
                                         "aten.mT.default",
                                         "aten.movedim.intlist",
                                         "aten.movedim.int",
                                         "aten.squeeze.default",
                                         "aten.squeeze.dim",
                                         "aten.squeeze.dims",
                                         "aten.unsqueeze.default",
                                         "aten.unflatten.int",
                                         "aten.unfold.default",
                                         "aten.diagonal.default",
                                         "aten.slice.Tensor",
                                         "aten.select.int",
                                         "aten.narrow.default",
                                         "aten.split.Tensor",
                                         "aten.split.sizes",
                                         "aten.split_with_sizes.default",
                                         "aten.chunk.default",
                                         "aten.unbind.int",
                                         "aten.view_as.default",
                                         "aten.tensor_split.sections",
                                         "aten.broadcast_to.default",
                                         "aten.atleast_1d.default",
                                         "aten.atleast_2d.default",
                                         "aten.atleast_3d.default",
                                         "aten.hsplit.int",
                                         "aten.hsplit.array",
                                         "aten.vsplit.int",
                                         "aten.vsplit.array",
                                         "aten.dsplit.int",
                                         "aten.dsplit.array",
                                         "aten.mH.default",
                                         "aten.matrix_H.default",
                                         "aten.linalg_diagonal.default",
                                         "prims.broadcast_in_dim.default",
                                         "prims.collapse_view.default",
                                         "prims.split_dim.default",
                                         "prims.squeeze.default",
                                         "prims.transpose.default",
                                         "prims.view_of_dtype.default"};
  return names.contains(target);
}
/// Of real numbers.
bool is_same(std::string_view target) {
  static const Names& names = *new Names{"aten.alias.default",        "aten.detach.default",      "aten.lift_fresh.default",
                                         "aten.positive.default",     "aten.conj.default",        "aten.real.default",
                                         "aten.resolve_conj.default", "aten.resolve_neg.default", "prims.view_of.default"};
  return names.contains(target);
}
/// A view where the elements lie so that it can be one, else a copy.
bool is_reshape(std::string_view target) {
  static const Names& names = *new Names{"aten.reshape.default", "aten.flatten.using_ints", "aten.reshape_as.default"};
  return names.contains(target);
}
bool is_conversion(std::string_view target) { return target == "aten.type_as.default" || target.starts_with("aten.to."); }
/// Views of their arguments, as a rule.
bool is_composed_of_views(std::string_view target) {
  return target == "aten.einsum.default" || target.starts_with("aten.meshgrid.") || target.ends_with(".Sequence") ||
         target == "aten.broadcast_tensors.default";
}

Value argument(const aten::Arguments& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &aten::Argument::name);
  return found == all.end() ? Value() : found->value;
}

/// What of memory formats leaves row-major tensors as they are.
bool keeps_rows(const Value& format) {
  const auto* f = format.get_if<aten::MemoryFormat>();
  return !f || *f == aten::MemoryFormat::contiguous || *f == aten::MemoryFormat::preserve;
}

/// A run of axes over which elements lie at equal distances.
struct Run {
  int64_t count, distance;
};

/// Whether a tensor of these sizes and strides has a view of other sizes: each run of axes is made of whole axes of the other sizes.
bool has_view(const Sizes& sizes, const Sizes& strides, const Sizes& wanted) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return true;
  std::vector<Run> runs;  // the last axis first
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    int64_t next = 0;  // where the run would go on
    const bool goes_on = !runs.empty() && !__builtin_mul_overflow(runs.back().count, runs.back().distance, &next) && strides[i] == next;
    if (goes_on)
      runs.back().count *= sizes[i];
    else
      runs.push_back({sizes[i], strides[i]});
  }
  size_t axis = wanted.size();
  for (const Run& run : runs) {
    int64_t count = 1;
    while (count < run.count && axis > 0) count *= wanted[--axis];
    if (count != run.count) return false;
  }
  return true;
}

/// Nothing where the graph leaves them open.
std::optional<Sizes> strides_of(const TensorMeta* meta, int ndim) {
  if (!meta || int(meta->strides.size()) != ndim) return {};
  Sizes out;
  for (const Expression& e : meta->strides) {
    if (!e.is_number()) return {};
    out.push_back(e.number());
  }
  return out;
}

Sharing reshape_sharing(const Tensor& from, const Tensor& to, const TensorMeta* meta) {
  if (meta && meta->is_plain()) return Sharing::view;
  const std::optional<Sizes> strides = strides_of(meta, from.ndim());
  if (!strides) return Sharing::unknown;
  return has_view(from.shape(), *strides, to.shape()) ? Sharing::view : Sharing::none;
}

/// Of what makes elements row-major.
Sharing contiguous_sharing(const Tensor& from, const TensorMeta* meta) {
  if (meta && meta->is_plain()) return Sharing::same;
  const std::optional<Sizes> strides = strides_of(meta, from.ndim());
  if (!strides) return Sharing::unknown;
  const Sizes sizes = from.shape();
  if (std::ranges::find(sizes, 0) != sizes.end()) return Sharing::same;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0; expected *= sizes[i])
    if (sizes[i] != 1 && (*strides)[i] != expected) return Sharing::none;
  return Sharing::same;
}

}  // namespace

Sharing sharing_of(const Node& node, const aten::Arguments& arguments, const std::vector<Value>& results, const TensorMeta* first) {
  const std::string_view target = node.target;
  if (target == "aten.sum_to_size.default" || target == "aten.cartesian_prod.default")
    return Sharing::unknown;  // there may be nothing to do
  if (is_view(target)) return Sharing::view;
  if (is_same(target)) return Sharing::same;
  if (is_composed_of_views(target)) {
    const Value operands = argument(arguments, "tensors");
    const bool multiplies = target == "aten.einsum.default" && operands.get_if<aten::List>() && operands.list().size() > 1;
    return multiplies ? Sharing::none : Sharing::unknown;
  }
  if (arguments.empty() || results.empty() || !results[0].get_if<Tensor>() || !arguments[0].value.get_if<Tensor>()) return Sharing::none;
  const Tensor &from = arguments[0].value.tensor(), &to = results[0].tensor();
  if (target == "aten.dropout.default") {  // the argument itself where it does nothing
    const bool is_active = argument(arguments, "train").boolean() && argument(arguments, "p").number() != 0;
    return is_active ? Sharing::none : Sharing::same;
  }
  if (is_reshape(target)) return reshape_sharing(from, to, first);
  if (target == "aten.ravel.default") {
    const Sharing sharing = contiguous_sharing(from, first);
    return sharing == Sharing::same ? Sharing::view : sharing;
  }
  if (target == "aten.contiguous.default")
    return keeps_rows(argument(arguments, "memory_format")) ? contiguous_sharing(from, first) : Sharing::unknown;
  if (is_conversion(target)) {
    const Value copy = argument(arguments, "copy");
    if ((copy.get_if<bool>() && copy.boolean()) || from.dtype() != to.dtype()) return Sharing::none;
    return keeps_rows(argument(arguments, "memory_format")) ? Sharing::same : Sharing::unknown;
  }
  return Sharing::none;
}

}  // namespace tinygrad::torch_export

#pragma once
/// The operators of PyTorch's graphs, by their names and overloads there: "aten.add.Tensor", "aten.relu.default",
/// "prims.convert_element_type.default", and for numbers "_operator.add" and "torch.sym_max".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/errors.h>
#include <tinygrad/export.h>

#include "frontend/aten/value.h"

namespace tinygrad::aten {

struct CallOptions {
  /// Where tensors are created and moved to, whatever an argument `device` says. Empty: "cpu" is CPU, "cuda:1" CUDA:1, and so on, and what
  /// names no device lies on default_device().
  std::string device = {};
};

/// What an operator gives: a value for each of its results, a list for a result that is a list of tensors, nothing for a result that was
/// not asked for (of backward operators, by output_mask). Dtypes and shapes are those that PyTorch gives. Nothing is computed before it is
/// needed, but for operators whose results depend on values (item, nonzero).
///
/// Operators are functions: nothing that they are given is changed. Results may share memory with arguments, those of view, slice and
/// expand as well as those of clone and to: a caller who writes into a result, or gives it to somebody who does, copies it before. What
/// PyTorch's strides decide has no meaning here: as_strided, sym_stride and sym_storage_offset take tensors to be contiguous and from the
/// beginning of their memory, and a caller who knows of other strides must not call them; empty_strided and memory formats give tensors of
/// the same values.
///
/// ValueError for an operator that is not supported, arguments that its schema does not have or that are missing; DTypeError for an
/// argument of the wrong kind; and what methods of Tensor throw. Messages begin with the operator's name.
TINYGRAD_EXPORT std::vector<Value> call(std::string_view op, const Arguments& arguments, const CallOptions& options = {});

TINYGRAD_EXPORT bool supports(std::string_view op);
/// All names, in order.
TINYGRAD_EXPORT std::vector<std::string_view> operators();

/// A parameter of an operator's schema.
struct Parameter {
  std::string name = {};
  std::string type = {};  ///< as PyTorch writes it: "Tensor?", "SymInt[2]"
  bool required = true;
  bool keyword_only = false;
  Value default_value = {};
};
/// In the order of the schema. ValueError for an operator that is not supported.
TINYGRAD_EXPORT std::span<const Parameter> parameters(std::string_view op);

}  // namespace tinygrad::aten

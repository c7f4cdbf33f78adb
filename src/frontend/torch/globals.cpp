#include "frontend/torch/globals.h"

#include <array>

namespace tinygrad::frontend::torch {

namespace {

using Kind = Global::Kind;

constexpr auto fixed = std::to_array<std::pair<std::string_view, Kind>>({
    {"collections.OrderedDict", Kind::ordered_dict},
    {"collections.Counter", Kind::counter},
    {"torch.nn.parameter.Parameter", Kind::parameter},
    {"torch.serialization._get_layout", Kind::layout},
    {"torch.Size", Kind::size},
    {"torch.Tensor", Kind::tensor_class},
    {"torch.device", Kind::device},
    {"_codecs.encode", Kind::encode},
    {"builtins.bytearray", Kind::bytearray},
    {"builtins.set", Kind::set},
    {"builtins.complex", Kind::complex},
    {"torch.storage.UntypedStorage", Kind::storage_class},
    {"torch.storage.TypedStorage", Kind::storage_class},
    {"torch.per_tensor_affine", Kind::quantization_scheme},
    {"torch.per_tensor_symmetric", Kind::quantization_scheme},
    {"torch.per_channel_affine", Kind::quantization_scheme},
    {"torch.per_channel_symmetric", Kind::quantization_scheme},
    {"torch.per_channel_affine_float_qparams", Kind::quantization_scheme},
    {"torch._utils._rebuild_parameter", Kind::rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", Kind::rebuild_parameter_with_state},
    {"torch._utils._rebuild_qtensor", Kind::rebuild_quantized},
    {"torch._utils._rebuild_tensor", Kind::rebuild_tensor},
    {"torch._utils._rebuild_tensor_v2", Kind::rebuild_tensor_v2},
    {"torch._utils._rebuild_tensor_v3", Kind::rebuild_tensor_v3},
    {"torch._utils._rebuild_sparse_tensor", Kind::rebuild_sparse},
    {"torch._utils._rebuild_meta_tensor_no_storage", Kind::rebuild_meta},
    {"torch._utils._rebuild_nested_tensor", Kind::rebuild_nested},
    {"torch._utils._rebuild_wrapper_subclass", Kind::rebuild_wrapper},
    {"torch._utils._rebuild_device_tensor_from_numpy", Kind::rebuild_from_numpy},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", Kind::rebuild_from_cpu},
    {"torch._tensor._rebuild_from_type_v2", Kind::rebuild_from_type},
});

// Of these there are classes of tensors, dense and sparse, on the CPU and on GPUs.
constexpr auto tensor_classes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"FloatTensor", "float32"},
    {"DoubleTensor", "float64"},
    {"HalfTensor", "float16"},
    {"BFloat16Tensor", "bfloat16"},
    {"ByteTensor", "uint8"},
    {"CharTensor", "int8"},
    {"ShortTensor", "int16"},
    {"IntTensor", "int32"},
    {"LongTensor", "int64"},
    {"BoolTensor", "bool"},
});

std::map<std::string, Global, std::less<>> make_globals() {
  std::map<std::string, Global, std::less<>> out;
  const auto add = [&](std::string name, Kind kind, const ScalarType* type = nullptr) { out[name] = Global{kind, name, type}; };
  for (const auto& [name, kind] : fixed) add(std::string(name), kind);
  for (const ScalarType& type : scalar_types()) {
    add(fmt::format("torch.{}", type.name), Kind::scalar_type, &type);
    if (!type.storage.empty()) add(fmt::format("torch.{}", type.storage), Kind::storage_class, &type);
    if (type.has_cuda_class) add(fmt::format("torch.cuda.{}", type.storage), Kind::storage_class, &type);
  }
  for (const std::string_view module : {"torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"})
    for (const auto& [name, type] : tensor_classes)
      if (!module.ends_with("sparse") || name != "BoolTensor")
        add(fmt::format("{}.{}", module, name), Kind::tensor_class, &scalar_type(type));
  return out;
}

}  // namespace

const std::map<std::string, Global, std::less<>>& allowed_globals() {
  static const auto& all = *new std::map<std::string, Global, std::less<>>(make_globals());
  return all;
}

const Global* find_global(std::string_view module, std::string_view name) {
  if (module == "__builtin__") module = "builtins";  // in pickles of protocol 2 and before
  const auto found = allowed_globals().find(fmt::format("{}.{}", module, name));
  return found == allowed_globals().end() ? nullptr : &found->second;
}

}  // namespace tinygrad::frontend::torch

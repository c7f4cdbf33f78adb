#pragma once
/// The names that a checkpoint may have: those that PyTorch reads with weights_only (2.13, _weights_only_unpickler._get_allowed_globals),
/// and what calling each makes. Nothing of it runs code.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "frontend/torch/value.h"

namespace tinygrad::frontend::torch {

struct Global {
  enum class Kind : uint8_t {
    ordered_dict,
    counter,
    parameter,
    layout,
    size,
    tensor_class,
    device,
    encode,
    bytearray,
    set,
    complex,
    scalar_type,
    storage_class,
    quantization_scheme,
    rebuild_parameter,
    rebuild_parameter_with_state,
    rebuild_quantized,
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_sparse,
    rebuild_meta,
    rebuild_nested,
    rebuild_wrapper,
    rebuild_from_numpy,
    rebuild_from_cpu,
    rebuild_from_type
  };
  Kind kind = Kind::size;
  std::string name;                  ///< "torch._utils._rebuild_tensor_v2"
  const ScalarType* type = nullptr;  ///< of scalar types and of classes of storages; null for the untyped
};

/// All of them by name.
const std::map<std::string, Global, std::less<>>& allowed_globals();
/// The one of this name; null for any other.
const Global* find_global(std::string_view module, std::string_view name);

/// What calling it with these arguments gives: containers, texts, bytes, numbers and records of tensors. Throws FormatError at `place` for
/// arguments that it does not take, and for what is not to be called.
Value call_global(const Global& callee, const Tuple& args, Heap& heap, const Place& place);
/// What making an object of a class gives, which only parameters and tensors have, and containers.
Value new_object(const Global& of, const Tuple& args, Heap& heap, const Place& place);
/// Gives an object its state; the attributes of containers and tensors are left out.
void set_state(const Value& object, const Value& state, Heap& heap, const Place& place);
/// The storage that a persistent id names.
const Storage* storage_of(const Value& id, Heap& heap, const Place& place);

}  // namespace tinygrad::frontend::torch

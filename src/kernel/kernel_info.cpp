#include "kernel/kernel_info.h"

#include <algorithm>

namespace tinygrad {

LaunchDims KernelInfo::launch_dims(std::span<const int64_t> variable_values) const {
  LaunchDims dims;
  for (int i = 0; i < 3; ++i) {
    dims.global[i] = global[i].evaluate(variable_values);
    dims.local[i] = local[i].evaluate(variable_values);
  }
  dims.chunks = chunks.evaluate(variable_values);
  return dims;
}

int64_t group_bytes(const UOp& buffer) { return group_array_bytes(buffer.arg_as<BufferArg>().size * int64_t(itemsize(buffer.dtype()))); }

int64_t given_group_bytes(const Target& target, const KernelInfo& info) {
  return target.declared_group_bytes != 0 && info.group_bytes > target.declared_group_bytes ? info.group_bytes : 0;
}

bool stores_to(const KernelInfo& info, const UOp& place) {
  const auto p = std::ranges::find(info.params, place.src(0).arg_as<ParamArg>().slot, &KernelParam::slot);
  return p != info.params.end() && p->written;
}

std::string kernel_symbol(std::string_view kernel_name) {
  std::string out(kernel_name);
  for (char& c : out) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!plain) c = '_';
  }
  return "kernel_" + out;
}

}  // namespace tinygrad

#pragma once
/// What a program takes, gives and is made of.

#include <string>

#include <tinygrad/torch_export.h>

#include "frontend/torch_export/schema.h"

namespace tinygrad::torch_export {

Description list_program(const ExportedProgram& program);
/// FormatError for a tensor of the state that is not as the graph says.
void check_tensor(const ExportedProgram& program, const InputSpec& spec, const Tensor& tensor, const std::string& file);

}  // namespace tinygrad::torch_export

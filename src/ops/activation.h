#pragma once
/// Activation functions, element by element. Integers and bools are taken as the default float, except by relu, relu6, hardtanh.

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

/// max(x, 0); its gradient at 0 is 0.
UOp relu(const UOp& x);
UOp relu6(const UOp& x);
UOp sigmoid(const UOp& x, const OpsContext& ctx = {});
UOp logsigmoid(const UOp& x, const OpsContext& ctx = {});
UOp hardsigmoid(const UOp& x, double alpha = 1.0 / 6, double beta = 0.5, const OpsContext& ctx = {});
UOp hardswish(const UOp& x, const OpsContext& ctx = {});
UOp hardtanh(const UOp& x, const Operand& min = -1, const Operand& max = 1, const OpsContext& ctx = {});
UOp leaky_relu(const UOp& x, double neg_slope = 0.01, const OpsContext& ctx = {});
/// The Gaussian error linear unit, by the tanh formula or by erf (Hendrycks and Gimpel, 2016).
UOp gelu(const UOp& x, GeluForm form = GeluForm::tanh, const OpsContext& ctx = {});
/// x * sigmoid(1.702 * x).
UOp quick_gelu(const UOp& x, const OpsContext& ctx = {});
/// x * sigmoid(x), also called swish.
UOp silu(const UOp& x, const OpsContext& ctx = {});
UOp elu(const UOp& x, double alpha = 1.0, const OpsContext& ctx = {});
UOp celu(const UOp& x, double alpha = 1.0, const OpsContext& ctx = {});
UOp selu(const UOp& x, double alpha = 1.67326, double gamma = 1.0507, const OpsContext& ctx = {});
UOp softplus(const UOp& x, double beta = 1.0, const OpsContext& ctx = {});
UOp softsign(const UOp& x, const OpsContext& ctx = {});
UOp mish(const UOp& x, const OpsContext& ctx = {});

}  // namespace tinygrad::ops

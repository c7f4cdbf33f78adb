"""The functions that are to be there, by section."""

SECTIONS: dict[str, list[str]] = {
  "Creation": [
    "const", "const_like", "empty", "empty_like", "invalids", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
  ],
  "Random": [
    "random_bits", "rand", "rand_like", "randn_like", "randn", "randint", "normal", "uniform", "scaled_uniform", "glorot_uniform",
    "kaiming_uniform", "kaiming_normal", "randperm", "multinomial", "dropout", "scaled_dot_product_attention",
  ],
  "Dtype": [
    "dtype", "cast", "bitcast", "element_size", "is_floating_point", "float", "half", "int", "bool", "bfloat16", "double", "long",
    "short",
  ],
  "Elementwise": [
    "alu", "ufix", "usum", "uprod", "detach", "logical_not", "contiguous", "contiguous_backward", "neg", "add", "sub", "mul",
    "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "mod", "fmod", "div", "ne", "eq", "lshift", "rshift", "maximum", "minimum",
    "copysign", "logaddexp", "where", "masked_fill", "threefry", "reciprocal", "trunc", "sqrt", "sin", "cos", "exp", "log2", "exp2",
    "pow", "square", "clamp", "clip", "isnan", "isinf", "isfinite", "isclose", "ceil", "floor", "relu", "sigmoid", "relu6", "hardswish",
    "hardsigmoid", "hardtanh", "leaky_relu", "tanh", "quick_gelu", "gelu", "swish", "silu", "rsqrt", "log", "log10", "atanh", "asinh",
    "acosh", "round", "sign", "abs", "tan", "asin", "acos", "atan", "elu", "celu", "selu", "softplus", "mish", "logsigmoid", "sinh",
    "cosh", "erf", "softsign", "lerp",
  ],
  "Movement": [
    "shape", "device", "ndim", "numel", "max_shape", "max_numel", "size", "expand", "reshape", "pad", "shrink", "permute", "flip",
    "stack", "shrink_to", "pad_to", "view", "squeeze", "unsqueeze", "T", "transpose", "flatten", "unflatten", "rearrange", "split",
    "chunk", "meshgrid", "diag", "diagonal", "roll", "repeat_interleave", "repeat", "unfold",
  ],
  "Reduce": [
    "sum", "prod", "max", "any", "all",
  ],
  "Composite": [
    "data", "item", "arange", "linspace", "eye", "triu", "tril", "pad_to", "pad", "dot", "matmul", "einsum", "gradient", "min", "mean",
    "var", "var_mean", "std", "std_mean", "normalize", "logsumexp", "softmax", "log_softmax", "softmin", "cat", "cumsum", "cumprod",
    "cummax", "cummin", "logcumsumexp", "argmax", "argmin", "sort", "argsort", "topk", "allclose", "one_hot", "gather", "interpolate",
    "scatter_reduce", "scatter", "masked_select", "nonzero", "sequential", "linear", "avg_pool2d", "max_pool2d", "max_unpool2d", "conv2d",
    "conv_transpose2d", "layernorm", "batchnorm", "binary_crossentropy", "binary_crossentropy_logits", "sparse_categorical_crossentropy",
    "cross_entropy", "nll_loss", "qr", "svd", "newton_schulz", "keccak", "hash", "nbytes",
  ],
  "Tensor handle": [
    "alu", "const", "is_param_", "device", "shape", "dtype", "custom_kernel", "callify", "linear_with_vars", "schedule_linear", "realize",
    "replace", "assign", "data", "tolist", "numpy", "clone", "to", "to_", "shard", "shard_", "shard_like", "from_blob", "from_url",
    "manual_seed", "backward",
  ],
  "nn": [
    "BatchNorm", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "Linear", "GroupNorm", "InstanceNorm", "LayerNorm",
    "LayerNorm2d", "RMSNorm", "Embedding", "LSTMCell",
  ],
  "nn.optim": [
    "zero_grad", "step", "schedule_step", "Optimizer", "OptimizerGroup", "SGD", "Muon", "LARS", "AdamW", "Adam", "LAMB",
  ],
  "nn.state, nn.datasets": [
    "safe_load_metadata", "safe_load", "safe_save", "get_state_dict", "get_parameters", "load_state_dict", "zip_extract", "tar_extract",
    "torch_load", "gguf_load", "mnist", "cifar",
  ],
}

# Why a function has no check here.
REASONS: dict[str, str] = {
  **dict.fromkeys(("safe_load_metadata", "safe_load", "safe_save", "get_state_dict", "get_parameters", "load_state_dict", "zip_extract", "tar_extract"), "no numbers: tested in test_state.py"),
  **dict.fromkeys(("torch_load", "gguf_load"), "compared in C++ with files that PyTorch wrote and with GGML; tested in test_model_files.py"),
  **dict.fromkeys(("mnist", "cifar"), "need files of the network: tested in C++ on made ones"),
  **dict.fromkeys(("Optimizer", "OptimizerGroup", "schedule_step"), "a base, a list and a part of step(): tested in C++"),
  **dict.fromkeys(("Muon", "LARS", "LAMB"), "not in PyTorch: tested in C++ against their formulas"),
  **dict.fromkeys(("shard", "shard_", "shard_like"), "tested in C++ and in test_sharding.py"),
  "from_blob": "tested in C++ and in test_tensor.py, by arrays",
  "qr": "the reference is NumPy's, whose factors differ by signs; tested by differences in C++",
  "svd": "the reference is NumPy's, whose factors differ by signs; tested by differences in C++",
}
# Functions of integers, booleans, constants or steps, and what is no function of values.
GRADIENTS_ABSENT: frozenset[str] = frozenset(
  [n for section in ("Creation", "Random", "Dtype", "Tensor handle", "nn.optim", "nn.state, nn.datasets") for n in SECTIONS[section]]
  + ["detach", "logical_not", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "ne", "eq", "lshift", "rshift", "threefry", "trunc", "isnan", "isinf", "isfinite", "isclose", "ceil", "floor", "round", "sign"]
  + ["shape", "max_shape", "max_numel", "device", "ndim", "numel", "size", "ufix", "any", "all", "data", "item", "arange", "linspace", "eye", "argmax", "argmin", "argsort", "allclose", "one_hot", "nonzero", "keccak", "hash", "nbytes"]
)

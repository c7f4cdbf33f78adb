"""PyTorch as a peer of bench/kernels: eager, with the argument "compile" through torch.compile, with "onednn" products of matrices by the
oneDNN that it brings, where it would take another library by itself; with "first-step" seconds of a first training step, alone or behind
"compile"."""
import json
import os
import sys
import time

if "first-step" in sys.argv[1:]:
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": os.environ["CACHEDB"] + ".inductor", "TORCHINDUCTOR_COMPILE_THREADS": os.environ["OMP_NUM_THREADS"]}
import torch
import torch.nn.functional as F

from torch.utils.flop_counter import FlopCounterMode

from models_torch import MODELS, difference, network, optimizer_for
from serve import serve

compiled, by_onednn = "compile" in sys.argv[1:], "onednn" in sys.argv[1:]
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.manual_seed(1)
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
ELEMENTWISE = {
    "relu_fma": (3, lambda a, b, c: torch.relu(a * b + c)), "add": (2, torch.add), "mul": (2, torch.mul), "relu": (1, torch.relu),
    "exp": (1, torch.exp), "log": (1, torch.log), "sin": (1, torch.sin), "erf": (1, torch.erf), "sigmoid": (1, torch.sigmoid),
    "tanh": (1, torch.tanh), "sqrt": (1, torch.sqrt), "gelu": (1, lambda x: F.gelu(x, approximate="tanh")),
}


def matmul(c, normal):
    """Products of a batch that a library has no function for are computed one by one."""
    m, n, k = c["size"]
    batch = (c["batch"],) if c.get("batch", 1) > 1 else ()
    if c.get("dtype") == "int8":
        return product_of_integers(batch, m, n, k)
    inputs = [normal(*batch, m, k), normal(*batch, k, n)]
    if not by_onednn:
        return torch.matmul, inputs
    f = onednn_product
    if c.get("dtype") == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        def f(a, b):
            return onednn_product(a.float(), b.float()).bfloat16()
    return one_by_one(f) if batch else f, inputs


def onednn_product(a, b):
    return torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")


def one_by_one(f):
    return lambda a, b: torch.stack([f(x, y) for x, y in zip(a, b)])


def product_of_integers(batch, m, n, k):
    """uint8 by int8 into int32, or through oneDNN's quantized layer: into float32, with scales of 1 and with packing."""
    inputs = [torch.randint(0, 256, (*batch, m, k), dtype=torch.uint8), torch.randint(-128, 128, (*batch, k, n), dtype=torch.int8)]
    one, ones, zeros = 1.0, torch.ones(n), torch.zeros(n, dtype=torch.long)

    def quantized(a, b):
        packed = torch.ops.onednn.qlinear_prepack(b.t(), list(a.shape))
        return torch.ops.onednn.qlinear_pointwise(a, one, 0, packed, ones, zeros, None, one, 0, torch.float32, "none", [], "")
    f = quantized if by_onednn else torch._int_mm
    if batch:
        f = one_by_one(f)
    row = inputs[0][..., :1, :].long() @ inputs[1].long()
    if (f(*inputs)[..., :1, :] - row).abs().max() > 1e-6 * row.abs().max():
        raise ValueError("the result is wrong: its sums saturate")
    return f, inputs


def conv(c, normal):
    channels, filters, image, window = c["size"]
    groups, stride = c.get("groups", 1), c.get("stride", 1)
    inputs = [normal(c.get("batch", 16), channels, image, image), normal(filters, channels // groups, window, window)]

    def f(x, w):
        return F.conv2d(x, w, stride=stride, padding=window // 2, groups=groups)
    return with_gradients(f, inputs) if c.get("backward") else (f, inputs)


def with_gradients(f, inputs):
    """What f gives, then the gradients of its inputs."""
    gradient = torch.randn_like(f(*inputs))
    for t in inputs:
        t.requires_grad_()

    def both(gradient, *inputs):
        out = f(*inputs)
        return out, *torch.autograd.grad(out, inputs, gradient)
    return both, [gradient, *inputs]


def attention(c, normal):
    (heads, tokens, width), batch = c["size"], c.get("batch", 1)
    causal, kv_heads = c.get("causal", False), c.get("kv_heads", heads)
    keys = (batch, kv_heads, c.get("keys", tokens), width)
    inputs = [normal(batch, heads, tokens, width), normal(*keys), normal(*keys)]

    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv_heads != heads)
    return with_gradients(f, inputs) if c.get("backward") else (f, inputs)


def function_of(c):
    dtype = DTYPES.get(c.get("dtype", "float32"))
    kernel, size = c["kernel"], c["size"]

    def normal(*shape):
        return torch.randn(*shape).to(dtype)
    if kernel == "matmul":
        return matmul(c, normal)
    if kernel == "matvec":
        return torch.matmul, [normal(*size), normal(size[1])]
    if kernel == "conv":
        return conv(c, normal)
    if kernel == "attention":
        return attention(c, normal)
    if kernel == "softmax":
        axis = c.get("axis", 1)
        return lambda x: torch.softmax(x, axis), [normal(*size)]
    if kernel == "layernorm":
        return lambda x: F.layer_norm(x, (size[1],)), [normal(*size)]
    if kernel == "sum":
        return torch.sum, [torch.rand(*size).to(dtype)]
    if kernel == "transpose":
        order = c.get("order") or list(reversed(range(len(size))))
        return lambda x: x.permute(order).contiguous(), [normal(*size)]
    count, f = ELEMENTWISE[c["op"]]
    inputs = [normal(*size) for _ in range(count)]
    return f, [inputs[0].abs() + 0.001] if c["op"] in ("log", "sqrt") else inputs


def replay(kernels, floats):
    x = torch.randn(floats)

    def call():
        y = x
        for _ in range(kernels):
            y = y + 1
    return call


def prepare_model(c):
    """A call of a network or a training step, how many operations of products and convolutions it has, and how far its result is from the
    one that the case shares: of training steps as models.cpp has it."""
    net, inputs, expected = network(c)
    train = c["kernel"].startswith("train_")
    torch.set_grad_enabled(train)
    net.train(train)
    run = torch.compile(net, dynamic=False) if compiled else net
    if not train:
        facts = {} if expected is None else {"difference": difference(run(*inputs), expected)}
        return lambda: run(*inputs), facts | {"flops": operations(lambda: net(*inputs))}
    optimizer = optimizer_for(c, net)

    def step(f):
        optimizer.zero_grad()
        scores = f(inputs[0])
        loss = F.cross_entropy(scores.flatten(0, -2), inputs[1].flatten())
        loss.backward()
        optimizer.step()
        return loss.item()
    facts = {}
    if expected is not None:
        facts = {"difference": difference_of_step(optimizer, lambda: step(run), expected), "flops": operations(lambda: step(net))}
    return lambda: step(run), facts


def difference_of_step(optimizer, step, expected):
    """Of the losses of four steps of which only the third moves the weights, the last one is compared."""
    rates = [group["lr"] for group in optimizer.param_groups]
    losses = []
    for i in range(4):
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate if i >= 2 else 0.0
        losses.append(step())
    return abs((losses[3] - expected[3]) / (expected[0] - expected[3])).item()


def first_step():
    start = time.perf_counter()
    call, _ = prepare_model({"kernel": "train_mnist", "size": [512]})
    call()
    return time.perf_counter() - start


def operations(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def prepare(c):
    torch._dynamo.reset()
    if c["kernel"] == "replay":
        return replay(*c["size"])
    if c["kernel"] in MODELS:
        return prepare_model(c)
    torch.set_grad_enabled(False)
    f, inputs = function_of(c)
    torch.set_grad_enabled(c.get("backward", False))
    if compiled:
        f = torch.compile(f, dynamic=False)
    return lambda: f(*inputs)


if "first-step" in sys.argv[1:]:
    print(json.dumps({"seconds": first_step()}))
else:
    serve(torch.__version__, prepare, compiles=compiled)

"""PyTorch as a peer of bench/kernels: eager, or with the argument "compile" through torch.compile."""
import os
import sys

import torch
import torch.nn.functional as F

from torch.utils.flop_counter import FlopCounterMode

from models_torch import MODELS, network, optimizer_for
from serve import serve

compiled = "compile" in sys.argv[1:]
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.manual_seed(1)
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
ELEMENTWISE = {
    "relu_fma": (3, lambda a, b, c: torch.relu(a * b + c)), "add": (2, torch.add), "mul": (2, torch.mul), "relu": (1, torch.relu),
    "exp": (1, torch.exp), "log": (1, torch.log), "sin": (1, torch.sin), "erf": (1, torch.erf), "sigmoid": (1, torch.sigmoid),
    "tanh": (1, torch.tanh), "sqrt": (1, torch.sqrt), "gelu": (1, lambda x: F.gelu(x, approximate="tanh")),
}


def matmul(c, normal):
    m, n, k = c["size"]
    batch = (c["batch"],) if c.get("batch", 1) > 1 else ()
    return torch.matmul, [normal(*batch, m, k), normal(*batch, k, n)]


def conv(c, normal):
    channels, filters, image, window = c["size"]
    groups, stride = c.get("groups", 1), c.get("stride", 1)
    inputs = [normal(c.get("batch", 16), channels, image, image), normal(filters, channels // groups, window, window)]
    return lambda x, w: F.conv2d(x, w, stride=stride, padding=window // 2, groups=groups), inputs


def attention(c, normal):
    inputs = [normal(c.get("batch", 1), *c["size"]) for _ in range(4 if c.get("backward") else 3)]
    causal = c.get("causal", False)
    if not c.get("backward"):
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), inputs
    for t in inputs[:3]:
        t.requires_grad_()

    def both(q, k, v, gradient):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return torch.autograd.grad(out, [q, k, v], gradient)
    return both, inputs


def function_of(c):
    dtype = DTYPES[c.get("dtype", "float32")]
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
    """A call of a network or a training step, and how many operations of products and convolutions it has."""
    net, inputs = network(c)
    train = c["kernel"].startswith("train_")
    torch.set_grad_enabled(train)
    net.train(train)
    run = torch.compile(net, dynamic=False) if compiled else net
    if not train:
        return lambda: run(*inputs), {"flops": operations(lambda: net(*inputs))}
    optimizer = optimizer_for(c, net)

    def step(f):
        optimizer.zero_grad()
        scores = f(inputs[0])
        loss = F.cross_entropy(scores.flatten(0, -2), inputs[1].flatten())
        loss.backward()
        optimizer.step()
        return loss.item()
    return lambda: step(run), {"flops": operations(lambda: step(net))}


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
    torch.set_grad_enabled(c.get("backward", False))
    f, inputs = function_of(c)
    if compiled:
        f = torch.compile(f, dynamic=False)
    return lambda: f(*inputs)


serve(torch.__version__, prepare)

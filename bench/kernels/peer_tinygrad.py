"""tinygrad as a peer of bench/kernels: training steps, and the replay of small kernels; with the argument "first-step" or "first-search"
seconds of a first training step, or of a search for a matrix product's opts."""
import json
import sys
import time
from importlib.metadata import version

from tinygrad import Context, Tensor, TinyJit, dtypes, nn

from models_tinygrad import GPT2, MnistNet
from serve import serve


class Block:
    def __init__(self, fan_in, width, stride):
        self.first, self.second = conv_norm(fan_in, width, 3, stride), conv_norm(width, width, 3, 1)
        self.shortcut = conv_norm(fan_in, width, 1, stride) if stride != 1 or fan_in != width else []

    def __call__(self, x):
        y = x.sequential(self.first).relu().sequential(self.second)
        return (y + x.sequential(self.shortcut)).relu()


def conv_norm(fan_in, out, size, stride):
    return [nn.Conv2d(fan_in, out, size, stride=stride, padding=size // 2, bias=False), nn.BatchNorm(out)]


class ResNet18:
    def __init__(self):
        self.stem, self.blocks, fan_in = conv_norm(3, 64, 7, 2), [], 64
        for width in (64, 128, 256, 512):
            for i in range(2):
                self.blocks.append(Block(fan_in, width, 2 if i == 0 and width > 64 else 1))
                fan_in = width
        self.out = nn.Linear(512, 1000)

    def __call__(self, x):
        x = x.sequential(self.stem).relu().max_pool2d((3, 3), stride=2, padding=1)
        return self.out(x.sequential(self.blocks).mean((2, 3)))


def integers(*shape, high, dtype=dtypes.int32):
    return Tensor.randint(*shape, low=0, high=high, dtype=dtype).realize()


def network(c):
    name, size = c["kernel"], c["size"]
    if name == "train_mnist":
        net = MnistNet()
        return net, nn.optim.Adam(nn.state.get_parameters(net)), [integers(size[0], 1, 28, 28, high=256, dtype=dtypes.uint8), integers(size[0], high=10)]
    if name == "train_gpt2":
        net, inputs = GPT2(size[0]), [integers(*size[1:], high=50257) for _ in range(2)]
    elif name == "train_resnet18":
        net, inputs = ResNet18(), [Tensor.randn(size[0], 3, size[1], size[1]).realize(), integers(size[0], high=1000)]
    else:
        raise ValueError(f"has no {name}")
    return net, nn.optim.SGD(nn.state.get_parameters(net), lr=0.01, momentum=0.9), inputs


def step_of(net, optimizer):
    @Context(TRAINING=1)
    def step(x, y):
        optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())
    return step


def prepare(c):
    if c["kernel"] == "replay":
        kernels, floats = c["size"]

        @TinyJit
        def run(x):
            for _ in range(kernels):
                x = (x + 1).realize()
            return x
        given = Tensor.randn(floats).realize()
        return lambda: run(given)
    net, optimizer, inputs = network(c)
    step = TinyJit(step_of(net, optimizer))
    return lambda: step(*inputs).item()


def first_step():
    start = time.perf_counter()
    net, optimizer, inputs = network({"kernel": "train_mnist", "size": [512]})
    step_of(net, optimizer)(*inputs).item()
    return time.perf_counter() - start


def first_search():
    a, b = (Tensor.randn(1024, 1024).realize() for _ in range(2))
    start = time.perf_counter()
    with Context(BEAM=2):
        a.matmul(b).realize()
    return time.perf_counter() - start


if sys.argv[1:]:
    print(json.dumps({"seconds": {"first-step": first_step, "first-search": first_search}[sys.argv[1]]()}))
else:
    serve(version("tinygrad"), prepare, compiles=True)

"""The models of `tg compile` in tinygrad: peer_tinygrad.py MODEL prints seconds to schedule, lower and render on NULL."""
import json
import os
import sys
import time

# Read when tinygrad is imported.
os.environ.update(DEV="NULL", PARALLEL="0", CCACHE="0", SPEC="0")
from importlib.metadata import version

from models_tinygrad import GPT2, MnistNet, ResNet50
from tinygrad import Context, Tensor, dtypes, nn
from tinygrad.engine.realize import lower_and_compile
from tinygrad.uop.ops import Ops


def with_weights_given(net, optimizer=None):
    """Weights and optimizer state are memory, as after a first step."""
    for t in list(nn.state.get_state_dict(net).values()) + (nn.state.get_parameters(optimizer) if optimizer else []):
        t.replace(Tensor.empty(*t.shape, dtype=t.dtype))


def inference(net, x):
    with_weights_given(net)
    return [net(x)]


def training(net, x, y, make_optimizer):
    with Context(TRAINING=1):
        optimizer = make_optimizer(nn.state.get_parameters(net))
        with_weights_given(net, optimizer)
        optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y).backward()
        return [loss, *optimizer.schedule_step()]


def sgd(params):
    return nn.optim.SGD(params, lr=0.01, momentum=0.9)


def empty(*shape, dtype=dtypes.float32):
    return Tensor.empty(*shape, dtype=dtype)


MODELS = {
    "resnet50": lambda: inference(ResNet50(), empty(1, 3, 224, 224)),
    "resnet50-train": lambda: training(ResNet50(), empty(4, 3, 224, 224), empty(4, dtype=dtypes.int32), sgd),
    "gpt2-12": lambda: inference(GPT2(12), empty(1, 128, dtype=dtypes.int32)),
    "gpt2-2-train": lambda: training(GPT2(2), empty(4, 128, dtype=dtypes.int32), empty(4, 128, dtype=dtypes.int32), sgd),
    "mnist-train": lambda: training(MnistNet(), empty(512, 1, 28, 28, dtype=dtypes.uint8), empty(512, dtype=dtypes.uint8), nn.optim.Adam),
}

if __name__ == "__main__":
    results = MODELS[sys.argv[1]]()
    begin = time.perf_counter()
    linear = results[0].schedule_linear(*results[1:])
    scheduled = time.perf_counter()
    lower_and_compile(linear)
    end = time.perf_counter()
    kernels = [call.src[0] for call in linear.src if call.src[0].op is Ops.SINK]
    print(json.dumps({"model": sys.argv[1], "tinygrad": version("tinygrad"), "kernels": len(kernels), "unique_kernels": len(set(kernels)),
                      "schedule": round(scheduled - begin, 3), "seconds": round(end - begin, 3)}))

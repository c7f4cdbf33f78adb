"""onnxruntime as a peer of bench/kernels: the networks of models_torch.py."""
import os
import tempfile

import onnxruntime
import torch

from models_torch import difference, network
from serve import serve


def prepare(c):
    if c["kernel"].startswith("train_"):
        raise ValueError("has no training")
    net, inputs, expected = network(c)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        torch.onnx.export(net.eval(), tuple(inputs), path, input_names=["x"], output_names=["y"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"x": inputs[0].numpy()}
    facts = {} if expected is None else {"difference": difference(torch.from_numpy(session.run(["y"], feed)[0]), expected)}
    return lambda: session.run(["y"], feed), facts


serve(onnxruntime.__version__, prepare)

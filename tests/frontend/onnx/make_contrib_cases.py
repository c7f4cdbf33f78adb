#!/usr/bin/env python3
"""Writes cases of operators of com.microsoft as make_cases.py does of the package's own, for mutate.py: FOLDER/node/NAME with the model,
its inputs and onnxruntime's outputs. Ends with how many onnxruntime ran.
"""

import argparse
import os
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

random = np.random.default_rng(1)


def f(*shape):
    return random.standard_normal(shape).astype(np.float32)


def i(values, dtype=np.int32):
    return np.array(values, dtype)


def u8(*shape):
    return random.integers(0, 256, shape).astype(np.uint8)


SCALE, ZERO = np.float32(0.05), np.uint8(128)
COS, SIN, COS8, SIN8 = np.cos(f(16, 4)), np.sin(f(16, 4)), np.cos(f(16, 8)), np.sin(f(16, 8))

# Operator, attributes, inputs in their order (None: absent), number of outputs.
CASES = [
    ("Gelu", {}, [f(2, 3)], 1),
    ("QuickGelu", {"alpha": 1.7}, [f(2, 3)], 1),
    ("FastGelu", {}, [f(2, 3), f(3)], 1),
    ("BiasGelu", {}, [f(2, 3), f(3)], 1),
    ("FusedMatMul", {"transA": 1, "alpha": 0.5}, [f(2, 4, 3), f(2, 4, 5)], 1),
    ("FusedMatMul", {"transB": 1, "transBatchA": 0, "transBatchB": 0}, [f(2, 3, 4), f(2, 5, 4)], 1),
    ("FusedGemm", {"activation": "Relu", "transB": 1}, [f(2, 3), f(4, 3), f(4)], 1),
    ("FusedConv", {"activation": "Relu", "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [f(1, 2, 5, 5), f(4, 2, 3, 3), f(4)], 1),
    ("SkipLayerNormalization", {"epsilon": 1e-5}, [f(2, 3, 4), f(2, 3, 4), f(4), f(4), f(4)], 1),
    ("SkipSimplifiedLayerNormalization", {"epsilon": 1e-5}, [f(2, 3, 4), f(2, 3, 4), f(4)], 1),
    ("EmbedLayerNormalization", {"epsilon": 1e-5}, [i([[1, 2], [0, 3]]), i([[0, 1], [0, 0]]), f(4, 4), f(3, 4), f(2, 4), f(4), f(4),
                                                    i([[1, 1], [1, 0]])], 2),
    ("Attention", {"num_heads": 2}, [f(2, 3, 8), f(8, 24), f(24), i([3, 2])], 1),
    ("Attention", {"num_heads": 2, "unidirectional": 1}, [f(2, 3, 8), f(8, 24), f(24), None, f(2, 2, 2, 5, 4)], 2),
    ("QAttention", {"num_heads": 2}, [u8(2, 3, 8), u8(8, 24), f(24), SCALE, SCALE, i([3, 2]), ZERO, ZERO], 1),
    ("MultiHeadAttention", {"num_heads": 2}, [f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), f(24), i([[1] * 5, [1, 1, 1, 0, 0]])], 1),
    ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2}, [f(2, 3, 32), f(2, 3, 16), f(2, 3, 16), f(2, 2, 0, 8), f(2, 2, 0, 8),
                                                                  i([2, 2]), i([3])], 3),
    ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}, [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 5, 16),
                                                                                 f(2, 2, 5, 16), i([5, 5]), i([6]), COS8, SIN8], 3),
    ("RotaryEmbedding", {}, [f(2, 3, 16), i([[0, 1, 2], [3, 4, 5]], np.int64), COS, SIN], 1),
    ("RotaryEmbedding", {"interleaved": 1}, [f(2, 2, 3, 8), i([2], np.int64), COS, SIN], 1),
    ("MatMulNBits", {"K": 32, "N": 4, "bits": 4, "block_size": 16}, [f(2, 32), u8(4, 2, 8), f(8), u8(4)], 1),
    ("MatMulNBits", {"K": 32, "N": 4, "bits": 8, "block_size": 16}, [f(2, 32), u8(4, 2, 16), f(8)], 1),
    ("GatherBlockQuantized", {"bits": 4, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}, [u8(5, 16), i([[0, 4], [2, 1]]), f(5, 2),
                                                                                              u8(5, 1)], 1),
    ("DynamicQuantizeMatMul", {}, [f(2, 4), u8(4, 3), SCALE, ZERO, f(3)], 1),
    ("MatMulIntegerToFloat", {}, [u8(2, 4), u8(4, 3), SCALE, SCALE, ZERO, ZERO, f(3)], 1),
    ("QGemm", {"transB": 1}, [u8(2, 4), SCALE, ZERO, u8(3, 4), SCALE, ZERO, i([1, 2, 3]), SCALE, ZERO], 1),
    ("QLinearAdd", {}, [u8(2, 3), SCALE, ZERO, u8(3), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearMul", {}, [u8(2, 3), SCALE, ZERO, u8(3), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearConcat", {"axis": 1}, [SCALE, ZERO, u8(2, 3), SCALE, ZERO, u8(2, 1), SCALE, ZERO], 1),
    ("QLinearGlobalAveragePool", {"channels_last": 1}, [u8(1, 3, 3, 2), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearLeakyRelu", {"alpha": 0.1}, [u8(2, 3), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearSigmoid", {}, [u8(2, 3), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], 1),
    ("QLinearSoftmax", {"axis": -1, "opset": 13}, [u8(2, 3), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)], 1),
    ("BiasSplitGelu", {}, [f(1, 2, 2560), f(2560)], 1),
    ("BiasAdd", {}, [f(1, 2, 320), f(320), f(1, 2, 320)], 1),
]


def write(folder, operator, attributes, inputs, outputs):
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    given = {n: np.asarray(v) for n, v in zip(names, inputs) if v is not None}
    node = helper.make_node(operator, names, [f"o{k}" for k in range(outputs)], domain="com.microsoft", **attributes)
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given.items()]
    results = [helper.make_empty_tensor_value_info(n) for n in node.output]
    model = helper.make_model(helper.make_graph([node], operator, infos, results), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for k, v in enumerate(given.values()):
        open(os.path.join(data, f"input_{k}.pb"), "wb").write(numpy_helper.from_array(v).SerializeToString())
    try:
        session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])
        for k, v in enumerate(session.run(None, given)):
            open(os.path.join(data, f"output_{k}.pb"), "wb").write(numpy_helper.from_array(v).SerializeToString())
    except Exception as e:
        print(f"{operator}: onnxruntime: {str(e)[:200]}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    folder = os.path.join(parser.parse_args().folder, "node")
    shutil.rmtree(folder, ignore_errors=True)
    ran = sum(write(os.path.join(folder, f"contrib_{k:02}_{case[0]}"), *case) for k, case in enumerate(CASES))
    print(f"{len(CASES)} cases, onnxruntime runs {ran}")


if __name__ == "__main__":
    main()

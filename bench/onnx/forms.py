"""What onnxruntime's own tools make of a model: each function takes the file of a model and writes another one. Ranges are reduced to 7
bits, without which sums of two products saturate in onnxruntime's own kernels on processors with AVX2 alone."""

import logging
import pathlib


def fused(source: pathlib.Path, to: pathlib.Path) -> None:
    """Attention, normalizations and activations as operators of com.microsoft."""
    from onnxruntime.transformers import optimizer
    optimizer.optimize_model(str(source), model_type="bert", num_heads=12, hidden_size=384, opt_level=0).save_model_to_file(str(to))


def dynamic_int8(source: pathlib.Path, to: pathlib.Path) -> None:
    """Weights in int8; what they are multiplied with is quantized to uint8 in each call."""
    from onnxruntime.quantization import quantize_dynamic
    quantize_dynamic(source, to, reduce_range=True)


def fused_dynamic_int8(source: pathlib.Path, to: pathlib.Path) -> None:
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    between = to.with_suffix(".float.onnx")
    fused(source, between)
    quantize_dynamic(between, to, reduce_range=True, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def static_int8(source: pathlib.Path, to: pathlib.Path) -> None:
    """Pairs of QuantizeLinear and DequantizeLinear around products, of ranges that were seen in a few random calls."""
    import numpy as np
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Calls(CalibrationDataReader):
        def __init__(self) -> None:
            inputs = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).get_inputs()
            rng = np.random.default_rng(1)
            values = {i.name: np.ones((1, 128), np.int64) if "mask" in i.name else np.zeros((1, 128), np.int64) for i in inputs}
            ids = next(i.name for i in inputs if "ids" in i.name and "type" not in i.name)
            self.calls = iter([values | {ids: rng.integers(0, 60, (1, 128))} for _ in range(4)])

        def get_next(self) -> dict | None:
            return next(self.calls, None)

    quantize_static(source, to, Calls(), quant_format=QuantFormat.QDQ, per_channel=True, reduce_range=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm", "Conv"])


def four_bits(source: pathlib.Path, to: pathlib.Path) -> None:
    """Weights in 4 bits, a scale and a zero point for each 32 of them."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=False)
    quantizer.process()
    quantizer.model.save_model_to_file(str(to))


FORMS = {"fused": fused, "dynamic": dynamic_int8, "fused-dynamic": fused_dynamic_int8, "static": static_int8, "4bit": four_bits}


def make(form: str, source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    path = folder / f"{source.stem}-{form}.onnx"
    if not path.exists():
        logging.disable(logging.WARNING)
        FORMS[form](source, path)
        logging.disable(logging.NOTSET)
    return path

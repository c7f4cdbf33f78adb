"""A side of bench/cuda (serve.py): what PyTorch makes of a case on the GPU, where its products are cuBLAS's; without PyTorch, with the
argument "cublas", products by libcublas and copies by libcudart."""
import ctypes
import sys

from serve import serve


def load(name):
    for version in ("13", "12", "11"):
        try:
            return ctypes.CDLL(f"lib{name}.so.{version}")
        except OSError:
            pass
    return ctypes.CDLL(f"lib{name}.so")


def check(code, what):
    if code:
        raise RuntimeError(f"{what} failed with {code}")


class Cublas:
    """What of cublas_v2.h and cuda_runtime_api.h is called, with their numbers."""
    F32, BF16 = 0, 14                        # cudaDataType
    COMPUTE_32F, COMPUTE_32F_TF32 = 68, 77   # cublasComputeType
    DEVICE_TO_DEVICE = 3

    def __init__(self):
        self.runtime, self.blas = load("cudart"), load("cublas")
        self.handle = ctypes.c_void_p()
        check(self.blas.cublasCreate_v2(ctypes.byref(self.handle)), "cublasCreate")
        version = ctypes.c_int()
        check(self.blas.cublasGetVersion_v2(self.handle, ctypes.byref(version)), "cublasGetVersion")
        self.version = f"cuBLAS {version.value}"

    def memory(self, size):
        """Not zeros: a GPU uses less power for those, and is faster then. Bytes of 0x3c are small numbers in each dtype."""
        at = ctypes.c_void_p()
        check(self.runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)), "cudaMalloc")
        check(self.runtime.cudaMemset(at, 0x3C, ctypes.c_size_t(size)), "cudaMemset")
        return at

    def finish(self):
        check(self.runtime.cudaDeviceSynchronize(), "cudaDeviceSynchronize")

    def prepare(self, case):
        if case["kernel"] == "copy":
            size = case["size"][0]
            x, y = self.memory(size), self.memory(size)
            return lambda: check(self.runtime.cudaMemcpyAsync(y, x, ctypes.c_size_t(size), self.DEVICE_TO_DEVICE, None), "copying")
        if case["kernel"] != "matmul":
            raise RuntimeError("needs PyTorch")
        m, n, k = case["size"]
        item, kind = (2, self.BF16) if case["dtype"] == "bfloat16" else (4, self.F32)
        compute = self.COMPUTE_32F_TF32 if case.get("tf32") else self.COMPUTE_32F
        a, b, c = self.memory(m * k * item), self.memory(k * n * item), self.memory(m * n * item)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        i, by = ctypes.c_int, ctypes.byref
        # Columns come first there: the transpose of (m, k) by (k, n) is (n, k) by (k, m).
        arguments = (self.handle, i(0), i(0), i(n), i(m), i(k), by(one), b, i(kind), i(n), a, i(kind), i(k), by(zero), c, i(kind), i(n),
                     i(compute), i(-1))
        return lambda: check(self.blas.cublasGemmEx(*arguments), "cublasGemmEx")


class Torch:
    def __init__(self):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            raise RuntimeError("this PyTorch sees no GPU")
        torch.manual_seed(1)
        torch.set_grad_enabled(False)
        self.version = f"torch {torch.__version__}"

    def finish(self):
        self.torch.cuda.synchronize()

    def normal(self, case, *shape):
        return self.torch.randn(*shape, device="cuda", dtype=getattr(self.torch, case.get("dtype", "float32")))

    def prepare(self, case):
        torch, functional = self.torch, self.torch.nn.functional
        kernel, size = case["kernel"], case["size"]
        torch.backends.cuda.matmul.allow_tf32 = case.get("tf32", False)
        if kernel == "copy":
            x = torch.ones(size[0], device="cuda", dtype=torch.uint8)
            y = torch.empty_like(x)
            return lambda: y.copy_(x)
        if kernel == "matmul":
            m, n, k = size
            a, b = self.normal(case, m, k), self.normal(case, k, n)
            out = torch.matmul(a, b)
            return lambda: torch.matmul(a, b, out=out)
        if kernel == "attention":
            q, k, v = (self.normal(case, 1, *size) for _ in range(3))
            return lambda: functional.scaled_dot_product_attention(q, k, v)
        x = self.normal(case, *size)
        if kernel == "softmax":
            return lambda: torch.softmax(x, 1)
        if kernel == "layernorm":
            return lambda: functional.layer_norm(x, (size[1],))
        a, b, c = (self.normal(case, *size) for _ in range(3))
        return lambda: torch.relu(a * b + c)


if __name__ == "__main__":
    side = Cublas() if sys.argv[1:] == ["cublas"] else Torch()
    serve(side.version, side.prepare, side.finish)

"""The rows of docs/backends.md: what cannot be counted or asked of a device. Names are those of `tg devices`."""
import dataclasses
import pathlib
import re
import typing

from machine import command_output

OTHER_CPUS = "neoverse|armv8|cortex|apple|rv64"  # processors that are emulated
VENV = pathlib.Path(__file__).resolve().parent.parent / "build/venv"


def package(name):
    """The version of a Debian package, without what Debian adds."""
    return re.sub(r"^\d+:|[-+~].*", "", command_output("dpkg-query", "-W", "-f", "${Version}", name)) or "?"


def wgpu():
    return next((p.name.removesuffix(".dist-info").split("-")[1] for p in VENV.glob("lib/python3*/site-packages/wgpu-*.dist-info")), "?")


def gpu():
    return command_output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()[0]


@dataclasses.dataclass
class Row:
    name: str
    targets: str  # what tests open it as: the device's name and target
    about: str
    needs: str
    runs_on: typing.Callable[[], str]
    without: str = ""  # tests that stand in for its hardware, by program and name
    stand_in: str = "not on this machine"
    rendered: str = ""  # the same code without the hardware
    counts: bool = True  # runs kernels


ROWS = [
    Row("CPU", f"CPU CPU:LLVM:(?!{OTHER_CPUS})",
        "Also `CPU:LLVM`: LLVM IR, compiled in the process; threads instead of work-groups.",
        "libLLVM 17 or newer, opened at run time (`apt-get install libllvm19`)",
        lambda: f"the processor; LLVM {package('libllvm19')}"),
    Row("CPU:CLANG", f"CPU CPU:CLANG:(?!{OTHER_CPUS})",
        "C, compiled by a clang for each kernel: the text to read with `DEBUG=4`.",
        "clang 18 or newer (`apt-get install clang-19`)",
        lambda: f"the processor; clang {package('clang-19')}"),
    Row("CPU:LLVM:neoverse-n1", "CPU CPU:(LLVM|CLANG):(neoverse|armv8|cortex|apple)",
        "Kernels of 64-bit ARM processors, `CPU:CLANG:neoverse-n1` too. One thread runs them.",
        "clang, lld and qemu (`apt-get install clang-19 lld-19 qemu-user-static`)",
        lambda: f"qemu-aarch64 {package('qemu-user-static')}"),
    Row("CPU:LLVM:rv64gcv", "CPU CPU:(LLVM|CLANG):rv64",
        "Kernels of 64-bit RISC-V processors with vectors of 128 bits (`rv64gcv_zvl256b`: 256), `CPU:CLANG:rv64gcv` too. qemu 7.2 ends at "
        "conversions of floats to integers in vectors: such a kernel is a `DeviceError` there.",
        "clang, lld and qemu (`apt-get install clang-19 lld-19 qemu-user-static`)",
        lambda: f"qemu-riscv64 {package('qemu-user-static')}"),
    Row("CL", r"CL\b",
        "OpenCL 1.2. It has no bfloat16 and fp8; float16 and float64 where the driver has "
        "`cl_khr_fp16` and `cl_khr_fp64`, which PoCL 3.1 has not and has; no tensor cores. `IMAGE=1` makes images of what kernels read by texels. Devices share no memory: copies between them go through the host. No graphs of launches.",
        "an OpenCL loader and driver (`apt-get install ocl-icd-libopencl1 pocl-opencl-icd`)",
        lambda: f"PoCL {package('pocl-opencl-icd')}, on the processor; the corpus under oclgrind, too"),
    Row("WEBGPU", r"WEBGPU\b",
        "WGSL. It has no float64 (a `CompileError`) and no 64-bit integers (computed as pairs); bytes and shorts are in memory only; float16 where the "
        "adapter has it; no tensor cores. Quotients are within 2.5 units in the last place, as the language has it.",
        "wgpu-native 29 and a Vulkan driver (`tools/venv --webgpu`, or PyPI's wgpu and `WEBGPU_PATH`; `apt-get install mesa-vulkan-drivers`)",
        lambda: f"wgpu-native (PyPI's wgpu {wgpu()}) over Mesa {package('mesa-vulkan-drivers')}'s lavapipe, on the processor"),
    Row("INTERP", r"INTERP\b",
        "Runs linear programs one instruction at a time: work-groups, barriers, and the tensor cores of NVIDIA, AMD, Apple and Intel. An access out of "
        "bounds, a race or a read of what nobody wrote is an error. For tests, as it is slow.",
        "nothing", lambda: "the interpreter"),
    Row("DSP", r"DSP\b",
        "Hexagon v66. Its vectors hold integers only, so floats are computed one by one; float16 is emulated, float64 by functions of ours.",
        "clang, lld and qemu (`apt-get install clang-19 lld-19 qemu-user-static`)",
        lambda: f"qemu-hexagon {package('qemu-user-static')}"),
    Row("NULL", r"NULL\b", "Renders and runs nothing: for measuring what is before. `NULL:CUDA:sm_90a`, `NULL:PTX`, `NULL:HIP:gfx942`, `NULL:METAL`, "
        "`NULL:OPENCL` and `NULL:WGSL` render for GPUs that are not there.", "nothing", lambda: "no one: only rendered", counts=False),
    Row("DISK", r"DISK\b", "Files as tensors, `DISK:PATH`: read and written by calls (pread, pwrite), straight from and to memory that the host reaches and in pieces to other. No kernels.", "nothing",
        lambda: "no one: it has none", counts=False),
    Row("NPY", r"NPY\b", "Arrays of the host, such as NumPy's, in place. No kernels.", "nothing", lambda: "no one: it has none", counts=False),
    Row("CUDA", r"CUDA\S* CUDA:CUDA:",
        "CUDA C; replays are CUDA graphs. Tensor cores are those of `mma.sync`, on sm_90a of `wgmma` and on sm_100a of `tcgen05` too. Tests of each device passed on an H100 with driver 580.159.04 (docs/backends/cuda.md says which, and at which commit). Without a GPU: every kernel of the corpus is compiled for sm_80, "
        "sm_90a and sm_100a, the text runs on the processor with a thread for each work-item, and the driver's calls go to a driver of the tests.",
        "NVIDIA's driver 525 or newer and NVRTC 12.4 or newer (`pip install nvidia-cuda-nvrtc`)", gpu,
        without="FakeCuda|CudaC|CudaOfModels|NvidiaToolkit", stand_in="no GPU: assembled, and run by stand-ins", rendered="NULL:CUDA:sm_90a"),
    Row("CUDA:PTX", r"CUDA\S* CUDA:PTX:",
        "PTX, assembled by nvJitLink, ptxas or the driver. As `CUDA`; without a GPU a machine of the tests runs the text by the manual.",
        "NVIDIA's driver 525 or newer and nvJitLink or ptxas 12.4 or newer (`pip install nvidia-nvjitlink`), or driver 550 or newer, which assembles "
        "PTX 8.4 itself", gpu,
        without="FakeCuda|Ptx|PTXSIM|PtxOfModels", stand_in="no GPU: assembled, and run by stand-ins", rendered="NULL:PTX:sm_90a"),
    Row("HIP", r"HIP\b",
        "C++ for clang; replays are graphs. MFMA on gfx90a and gfx942, WMMA on gfx1100 and gfx1201; LLVM 19 knows no gfx950. Without a GPU: code objects of the corpus "
        "are made for these four and their metadata read, the text runs on the processor, and the runtime's calls go to one of the tests.",
        "ROCm 5 or newer (`apt-get install libamdhip64-5`) and clang", lambda: "an AMD GPU",
        without=r"test_runtime Hip\.|HipOnCpu|HipOfModels", stand_in="no GPU: compiled, and run by stand-ins", rendered="NULL:HIP:gfx942"),
    Row("METAL", r"METAL\b",
        "Metal's language with simdgroup matrices. It has no float64. Without macOS: the text runs on the processor. The runtime has not run yet.",
        "macOS 14 or newer", lambda: "Apple's GPU",
        without="test_program Metal|test_renderer Metal", stand_in="no macOS: the text, by a stand-in", rendered="NULL:METAL"),
]
TRAINED = ["CPU", "CPU:CLANG", "CL", "WEBGPU"]

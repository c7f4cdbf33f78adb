"""What bench/kernels measures: works, the peers that do them too, and how fast we mean to be beside them."""
import dataclasses

TORCH = ("torch", "torch.compile")
BLAS = ("OpenBLAS", "oneDNN")


@dataclasses.dataclass(frozen=True)
class Goal:
    """Our speed divided by that of the fastest of these peers should be at least this."""
    peers: tuple
    ratio: float


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that are selected and compared together. `draw(random)` makes a case of random sizes; their goal follows from the fixed rows."""
    name: str
    peers: tuple
    goals: tuple
    cases: tuple
    draw: object = None
    limit: float = 0  # seconds of what a case consists of, at most
    environment: dict = dataclasses.field(default_factory=dict)  # of our side


def case(kernel, *size, **options):
    return {"kernel": kernel, "size": list(size)} | options


def between(random, low, high):
    """Every order of magnitude is as likely; odd sizes are as likely as even ones."""
    return round(low * (high / low) ** random.random())


def drawn_matmul(random, limit=2 << 30, **options):
    while True:
        size = [between(random, 128, 4096) for _ in range(3)]
        if size[0] * size[1] * size[2] <= limit:
            return case("matmul", *size, **options)


def drawn_conv(random):
    channels, filters, image, window = between(random, 16, 256), between(random, 16, 256), between(random, 14, 64), random.choice([1, 3, 5])
    kind = random.choice([{}, {}, {"stride": 2}, {"groups": channels}])
    return case("conv", channels, channels if "groups" in kind else filters, image, window, batch=8, **kind)


def drawn_transpose(random):
    if random.random() < 0.5:
        return case("transpose", between(random, 512, 8192), between(random, 512, 8192))
    return case("transpose", *(between(random, 4, 128) for _ in range(4)), order=random.sample(range(4), 4))


def drawn_model(random):
    net = random.choice(["resnet18", "resnet50", "gpt2"])
    return case("gpt2", between(random, 1, 12), between(random, 16, 256)) if net == "gpt2" else case(net, between(random, 1, 12))


def drawn_training(random):
    return random.choice([case("train_mnist", between(random, 64, 600)), case("train_resnet18", between(random, 8, 48), 64)])


MATMULS = (*(case("matmul", n, n, n) for n in (512, 1024, 2048, 4096, 1000, 1023, 4095)), case("matmul", 64, 4096, 4096))

GROUPS = (
    Group("matmul", BLAS + ("torch",), (Goal(("OpenBLAS",), 1.0), Goal(("oneDNN",), 0.95)),
          MATMULS, drawn_matmul),
    Group("beam", ("oneDNN",), (Goal(("oneDNN",), 1.0),), MATMULS, lambda random: drawn_matmul(random, 1 << 29), environment={"BEAM": "2"}),
    Group("matvec", BLAS + ("torch", "JAX"), (Goal(BLAS + ("torch", "JAX"), 1.0),), (case("matvec", 4096, 4096),),
          lambda random: case("matvec", between(random, 512, 8192), between(random, 512, 8192))),
    Group("batched", BLAS + ("torch", "JAX"), (Goal(BLAS + ("torch", "JAX"), 1.0),), (case("matmul", 64, 64, 64, batch=64),),
          lambda random: case("matmul", *(between(random, 24, 128) for _ in range(3)), batch=between(random, 16, 128))),
    Group("bf16", ("oneDNN", "torch"), (Goal(("oneDNN",), 0.9),), tuple(case("matmul", n, n, n, dtype="bfloat16") for n in (1024, 2048)),
          lambda random: drawn_matmul(random, 1 << 29, dtype="bfloat16")),
    Group("int8", ("oneDNN",), (Goal(("oneDNN",), 0.9),), tuple(case("matmul", n, n, n, dtype="int8") for n in (1024, 2048)),
          lambda random: drawn_matmul(random, 1 << 29, dtype="int8")),
    Group("elementwise", TORCH, (Goal(TORCH, 1.0),), (case("elementwise", 64 << 20, op="relu_fma"),),
          lambda random: case("elementwise", between(random, 1 << 20, 64 << 20), op="relu_fma")),
    Group("sum", TORCH, (Goal(TORCH, 1.0),), (case("sum", 64 << 20),), lambda random: case("sum", between(random, 1 << 20, 64 << 20))),
    Group("softmax", TORCH, (Goal(TORCH, 1.0),), (case("softmax", 4096, 4096), case("softmax", 4096, 4096, axis=0)),
          lambda random: case("softmax", between(random, 512, 8192), between(random, 512, 8192), axis=random.randrange(2))),
    Group("layernorm", TORCH, (Goal(TORCH, 1.0),), (case("layernorm", 4096, 4096),),
          lambda random: case("layernorm", between(random, 512, 8192), between(random, 512, 8192))),
    Group("transpose", TORCH, (Goal(TORCH, 1.0),), (case("transpose", 4096, 4096), case("transpose", 8, 128, 12, 64, order=[0, 2, 1, 3])),
          drawn_transpose),
    Group("unary", TORCH, (Goal(TORCH, 1.0),), tuple(case("elementwise", 16 << 20, op=op) for op in ("gelu", "exp", "erf")),
          lambda random: case("elementwise", between(random, 1 << 20, 32 << 20), op=random.choice(["gelu", "exp", "erf"]))),
    Group("conv", TORCH, (Goal(TORCH, 1.0),),
          (case("conv", 64, 64, 56, 3, batch=16), case("conv", 256, 64, 56, 1, batch=16), case("conv", 3, 64, 224, 7, batch=16, stride=2),
           case("conv", 128, 128, 56, 3, batch=16, groups=128)), drawn_conv),
    Group("attention", TORCH, (Goal(TORCH, 1.1),),
          tuple(case("attention", 8, 1024, 64, causal=causal, backward=backward) for backward in (False, True) for causal in (False, True)),
          lambda random: case("attention", between(random, 2, 16), between(random, 256, 2048), random.choice([32, 64, 128]),
                              causal=random.random() < 0.5, backward=random.random() < 0.5)),
    Group("models", TORCH + ("onnxruntime",), (Goal(TORCH, 1.0), Goal(("onnxruntime",), 1.0)),
          tuple(case(net, batch) for net in ("resnet18", "resnet50") for batch in (1, 8)) + (case("gpt2", 12, 128),),
          drawn_model),
    Group("training", TORCH + ("tinygrad",), (Goal(TORCH, 1.0), Goal(("tinygrad",), 10.0)),
          (case("train_mnist", 512), case("train_gpt2", 4, 4, 128), case("train_resnet18", 32, 64)),
          drawn_training),
    Group("replay", ("torch", "tinygrad"), (), (case("replay", 100, 16),), limit=0.3e-6),
    Group("first-step-cold", ("tinygrad",), (), (case("first", "step", cold=True),), limit=1.5),
    Group("first-step-warm", ("tinygrad",), (), (case("first", "step", cold=False),), limit=0.15),
    Group("search-cold", ("tinygrad",), (), (case("first", "search", cold=True),), limit=10),
)

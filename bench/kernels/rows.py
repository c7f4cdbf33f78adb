"""What bench/kernels measures: works, the peers that do them too, and how fast we mean to be beside them."""
import dataclasses

from goals import Goal

TORCH = ("torch", "torch.compile")
BLAS = ("OpenBLAS", "oneDNN")
PRODUCTS = BLAS + ("torch", "torch.oneDNN", "JAX")

PRODUCT = Goal(least=1.0, of_peak=0.95, random_mean=1.0, random_least=0.85)
MEMORY = Goal(least=1.0, mean=1.3)


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that are selected and compared together. `draw(random)` makes a case of random sizes. Groups of one work share its goal, whose
    means are over all of their rows."""
    name: str
    work: str
    goal: Goal
    peers: tuple
    cases: tuple
    draw: object = None
    drawn: int = 5  # how many random cases a run has
    environment: dict = dataclasses.field(default_factory=dict)  # of our side
    scaling: bool = False  # each case with each number of threads


def case(kernel, *size, **options):
    return {"kernel": kernel, "size": list(size)} | options


def between(random, low, high):
    """Every order of magnitude is as likely; odd sizes are as likely as even ones."""
    return round(low * (high / low) ** random.random())


def drawn_matmul(random, **options):
    """From 1 to 5000 a side: half of the sides are drawn evenly, the others by their magnitude; at most 2e11 operations."""
    while True:
        m, n, k = (random.randint(1, 5000) if random.random() < 0.5 else between(random, 1, 5000) for _ in range(3))
        if 2 * m * n * k <= 2e11:
            return case("matmul", m, n, k, **options)


def drawn_skinny(random):
    size = [random.randint(1, 128), between(random, 512, 5000), between(random, 512, 5000)]
    return case("matmul", *(size if random.random() < 0.5 else (size[1], size[0], size[2])))


def drawn_conv(random):
    channels, filters, image, window = between(random, 16, 256), between(random, 16, 256), between(random, 14, 64), random.choice([1, 3, 5])
    kind = random.choice([{}, {}, {"stride": 2}, {"groups": channels}]) | random.choice([{}, {"backward": True}])
    return case("conv", channels, channels if "groups" in kind else filters, image, window, batch=8, **kind)


def drawn_transpose(random):
    if random.random() < 0.5:
        return case("transpose", between(random, 512, 8192), between(random, 512, 8192))
    order = [0, 1, 2, 3]
    while order == sorted(order):  # nothing would be moved
        random.shuffle(order)
    return case("transpose", *(between(random, 4, 128) for _ in range(4)), order=order)


def drawn_attention(random):
    heads = between(random, 2, 16)
    kv_heads = random.choice([n for n in range(1, heads + 1) if heads % n == 0])
    return case("attention", heads, between(random, 256, 2048), random.choice([32, 64, 80, 128]), kv_heads=kv_heads,
                causal=random.random() < 0.5, backward=random.random() < 0.5)


def drawn_query(random):
    return case("attention", between(random, 4, 32), 1, random.choice([32, 64, 80, 128]), keys=between(random, 1, 16384))


def drawn_model(random):
    net = random.choice(["resnet18", "resnet50", "mobilenetv3", "efficientnet", "vit", "bert", "gpt2"])
    if net in ("bert", "gpt2"):
        return case(net, between(random, 1, 12), between(random, 1, 4), between(random, 16, 256))
    return case(net, between(random, 1, 12))


def drawn_training(random):
    text = (between(random, 1, 4), between(random, 1, 8), between(random, 16, 128))
    return random.choice([case("train_mnist", between(random, 64, 600)), case("train_resnet18", between(random, 8, 48), 64),
                          case("train_bert", *text), case("train_gpt2", *text)])


def both_ways(cases):
    return (*cases, *(c | {"backward": True} for c in cases))


SQUARES = tuple(case("matmul", n, n, n) for n in (512, 1024, 2048, 4096, 1000, 1023, 4095))
SKINNY = (*(case("matmul", rows, 4096, 4096) for rows in (1, 4, 16, 64, 128)), case("matmul", 4096, 64, 4096), case("matmul", 4096, 4096, 64),
          case("matmul", 183, 682, 904), case("matmul", 128, 139, 1102))
BATCHED = (case("matmul", 64, 64, 64, batch=64), case("matmul", 128, 64, 128, batch=96), case("matmul", 197, 64, 197, batch=12))


def narrow(dtype):
    """Fixed products of a type of fewer bits."""
    sizes = (*(case("matmul", n, n, n) for n in (1024, 2048, 4096)), case("matmul", 64, 4096, 4096), case("matmul", 1, 4096, 4096), BATCHED[0])
    return tuple(c | {"dtype": dtype} for c in sizes)


RESNET_CONVS = (
    case("conv", 3, 64, 224, 7, batch=16, stride=2), case("conv", 64, 64, 56, 1, batch=16), case("conv", 64, 64, 56, 3, batch=16),
    case("conv", 256, 64, 56, 1, batch=16), case("conv", 256, 512, 56, 1, batch=16, stride=2), case("conv", 128, 128, 28, 3, batch=16),
    case("conv", 512, 128, 28, 1, batch=16), case("conv", 256, 256, 14, 3, batch=16), case("conv", 1024, 256, 14, 1, batch=16),
    case("conv", 512, 512, 7, 3, batch=16), case("conv", 2048, 512, 7, 1, batch=16))
MOBILE_CONVS = (
    case("conv", 32, 32, 112, 3, batch=16, groups=32), case("conv", 64, 64, 112, 3, batch=16, groups=64, stride=2),
    case("conv", 128, 128, 56, 3, batch=16, groups=128), case("conv", 512, 512, 14, 3, batch=16, groups=512),
    case("conv", 960, 960, 7, 5, batch=16, groups=960))
UNET_CONVS = (
    case("conv", 3, 64, 256, 3, batch=1), case("conv", 64, 64, 256, 3, batch=1), case("conv", 128, 64, 256, 3, batch=1),
    case("conv", 256, 256, 64, 3, batch=1), case("conv", 1024, 512, 32, 3, batch=1))

ATTENTIONS = (
    *(case("attention", 8, 1024, width, causal=causal, backward=backward) for width in (32, 64, 80, 128) for backward in (False, True)
      for causal in (False, True)),
    case("attention", 32, 512, 64, kv_heads=8), case("attention", 32, 512, 64, kv_heads=8, causal=True),
    case("attention", 32, 512, 64, kv_heads=8, causal=True, backward=True))
QUERIES = (*(case("attention", 32, 1, 64, keys=keys) for keys in (1, 16, 128, 1024, 4096, 16384)),
           case("attention", 32, 1, 128, keys=4096, kv_heads=8))

NETWORKS = (*(case(net, batch) for net in ("resnet18", "resnet50", "mobilenetv3", "efficientnet", "vit") for batch in (1, 8)),
            *(case(net, 12, batch, 128) for net in ("bert", "gpt2") for batch in (1, 8)))
TRAININGS = (case("train_mnist", 512), case("train_resnet18", 32, 64), case("train_gpt2", 4, 4, 128), case("train_bert", 4, 4, 128))

SCALING = (case("matmul", 1024, 1024, 1024), case("matmul", 4096, 4096, 4096), case("matmul", 64, 4096, 4096),
           case("matmul", 2048, 2048, 2048, dtype="bfloat16"), case("matmul", 2048, 2048, 2048, dtype="int8"), BATCHED[0],
           case("matvec", 4096, 4096), case("elementwise", 64 << 20, op="relu_fma"), case("softmax", 4096, 4096), case("layernorm", 4096, 4096),
           case("conv", 64, 64, 56, 3, batch=16), case("attention", 8, 1024, 64), case("resnet50", 8), case("gpt2", 12, 1, 128),
           case("train_mnist", 512), case("train_resnet18", 32, 64))

COMPILED = {"resnet50": 60.0, "resnet50-train": 60.0, "gpt2-12": 80.0, "gpt2-2-train": 60.0, "mnist-train": 80.0}
STREAMS = "matvec, sums, normalizations, transposes, elementwise"

GROUPS = (
    Group("matmul", "float32 products", PRODUCT, PRODUCTS, SQUARES, drawn_matmul, 30),
    Group("skinny", "float32 products", PRODUCT, PRODUCTS, SKINNY, drawn_skinny),
    Group("batched", "float32 products", PRODUCT, PRODUCTS, BATCHED,
          lambda random: case("matmul", *(between(random, 24, 128) for _ in range(3)), batch=between(random, 16, 128))),
    Group("beam", "float32 products, BEAM=2", PRODUCT, PRODUCTS, (*SQUARES, case("matmul", 64, 4096, 4096)), drawn_matmul, 3, {"BEAM": "2"}),
    Group("bf16", "bfloat16 products", PRODUCT, ("oneDNN", "torch", "torch.oneDNN"), narrow("bfloat16"),
          lambda random: drawn_matmul(random, dtype="bfloat16"), 20),
    Group("int8", "int8 products", PRODUCT, ("oneDNN", "torch", "torch.oneDNN"), narrow("int8"), lambda random: drawn_matmul(random, dtype="int8"), 20),
    Group("matvec", STREAMS, MEMORY, PRODUCTS, (case("matvec", 4096, 4096),),
          lambda random: case("matvec", between(random, 512, 8192), between(random, 512, 8192))),
    Group("elementwise", STREAMS, MEMORY, TORCH, (case("elementwise", 64 << 20, op="relu_fma"),),
          lambda random: case("elementwise", between(random, 1 << 20, 64 << 20), op=random.choice(["relu_fma", "add", "mul"]))),
    Group("sum", STREAMS, MEMORY, TORCH, (case("sum", 64 << 20),), lambda random: case("sum", between(random, 1 << 20, 64 << 20))),
    Group("softmax", STREAMS, MEMORY, TORCH, (case("softmax", 4096, 4096), case("softmax", 4096, 4096, axis=0)),
          lambda random: case("softmax", between(random, 512, 8192), between(random, 512, 8192), axis=random.randrange(2))),
    Group("layernorm", STREAMS, MEMORY, TORCH, (case("layernorm", 4096, 4096),),
          lambda random: case("layernorm", between(random, 512, 8192), between(random, 512, 8192))),
    Group("transpose", STREAMS, MEMORY, TORCH, (case("transpose", 4096, 4096), case("transpose", 8, 128, 12, 64, order=[0, 2, 1, 3])),
          drawn_transpose),
    Group("unary", STREAMS, MEMORY, TORCH, tuple(case("elementwise", 16 << 20, op=op) for op in ("gelu", "exp", "erf")),
          lambda random: case("elementwise", between(random, 1 << 20, 32 << 20), op=random.choice(["gelu", "exp", "erf"])), 15),
    Group("conv", "convolutions", Goal(least=1.0), TORCH, both_ways(RESNET_CONVS + MOBILE_CONVS + UNET_CONVS), drawn_conv),
    Group("attention", "attention", Goal(least=1.1), TORCH, ATTENTIONS, drawn_attention),
    Group("one-query", "attention", Goal(least=1.1), TORCH, QUERIES, drawn_query),
    Group("models", "networks", Goal(least=1.1), TORCH + ("onnxruntime",), NETWORKS, drawn_model, 3),
    Group("training", "training", Goal(least=1.2), TORCH + ("tinygrad",), TRAININGS, drawn_training, 3),
    Group("scaling", "scaling", Goal(scaling=True), BLAS + TORCH + ("torch.oneDNN", "onnxruntime"), SCALING, scaling=True),
    Group("replay", "replay", Goal(seconds=0.3e-6), ("torch", "tinygrad"), (case("replay", 100, 16),)),
    Group("compile", "compile time", Goal(least=60.0), ("tinygrad",), tuple(case("compile", m, least=least) for m, least in COMPILED.items())),
    Group("first-step-cold", "first steps", Goal(seconds=0.9), TORCH + ("tinygrad",), (case("first", "step", cold=True),)),
    Group("first-step-warm", "first steps", Goal(seconds=0.04, beyond_own=True), TORCH + ("tinygrad",), (case("first", "step", cold=False),)),
    Group("search-cold", "search", Goal(seconds=10.0), ("tinygrad",), (case("first", "search", cold=True),)),
)

"""The networks of bench/kernels in PyTorch."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(fan_in, out, size, stride):
    return nn.Sequential(nn.Conv2d(fan_in, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.first, self.second = conv_norm(fan_in, width, 3, stride), conv_norm(width, width, 3, 1)
        self.shortcut = conv_norm(fan_in, width, 1, stride) if stride != 1 or fan_in != width else nn.Identity()

    def forward(self, x):
        return (self.second(self.first(x).relu()) + self.shortcut(x)).relu()


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.narrow, self.middle, self.widen = conv_norm(fan_in, width, 1, 1), conv_norm(width, width, 3, stride), conv_norm(width, width * 4, 1, 1)
        self.shortcut = conv_norm(fan_in, width * 4, 1, stride) if stride != 1 or fan_in != width * 4 else nn.Identity()

    def forward(self, x):
        return (self.widen(self.middle(self.narrow(x).relu()).relu()) + self.shortcut(x)).relu()


class ResNet(nn.Module):
    def __init__(self, block, depths):
        super().__init__()
        self.stem, self.pool, blocks, fan_in = conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), [], 64
        for width, depth in zip((64, 128, 256, 512), depths):
            for i in range(depth):
                blocks.append(block(fan_in, width, 2 if i == 0 and width > 64 else 1))
                fan_in = width * block.expansion
        self.blocks, self.out = nn.Sequential(*blocks), nn.Linear(fan_in, 1000)

    def forward(self, images):
        return self.out(self.blocks(self.pool(self.stem(images).relu())).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, features=768, heads=12):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.widen, self.narrow = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        batch, tokens, features = x.shape
        q, k, v = (t.reshape(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, features))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(768)

    def forward(self, numbers):
        x = self.tokens(numbers) + self.positions(torch.arange(numbers.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class MnistNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.BatchNorm2d(32), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(576, 10))

    def forward(self, pixels):
        return super().forward(pixels.float() / 255)


MODELS = ("resnet18", "resnet50", "gpt2", "train_mnist", "train_gpt2", "train_resnet18")


def network(c):
    """The network of a case, and its inputs: one, or with the answers to train with."""
    name, size = c["kernel"], c["size"]
    if name in ("resnet18", "train_resnet18"):
        net = ResNet(BasicBlock, (2, 2, 2, 2))
    elif name == "resnet50":
        net = ResNet(Bottleneck, (3, 4, 6, 3))
    elif name in ("gpt2", "train_gpt2"):
        net = Gpt2(size[0])
    elif name == "train_mnist":
        return MnistNet(), [torch.randint(0, 256, (size[0], 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (size[0],))]
    else:
        raise ValueError(f"has no {name}")
    if name == "train_resnet18":
        return net, [torch.randn(size[0], 3, size[1], size[1]), torch.randint(0, 1000, (size[0],))]
    if name == "train_gpt2":
        return net, [torch.randint(0, 50257, size[1:]), torch.randint(0, 50257, size[1:])]
    return net, [torch.randint(0, 50257, (1, size[1])) if name == "gpt2" else torch.randn(size[0], 3, 224, 224)]


def optimizer_for(c, net):
    if c["kernel"] == "train_mnist":
        return torch.optim.Adam(net.parameters(), fused=True)
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)

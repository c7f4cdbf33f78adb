"""The networks of bench/kernels in PyTorch. Modules have the names that they have in apps/models/, so that weights can be exchanged."""
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn

import encoders_torch
import mobile_torch
from conv_norm_torch import ConvNorm


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.first, self.second = ConvNorm(fan_in, width, 3, stride), ConvNorm(width, width, 3, 1)
        self.shortcut = ConvNorm(fan_in, width, 1, stride) if stride != 1 or fan_in != width else None

    def forward(self, x):
        return (self.second(self.first(x).relu()) + (self.shortcut(x) if self.shortcut else x)).relu()


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.narrow, self.middle, self.widen = ConvNorm(fan_in, width, 1, 1), ConvNorm(width, width, 3, stride), ConvNorm(width, width * 4, 1, 1)
        self.shortcut = ConvNorm(fan_in, width * 4, 1, stride) if stride != 1 or fan_in != width * 4 else None

    def forward(self, x):
        return (self.widen(self.middle(self.narrow(x).relu()).relu()) + (self.shortcut(x) if self.shortcut else x)).relu()


class ResNet(nn.Module):
    def __init__(self, block, depths):
        super().__init__()
        self.stem, self.pool, blocks, fan_in = ConvNorm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), [], 64
        for width, depth in zip((64, 128, 256, 512), depths):
            for i in range(depth):
                blocks.append(block(fan_in, width, 2 if i == 0 and width > 64 else 1))
                fan_in = width * block.expansion
        self.blocks, self.out = nn.Sequential(*blocks), nn.Linear(fan_in, 1000)

    def forward(self, images):
        return self.out(self.blocks(self.pool(self.stem(images).relu())).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, features=768):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.attention = encoders_torch.Attention(causal=True)
        self.widen, self.narrow = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(768)

    def forward(self, numbers):
        x = self.tokens(numbers) + self.positions(torch.arange(numbers.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3, self.conv4 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 32, 5), nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3)
        self.norm1, self.norm2, self.out = nn.BatchNorm2d(32), nn.BatchNorm2d(64), nn.Linear(576, 10)

    def forward(self, pixels):
        x = pixels.float() / 255
        x = F.max_pool2d(self.norm1(self.conv2(self.conv1(x).relu()).relu()), 2)
        x = F.max_pool2d(self.norm2(self.conv4(self.conv3(x).relu()).relu()), 2)
        return self.out(x.flatten(1))


IMAGES = {"resnet18": lambda: ResNet(BasicBlock, (2, 2, 2, 2)), "resnet50": lambda: ResNet(Bottleneck, (3, 4, 6, 3)),
          "mobilenetv3": mobile_torch.MobileNetV3, "efficientnet": mobile_torch.EfficientNetB0, "vit": encoders_torch.VitB16}
TEXTS = {"gpt2": (Gpt2, 50257), "bert": (encoders_torch.BertBase, encoders_torch.VOCABULARY)}
MODELS = (*IMAGES, *TEXTS, "train_mnist", "train_gpt2", "train_resnet18", "train_bert")


def network(c):
    """The network of a case, and its inputs: one, or with the answers to train with. Weights and inputs are those of the file `share`, if
    the case has it, and the third result is what the file says comes out of them, or None."""
    name, size = c["kernel"].removeprefix("train_"), c["size"]
    train = name != c["kernel"]
    if name == "mnist":
        net, inputs = MnistNet(), [torch.randint(0, 256, (size[0], 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (size[0],))]
    elif name in IMAGES:
        side = size[1] if train else 224
        net, inputs = IMAGES[name](), [torch.randn(size[0], 3, side, side), torch.randint(0, 1000, (size[0],))]
    elif name in TEXTS:
        make, vocabulary = TEXTS[name]
        net, inputs = make(size[0]), [torch.randint(0, vocabulary, size[1:]) for _ in range(2)]
    else:
        raise ValueError(f"has no {name}")
    expected = None
    if "share" in c:
        shared = safetensors.torch.load_file(c["share"])
        inputs = [shared.pop("input"), shared.pop("answers", inputs[1]).long()]
        expected = shared.pop("losses" if train else "output").double()
        net.load_state_dict(shared)
    return net, inputs if train else inputs[:1], expected


def optimizer_for(c, net):
    if c["kernel"] == "train_mnist":
        return torch.optim.Adam(net.parameters(), fused=True)
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)


def difference(got, expected):
    """The largest one, divided by the root mean square."""
    return ((got.double().flatten() - expected).abs().max() / expected.square().mean().sqrt()).item()

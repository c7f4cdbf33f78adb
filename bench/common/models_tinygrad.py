"""The networks of apps/models/ in tinygrad."""
from tinygrad import Tensor, nn


class Bottleneck:
    def __init__(self, cin, width, stride):
        out = width * 4
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm(out)
        self.shortcut = [nn.Conv2d(cin, out, 1, stride=stride, bias=False), nn.BatchNorm(out)] if stride != 1 or cin != out else []

    def __call__(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        return (self.bn3(self.conv3(y)) + x.sequential(self.shortcut)).relu()


class ResNet50:
    def __init__(self):
        self.conv, self.bn, self.blocks = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm(64), []
        cin = 64
        for width, depth in zip((64, 128, 256, 512), (3, 4, 6, 3)):
            for i in range(depth):
                self.blocks.append(Bottleneck(cin, width, 2 if i == 0 and width > 64 else 1))
                cin = width * 4
        self.out = nn.Linear(2048, 1000)

    def __call__(self, x):
        x = self.bn(self.conv(x)).relu().max_pool2d((3, 3), stride=2, padding=1)
        return self.out(x.sequential(self.blocks).mean((2, 3)))


class Block:
    def __init__(self, dim):
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def __call__(self, x):
        b, t, c = x.shape
        q, k, v = (y.reshape(b, t, 12, c // 12).transpose(1, 2) for y in self.qkv(self.ln1(x)).chunk(3, -1))
        x = x + self.proj(q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.fc2(self.fc1(self.ln2(x)).gelu())


class GPT2:
    def __init__(self, layers):
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks, self.norm = [Block(768) for _ in range(layers)], nn.LayerNorm(768)

    def __call__(self, numbers):
        x = self.tokens(numbers) + self.positions(Tensor.arange(numbers.shape[1]).reshape(1, -1))
        return self.norm(x.sequential(self.blocks)) @ self.tokens.weight.T


class MnistNet:
    def __init__(self):
        self.layers = [lambda x: x.float() / 255, nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32),
                       Tensor.max_pool2d, nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu, nn.BatchNorm(64),
                       Tensor.max_pool2d, lambda x: x.flatten(1), nn.Linear(576, 10)]

    def __call__(self, x):
        return x.sequential(self.layers)

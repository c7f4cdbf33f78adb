"""apps/models/encoder.h in PyTorch, and the attention of GPT-2."""
import torch
import torch.nn.functional as F
from torch import nn

FEATURES, HEADS, VOCABULARY = 768, 12, 30522


class Attention(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(FEATURES, 3 * FEATURES), nn.Linear(FEATURES, FEATURES), causal

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (t.reshape(batch, tokens, HEADS, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(batch, tokens, FEATURES))


class Layer(nn.Module):
    def __init__(self, norm_first, eps):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(FEATURES, eps), nn.LayerNorm(FEATURES, eps), Attention()
        self.widen, self.narrow, self.norm_first = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES), norm_first

    def forward(self, x):
        if self.norm_first:
            x = x + self.attention(self.norm1(x))
            return x + self.narrow(F.gelu(self.widen(self.norm2(x))))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.narrow(F.gelu(self.widen(x))))


class VitB16(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.patches = nn.Conv2d(3, FEATURES, 16, 16)
        self.class_token, self.positions = nn.Parameter(torch.randn(1, 1, FEATURES) * 0.02), nn.Parameter(torch.randn(1, 197, FEATURES) * 0.02)
        self.layers, self.norm, self.out = nn.Sequential(*(Layer(True, eps) for _ in range(12))), nn.LayerNorm(FEATURES, eps), nn.Linear(FEATURES, 1000)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(images.shape[0], -1, -1), tokens], 1) + self.positions
        return self.out(self.norm(self.layers(x)[:, 0]))


class BertBase(nn.Module):
    def __init__(self, layers=12, eps=1e-12):
        super().__init__()
        self.words, self.positions, self.segments = nn.Embedding(VOCABULARY, FEATURES), nn.Embedding(512, FEATURES), nn.Embedding(2, FEATURES)
        self.norm, self.layers = nn.LayerNorm(FEATURES, eps), nn.Sequential(*(Layer(False, eps) for _ in range(layers)))
        self.transform, self.transform_norm = nn.Linear(FEATURES, FEATURES), nn.LayerNorm(FEATURES, eps)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, numbers):
        x = self.words(numbers) + self.positions(torch.arange(numbers.shape[1])) + self.segments.weight[0]
        x = self.layers(self.norm(x))
        return F.linear(self.transform_norm(F.gelu(self.transform(x))), self.words.weight, self.bias)

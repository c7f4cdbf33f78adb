"""Small networks of the kinds that people export."""
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
  def __init__(self, inputs, outputs, stride=1):
    super().__init__()
    self.a, self.b = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
    self.na, self.nb = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
    self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) if stride != 1 or inputs != outputs else nn.Identity()

  def forward(self, x): return F.relu(self.nb(self.b(F.relu(self.na(self.a(x)), inplace=True))) + self.skip(x))


class ResNet(nn.Module):
  def __init__(self):
    super().__init__()
    self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
    self.layers = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 32, 2))
    self.head = nn.Linear(32, 10)

  def forward(self, x): return self.head(torch.flatten(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1), 1))


class Inverted(nn.Module):
  def __init__(self, channels, expand, stride):
    super().__init__()
    wide = channels * expand
    self.body = nn.Sequential(nn.Conv2d(channels, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True), nn.Conv2d(wide, wide, 3, stride, 1, groups=wide),
                              nn.BatchNorm2d(wide), nn.Hardswish(inplace=True))
    self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.ReLU(), nn.Conv2d(4, wide, 1), nn.Hardsigmoid())
    self.out = nn.Sequential(nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels))

  def forward(self, x):
    y = self.body(x)
    y = self.out(y * self.squeeze(y))
    return x + y if y.shape == x.shape else y


class Attention(nn.Module):
  def __init__(self, width, heads, causal=False):
    super().__init__()
    self.heads, self.causal = heads, causal
    self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

  def forward(self, x):
    b, t, w = x.shape
    q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
    return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
  def __init__(self, width, heads, causal=False, act="tanh"):
    super().__init__()
    self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
    self.attention = Attention(width, heads, causal)
    self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate=act), nn.Linear(4 * width, width), nn.Dropout(0.1))

  def forward(self, x):
    x = x + self.attention(self.n1(x))
    return x + self.mlp(self.n2(x))


class ViT(nn.Module):
  def __init__(self):
    super().__init__()
    self.patch = nn.Conv2d(3, 32, 8, 8)
    self.token, self.place = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32))
    self.layers, self.norm, self.head = nn.Sequential(Layer(32, 4, act="none"), Layer(32, 4, act="none")), nn.LayerNorm(32), nn.Linear(32, 10)

  def forward(self, x):
    x = self.patch(x).flatten(2).transpose(1, 2)
    x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
    return self.head(self.norm(self.layers(x))[:, 0])


class GPT2(nn.Module):
  def __init__(self):
    super().__init__()
    self.words, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
    self.layers, self.norm = nn.ModuleList([Layer(32, 4, True) for _ in range(2)]), nn.LayerNorm(32)

  def forward(self, tokens):
    x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
    for layer in self.layers: x = layer(x)
    return self.norm(x) @ self.words.weight.t()


class BERT(nn.Module):
  def __init__(self):
    super().__init__()
    self.words = nn.Embedding(50, 32, padding_idx=0)
    self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)
    self.pool = nn.Linear(32, 32)

  def forward(self, tokens):
    x = self.encoder(self.words(tokens), src_key_padding_mask=tokens == 0)
    return x, torch.tanh(self.pool(x[:, 0]))


class Recurrent(nn.Module):
  def __init__(self):
    super().__init__()
    self.lstm, self.gru, self.rnn = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), nn.GRU(16, 5), nn.RNN(5, 4)

  def forward(self, x):
    y, (h, c) = self.lstm(x)
    z, g = self.gru(y)
    return y, h, c, z, self.rnn(z)[0]


class UNet(nn.Module):
  def __init__(self):
    super().__init__()
    self.a, self.b, self.c = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1)
    self.up, self.norm, self.out = nn.ConvTranspose2d(16, 16, 2, 2), nn.GroupNorm(4, 16), nn.Conv2d(8, 2, 1)

  def forward(self, x):
    a = F.silu(self.a(x))
    b = F.leaky_relu(self.norm(self.b(F.max_pool2d(a, 2))), 0.1)
    return self.out(F.elu(self.c(torch.cat([a, self.up(b)], 1))))


class VAE(nn.Module):
  def __init__(self):
    super().__init__()
    self.enc, self.mean, self.log_var = nn.Conv2d(3, 8, 4, 2, 1), nn.Linear(8 * 64, 4), nn.Linear(8 * 64, 4)
    self.dec, self.out = nn.Linear(4, 8 * 64), nn.ConvTranspose2d(8, 3, 4, 2, 1)

  def forward(self, x, noise):
    h = F.instance_norm(F.relu(self.enc(x))).flatten(1)
    mean, log_var = self.mean(h), self.log_var(h).clamp(-8, 8)
    z = mean + noise * (0.5 * log_var).exp()
    y = torch.sigmoid(self.out(F.relu(self.dec(z)).view(-1, 8, 8, 8)))
    return y, F.binary_cross_entropy(y, x.sigmoid()) - 0.5 * (1 + log_var - mean ** 2 - log_var.exp()).mean()


class YOLO(nn.Module):
  def __init__(self):
    super().__init__()
    self.stem, self.down, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(24, 3 * 7, 1)
    self.register_buffer("anchors", torch.tensor([[1., 2.], [2., 1.], [3., 3.]]))

  def forward(self, x):
    a = F.silu(self.stem(x))
    b = F.silu(self.down(a))
    y = self.head(torch.cat([F.interpolate(b, scale_factor=2, mode="nearest"), a], 1))
    n, _, h, w = y.shape
    y = y.view(n, 3, 7, h, w).permute(0, 1, 3, 4, 2)
    grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1).float()
    boxes = torch.cat([(y[..., :2].sigmoid() * 2 - 0.5 + grid) * 4, (y[..., 2:4].sigmoid() * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)], -1)
    scores, classes = y[..., 5:].softmax(-1).max(-1)
    best = torch.topk((scores * y[..., 4].sigmoid()).flatten(1), 5)
    return boxes.flatten(1, 3).gather(1, best.indices.unsqueeze(-1).expand(-1, -1, 4)), best.values, classes.flatten(1).gather(1, best.indices)


class Mixer(nn.Module):
  def __init__(self):
    super().__init__()
    self.n1, self.n2 = nn.LayerNorm(12), nn.LayerNorm(12)
    self.tokens, self.channels = nn.Sequential(nn.Linear(9, 16), nn.GELU(), nn.Linear(16, 9)), nn.Sequential(nn.Linear(12, 16), nn.Mish(), nn.Linear(16, 12))

  def forward(self, x):
    x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
    return x + self.channels(self.n2(x))


class SSM(nn.Module):
  def __init__(self):
    super().__init__()
    self.a, self.b, self.c, self.d = nn.Parameter(-torch.rand(4, 8)), nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 4)

  def forward(self, x):
    delta, b, c = F.softplus(self.d(x)), self.b(x), self.c(x)
    state, out = x.new_zeros(x.shape[0], 4, 8), []
    for t in range(x.shape[1]):
      state = state * torch.exp(delta[:, t, :, None] * self.a) + delta[:, t, :, None] * b[:, t, None] * x[:, t, :, None]
      out.append(torch.einsum("bds,bs->bd", state, c[:, t]))
    return torch.stack(out, 1)


class Diffusion(nn.Module):
  def __init__(self):
    super().__init__()
    self.time, self.inner = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)), nn.Conv2d(16, 16, 3, padding=1)
    self.n1, self.n2, self.context = nn.GroupNorm(4, 16), nn.GroupNorm(4, 16), nn.MultiheadAttention(16, 2, kdim=8, vdim=8, batch_first=True)

  def forward(self, x, step, text):
    frequency = torch.exp(-torch.arange(8) * 0.5)
    angle = step[:, None].float() * frequency
    x = self.inner(F.silu(self.n1(x))) + self.time(torch.cat([angle.sin(), angle.cos()], -1))[:, :, None, None]
    rows = self.n2(x).flatten(2).transpose(1, 2)
    return x + self.context(rows, text, text, need_weights=False)[0].transpose(1, 2).view(x.shape)


class Cache(nn.Module):
  """Writes into buffers, inputs and views of both."""
  def __init__(self):
    super().__init__()
    self.register_buffer("keys", torch.zeros(1, 6, 4)); self.register_buffer("count", torch.zeros((), dtype=torch.int64))

  def forward(self, x, total):
    before = self.keys.clone()
    self.keys[:, 2:4] = x
    self.keys.mul_(2)
    self.count += 1
    total.add_(x.sum())
    y = torch.zeros(3, 4)
    y[1:, ::2].fill_(3)
    row = y[0]
    y.add_(1)
    return before, self.keys.sum(1), row, y, self.count + 1


class Aliases(nn.Module):
  """Writes into what is the same memory as something else, or is not."""
  def forward(self, x):
    x = x + 0
    same = F.dropout(x, 0.5, False); same[0].mul_(2)
    rows = x[1:].reshape(-1); rows[:3].add_(7)                # a view, not from the beginning
    copied = x.transpose(0, 1).reshape(-1); copied.zero_()    # a copy
    merged = x.unsqueeze(0).transpose(0, 1).flatten(0, 1); merged[2].sub_(1)   # a view
    whole = x.contiguous(); whole[:, 0].add_(100)
    turned = x.t().contiguous(); turned.add_(1000)
    converted = x.to(torch.float32); converted[3].add_(5)
    strided = x[:, ::2].reshape(-1); strided.add_(11); gaps = x[0, ::2].contiguous(); gaps.zero_()   # copies
    line = x[0, ::3].reshape(2, 1); line.sub_(4); flat = x[2:].ravel(); flat[4:6].mul_(9)                # views
    bits = x.view(torch.int32); bits[1, 1].fill_(0x40490fdb)
    wide = x.reshape(2, 2, -1).transpose(0, 1).flatten(1); wide.mul_(3)
    return x, same, rows, copied, merged, whole, turned, converted, strided, gaps, line, flat, bits, wide


class Swap(nn.Module):
  """Each buffer becomes what the other one was."""
  def __init__(self):
    super().__init__()
    self.register_buffer("a", torch.tensor([1.0, 2.0])); self.register_buffer("b", torch.tensor([3.0, 4.0]))

  def forward(self, x):
    old = self.a.clone()
    self.a.copy_(self.b); self.b.copy_(old)
    return self.a + x, self.b * x, old


class Tied(nn.Module):
  """Buffers in one memory, of which one is written: refused."""
  def __init__(self):
    super().__init__()
    self.register_buffer("a", torch.arange(6.0).reshape(2, 3)); self.register_buffer("b", self.a[0])

  def forward(self, x):
    self.a.add_(1)
    return self.b + x


class Control(nn.Module):
  def forward(self, x):
    a = torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,))
    with torch.no_grad(): b = x.exp()
    return a, b, x.masked_fill(x > 0, float("-inf"))


class Sizes(nn.Module):
  def forward(self, x, y):
    n = x.shape[0]
    return x.reshape(n * 2, 2).sum(1), torch.ones(n + 1, dtype=torch.int16), torch.cat([x, y], 0), x[: n - 1], n


class Resized(nn.Module):
  """Sizes that numbers which are not whole are made of."""
  def forward(self, x):
    half = F.interpolate(x, scale_factor=0.5, mode="bilinear", recompute_scale_factor=True)
    return half, F.interpolate(x, scale_factor=1.7, mode="bilinear"), F.interpolate(x, scale_factor=2.0, mode="bicubic"), x[..., : int(x.shape[-1] * 0.75)]


def cases():
  out = []
  def add(name, module, *inputs, train=False, **options): out.append((name, module.train(train), inputs, options))
  torch.manual_seed(0)
  image = torch.randn(2, 3, 32, 32)
  add("resnet", ResNet(), image); add("mobilenet", nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Inverted(8, 3, 1), Inverted(8, 2, 2)), image)
  add("resnet-train", ResNet(), image, train=True)
  add("vit", ViT(), image); add("bert", BERT(), torch.tensor([[5, 3, 9, 0], [7, 2, 0, 0]])); add("lstm", Recurrent(), torch.randn(2, 5, 6))
  add("gpt2", GPT2(), torch.randint(0, 50, (2, 9))); add("unet", UNet(), torch.randn(1, 1, 16, 16)); add("vae", VAE(), torch.randn(2, 3, 16, 16), torch.randn(2, 4))
  add("yolo", YOLO(), image); add("mixer", Mixer(), torch.randn(2, 9, 12)); add("ssm", SSM(), torch.randn(2, 5, 4))
  add("diffusion", Diffusion(), torch.randn(2, 16, 4, 4), torch.tensor([3, 70]), torch.randn(2, 5, 8))
  add("cache", Cache(), torch.randn(1, 2, 4), torch.tensor([1.0])); add("aliases", Aliases(), torch.randn(4, 6)); add("swap", Swap(), torch.ones(2)); add("tied", Tied(), torch.ones(3)); add("control", Control(), torch.randn(3, 4))
  add("resized", Resized(), torch.randn(1, 2, 11, 14), dynamic=({2: torch.export.Dim("height", min=4, max=64), 3: torch.export.Dim.AUTO},))
  rows, others = torch.export.Dim("rows", min=3, max=64), torch.export.Dim("others", min=1, max=9)
  add("sizes", Sizes(), torch.randn(6, 4), torch.randn(3, 4), dynamic=({0: rows}, {0: others}))
  add("gpt2-dynamic", GPT2(), torch.randint(0, 50, (2, 9)), dynamic=({1: torch.export.Dim("length", min=2, max=60)},))
  return out

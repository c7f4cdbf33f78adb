"""Parameters under tinygrad's names, in its order and with its defaults, so that calls by name work; and none that takes any name."""

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tinygrad_cpp import Tensor, TinyJit, UOp, Variable, dtypes, function, helpers, nn
from tinygrad_cpp.engine import jit

# Methods of Tensor without parameters.
WITHOUT = """
abs acos acosh asin asinh atan atanh bfloat16 bitwise_not bool ceil contiguous_backward cos cosh data detach diag double element_size erf exp exp2
float floor half hardswish hash int is_floating_point isfinite isnan item log log10 log2 logical_not logsigmoid long max_numel mish nbytes neg
numel numpy qr quick_gelu reciprocal relu relu6 round rsqrt short sigmoid sign silu sin sinh softsign sqrt square swish tan tanh tolist trunc
""".split()

# What tinygrad hands on as **kwargs is spelled out.
TENSOR = """
add(x, reverse=False)
all(axis=None, keepdim=False)
allclose(other, rtol=1e-05, atol=1e-08, equal_nan=False)
alu(op, *src)
any(axis=None, keepdim=False)
arange(start, stop=None, step=1, dtype=None)
as_param(slot)
argmax(axis=None, keepdim=False)
argmin(axis=None, keepdim=False)
argsort(dim=-1, descending=False)
assign(x)
avg_pool2d(kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False, count_include_pad=True)
backward(gradient=None)
batchnorm(weight, bias, mean, invstd, axis=1)
binary_crossentropy(Y, reduction='mean')
binary_crossentropy_logits(Y, reduction='mean', pos_weight=None)
bitcast(dtype)
bitwise_and(x, reverse=False)
bitwise_or(x, reverse=False)
bitwise_xor(x, reverse=False)
call(*lst, fxn, grad_fxn=None)
callify(*lst)
cast(dtype)
cat(*args, dim=0)
celu(alpha=1.0)
chunk(chunks, dim=0)
clamp(min_=None, max_=None)
clip(min_=None, max_=None)
clone(device=None)
const(b, dtype=None)
const_like(b, dtype=None)
contiguous(*, arg=None)
conv2d(weight, bias=None, groups=1, stride=1, dilation=1, padding=0, dtype=None)
conv_transpose2d(weight, bias=None, groups=1, stride=1, dilation=1, padding=0, output_padding=0)
copysign(other)
cross_entropy(Y, reduction='mean', label_smoothing=0.0)
cummax(axis=0)
cummin(axis=0)
cumprod(axis)
cumsum(axis=0)
custom_kernel(*lst, fxn, grad_fxn=None)
diagonal(offset=0, dim1=0, dim2=1)
div(x, reverse=False, rounding_mode=None)
dot(w, dtype=None)
dropout(p=0.5)
einsum(formula, *operands, dtype=None)
elu(alpha=1.0)
empty(*shape, device=None, dtype=None)
empty_like(dtype=None, device=None)
eq(x)
expand(shape, *args)
eye(n, m=None, dtype=None)
flatten(start_dim=0, end_dim=-1)
flip(axis, *args)
fmod(x)
from_blob(ptr, shape, *, dtype=None, device=None)
from_url(url, gunzip=False, device=None, dtype=None)
full(shape, fill_value, dtype=None, device=None, buffer=True)
full_like(fill_value, dtype=None, device=None, buffer=True)
gather(dim, index)
gelu(approximate='tanh')
glorot_uniform(*shape, device=None, dtype=None, contiguous=True)
gradient(*targets, gradient=None)
hardsigmoid(alpha=0.16666666666666666, beta=0.5)
hardtanh(min_val=-1, max_val=1)
image_conv2d(weight, bias=None, groups=1, stride=1, dilation=1, padding=0, dtype=None)
image_dot(w, dtype=None)
interpolate(size, mode='linear', align_corners=False)
invalids(*shape, device=None, dtype=None)
is_param_(is_param=True)
isclose(other, rtol=1e-05, atol=1e-08, equal_nan=False)
isinf(detect_positive=True, detect_negative=True)
kaiming_normal(*shape, a=0.01, device=None, dtype=None)
kaiming_uniform(*shape, a=0.01, device=None, dtype=None, contiguous=True)
keccak(cfg='sha3_256')
layernorm(axis=-1, eps=1e-05)
leaky_relu(neg_slope=0.01)
lerp(end, weight)
linear(weight, bias=None, dtype=None)
linear_with_vars(*lst)
linspace(start, stop, steps, dtype=None)
log_softmax(axis=-1, dtype=None)
logaddexp(other)
logcumsumexp(axis=0)
logsumexp(axis=None, keepdim=False)
lshift(x, reverse=False)
manual_seed(seed=0)
masked_fill(mask, value)
masked_select(mask, size=None, fill_value=0)
matmul(x, reverse=False, dtype=None)
max(axis=None, keepdim=False)
max_pool2d(kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False, return_indices=False)
max_unpool2d(indices, kernel_size=(2, 2), stride=None, dilation=1, padding=0, output_size=None)
maximum(x)
mean(axis=None, keepdim=False)
meshgrid(*args, indexing='ij')
min(axis=None, keepdim=False)
minimum(x)
mod(x, reverse=False)
mul(x, reverse=False)
multinomial(num_samples=1, replacement=False)
ne(x)
newton_schulz(steps, params, eps=1e-07)
nll_loss(Y, weight=None, ignore_index=None, reduction='mean')
nonzero(size=None, fill_value=0)
normal(*shape, mean=0.0, std=1.0, device=None, dtype=None)
normalize(p=2.0, dim=1, eps=1e-12)
one_hot(num_classes)
ones(*shape, device=None, dtype=None, buffer=True)
ones_like(dtype=None, device=None, buffer=True)
pad(padding, mode='constant', value=0.0)
pad_to(shape, *args, value=0)
permute(order, *args)
pow(x, reverse=False)
prod(axis=None, keepdim=False, dtype=None)
rand(*shape, device=None, dtype=None, contiguous=True)
rand_like(dtype=None, device=None, contiguous=True)
randint(*shape, low=0, high=10, dtype=None, device=None, contiguous=True)
randn(*shape, dtype=None, device=None)
randn_like(dtype=None, device=None, contiguous=True)
random_bits(key, counter, num)
randperm(n, device=None, dtype=None, contiguous=True)
realize(*lst, do_update_stats=True)
rearrange(formula, **sizes)
repeat(repeats, *args)
repeat_interleave(repeats, dim=None)
replace(x)
reshape(shape, *args)
roll(shifts, dims=None)
rshift(x, reverse=False)
scaled_dot_product_attention(key, value, attn_mask=None, dropout_p=0.0, is_causal=False, enable_gqa=False)
scaled_uniform(*shape, device=None, dtype=None, contiguous=True)
scatter(dim, index, src, reduce=None)
scatter_reduce(dim, index, src, reduce, include_self=True)
schedule_linear(*lst)
selu(alpha=1.67326, gamma=1.0507)
sequential(ll)
shard(devices, axis=None)
shard_(devices, axis=None)
shard_like(y)
shrink(arg)
shrink_to(shape, *args)
size(dim=None)
softmax(axis=-1, dtype=None)
softmin(axis=-1, dtype=None)
softplus(beta=1.0)
sort(dim=-1, descending=False)
sparse_categorical_crossentropy(Y, ignore_index=-1, label_smoothing=0.0, reduction='mean')
split(sizes, dim=0)
squeeze(dim=None)
stack(*args, dim=0)
std(axis=None, keepdim=False, correction=1)
std_mean(axis=None, keepdim=False, correction=1)
sub(x, reverse=False)
sum(axis=None, keepdim=False, dtype=None)
svd(full_matrices=True)
threefry(seed)
to(device)
to_(device)
topk(k, dim=-1, largest=True, sorted_=True)
transpose(dim0=1, dim1=0)
tril(diagonal=0)
triu(diagonal=0)
ufix(x)
unflatten(dim, sizes)
unfold(dim, size, step)
uniform(*shape, low=0.0, high=1.0, dtype=None, device=None, contiguous=True)
unsqueeze(dim)
uprod(*uops)
usum(*uops)
var(axis=None, keepdim=False, correction=1)
var_mean(axis=None, keepdim=False, correction=1)
view(shape, *args)
where(x, y)
zeros(*shape, device=None, dtype=None, buffer=True)
zeros_like(dtype=None, device=None, buffer=True)
"""

OTHERS = """
UOp.add(x, reverse=False)
UOp.after(*src)
UOp.bitcast(dtype)
UOp.bitwise_and(x, reverse=False)
UOp.bitwise_or(x, reverse=False)
UOp.bitwise_xor(x, reverse=False)
UOp.cast(dtype)
UOp.const(b, dtype=None)
UOp.end(*src)
UOp.eq(x)
UOp.group(*srcs)
UOp.lshift(x, reverse=False)
UOp.max(axis=None, keepdim=False)
UOp.maximum(x)
UOp.minimum(x)
UOp.mod(x, reverse=False)
UOp.mul(x, reverse=False)
UOp.ne(x)
UOp.placeholder(shape, dtype, slot=None, addrspace='GLOBAL')
UOp.range(end, axis_id, axis_type='LOOP', dtype=None)
UOp.reduce(*src, arg='ADD')
UOp.rshift(x, reverse=False)
UOp.set(val, end=())
UOp.sink(*srcs, arg=None)
UOp.store(src, gate=None)
UOp.permute(order, *args)
UOp.reshape(shape, *args)
UOp.index(*srcs)
UOp.sub(x, reverse=False)
UOp.sum(axis=None, keepdim=False, dtype=None)
UOp.variable(name, min_val, max_val, dtype=None)
UOp.where(x, y)
Variable.bind(val)
Variable.unbind()
jit.TinyJit(fxn=None, *, prune=False)
JittedFunction.free_intermediates()
JittedFunction.reset()
nn.BatchNorm(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
nn.BatchNorm2d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
nn.BatchNorm3d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
nn.Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True)
nn.Conv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True)
nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1, bias=True)
nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1, bias=True)
nn.Embedding(vocab_size, embed_size)
nn.GroupNorm(num_groups, num_channels, eps=1e-05, affine=True)
nn.InstanceNorm(num_features, eps=1e-05, affine=True)
nn.LSTMCell(input_size, hidden_size, bias=True)
nn.LayerNorm(normalized_shape, eps=1e-05, elementwise_affine=True)
nn.LayerNorm2d(normalized_shape, eps=1e-05, elementwise_affine=True)
nn.Linear(in_features, out_features, bias=True)
nn.RMSNorm(dim, eps=1e-06, elementwise_affine=True)
optim.Adam(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, device=None, fused=None)
optim.AdamW(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, weight_decay=0.01, device=None, fused=None)
optim.LAMB(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-06, weight_decay=0.0, adam=False, device=None, fused=None)
optim.LARS(params, lr=0.001, momentum=0.9, weight_decay=0.0001, ns_steps=0, ns_coefficients=None, nesterov=False, classic=True, pre_wd=True,
    tcoef=0.001, device=None, fused=None)
optim.Muon(params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5, ns_coefficients=(3.4445, -4.775, 2.0315), nesterov=True, device=None,
    fused=None)
optim.Optimizer(params, lr, device=None, fused=None)
optim.OptimizerGroup(*optimizers)
optim.SGD(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False, device=None, fused=None)
state.TensorIO(t)
state.accept_filename(func)
state.get_parameters(obj)
state.get_state_dict(obj, prefix='', tensor_type=Tensor)
state.load_state_dict(model, state_dict, strict=True, verbose=True, consume=False, realize=True)
state.safe_load(fn)
state.safe_load_metadata(t)
state.safe_save(tensors, fn, metadata=None)
state.tar_extract(t)
state.torch_load(t)
state.zip_extract(t)
helpers.Context(**kwargs)
helpers.ContextVar(key, default_value)
helpers.Profiling(enabled=True, sort='cumtime', frac=0.2, fn=None, ts=1)
helpers.Timing(prefix='', on_exit=None, enabled=True)
helpers.all_int(t)
helpers.all_same(items)
helpers.ansilen(s)
helpers.ansistrip(s)
helpers.argfix(*x)
helpers.argsort(x)
helpers.cdiv(x, y)
helpers.ceildiv(num, amt)
helpers.cmod(x, y)
helpers.colored(st, color, background=False)
helpers.dedup(x)
helpers.fetch(url, name=None, subdir=None, gunzip=False, allow_caching=True, headers={}, sha256=None, extract=False)
helpers.flatten(l)
helpers.floordiv(x, y)
helpers.floormod(x, y)
helpers.fully_flatten(l)
helpers.get_child(obj, key)
helpers.get_single_element(x)
helpers.getenv(key, default=0)
helpers.make_tuple(x, cnt)
helpers.merge_dicts(ds)
helpers.next_power2(x)
helpers.partition(itr, fxn)
helpers.prod(x)
helpers.round_down(num, amt)
helpers.round_up(num, amt)
helpers.size_to_str(s)
helpers.time_to_str(t, w=8)
helpers.to_tuple(x)
helpers.tqdm(iterable=None, desc='', disable=False, unit='it', unit_scale=False, total=None, rate=100)
helpers.trange(n, **kwargs)
helpers.unwrap(x)
datasets.cifar(device=None)
datasets.mnist(device=None, fashion=False)
"""

HERE = {"Tensor": Tensor, "nn": nn, "optim": nn.optim, "state": nn.state, "helpers": helpers, "datasets": nn.datasets, "dtypes": dtypes, "UOp": UOp, "Variable": Variable,
        "jit": jit, "JittedFunction": jit.JittedFunction}
ANY_NAME = {"Tensor.rearrange", "helpers.Context", "helpers.trange"}  # names of axes and of options; what tqdm takes


def rows(table: str, prefix: str = "") -> list[str]:
  """A function a row, which may go on in indented lines."""
  return [prefix + row for row in re.sub(r"\n +", " ", table).split("\n") if row]


def parsed(signature: str, defaults: tuple[Any, ...] = ()) -> ast.arguments:
  """The parameters of "name(a, b=1)"; defaults that are no literals are numbers of `defaults`."""
  node = ast.parse(f"def {signature}: pass").body[0]
  assert isinstance(node, ast.FunctionDef)
  node.args.posonlyargs, node.args.args = [], node.args.posonlyargs + node.args.args
  for name in ("defaults", "kw_defaults"):
    setattr(node.args, name, [value_of(d, defaults) for d in getattr(node.args, name)])
  return node.args


def value_of(node: ast.expr | None, defaults: tuple[Any, ...]) -> Any:
  if node is None:
    return inspect.Parameter.empty
  if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
    return defaults[node.slice.value]
  return Tensor if isinstance(node, ast.Name) and node.id == "Tensor" else ast.literal_eval(node)


def own(f: Any) -> ast.arguments:
  """The parameters of a function of the module, without self."""
  made = f.__init__ if isinstance(f, type) and hasattr(f.__init__, "__nb_signature__") else f
  if hasattr(made, "__nb_signature__"):
    text, _, defaults = made.__nb_signature__[0]
    text = re.sub(r"\\=(\d+)", lambda shown: defaults[int(shown[1])], text)  # what a binding shows of a default
    text = re.sub(r"\\(\d+)", r"_[\1]", text).replace("tinygrad_cpp._core.", "").removeprefix("def ")
    arguments = parsed(text, defaults or ())
    arguments.args = [a for a in arguments.args if a.arg != "self"]
    return arguments
  out = ast.arguments(posonlyargs=[], args=[], defaults=[], kwonlyargs=[], kw_defaults=[])
  for p in inspect.signature(f).parameters.values():
    if p.name == "self":
      continue
    if p.kind is p.VAR_POSITIONAL:
      out.vararg = ast.arg(p.name)
    elif p.kind is p.VAR_KEYWORD:
      out.kwarg = ast.arg(p.name)
    elif p.kind is p.KEYWORD_ONLY:
      out.kwonlyargs.append(ast.arg(p.name))
      out.kw_defaults.append(p.default)
    else:
      out.args.append(ast.arg(p.name))
      if p.default is not p.empty:
        out.defaults.append(p.default)
  return out


def by_name(a: ast.arguments) -> dict[str, Any]:
  needed = [inspect.Parameter.empty] * (len(a.args) - len(a.defaults))
  return {x.arg: d for x, d in zip(a.args + a.kwonlyargs, [*needed, *a.defaults, *a.kw_defaults])}


def check(row: str) -> None:
  path, _, rest = row.partition("(")
  place, name = path.split(".")
  wanted, found = parsed(f"{name}({rest}"), own(getattr(HERE[place], name))
  theirs, ours = by_name(wanted), by_name(found)
  if wanted.vararg and wanted.args and place in ("Tensor", "UOp") and wanted.vararg.arg == "args":  # f(2, 3), f((2, 3)) and f(shape=(2, 3))
    theirs[wanted.args[0].arg] = None
  assert bool(wanted.vararg) == bool(found.vararg), f"{path}: any number of positional arguments"
  for parameter, default in theirs.items():
    assert parameter in ours, f"{path}: has {list(ours)}, lacks {parameter}"
    same = not ours[parameter] if isinstance(default, dict) else type(ours[parameter]) is type(default) and ours[parameter] == default
    assert same, f"{path}: {parameter} is {ours[parameter]!r} by default, not {default!r}"
  if not wanted.vararg:
    places = [a.arg for a in found.args if a.arg in theirs]
    assert places == [a.arg for a in wanted.args], f"{path}: {places} by their places, not {[a.arg for a in wanted.args]}"
  assert bool(found.kwarg) == (path in ANY_NAME), f"{path}: takes any name"


@pytest.mark.parametrize("row", [f"Tensor.{name}()" for name in WITHOUT] + rows(TENSOR, "Tensor.") + rows(OTHERS), ids=lambda r: r.partition("(")[0])
def test_parameters(row: str) -> None:
  check(row)


def takes_any_name() -> list[str]:
  """Functions of the package that have **kwargs."""
  out = []
  for place, holder in HERE.items():
    for name in dir(holder):
      f = getattr(holder, name)
      made_here = callable(f) and str(getattr(f, "__module__", "tinygrad_cpp")).startswith("tinygrad_cpp")
      is_made = not isinstance(f, type) or hasattr(f.__init__, "__nb_signature__") or inspect.isfunction(f.__init__)
      if made_here and is_made and not name.startswith("_") and own(f).kwarg:
        out.append(f"{place}.{name}")
  return out


def test_an_unknown_keyword_is_an_error() -> None:
  assert set(takes_any_name()) == ANY_NAME
  x = Tensor.ones(2, 3)
  for call in (lambda: x.reshape(3, 2, typo=1), lambda: Tensor.zeros(2, typo=1), lambda: x.sum(typo=1), lambda: nn.Linear(2, 3, typo=1),
               lambda: nn.optim.SGD([x], typo=1), lambda: TinyJit(lambda y: y, typo=1), lambda: function(typo=1), lambda: function(lambda y: y, typo=1),
               lambda: Variable("n", 1, 2, typo=1), lambda: helpers.fetch("/x", typo=1), lambda: Tensor(1, typo=1), lambda: x.shard((), typo=1),
               lambda: helpers.trange(3, typo=1), lambda: dtypes.finfo(typo=1), lambda: nn.state.safe_load("x", typo=1)):
    with pytest.raises(TypeError, match="typo"):
      call()  # type: ignore[no-untyped-call]

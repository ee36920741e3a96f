"""exact.py - attention and its gradients by PyTorch's autograd in float64, of the plain formula, with the sizes by which errors
are judged (mathematics.md section 2 to 4 and 6).

Tensors have heads first: q [b, h, nq, d], k and v [b, hk, nk, d]. A size is, for each element of a result, the root of the sum
of the squares of the terms that it is a sum of; of an input's gradient a term is the sum of the absolute values of a row."""
from typing import Callable, NamedTuple

from device import torch

LIMITS = {torch.bfloat16: 4e-3, torch.float16: 7e-4}
AT_ONCE = 1 << 24  # numbers of a temporary tensor
KEPT = {"softmax": ("lse",), "logsoftmax": ("lse", "u"), "retention": ("r",)}


class Input(NamedTuple):
    """Of a score: its axes as a call declares them, and a function that lays a tensor like it out over [b, h, nq, nk]."""
    axes: str
    value: torch.Tensor
    over_pairs: Callable


class Exact:
    """mask: bool, broadcast to [b, h, nq, nk], or None. score: a function of s and of the inputs, by name, over pairs.
    bias: as it is given, or None. factor: 0, or 1 / r where a weight is kept, of dropout."""

    def __init__(self, q, k, v, mask=None, score=None, inputs=None, bias=None, sink=None, normalizer="softmax",
                 sigmoid_bias=None, scale=None, factor=1.0):
        of_inputs = {name: x.value for name, x in (inputs or {}).items()}
        given = {"q": q, "k": k, "v": v, "bias": bias, "sink": sink, **of_inputs}
        self.leaves = {name: x.detach().double().requires_grad_() for name, x in given.items()
                       if x is not None and x.is_floating_point()}
        exact = {**of_inputs, **self.leaves}
        q, k, v = (self.leaves[name] for name in "qkv")
        self.group = q.shape[1] // k.shape[1]
        self.keys, self.values = (x.repeat_interleave(self.group, 1) for x in (k, v))
        self.scale = q.shape[3] ** -0.5 if scale is None else scale
        self.raw = self.scale * q @ self.keys.transpose(2, 3)
        self.shape = self.raw.shape
        self.places = {name: x.over_pairs for name, x in (inputs or {}).items()}
        self.over_pairs = {name: place(exact[name]).expand(self.shape) for name, place in self.places.items()}
        self.score = score(self.raw, **self.over_pairs) if score else self.raw
        self.s = self.score if bias is None else self.score + self.leaves["bias"]
        self.mask = torch.ones_like(self.raw, dtype=torch.bool) if mask is None else mask.expand(self.shape)
        self.sink, self.factor, self.normalizer = self.leaves.get("sink"), factor, normalizer
        self.results, self.sizes = {}, {}
        getattr(self, normalizer)(torch.where(self.mask, self.s, 0.0), sigmoid_bias)
        self.results["o"] = self.weights @ self.values
        self.sizes["o"] = root(self.weight_size ** 2 @ self.values ** 2)

    # ---- normalizers: weights of v, their sizes, and what is kept ----

    def log_sum(self):
        s = torch.where(self.mask, self.s, -torch.inf)
        if self.sink is not None:
            s = torch.cat((s, self.sink[None, :, None, None].expand(*s.shape[:3], 1)), 3)
        sees = s.isfinite().any(3)
        # a row that sees nothing has no gradient, where that of -inf - -inf is no number
        lse = torch.where(sees[..., None], s, 0.0).logsumexp(3)
        self.results["lse"] = torch.where(sees, lse, -torch.inf)
        self.lse = torch.where(sees, lse, 0.0)[..., None]
        self.p = torch.where(self.mask, (torch.where(self.mask, self.s, 0.0) - self.lse).exp(), 0.0)

    def softmax(self, *_):
        self.log_sum()
        self.weights = self.weight_size = self.p * self.factor

    def logsoftmax(self, s, _):
        self.log_sum()
        self.weights = torch.where(self.mask, s - self.lse, 0.0)
        self.weight_size = torch.where(self.mask, s.abs() + self.lse.abs(), 0.0)
        self.results["u"] = self.mask.double() @ self.values

    def retention(self, s, _):
        self.results["r"] = s.abs().sum(3)
        self.c = self.results["r"][..., None].clamp(min=1.0)
        self.weights = self.weight_size = s / self.c

    def sigmoid(self, s, bias):
        bias = -torch.tensor(float(self.shape[3])).double().log() if bias is None else bias
        self.weights = self.weight_size = torch.where(self.mask, (s + bias).sigmoid(), 0.0)

    def none(self, s, _):
        self.weights = self.weight_size = s

    # ---- gradients ----

    def backward(self, dout, dlse=None):
        """name of a leaf -> (gradient, size)."""
        ends, of_ends = [self.results["o"]], [dout]
        if dlse is not None:  # an empty row's lse has no gradient
            ends.append(self.lse[..., 0])
            of_ends.append(dlse)
        values = torch.autograd.grad(ends, list(self.leaves.values()), of_ends, retain_graph=True, allow_unused=True)
        slope, = torch.autograd.grad(self.score.sum(), self.raw, retain_graph=True)
        with torch.no_grad():
            dlse = torch.zeros_like(dout[..., 0]) if dlse is None else dlse
            size, inner = self.pair_sizes(dout, dlse[..., None])
            at_s = size * slope.abs()
            sizes = {"q": self.scale * root(at_s ** 2 @ self.keys ** 2),
                     "k": self.scale * root(self.of_groups((at_s ** 2).transpose(2, 3) @ self.leaves["q"] ** 2)),
                     "v": root(self.of_groups((self.weight_size ** 2).transpose(2, 3) @ dout ** 2))}
            if self.sink is not None:
                share = (self.sink[:, None, None] - self.lse).exp()
                sizes["sink"] = root(((share * (dlse[..., None].abs() + inner.abs())) ** 2).sum((0, 2, 3)))
        if "bias" in self.leaves:
            sizes["bias"] = over_rows(size, self.leaves["bias"], lambda x: x)
        for name in self.leaves.keys() & self.places.keys():
            change, = torch.autograd.grad(self.score.sum(), self.over_pairs[name], retain_graph=True)
            sizes[name] = over_rows(size * change.abs(), self.leaves[name], self.places[name])
        return {name: (torch.zeros_like(x) if value is None else value, sizes[name])
                for (name, x), value in zip(self.leaves.items(), values)}

    def pair_sizes(self, dout, dlse):
        """What is behind dS of each pair, w of mathematics.md's table; and dO . O of each row."""
        dp = (dout @ self.values.transpose(2, 3)).abs() * self.factor
        inner = (dout * self.results["o"]).sum(3, keepdim=True)
        if self.normalizer == "softmax":
            size = self.p * (dp + (inner - dlse).abs())
        elif self.normalizer == "logsoftmax":
            size = dp + self.p * ((dout * self.results["u"]).sum(3, keepdim=True) - dlse).abs()
        elif self.normalizer == "retention":
            size = (dp + (self.results["r"][..., None] > 1) * inner.abs()) / self.c
        elif self.normalizer == "sigmoid":
            size = self.weights * (1 - self.weights) * dp
        else:
            size = dp
        return torch.where(self.mask, size, 0.0), inner

    def of_groups(self, x):
        return x.unflatten(1, (-1, self.group)).sum(2)


def root(x):
    return x.detach().sqrt()


def over_rows(terms, like, over_pairs):
    """The size of the gradient of an input: terms are absolute values over pairs."""
    nk, n = terms.shape[3], like.numel()
    index = over_pairs(torch.arange(n, device=like.device).view(like.shape)).expand(terms.shape).reshape(-1, nk)
    squares = torch.zeros(n, dtype=terms.dtype, device=terms.device)
    at_once = max(AT_ONCE // max(n, 1), 1)
    for places, some in zip(index.split(at_once), terms.reshape(-1, nk).split(at_once)):
        rows = torch.zeros(len(some), n, dtype=terms.dtype, device=terms.device).scatter_add_(1, places, some)
        squares += (rows ** 2).sum(0)
    return squares.sqrt().view(like.shape)


def error(x, value, size):
    """The distance from a value, as a share of it or of its size."""
    scale = max(value.norm().item(), size.norm().item())
    distance = (x.double() - value).norm().item()
    return distance / scale if scale else distance

"""formula.py - attention and its gradients in float64, as plain formulas, and how far from them is right.

Arrays have heads first: q, o, dout [b, h, nq, d], k and v [b, hk, nk, d]; a reference has for each result its value and
the size by which errors of it are judged (the root of the sum of the squares of the terms that it is a sum of)."""
import numpy as np

LIMITS = {"bf16": 4e-3, "f16": 7e-4, "f32": 1e-5}


def heads_first(x):
    return np.asarray(x, np.float64).swapaxes(1, 2)


def of_groups(x, h):
    """Key/value heads, each repeated for the query heads that it serves."""
    return x.repeat(h // x.shape[1], 1)


def over_groups(x, hk):
    """The sum over the query heads of each key/value head."""
    b, h, n, d = x.shape
    return x.reshape(b, hk, h // hk, n, d).sum(2)


class Reference:
    """Attention of q, k, v. mask: bool [b|1, h|1, nq, nk]; score: a function of s that gives the score and its
    derivative; factor: 0, or 1 / r where a weight is kept, of dropout."""

    def __init__(self, q, k, v, mask=True, score=None, bias=0.0, sink=None, normalizer="softmax", sigmoid_bias=None,
                 scale=None, factor=1.0):
        self.q, self.k, self.v = heads_first(q), heads_first(k), heads_first(v)
        h = self.q.shape[1]
        self.keys, self.values = of_groups(self.k, h), of_groups(self.v, h)
        self.scale = self.q.shape[3] ** -0.5 if scale is None else scale
        raw = self.scale * self.q @ self.keys.swapaxes(2, 3)
        s, self.slope = score(raw) if score else (raw, np.ones_like(raw))
        self.s = s = s + bias
        self.mask = mask = np.broadcast_to(mask, s.shape)
        self.max_logit = np.where(mask, raw, -np.inf).max((2, 3), initial=-np.inf)
        self.normalizer, self.factor = normalizer, factor
        self.sink = None if sink is None else np.asarray(sink, np.float64)
        getattr(self, normalizer)(np.where(mask, s, 0.0), sigmoid_bias)
        self.o = self.weights @ self.values
        self.o_size = np.sqrt((self.weight_size ** 2) @ self.values ** 2)

    def log_sum(self, s):
        s = np.where(self.mask, self.s, -np.inf)
        if self.sink is not None:
            column = np.broadcast_to(self.sink[None, :, None, None], s.shape[:3] + (1,))
            s = np.concatenate((s, column), 3)
        with np.errstate(divide="ignore"):
            top = s.max(3, keepdims=True, initial=-1e300)
            self.lse = (np.log(np.exp(s - top).sum(3, keepdims=True)) + top)[..., 0]
        self.row = np.where(np.isfinite(self.lse), self.lse, 0.0)[..., None]
        self.p = np.where(self.mask, np.exp(self.s - self.row), 0.0)

    def softmax(self, s, _):
        self.log_sum(s)
        self.weights = self.weight_size = self.p * self.factor

    def logsoftmax(self, s, _):
        self.log_sum(s)
        self.weights = np.where(self.mask, s - self.row, 0.0)
        self.weight_size = np.where(self.mask, abs(s) + abs(self.row), 0.0)
        self.u = self.mask.astype(float) @ self.values

    def retention(self, s, _):
        self.r = abs(s).sum(3)
        self.c = np.maximum(self.r, 1.0)[..., None]
        self.weights = self.weight_size = s / self.c

    def sigmoid(self, s, bias):
        bias = -np.log(s.shape[3]) if bias is None else bias
        self.weights = self.weight_size = np.where(self.mask, 1 / (1 + np.exp(-(s + bias))), 0.0)

    def none(self, s, _):
        self.weights = self.weight_size = s

    def backward(self, dout, dlse=0.0):
        """Sets dq, dk, dv, dsink and dS: its value at the score, before the score's derivative; each with a size."""
        dout, hk = heads_first(dout), self.k.shape[1]
        dlse = np.broadcast_to(dlse, dout.shape[:3])[..., None]
        dp = dout @ self.values.swapaxes(2, 3)
        inner = (dout * self.o).sum(3, keepdims=True)
        if self.normalizer == "softmax":
            dp, delta = dp * self.factor, inner - dlse
            ds, size = self.p * (dp - delta), self.p * (abs(dp) + abs(delta))
            if self.sink is not None:
                share = np.exp(self.sink[None, :, None, None] - self.row)
                self.dsink = (share * (dlse - inner)).sum((0, 2, 3))
                self.dsink_size = np.sqrt(((share * (abs(dlse) + abs(inner))) ** 2).sum((0, 2, 3)))
        elif self.normalizer == "logsoftmax":
            inner = (dout * self.u).sum(3, keepdims=True) - dlse
            ds, size = dp - self.p * inner, abs(dp) + self.p * abs(inner)
        elif self.normalizer == "retention":
            large = self.r[..., None] > 1
            s = self.weights * self.c
            ds, size = (dp - large * np.sign(s) * inner) / self.c, (abs(dp) + large * abs(inner)) / self.c
        elif self.normalizer == "sigmoid":
            ds = self.weights * (1 - self.weights) * dp
            size = abs(ds)
        else:
            ds, size = dp, abs(dp)
        self.ds, self.ds_size = np.where(self.mask, ds, 0.0), np.where(self.mask, size, 0.0)
        at_s, size = self.ds * self.slope, self.ds_size * abs(self.slope)
        self.dq = self.scale * at_s @ self.keys
        self.dq_size = self.scale * np.sqrt(size ** 2 @ self.keys ** 2)
        self.dk = over_groups(self.scale * at_s.swapaxes(2, 3) @ self.q, hk)
        self.dk_size = self.scale * np.sqrt(over_groups(size.swapaxes(2, 3) ** 2 @ self.q ** 2, hk))
        self.dv = over_groups(self.weights.swapaxes(2, 3) @ dout, hk)
        self.dv_size = np.sqrt(over_groups(self.weight_size.swapaxes(2, 3) ** 2 @ dout ** 2, hk))
        return self

    def of_input(self, derivative, axes=()):
        """The gradient of an input, by which the score has this derivative, summed over axes of (b, h, q, k); and its
        size, which is over rows the sum of the absolute terms of a row."""
        size = self.ds_size * abs(derivative)
        if 3 in axes:
            size = size.sum(3, keepdims=True)
        return (self.ds * derivative).sum(axes), np.sqrt((size ** 2).sum(axes))


def error(x, value, size):
    """The distance from the reference, as a share of its size."""
    x, value, size = (np.asarray(y, np.float64) for y in (x, value, size))
    if not x.size:
        return 0.0
    return np.linalg.norm(x - value) / max(np.linalg.norm(value), np.linalg.norm(size), 1e-300)


def keep_mask(shape, seed, keep):
    """Which weights [b, h, nq, nk] dropout keeps, and how likely each is kept: Philox 4x32-10 (flashgen.h)."""
    b, h, nq, nk = shape
    seed, offset = seed
    counter = np.zeros((4, b * h, nq, -(-nk // 8)), np.uint64)
    counter[0] = np.arange(-(-nk // 8))
    counter[1] = np.arange(nq)[:, None]
    counter[2] = np.arange(b * h)[:, None, None]
    counter[3] = offset & 0xFFFFFFFF
    words = philox(counter, seed & 0xFFFFFFFF, seed >> 32 ^ offset >> 32)
    lanes = np.stack([half for word in words for half in (word & 0xFFFF, word >> 16)], -1)
    bound = round(65536 * float(np.float32(keep)))
    return (lanes < bound).reshape(b, h, nq, -1)[..., :nk], bound / 65536


def philox(counter, key0, key1):
    mask = np.uint64(0xFFFFFFFF)
    a, b, c, d = counter
    key0, key1 = np.uint64(key0), np.uint64(key1)
    for _ in range(10):
        low, high = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (high >> np.uint64(32)) ^ b ^ key0, high & mask, (low >> np.uint64(32)) ^ d ^ key1, low & mask
        key0, key1 = key0 + np.uint64(0x9E3779B9) & mask, key1 + np.uint64(0xBB67AE85) & mask
    return a, b, c, d

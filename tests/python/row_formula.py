"""row_formula.py - functions of rows and their gradients in float64, as plain formulas (mathematics.md section 5), with the sizes
by which errors of them are judged (section 6): name -> (value, size)."""
import math

import numpy as np

ERF = np.vectorize(math.erf, otypes=[float])
A = math.sqrt(2 / math.pi)


def sigmoid(h):
    return 1 / (1 + np.exp(-h))


def tanh_of(h):
    return np.tanh(A * (h + 0.044715 * h ** 3))


def normal(h):
    return (1 + ERF(h / math.sqrt(2))) / 2


ACTIVATIONS = {  # the value and its derivative
    "none": (lambda h: h, np.ones_like),
    "relu": (lambda h: np.maximum(h, 0), lambda h: (h > 0).astype(float)),
    "silu": (lambda h: h * sigmoid(h), lambda h: sigmoid(h) * (1 + h * (1 - sigmoid(h)))),
    "gelu": (lambda h: h * (1 + tanh_of(h)) / 2,
             lambda h: (1 + tanh_of(h)) / 2 + h * (1 - tanh_of(h) ** 2) * A * (1 + 0.134145 * h ** 2) / 2),
    "gelu_erf": (lambda h: h * normal(h), lambda h: normal(h) + h * np.exp(-h * h / 2) / math.sqrt(2 * math.pi)),
}
GATES = {"reglu": "relu", "geglu": "gelu", "swiglu": "silu"}


def flat(x):
    """[..., width] as rows."""
    return None if x is None else np.asarray(x, np.float64).reshape(-1, x.shape[-1])


def root(squares):
    return np.sqrt(squares)


def linear(x, w, bias=None, residual=None, epilogue="none", dy=None):
    """y; of dy the gradients of x, weight and bias."""
    lead = x.shape[:-1]
    x, w, residual, dy = (flat(one) for one in (x, w, residual, dy))
    bias = np.zeros(len(w)) if bias is None else np.asarray(bias, np.float64)
    h, h_size = x @ w.T + bias, root(x ** 2 @ w.T ** 2 + bias ** 2)
    value, slope = ACTIVATIONS[GATES.get(epilogue, epilogue)]
    more = 0.0 if residual is None else residual
    if epilogue in GATES:
        (g, v), (g_size, v_size) = np.split(h, 2, 1), np.split(h_size, 2, 1)
        y, size = value(g) * v, root((value(g) * v_size) ** 2 + (v * slope(g) * g_size) ** 2)
        factors = np.concatenate((v * slope(g), value(g)), 1)
    else:
        y, size, factors = value(h), abs(slope(h)) * h_size, slope(h)
    made = {"y": (y + more, root(size ** 2 + more ** 2))}
    made["y"] = tuple(one.reshape(*lead, -1) for one in made["y"])
    if dy is not None:
        dh = np.concatenate((dy, dy), 1) * factors if epilogue in GATES else dy * factors
        made["x"] = tuple(one.reshape(*lead, -1) for one in (dh @ w, root(dh ** 2 @ w ** 2)))
        made["weight"] = dh.T @ x, root(dh.T ** 2 @ x ** 2)
        made["bias"] = dh.sum(0), root((dh ** 2).sum(0))
    return made


def layernorm(x, gamma, beta=None, bias=None, residual=None, norm="layer", eps=1e-5, dout=None, dz=None):
    """out, z, mean and rstd; of dout and dz the gradients of x, which is residual's, gamma, beta and bias."""
    shape = x.shape
    x, residual, dout, dz = (flat(one) for one in (x, residual, dout, dz))
    gamma, beta, bias = (np.float64(0) if one is None else np.asarray(one, np.float64) for one in (gamma, beta, bias))
    more = 0.0 if residual is None else residual
    z, z_size = x + bias + more, root(x ** 2 + bias ** 2 + np.square(more))
    mean = z.mean(1, keepdims=True) if norm == "layer" else np.zeros((len(z), 1))
    rstd = 1 / np.sqrt(((z - mean) ** 2).mean(1, keepdims=True) + eps)
    xhat = (z - mean) * rstd
    made = {"out": (xhat * gamma + beta, root((xhat * gamma) ** 2 + beta ** 2)), "z": (z, z_size)}
    if dout is not None:
        gy, from_z = dout * gamma, 0.0 if dz is None else dz
        of_mean = gy.mean(1, keepdims=True) if norm == "layer" else 0.0
        of_size = xhat * (gy * xhat).mean(1, keepdims=True)
        made["x"] = (rstd * (gy - of_mean - of_size) + from_z, rstd * (abs(gy) + abs(of_mean) + abs(of_size)) + abs(from_z))
    made = {name: tuple(one.reshape(shape) for one in pair) for name, pair in made.items()}
    made["mean"], made["rstd"] = (tuple([one[:, 0].reshape(shape[:-1])] * 2) for one in (mean, rstd))
    if dout is not None:
        for name, terms in (("gamma", dout * xhat), ("beta", dout), ("bias", flat(made["x"][0]))):
            made[name] = terms.sum(0), root((terms ** 2).sum(0))
    return made


def log_sum(x):
    """LSE of the last axis; of rows of -inf alone -inf."""
    top = x.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(x - top).sum(-1, keepdims=True)) + top)[..., 0]


def log_softmax(x):
    """y."""
    x = np.asarray(x, np.float64)
    lse = log_sum(x)[..., None]
    return {"y": (x - lse, np.where(np.isfinite(x), abs(x) + abs(lse), 0.0))}


def log_softmax_backward(dy, y):
    """The gradient of x; where y is -inf it is 0."""
    dy, y = (np.asarray(one, np.float64) for one in (dy, y))
    seen = np.isfinite(y)
    sums = np.where(seen, dy, 0.0).sum(-1, keepdims=True)
    p = np.exp(y)
    return {"x": (np.where(seen, dy - p * sums, 0.0), np.where(seen, abs(dy) + p * abs(sums), 0.0))}


def cross_entropy(x, target, weight=None, dloss=None):
    """loss and lse; of dloss the gradient of x."""
    x = np.asarray(x, np.float64)
    lse, columns = log_sum(x), np.arange(x.shape[-1])
    hit = columns == target[..., None]
    w = (hit * (1.0 if weight is None else np.asarray(weight, np.float64))).sum(-1)
    own = np.where(hit, x, 0.0).sum(-1)
    made = {"loss": (w * (lse - own), w * (abs(lse) + abs(own))), "lse": (lse, lse)}
    if dloss is not None:
        p = np.exp(x - lse[..., None])
        share = (np.asarray(dloss, np.float64) * w)[..., None]
        made["x"] = share * (p - hit), abs(share) * (p + hit)
    return made

"""layernorm: layer and RMS norm of rows, with a bias and a residual that are added before."""
from typing import NamedTuple

from .options import check_numbers, check_words, frozen
from .row_calls import backward, forward
from .row_kinds import LAYERNORM, NORMS


def layernorm(x, gamma, beta=None, *, bias=None, residual=None, norm="layer", eps=1e-5, plan=None, return_z=False,
              return_stats=False):
    """(z - mean) rstd gamma + beta of each row of z = x + bias + residual, or with norm="rms" z rstd gamma, in one launch: of
    tensors of PyTorch and arrays of NumPy as attention() takes them, or in float32. Differentiable in all of them.

    x, residual [..., width], in any strides; rows that are equally far apart are not copied
    gamma, beta, bias
                [width], a multiple of 8 up to 16384
    norm, eps   rstd is 1 / sqrt(variance + eps); "rms": 1 / sqrt(mean square + eps), without mean and beta
    plan        as of attention()
    return_z    returns z, too, which goes on as the residual: (result, z). Its gradient comes to what z is the sum of
    return_stats
                returns mean (None of rms) and rstd behind these, float32 [...], for layernorm_backward"""
    check(norm, eps, beta)
    is_sum = bias is not None or residual is not None
    made = forward(LAYERNORM, (norm, eps, frozen(plan)), wants_of(norm, return_z and is_sum, return_stats), x=x,
                   gamma=gamma, beta=beta, bias=bias, residual=residual)
    if return_z and not is_sum:
        made.insert(1, x)
    return results(made, norm, return_stats)


def check(norm, eps, beta):
    check_numbers(eps=eps)
    check_words(norm=norm)
    if norm not in NORMS:
        raise ValueError(f'norm is {norm!r}; expected "layer" or "rms"')
    if beta is not None and norm == "rms":
        raise ValueError("beta is given, and norm rms has none")


def wants_of(norm, with_z, with_stats):
    """What forward makes beside the result."""
    return ("z",) * with_z + (("rstd",) if norm == "rms" else ("mean", "rstd")) * with_stats


def results(made, norm, with_stats):
    """As callers get it: rms has None for a mean."""
    if with_stats and norm == "rms":
        made.insert(-1, None)
    return tuple(made) if len(made) > 1 else made[0]


class LayernormGradients(NamedTuple):
    """Of layernorm_backward: like what they belong to; None where there is none. That of residual is x's."""
    x: object
    gamma: object
    beta: object
    bias: object


def layernorm_backward(dout, x, gamma, beta=None, *, rstd, mean=None, z=None, dz=None, bias=None, residual=None, norm="layer",
                       eps=1e-5, plan=None):
    """The gradients of layernorm, which got the same arguments: LayernormGradients(x, gamma, beta, bias).

    dout        the gradient of the result, like it; dz: that of z, or None
    mean, rstd, z
                what layernorm(..., return_z=True, return_stats=True) returned. With z neither x nor residual is read, and
                they may be None; without it z is made of them again"""
    sum_of = {"x": x, "bias": bias, "residual": residual} if z is None else {"z": z}
    wanted = ("x", "gamma") + ("beta",) * (beta is not None) + ("bias",) * (bias is not None)
    check(norm, eps, beta)
    made = backward(LAYERNORM, (norm, eps, frozen(plan)), wanted, dout=dout, dz=dz, gamma=gamma, mean=mean, rstd=rstd,
                    **sum_of)
    return LayernormGradients(made["x"], made["gamma"], made.get("beta"), made.get("bias"))

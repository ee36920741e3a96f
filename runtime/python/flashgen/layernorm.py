"""layernorm: layer and RMS norm of rows, with a bias and a residual that are added before."""
from typing import NamedTuple

from .attention import check_numbers, frozen
from .row_calls import backward, forward
from .row_kinds import LAYERNORM


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
    if beta is not None and norm == "rms":
        raise ValueError("beta is given, and norm rms has none")
    stats = (("rstd",) if norm == "rms" else ("mean", "rstd")) if return_stats else ()
    is_sum = bias is not None or residual is not None
    wants = ("z",) + stats if return_z and is_sum else stats
    made = forward(LAYERNORM, settled(norm, eps, plan), wants, x=x, gamma=gamma, beta=beta, bias=bias, residual=residual)
    if not (return_z or return_stats):
        return made[0]
    if return_z and not is_sum:
        made.insert(1, x)
    if return_stats and norm == "rms":
        made.insert(-1, None)
    return tuple(made)


def settled(norm, eps, plan):
    """The options, in their order."""
    check_numbers(eps=eps)
    return norm, eps, plan and frozen(plan)


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
    made = backward(LAYERNORM, settled(norm, eps, plan), wanted, dout=dout, dz=dz, gamma=gamma, mean=mean, rstd=rstd,
                    **sum_of)
    return LayernormGradients(made["x"], made["gamma"], made.get("beta"), made.get("bias"))

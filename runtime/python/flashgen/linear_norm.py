"""linear_norm: a linear layer whose rows are normalised in its own launch."""
from typing import NamedTuple

from .layernorm import check, results, wants_of
from .options import check_numbers, check_words, frozen
from .row_calls import backward, forward
from .row_kinds import LINEAR_NORM


def linear_norm(x, weight, gamma, beta=None, *, bias=None, residual=None, norm="layer", eps=1e-5, sm_margin=0, plan=None,
                dtype=None, return_z=False, return_stats=False):
    """(z - mean) rstd gamma + beta of each row of z = x weight^T + bias + residual, or with norm="rms" z rstd gamma: linear()
    and layernorm() in one call, between which z is not rounded. Arrays and numbers are those of these two."""
    check(norm, eps, beta)
    made = forward(LINEAR_NORM, settled(norm, eps, sm_margin, plan, dtype), wants_of(norm, return_z, return_stats), x=x,
                   w=weight, gamma=gamma, beta=beta, bias=bias, residual=residual)
    return results(made, norm, return_stats)


def settled(norm, eps, sm_margin, plan, dtype):
    """The options, in their order."""
    check_numbers(sm_margin=sm_margin)
    check_words(dtype=dtype)
    return norm, eps, sm_margin, frozen(plan), dtype


class LinearNormGradients(NamedTuple):
    """Of linear_norm_backward: like what they belong to; None where there is none."""
    x: object
    weight: object
    gamma: object
    beta: object
    bias: object
    residual: object  # of z, in any case


def linear_norm_backward(dout, x, weight, gamma, beta=None, *, z, rstd, mean=None, dz=None, bias=None, norm="layer", eps=1e-5,
                         sm_margin=0, plan=None, dtype=None):
    """The gradients of linear_norm, which got the same arguments: LinearNormGradients(x, weight, gamma, beta, bias, residual).

    dout        the gradient of the result, like it; dz: that of z, or None
    z, mean, rstd
                what linear_norm(..., return_z=True, return_stats=True) returned"""
    check(norm, eps, beta)
    wanted = ("x", "w", "gamma", "residual") + ("beta",) * (beta is not None) + ("bias",) * (bias is not None)
    made = backward(LINEAR_NORM, settled(norm, eps, sm_margin, plan, dtype), wanted, x=x, w=weight, dout=dout, dz=dz, z=z,
                    gamma=gamma, mean=mean, rstd=rstd)
    return LinearNormGradients(made["x"], made["w"], made["gamma"], made.get("beta"), made.get("bias"), made["residual"])

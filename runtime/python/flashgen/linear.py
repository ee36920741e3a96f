"""linear and ffn, on arrays of NumPy and tensors of PyTorch."""
from typing import NamedTuple

from .options import check_numbers, check_words, frozen
from .row_calls import backward, forward
from .row_kinds import LINEAR, NORMS, PLAIN


def linear(x, weight, bias=None, *, epilogue="none", residual=None, sm_margin=0, plan=None, dtype=None, return_kept=False):
    """act(x weight^T + bias) + residual in one launch: of float16 and bfloat16 tensors of PyTorch, on a GPU or the CPU, which
    is the host device, or of arrays of NumPy, on the host device. Differentiable in tensors of PyTorch, in all of them.

    x           [..., in], in any strides; rows that are equally far apart are not copied
    weight      [out, in] with widths that are multiples of 8, as torch.nn.Linear has it; of a gated epilogue [2 out, in], the
                rows of the gate first
    bias        [out], gated [2 out]
    epilogue    act: none, relu, gelu (by tanh), gelu_erf, silu; gated, act(gate) times the other half: reglu, geglu, swiglu
    residual    [..., out], added behind act
    sm_margin, plan, dtype
                as of attention(); float32 arrays of NumPy are rounded to bfloat16, or with dtype="f16" to float16
    return_kept returns (result, kept), and kept is what linear_backward takes of act, None where it needs nothing

    The result is [..., out], in x's dtype."""
    wants = ("kept",) if return_kept and epilogue not in PLAIN else ()
    made = forward(LINEAR, settled(epilogue, sm_margin, plan, dtype), wants, x=x, w=weight, bias=bias, residual=residual)
    return (made[0], (*made[1:], None)[0]) if return_kept else made[0]


def settled(epilogue, sm_margin, plan, dtype):
    """The options, in their order."""
    check_numbers(sm_margin=sm_margin)
    check_words(epilogue=epilogue, dtype=dtype)
    if epilogue in NORMS.values():
        raise ValueError(f"epilogue {epilogue} has arguments of its own: call linear_norm")
    return epilogue, sm_margin, frozen(plan), dtype


class LinearGradients(NamedTuple):
    """Of linear_backward: like what they belong to. That of residual is dy."""
    x: object
    weight: object
    bias: object  # None where there is no bias


def linear_backward(dy, x, weight, bias=None, *, kept=None, epilogue="none", sm_margin=0, plan=None, dtype=None):
    """The gradients of linear, which got the same arguments: LinearGradients(x, weight, bias).

    dy          the gradient of the result, like it
    kept        what linear(..., return_kept=True) returned; with epilogue none it is not needed"""
    if kept is None and epilogue not in PLAIN:
        raise ValueError(f"kept is missing: epilogue {epilogue} needs what linear(..., return_kept=True) returned")
    wanted = ("x", "w") if bias is None else ("x", "w", "bias")
    made = backward(LINEAR, settled(epilogue, sm_margin, plan, dtype), wanted, x=x, w=weight, dy=dy, kept=kept)
    return LinearGradients(made["x"], made["w"], made.get("bias"))


def ffn(x, w1, b1, w2, b2, *, epilogue="gelu", residual=None, sm_margin=0, plan=None, dtype=None, return_kept=False):
    """act(x w1^T + b1) w2^T + b2 + residual in two launches: linear() twice, where act is the first one's epilogue. What act
    is of is nowhere in memory, and its derivative only where gradients are wanted.

    w1 [hidden, in], of a gated epilogue [2 hidden, in]; w2 [out, hidden]; b1 and b2 may be None. The rest is as of linear().
    return_kept returns (result, kept) for ffn_backward."""
    how = {"sm_margin": sm_margin, "plan": plan, "dtype": dtype}
    hidden, kept = linear(x, w1, b1, epilogue=epilogue, return_kept=True, **how) if return_kept else \
        (linear(x, w1, b1, epilogue=epilogue, **how), None)
    y = linear(hidden, w2, b2, residual=residual, **how)
    return (y, (hidden, kept)) if return_kept else y


class FfnGradients(NamedTuple):
    """Of ffn_backward: like what they belong to. That of residual is dy."""
    x: object
    w1: object
    b1: object  # None where there is no bias, as of b2
    w2: object
    b2: object


def ffn_backward(dy, x, w1, b1, w2, b2, kept, *, epilogue="gelu", sm_margin=0, plan=None, dtype=None):
    """The gradients of ffn, which got the same arguments: FfnGradients(x, w1, b1, w2, b2).

    dy          the gradient of the result, like it
    kept        what ffn(..., return_kept=True) returned"""
    how = {"sm_margin": sm_margin, "plan": plan, "dtype": dtype}
    hidden, kept = kept
    second = linear_backward(dy, hidden, w2, b2, **how)
    first = linear_backward(second.x, x, w1, b1, kept=kept, epilogue=epilogue, **how)
    return FfnGradients(*first, *second[1:])

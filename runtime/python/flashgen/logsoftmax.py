"""log_softmax of rows, and cross_entropy: the loss of a column of each."""
from .options import frozen
from .row_calls import backward, forward
from .row_kinds import CROSS_ENTROPY, LOG_SOFTMAX


def log_softmax(x, *, plan=None):
    """x - LSE(x) of each row [..., width], up to 262144 columns: of tensors of PyTorch and arrays of NumPy as attention() takes
    them, or in float32; like x. Where x is -inf the result is -inf and the gradient 0. Differentiable."""
    return forward(LOG_SOFTMAX, (frozen(plan),), (), x=x)[0]


def log_softmax_backward(dy, y, *, plan=None):
    """The gradient of x; y: what log_softmax returned, dy: its gradient, like it."""
    return backward(LOG_SOFTMAX, (frozen(plan),), ("x",), y=y, dy=dy)["x"]


def cross_entropy(x, target, weight=None, *, plan=None, return_lse=False):
    """weight[target] (LSE(x) - x[target]) of each row: its loss, float32 [...]. No log_softmax lies in memory.

    x           [..., width], logits, as of log_softmax()
    target      [...], int32 or int64: a column of each row. A row whose target is no column, such as -100, has a loss of 0
                and no gradient
    weight      [width], of each target, or None: 1
    return_lse  returns (loss, lse), and lse is float32 [...]; it has no gradient

    Differentiable in x. The mean of PyTorch's cross_entropy is loss.sum() / (target >= 0).sum(), with weights over the sum
    of those of the targets."""
    wants = ("lse",) if return_lse else ()
    made = forward(CROSS_ENTROPY, (frozen(plan),), wants, x=x, target=target, weight=weight)
    return tuple(made) if return_lse else made[0]


def cross_entropy_backward(dloss, x, target, lse, weight=None, *, plan=None):
    """The gradient of x. dloss: that of the loss, like it; lse: what cross_entropy(..., return_lse=True) returned."""
    return backward(CROSS_ENTROPY, (frozen(plan),), ("x",), x=x, target=target, weight=weight, lse=lse,
                    dloss=dloss)["x"]

"""PyTorch's tensors while a program is traced: the functions of arrays.py that it needs, and calls of torch_ops.py's ops."""
import torch

from .autograd import check_has_gradient
from .cache_ops import APPENDED, COMBINED
from .prepare import KEPT
from .row_ops import differentiable_rows, launched  # noqa: F401
from .tensors import check_writable, describe, facts, filled, fresh_seed, needs_gradient, seed_words  # noqa: F401
from .torch_ops import BESIDE, MAIN, input_names, written

try:
    from torch.fx.experimental.symbolic_shapes import has_static_value as is_static
except ImportError:  # older ones compile each value of a float anew
    def is_static(x):
        return True

IS_TRACED = True
ops = torch.ops.flashgen


def forward(options, wants, given):
    """A list of o and of what is wanted beside it. given: name -> tensor; options: the values of an Options."""
    if needs_gradient(given):
        check_has_gradient(given)
    out = given.pop("o", None)
    options = written(options)
    arrays = arguments(options, given)
    o, first, u, max_logit = ops.attention(*arrays, **options, max_logit="max_logit" in wants)
    made = {"lse": first, "r": first, "u": u, "max_logit": max_logit}
    return [o if out is None else out.copy_(o), *[made[name] for name in wants]]


def backward(options, wants, given):
    """A list of dq, dk, dv and the gradients of wants."""
    options = written(options)
    kept = [given[name] for name in KEPT.get(options["normalizer"], ())]
    lse, u = (kept + [given["q"].new_empty(0)] * 2)[:2]
    arrays = arguments(options, given)
    *made, of_inputs = ops.attention_backward(given["dout"], given["o"], lse, u, given.get("dlse"), *arrays, **options,
                                              wanted=",".join(wants))
    names = input_names(options["declared"])
    made = dict(zip((*MAIN, "bias", "sink", *names), (*made, *of_inputs)))
    return [made[name] for name in (*MAIN, *wants)]


def append(rotary, given):
    """The queries that were turned, or None."""
    turned = ops.append(*[given.get(name) for name in APPENDED], rotary=rotary)
    return turned if "q" in given else None


def combine(dtype, given):
    """(o, lse)."""
    return ops.combine(*[given.get(name) for name in COMBINED], dtype=dtype)


def arguments(options, given):
    """The tensors of an op, in the order of its schema. Floats that a graph does not know move there from the options."""
    inputs = [given[name] for name in input_names(options["declared"])] or None
    numbers = None
    if not all([is_static(x) for x in options["floats"] or ()]):
        # a sum is what PyTorch's compiler does by tensors; of torch.tensor it would compile each value anew
        zero = torch.zeros((), dtype=torch.float64, device="cpu")
        numbers, options["floats"] = torch.stack([zero + x for x in options["floats"]]), None
    return (*[given.get(name) for name in MAIN + BESIDE], inputs, numbers)

"""PyTorch's tensors while a program is traced: the functions of arrays.py that it needs, and calls of torch_ops.py's ops."""
import torch

from .autograd import check_has_gradient
from .prepare import KEPT
from .tensors import check_writable, describe, facts, fresh_seed, needs_gradient, seed_words  # noqa: F401
from .torch_ops import BESIDE, MAIN, input_names, written

IS_TRACED = True
ops = torch.ops.flashgen


def forward(options, wants, given):
    """A list of o and of what is wanted beside it. given: name -> tensor; options: the values of an Options."""
    if needs_gradient(given):
        check_has_gradient(given)
    out = given.pop("o", None)
    options = written(options)
    o, first, u, max_logit = ops.attention(*arguments(options, given), **options, max_logit="max_logit" in wants)
    made = {"lse": first, "r": first, "u": u, "max_logit": max_logit}
    return [o if out is None else out.copy_(o), *[made[name] for name in wants]]


def backward(options, wants, given):
    """A list of dq, dk, dv and the gradients of wants."""
    options = written(options)
    kept = [given[name] for name in KEPT.get(options["normalizer"], ())]
    lse, u = (kept + [given["q"].new_empty(0)] * 2)[:2]
    *made, of_inputs = ops.attention_backward(given["dout"], given["o"], lse, u, given.get("dlse"), *arguments(options, given),
                                              **options, wanted=list(wants))
    names = input_names(options["declared"])
    made = dict(zip((*MAIN, "bias", "sink", *names), (*made, *of_inputs)))
    return [made[name] for name in (*MAIN, *wants)]


def arguments(options, given):
    """The tensors of an op, in the order of its schema."""
    inputs = [given[name] for name in input_names(options["declared"])]
    return (*[given.get(name) for name in MAIN + BESIDE], inputs)

"""Heads are exchanged for rows: each rank gets all rows of some heads, computes them as one GPU does, and gives them back."""
import re

import torch

from ..attention import attention
from ..autograd import once
from . import messages
from .order import joined, separated


class ToHeads(torch.autograd.Function):
    """[..., rows of a rank, h, d] to [..., all rows, h / n, d], in the sequence's order; backward the other way."""

    @staticmethod
    def forward(ctx, problem, x, starts, name):
        ctx.call = problem, starts, name
        return to_heads(problem, x, starts, name)

    @staticmethod
    @once
    def backward(ctx, saved, dx):
        problem, starts, name = ctx.call
        return None, to_rows(problem, dx, starts, "d" + name), None, None


class ToRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, problem, x, starts, name):
        ctx.call = problem, starts, name
        return to_rows(problem, x, starts, name)

    @staticmethod
    @once
    def backward(ctx, saved, dx):
        problem, starts, name = ctx.call
        return None, to_heads(problem, dx, starts, "d" + name), None, None


def to_heads(problem, x, starts, name):
    parts = torch.stack(x.chunk(problem.n, -2))
    return joined(list(messages.all_to_all(problem, parts, f"{name}'s heads")), x.dim() - 3, problem.order, starts)


def to_rows(problem, x, starts, name):
    parts = messages.all_to_all(problem, separated(x, x.dim() - 3, problem.order, problem.n, starts), f"{name}'s rows")
    return torch.cat(list(parts), -2)


def check(problem, q, k):
    """That heads can be divided, and that nothing counts them."""
    for name, heads in (("q", q.shape[-2]), ("k", k.shape[-2])):
        if heads % problem.n:
            raise ValueError(f"{name} has {heads} heads: alltoall over {problem.n} ranks needs a multiple of "
                             f"{problem.n}; ring and gather take any number")
    if problem.has_dropout:
        raise NotImplementedError("alltoall has no dropout, whose bits depend on a head's number: take ring or gather")
    texts = [problem.options["mask"], problem.options["score"], *(problem.options["define"] or {}).values()]
    for text in texts:
        if re.search(r"\b(h|hk)\b", re.sub(r"\w+\[[\w\s,]*\]", "", text or "")):
            raise NotImplementedError(f"alltoall gives a rank some of the heads, and {text!r:.60} counts them: take "
                                      "ring or gather")


def run(problem, q, k, v, sink, inputs, return_max_logit):
    """o, lse and max_logit. Gradients of sink and inputs are of a rank's heads."""
    starts = problem.starts if problem.is_packed else {"q": None, "k": None}
    q, k, v = (ToHeads.apply(problem, x, starts["q" if name == "q" else "k"], name)
               for name, x in (("q", q), ("k", k), ("v", v)))
    options = dict(problem.options, inputs={**problem.numbers, **{
        name: problem.declared(name, of_heads(problem, x, problem.axes[name])) for name, x in inputs.items()}} or None)
    if problem.is_packed:
        options.update(starts_q=starts["q"], starts_k=starts["k"])
    if problem.slices is not None:
        options.update(zip(("q_ranges", "k_ranges", "kinds"), problem.slices))
    if sink is not None:
        options["sink"] = of_heads(problem, sink, "h")
    o, lse, *more = attention(q, k, v, return_lse=True, return_max_logit=return_max_logit, **options)
    lse = lse.transpose(-1, -2)[..., None]
    o, lse = ToRows.apply(problem, o, starts["q"], "o"), ToRows.apply(problem, lse, starts["q"], "lse")
    top = None
    if more:
        top = torch.cat(list(messages.all_gather(problem, more[0], "the largest logits")), 1)
    return o, lse[..., 0].transpose(-1, -2).contiguous(), top


def of_heads(problem, x, axes):
    """A rank's share of a tensor, along the axes that are heads."""
    for dim, axis in enumerate(axes.split(",")):
        if axis.strip() in ("h", "hk"):
            x = x.chunk(problem.n, dim)[problem.rank]
    return x

"""attention as a function that PyTorch differentiates."""
import torch
from torch.autograd.function import once_differentiable

from .call import run
from .context import calls
from .prepare import check_backward

CACHE = {"used_k", "first_k", "rows", "table"}  # one of these, and keys lie in a cache
MAIN = ("q", "k", "v")


def differentiable(adapter, options, wants, kept, given):
    """run(), with gradients of the floating-point tensors that require them and of lse. kept: what forward keeps for
    backward."""
    check_has_gradient(given)
    beside = kept + tuple(name for name in wants if name not in kept)
    results = Attention.apply(adapter, options, beside, kept, tuple(given), *given.values())
    return results if beside == wants else [results[0], *results[1 + len(kept):]]


def check_has_gradient(given):
    """That there is one: a tensor of the call requires it."""
    if not CACHE.isdisjoint(given) and "starts_k" not in given:
        raise ValueError("a tensor requires a gradient, which attention over a cache does not have")
    if "o" in given:
        raise ValueError("a tensor requires a gradient, and out= has none: leave it out, or call under torch.no_grad()")


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, adapter, options, beside, kept, names, *given):
        needed = tuple([name for name, is_needed in zip(names, ctx.needs_input_grad[5:]) if is_needed])
        wants = tuple([name for name in needed if name not in MAIN])
        by_name = dict(zip(names, given))
        if wants and (options, wants, names) not in calls:
            check_backward(adapter, options, wants, by_name)
            calls[options, wants, names] = True
        results = run(adapter, False, options, beside, by_name)
        ctx.set_materialize_grads(False)
        if beside not in ((), ("lse",)):
            ctx.mark_non_differentiable(*[x for name, x in zip(beside, results[1:]) if name != "lse"])
        ctx.save_for_backward(*given, *results)
        ctx.call = adapter, options, beside, kept, names, needed, wants
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout, *douts):
        adapter, options, beside, kept, names, needed, wants = ctx.call
        n = len(names)
        given = dict(zip(names, ctx.saved_tensors[:n]))
        made = dict(zip(("o", *beside), ctx.saved_tensors[n:]))
        main = {name: given.pop(name) for name in MAIN}
        main["dout"] = torch.zeros_like(made["o"]) if dout is None else dout
        main["o"] = made["o"]
        main.update((name, made[name]) for name in kept)
        dlse = dict(zip(beside, douts)).get("lse")
        if dlse is not None:
            main["dlse"] = dlse
        results = dict(zip((*MAIN, *wants), run(adapter, True, options, wants, {**main, **given})))
        return (None, None, None, None, None, *[results[name] if name in needed else None for name in names])

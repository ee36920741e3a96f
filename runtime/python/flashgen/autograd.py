"""attention as a function that PyTorch differentiates."""
import torch
from torch.autograd.function import once_differentiable

from . import tensors
from .call import run
from .prepare import KEPT

DIFFERENTIABLE = ("o", "lse")  # of what forward writes


def differentiable(options, wants, given):
    """run(), with gradients of the floating-point tensors that require them and of lse."""
    check(options, given)
    results = Attention.apply(options, wants, tuple(given), *given.values())
    return dict(zip(("o", *written(options, wants)), results))


def written(options, wants):
    """What forward writes beside o: what the caller wants, and what backward needs."""
    kept = KEPT.get(options.normalizer, ())
    return kept + tuple(name for name in wants if name not in kept)


def check(options, given):
    if "o" in given:
        raise ValueError("out= has no gradient: leave it out, or call under torch.no_grad()")
    for name in ("k", "v"):
        if given[name].requires_grad and {"table", "first_k", "rows"} & set(given):
            raise ValueError(f"{name} requires a gradient, which keys of a cache do not have")
    if "used_k" in given and "starts_k" not in given:
        raise ValueError("a tensor requires a gradient, which attention over a cache does not have")
    for name, x in given.items():
        if x.requires_grad and x.dim() == 0:
            raise ValueError(f"{name} requires a gradient, which a number does not have: make it an array")


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, options, wants, names, *given):
        beside = written(options, wants)
        made = run(tensors, False, options, beside, dict(zip(names, given)))
        results = [made["o"], *[made[name] for name in beside]]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[x for name, x in made.items() if name not in DIFFERENTIABLE])
        ctx.save_for_backward(*given, *results)
        ctx.options, ctx.names, ctx.beside = options, names, beside
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout, *douts):
        n = len(ctx.names)
        given = dict(zip(ctx.names, ctx.saved_tensors[:n]))
        made = dict(zip(("o", *ctx.beside), ctx.saved_tensors[n:]))
        needed = [name for name, is_needed in zip(ctx.names, ctx.needs_input_grad[3:]) if is_needed]
        main = {name: given.pop(name) for name in ("q", "k", "v")}
        main["dout"] = torch.zeros_like(made["o"]) if dout is None else dout
        main["o"] = made["o"]
        main.update((name, made[name]) for name in KEPT.get(ctx.options.normalizer, ()))
        dlse = dict(zip(ctx.beside, douts)).get("lse")
        if dlse is not None:
            main["dlse"] = dlse
        wants = tuple(name for name in needed if name not in main)
        results = run(tensors, True, ctx.options, wants, {**main, **given})
        return (None, None, None, *[results["d" + name] if name in needed else None for name in ctx.names])

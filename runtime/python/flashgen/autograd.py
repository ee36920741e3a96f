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
    made = Attention.apply((adapter, options, kept, wants, given), *given.values())
    return made if wants else (made,)


def check_has_gradient(given):
    """That there is one: a tensor of the call requires it."""
    if not CACHE.isdisjoint(given) and "starts_k" not in given:
        raise ValueError("a tensor requires a gradient, which attention over a cache does not have")
    if "o" in given:
        raise ValueError("a tensor requires a gradient, and out= has none: leave it out, or call under torch.no_grad()")


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        """o, and what is wanted beside it; what else is kept stays inside."""
        adapter, options, kept, wants, given = call
        if len(tensors) > len(MAIN):
            check_others(ctx, adapter, options, given)
        beside = kept if not wants or wants == kept else kept + tuple([name for name in wants if name not in kept])
        results = run(adapter, False, options, beside, given)
        ctx.save_for_backward(*tensors, *results)
        ctx.call = adapter, options, kept, wants, tuple(given)
        if not wants:
            return results[0]
        ctx.set_materialize_grads(False)
        made = dict(zip(beside, results[1:]))
        if wants != ("lse",):
            ctx.mark_non_differentiable(*[made[name] for name in wants if name != "lse"])
        return (results[0], *[made[name] for name in wants])

    @staticmethod
    def backward(ctx, *douts):
        return gradients_once(ctx, *douts) if torch.is_grad_enabled() else gradients(ctx, *douts)


def gradients(ctx, dout, *douts):
    """Of the call, None, and of each tensor that was given; those of q, k and v come in any case."""
    adapter, options, kept, wants, names = ctx.call
    saved, n = ctx.saved_tensors, len(names)
    main = dict(zip(MAIN, saved))
    main["dout"] = torch.zeros_like(saved[n]) if dout is None else dout
    main["o"] = saved[n]
    main.update(zip(kept, saved[n + 1:]))
    if wants:
        dlse = dict(zip(wants, douts)).get("lse")
        if dlse is not None:
            main["dlse"] = dlse
    if n == len(MAIN):
        return (None, *run(adapter, True, options, (), main))
    main.update(zip(names[len(MAIN):], saved[len(MAIN):n]))
    others = tuple([name for name, needed in zip(names, ctx.needs_input_grad[1:]) if needed and name not in MAIN])
    made = dict(zip((*MAIN, *others), run(adapter, True, options, others, main)))
    return (None, *[made.get(name) for name in names])


gradients_once = once_differentiable(gradients)


def check_others(ctx, adapter, options, given):
    """The spec of backward with the gradients of what is given beside q, k and v, before anything is launched."""
    names = tuple(given)
    others = tuple([name for name, needed in zip(names, ctx.needs_input_grad[1:]) if needed and name not in MAIN])
    if others and (options, others, names) not in calls:
        check_backward(adapter, options, others, given)
        calls[options, others, names] = True

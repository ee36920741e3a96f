"""attention, and functions of rows, as functions that PyTorch differentiates once."""
import torch

from . import rows
from .call import run
from .context import calls
from .prepare import check_backward, listed

CACHE = {"used_k", "first_k", "rows", "table"}  # one of these, and keys lie in a cache
MAIN = ("q", "k", "v")
E4M3 = getattr(torch, "float8_e4m3fn", None)  # older ones have none


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
    if given["k"].dtype == E4M3:
        raise ValueError("a tensor requires a gradient, which attention of float8_e4m3fn does not have: call under torch.no_grad()")


# ---- gradients of gradients ----


class NotTwice(torch.autograd.Function):
    """The first n tensors as they are: gradients, which depend on the other tensors and have no gradients themselves. The
    error comes when one is asked for, not before: a program may build a graph of gradients and not differentiate them."""

    @staticmethod
    def forward(ctx, n, *tensors):
        return tuple([x.data for x in tensors[:n]])

    @staticmethod
    def backward(ctx, *douts):
        refuse_twice()


def refuse_twice(*_):
    raise NotImplementedError("a gradient of a gradient is asked for: flashgen's kernels have first derivatives only")


def tied(made, sources):
    """Gradients that are made, as functions of their sources; None stays None. A gradient that is one of the sources itself, as
    that of a residual is, remains it."""
    own = {id(x) for x in sources}
    sources = [x for x in sources if x is not None and x.requires_grad]
    new = [x for x in made if x is not None and id(x) not in own]
    if not sources or not new:
        return made
    new = iter(NotTwice.apply(len(new), *new, *sources))
    return tuple([x if x is None or id(x) in own else next(new) for x in made])


def once(function):
    """The backward of a Function: function(ctx, saved tensors, *douts), whose results are tied to what they depend on where
    PyTorch builds a graph of them. One access to ctx.saved_tensors is all that checkpoints allow."""
    def backward(ctx, *douts):
        saved = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return function(ctx, saved, *douts)
        with torch.no_grad():
            made = function(ctx, saved, *douts)
        return tied(made, (*saved, *douts))
    return backward


# ---- attention ----


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
    @once
    def backward(ctx, saved, dout, *douts):
        """Of the call, None, and of each tensor that was given; those of q, k and v come in any case."""
        adapter, options, kept, wants, names = ctx.call
        n = len(names)
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


def check_others(ctx, adapter, options, given):
    """The spec of backward with the gradients of what is given beside q, k and v, before anything is launched."""
    names = tuple(given)
    others = tuple([name for name, needed in zip(names, ctx.needs_input_grad[1:]) if needed and name not in MAIN])
    if others and (options, others, names) not in calls:
        check_backward(adapter, options, others, given)
        calls[options, others, names] = True


# ---- rows ----


def differentiable_rows(adapter, kind, options, wants, given):
    """rows.run(), with gradients of the tensors that require them."""
    made = Rows.apply((adapter, kind, options, wants, tuple(given)), *given.values())
    return dict(zip(kind.forward.always + wants, made))


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        """The call's results, then z where it is kept and not asked for: gradients depend on all that it is the sum of."""
        adapter, kind, options, wants, names = call
        given = dict(zip(names, tensors))
        made = rows.run(adapter, kind.forward, options, rows.all_wants(kind, options, wants, given), given)
        returned = kind.forward.always + wants
        results = {name: made[name] for name in (*returned, *[name for name in made if name in kind.ends and name not in returned])}
        keep_rows(ctx, adapter, kind, options, wants, {**given, **made}, names, results)
        return tuple(results.values())

    @staticmethod
    @once
    def backward(ctx, saved, *douts):
        return (None, *gradients_of_rows(ctx, saved, ctx.needs_input_grad[1:], douts))


def keep_rows(ctx, adapter, kind, options, wants, known, names, results):
    """Forward is done: what backward needs, and the bias, on which gradients depend by what is kept of it. known: name ->
    array or result; names: of the tensors that were given; results: name -> what is returned, where one that is not made is
    empty."""
    takes = rows.takes(kind, options, wants, known)
    more = ("bias",) if "bias" in known and "bias" not in takes else ()
    ctx.save_for_backward(*[known.get(name) for name in takes + more])
    ctx.call = adapter, kind, options, names, tuple(results), takes
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*[x for name, x in results.items() if name not in kind.ends or name not in known])


def gradients_of_rows(ctx, saved, needed, douts):
    """The gradient of each tensor, None for one that needs none. saved: kept by keep_rows; douts: gradients of the results."""
    adapter, kind, options, names, results, takes = ctx.call
    given = dict(zip(takes, saved))
    lacking = [name for name, x in given.items() if x is None]
    if lacking:
        raise ValueError(f"{kind.op}: wants has no {listed(lacking)}, which a gradient is made of")
    ends = {kind.ends[name]: dout for name, dout in zip(results, douts) if dout is not None}
    if not ends:
        return [None] * len(names)
    given.update(ends)
    for name in kind.forward.always:
        if kind.ends[name] not in ends:  # another result has one, which is like it
            given[kind.ends[name]] = torch.zeros_like(next(iter(ends.values())))
    made = rows.gradients(adapter, kind, options, [name for name, is_needed in zip(names, needed) if is_needed], given)
    return [made.get(name) for name in names]

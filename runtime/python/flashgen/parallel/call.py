"""A call of context_parallel: checks, agreement of the ranks, and the function that PyTorch differentiates."""
import torch

from .. import tensors
from ..attention import seed_words
from ..autograd import once
from . import heads, messages, ring
from .problem import Problem


def call(q, k, v, group, method, order, sink, starts_q, starts_k, slices, options, return_max_logit):
    """o, lse, max_logit. slices: (q_ranges, k_ranges, kinds) or None."""
    group, problem, mistake = messages.group_of(group), None, None
    try:
        problem = Problem(group, method, order, starts_q, starts_k, slices, q, k, v, options)
        if method == "alltoall":
            heads.check(problem, q, k)
    except (ValueError, TypeError, NotImplementedError) as error:
        mistake = error
    own = look(q, k, v, method, order, sink, starts_q, starts_k, slices, options) if mistake is None else {}
    messages.agree(group, own, mistake)
    if problem.has_dropout:
        seed = seed_words(tensors, options["seed"], q)
        problem.options["seed"] = messages.same_seed(problem, seed) if options["seed"] is None else seed
    inputs = {name: options["inputs"][name][1] for name in problem.axes}
    if method == "alltoall":
        return heads.run(problem, q, k, v, sink, inputs, return_max_logit)
    return Function.apply(problem, tuple(inputs), return_max_logit, q, k, v, sink, *inputs.values())


def look(q, k, v, method, order, sink, starts_q, starts_k, slices, options):
    """What has to be the same on all ranks, by name."""
    arrays = {"q": q, "k": k, "v": v, "sink": sink, "starts_q": starts_q, "starts_k": starts_k}
    arrays.update(zip(("q_ranges", "k_ranges", "kinds"), slices or (None,) * 3))
    made = {name: described(x) for name, x in arrays.items()}
    made.update(method=repr(method), order=repr(order))
    for name, x in options.items():
        if name == "inputs":
            for key, value in (x or {}).items():
                made[f"inputs: {key}"] = f"({value[0]!r}, {described(value[1])})" if isinstance(value, tuple) else repr(value)
        else:
            made[name] = described(x)
    return made


def described(x):
    return f"{x.dtype} {list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, problem, names, return_max_logit, q, k, v, sink, *arrays):
        inputs = dict(zip(names, arrays))
        o, lse, top = ring.forward(problem, q, k, v, sink, inputs, return_max_logit)
        ctx.save_for_backward(q, k, v, sink, o, lse, *arrays)
        ctx.call = problem, names
        ctx.set_materialize_grads(False)
        if top is not None:
            ctx.mark_non_differentiable(top)
        return o, lse, top

    @staticmethod
    @once
    def backward(ctx, saved, dout, dlse, _):
        (problem, names), (q, k, v, sink, o, lse, *arrays) = ctx.call, saved
        needed = dict(zip(("q", "k", "v", "sink", *names), ctx.needs_input_grad[3:]))
        wanted = tuple(name for name in names if needed[name])
        dout = torch.zeros_like(o) if dout is None else dout
        dq, dk, dv, of_inputs = ring.backward(problem, dout, q, k, v, o, lse, dlse, dict(zip(names, arrays)), wanted)
        made = {"q": dq.to(q.dtype), "k": dk.to(k.dtype), "v": dv.to(v.dtype)}
        for name, x in zip(names, arrays):
            if needed[name]:
                made[name] = of_inputs[name].to(x.dtype) if name in of_inputs else torch.zeros_like(x)
        if needed["sink"]:
            made["sink"] = sink_gradient(sink, o, lse, dout, dlse)
        return (None, None, None, *[made.get(name) for name in ("q", "k", "v", "sink", *names)])


def sink_gradient(sink, o, lse, dout, dlse):
    """mathematics.md section 3: the sum over rows of exp(c - LSE) (dLSE - dO . O)."""
    delta = -(dout.float() * o.float()).sum(-1).transpose(-1, -2)
    if dlse is not None:
        delta = delta + dlse
    share = (sink.float()[:, None] - lse).exp()
    share = torch.where(lse == float("-inf"), 0.0, share)  # the sink is -inf, too
    total = share * delta
    return (total.sum(-1) if total.dim() == 2 else total.sum((0, 2))).to(sink.dtype)

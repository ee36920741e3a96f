"""Keys travel from rank to rank, or are gathered from all: forward and backward.

ring      keys of the next step come while those of this one are computed with, into one of two buffers. In backward dK and dV
          follow their keys in float32, and return home from the last rank that saw them
gather    all ranks get all keys, and dK and dV are summed and divided in one go"""
import torch
import torch.distributed as dist

from . import messages
from .order import joined, separated
from .partials import Partials


class Keys:
    """K and V, on their way: a rank's own ones and two buffers, whatever the number of ranks."""

    def __init__(self, problem, travels, k, v):
        self.problem, self.travels = problem, travels
        self.current = (k.contiguous(), v.contiguous())
        moves = any(last for _, last in travels)
        self.buffers = [tuple(torch.empty_like(x) for x in self.current) for _ in range(2)] if moves else []

    def start(self, step):
        """The messages by which keys get where the next step needs them; gives a function that ends them."""
        rank, n = self.problem.rank, self.problem.n
        sends, receives, received = [], [], None
        if step + 1 <= self.travels[(rank - step) % n][1]:
            sends = [(x, (rank + 1) % n) for x in self.current]
        if step + 1 <= self.travels[(rank - step - 1) % n][1]:
            received = self.buffers[step % 2]
            receives = [(x, (rank - 1) % n) for x in received]
        wait = messages.exchange(self.problem, sends, receives, f"keys of step {step + 1}")

        def end():
            wait()
            self.current = received
        return end


def forward(problem, q, k, v, sink, inputs, return_max_logit):
    """o, lse and max_logit, which may be None."""
    geometry, rank, n = problem.geometry, problem.rank, problem.n
    flat, n_rows = problem.is_flat, q.shape[-3]
    if problem.method == "gather":
        steps = [(None, geometry.gathered(rank))]
        k, v = gathered(problem, k, "k"), gathered(problem, v, "v")
        travels = [(0, 0)] * n
    else:
        steps = [((rank - t) % n, geometry.launches(rank, (rank - t) % n)) for t in range(n)]
        travels = geometry.travels()
    partials = Partials(q[None] if flat else q, v.shape[-1], sum(len(launches) for _, launches in steps))
    batch = len(problem.starts["q"]) - 1 if problem.is_packed else 1 if flat else q.shape[0]
    top = torch.full((batch, q.shape[-2]), float("-inf"), device=q.device) if return_max_logit else None
    keys = Keys(problem, travels, k, v)
    for t in range(max(last for _, last in travels) + 1):
        end = keys.start(t)
        source, launches = steps[t]
        for launch in launches:
            first, count = (0, n_rows) if flat or launch.q is None else (launch.q * problem.length_q, problem.length_q)
            place, out = partials.place(first, count)
            _, lse, *more = problem.forward(launch, source, q, *keys.current, inputs, out[0] if flat else out, return_max_logit)
            partials.add(place, first, count, lse)
            if more:
                top = torch.maximum(top, more[0])
        end()
    o, lse = partials.result(sink, q.dtype)
    if top is not None:
        messages.all_reduce(problem, top, dist.ReduceOp.MAX, "the largest logits")
    return (o[0], lse[0], top) if flat else (o, lse, top)


def gathered(problem, x, name):
    """Of all ranks, in the sequence's order."""
    parts = messages.all_gather(problem, x, f"{name} of all ranks")
    return joined(list(parts), x.dim() - 3, problem.order, problem.starts["k"] if problem.is_packed else None)


class Sums:
    """dQ, dK and dV and gradients of inputs, in float32: what launches give is added where their rows and keys lie."""

    def __init__(self, problem, wanted):
        self.problem, self.wanted = problem, wanted
        self.dq, self.inputs = None, {}

    def launch(self, launch, source, dout, q, k, v, out, lse, dlse, inputs, into):
        """into: (dk, dv), or None where nothing was added yet; gives both."""
        p = self.problem
        made = p.backward(launch, source, dout, q, k, v, out, lse, dlse, inputs, self.wanted)
        self.dq = self.add(self.dq, made.q, q, launch.q, p.length_q)
        for name, x in made.inputs.items():
            if name in self.wanted:
                self.inputs[name] = x.float() if name not in self.inputs else self.inputs[name] + x.float()
        dk, dv = into or (None, None)
        return self.add(dk, made.k, k, launch.k, p.length_k), self.add(dv, made.v, v, launch.k, p.length_k)

    def add(self, total, x, like, run, length):
        if total is None:
            if x.shape == like.shape:
                return x.float()
            total = torch.zeros(like.shape, dtype=torch.float32, device=like.device)
        self.problem.rows(total, run, length).add_(x)
        return total


def zeros(x):
    return torch.zeros(x.shape, dtype=torch.float32, device=x.device)


def backward(problem, dout, q, k, v, out, lse, dlse, inputs, wanted):
    """dq, dk, dv in float32, and gradients of inputs by name: of this rank's rows."""
    sums, rest = Sums(problem, wanted), (out, lse, dlse, inputs)
    if problem.method == "gather":
        dk, dv = backward_of_gathered(problem, sums, dout, q, k, v, rest)
    else:
        dk, dv = backward_of_ring(problem, sums, dout, q, k, v, rest)
    return zeros(q) if sums.dq is None else sums.dq, dk, dv, sums.inputs


def backward_of_gathered(problem, sums, dout, q, k, v, rest):
    keys, values, made = gathered(problem, k, "k"), gathered(problem, v, "v"), None
    for launch in problem.geometry.gathered(problem.rank):
        made = sums.launch(launch, None, dout, q, keys, values, *rest, made)
    starts = problem.starts["k"] if problem.is_packed else None
    return [messages.reduce_scatter(problem, separated(x, k.dim() - 3, problem.order, problem.n, starts), "dk and dv")
            for x in made]


def backward_of_ring(problem, sums, dout, q, k, v, rest):
    """In step t a rank adds to dK and dV of the keys that it has; they come from the rank before it, and go on a step
    later."""
    rank, n, geometry, travels = problem.rank, problem.n, problem.geometry, problem.geometry.travels()
    keys, own, moving = Keys(problem, travels, k, v), None, None
    last = max(last for _, last in travels)
    for t in range(last + (2 if last else 1)):
        source = (rank - t) % n
        sends, receives, came, returned = [], [], None, None
        before = (source + 1) % n  # whose dK and dV this rank has from the last step
        if 0 < travels[before][0] <= t - 1 <= travels[before][1]:
            to = (rank + 1) % n if t - 1 < travels[before][1] else before
            sends = [(x, to) for x in moving]
        if 0 < travels[source][0] <= t - 1 < travels[source][1]:
            came = zeros_like_both(k, v)
            receives = [(x, (rank - 1) % n) for x in came]
        if travels[rank][1] and t == travels[rank][1] + 1:
            returned = zeros_like_both(k, v)
            receives += [(x, (rank + travels[rank][1]) % n) for x in returned]
        end = keys.start(t) if t <= last else None
        wait = messages.exchange(problem, sends, receives, f"gradients of step {t}")
        made = None
        if t <= last and (t == 0 or t <= travels[source][1]):
            for launch in geometry.launches(rank, source):
                made = sums.launch(launch, source, dout, q, *keys.current, *rest, made)
        wait()
        if end:
            end()
        if t == 0:
            own = made or zeros_like_both(k, v)
        else:
            moving = added(came, made)
        if returned:
            own = added(own, returned)
    return own


def zeros_like_both(k, v):
    return zeros(k), zeros(v)


def added(a, b):
    """The sum of two pairs, either of which may be None."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(x.add_(y) for x, y in zip(a, b))

"""What ranks send each other: agreement on a call, tensors, and the sentence where an answer does not come.

How long a message may take, and that a rank has ended, is found by torch.distributed: the timeout is its group's."""
import contextlib

import torch
import torch.distributed as dist

MOST_AGREED = 4096
_agreed = {}  # (group, what a call looks like): calls on which all ranks agree


@contextlib.contextmanager
def told(what):
    """Says of an error of torch.distributed what was going on."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RuntimeError(f"context_parallel: {what}: a rank has ended, or did not answer within the group's timeout "
                           f"({first})") from error


def group_of(group):
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError("context_parallel: there is no process group: call torch.distributed.init_process_group first")
    found = dist.group.WORLD if group is None else group
    if dist.get_rank(found) < 0:
        raise ValueError("context_parallel: this rank is not in the group")
    return found


def agree(group, look, mistake):
    """At the first call that looks like this: that it looks so on all ranks. look: name -> what a rank has; mistake: an
    exception of this rank's own arguments, or None; it is raised here, and told all others."""
    key = group, tuple(look.items())
    if mistake is None and key in _agreed:
        return
    looks = [None] * dist.get_world_size(group)
    with told("the first exchange of a call"):
        dist.all_gather_object(looks, (look, mistake and str(mistake)), group=group)
    if mistake is not None:
        raise mistake
    for rank, (_, told_by_it) in enumerate(looks):
        if told_by_it:
            raise RuntimeError(f"context_parallel: rank {rank} refused the call: {told_by_it}")
    first = looks[0][0]
    for rank, (other, _) in enumerate(looks):
        for name in [*first, *other]:
            if first.get(name) != other.get(name):
                raise ValueError(f"context_parallel: {name} is {first.get(name)} on rank 0 and {other.get(name)} on rank "
                                 f"{rank}: it has to be the same on all ranks")
    if len(_agreed) >= MOST_AGREED:
        _agreed.clear()
    _agreed[key] = True


def exchange(problem, sends, receives, what):
    """Starts messages and gives a function that waits for them. sends, receives: (tensor, rank of the group)."""
    made = [(dist.isend, x, rank) for x, rank in sends] + [(dist.irecv, x, rank) for x, rank in receives]
    if not made:
        return lambda: None
    peers = ", ".join(map(str, sorted({rank for _, _, rank in made})))
    what = f"rank {problem.rank}'s messages to and from rank {peers}, {what}"
    with told(what):
        works = dist.batch_isend_irecv([dist.P2POp(kind, x, problem.ranks[rank], problem.group) for kind, x, rank in made])

    def wait():
        with told(what):
            for work in works:
                work.wait()
    return wait


def all_gather(problem, x, what):
    """[n, ...]"""
    made = x.new_empty((problem.n, *x.shape))
    with told(what):
        dist.all_gather_into_tensor(made.view(-1), x.contiguous().view(-1), group=problem.group)
    return made


def reduce_scatter(problem, parts, what):
    """The sum over ranks of this rank's part; parts [n, ...]."""
    made = torch.empty_like(parts[0])
    with told(what):
        dist.reduce_scatter_tensor(made.view(-1), parts.contiguous().view(-1), group=problem.group)
    return made


def all_to_all(problem, parts, what):
    """Part i goes to rank i: [n, ...] of what all ranks have for this one."""
    parts = parts.contiguous()
    made = torch.empty_like(parts)
    with told(what):
        dist.all_to_all_single(made, parts, group=problem.group)
    return made


def all_reduce(problem, x, op, what):
    with told(what):
        dist.all_reduce(x, op, group=problem.group)
    return x


def same_seed(problem, seed):
    """That of the group's first rank."""
    with told("the seed of the first rank"):
        dist.broadcast(seed, problem.ranks[0], group=problem.group)
    return seed

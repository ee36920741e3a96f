"""Which chunks of a sequence a rank has, and tensors cut and joined by it.

A sequence is cut into chunks of one length. In zigzag order rank r of n has chunks r and 2n - 1 - r, so that all ranks have as
much to do under a causal mask; in contiguous order it has chunk r. A rank has its chunks in ascending order."""
import torch
import torch.distributed as dist

ORDERS = ("zigzag", "contiguous")


def chunk_count(order, n):
    if order not in ORDERS:
        raise ValueError(f'order is {order!r}; expected "zigzag" or "contiguous"')
    return 2 * n if order == "zigzag" else n


def chunks_of(order, n, rank):
    """The numbers of a rank's chunks."""
    return (rank, 2 * n - 1 - rank) if order == "zigzag" else (rank,)


def chunk_length(name, length, order, n):
    """Of a sequence, or of all that a rank has of it."""
    if length % n:
        raise ValueError(f"{name} {length}: {order} order needs a multiple of {n}; pad the sequence")
    return length // n


def owners(order, n):
    """(rank, which of its chunks) of each chunk."""
    found = {chunk: (rank, i) for rank in range(n) for i, chunk in enumerate(chunks_of(order, n, rank))}
    return [found[chunk] for chunk in range(len(found))]


def shard(x, group=None, dim=1, order="zigzag", starts=None):
    n, rank = dist.get_world_size(group), dist.get_rank(group)
    if starts is not None:
        return x.index_select(dim, packed_index(starts, x.shape[dim], order, n)[rank])
    count = chunk_count(order, n)
    length = chunk_length(f"axis {dim} has length", x.shape[dim], order, count)
    return torch.cat([x.narrow(dim, chunk * length, length) for chunk in chunks_of(order, n, rank)], dim)


def unshard(x, group=None, dim=1, order="zigzag", starts=None):
    n = dist.get_world_size(group)
    chunk_count(order, n)
    x = x.contiguous()
    parts = [torch.empty_like(x) for _ in range(n)]
    dist.all_gather(parts, x, group=group)
    return joined(parts, dim, order, starts)


def joined(parts, dim, order, starts=None):
    """A whole tensor, of the parts of all ranks."""
    n = len(parts)
    if starts is not None:
        index = packed_index(starts, n * parts[0].shape[dim], order, n)
        whole = torch.cat(parts, dim)
        return torch.empty_like(whole).index_copy_(dim, index.flatten(), whole)
    own = len(chunks_of(order, n, 0))
    length = chunk_length("a rank's length", parts[0].shape[dim], order, own)
    return torch.cat([parts[rank].narrow(dim, i * length, length) for rank, i in owners(order, n)], dim)


def separated(whole, dim, order, n, starts=None):
    """The parts of all ranks, [n, ...], of a whole tensor."""
    if starts is not None:
        index = packed_index(starts, whole.shape[dim], order, n)
        return torch.stack([whole.index_select(dim, index[rank]) for rank in range(n)])
    length = whole.shape[dim] // chunk_count(order, n)
    return torch.stack([torch.cat([whole.narrow(dim, chunk * length, length) for chunk in chunks_of(order, n, rank)], dim)
                        for rank in range(n)])


def packed_index(starts, tokens, order, n):
    """[n, tokens / n]: where each token of each rank lies among those of all packed sequences. A rank has of each sequence
    its chunks; what lies behind the last sequence is divided likewise, as one more sequence."""
    count = chunk_count(order, n)
    chunk_length("tokens", tokens, order, n)
    starts = starts.to(torch.int64)
    local = torch.arange(tokens // n, device=starts.device)
    bounds = torch.cat((starts, starts.new_tensor([tokens])))
    sequence = torch.searchsorted(bounds // n, local, right=True) - 1
    length = ((bounds[1:] - bounds[:-1]) // count)[sequence]
    at = local - bounds[sequence] // n
    rows = []
    for rank in range(n):
        chunks = torch.tensor(chunks_of(order, n, rank), device=starts.device)
        which = (at // length.clamp(min=1)).clamp(max=len(chunks) - 1)
        rows.append(bounds[sequence] + chunks[which] * length + at - which * length)
    return torch.stack(rows)

"""context_parallel: attention over sequences that no one GPU holds, on torch.distributed; shard and unshard cut and join
them."""


def context_parallel(q, k, v, group=None, method="ring", order="zigzag", *, mask=None, score=None, define=None, inputs=None,
                     sink=None, dropout=0.0, seed=None, scale=None, starts_q=None, starts_k=None, longest_q=None,
                     longest_k=None, q_ranges=None, k_ranges=None, kinds=None, deterministic=False, sm_margin=0, plan=None,
                     return_lse=False, return_max_logit=False):
    """attention of a sequence of which each rank of a group has a part: all ranks call it, each with its own rows and keys,
    and get their rows' results. Differentiable, in all that attention is but bias.

    q [b, n, h, d], k [b, m, hk, d], v [b, m, hk, dv] are a rank's parts of tensors of PyTorch, as shard cuts them; on NCCL
    of CUDA, on gloo of the CPU. The options are those of attention; masks, scores and dropout are those of the whole sequence.

    method      "ring": keys travel around, while they are computed with; a rank has its own ones and two buffers. Steps in
                which a causal mask or a window shows nothing are left out.
                "gather": each rank gets all keys.
                "alltoall": each rank gets all rows of some heads, whose numbers, h and hk, the number of ranks divides
    order       "zigzag": of 2 n chunks of the sequence rank r of n has r and 2 n - 1 - r, in this order, which divides a causal
                mask's work evenly. "contiguous": of n chunks it has the r-th
    starts_q, starts_k
                int32 [b + 1]: q is [tokens, h, d], packed. Starts are those of the whole sequences; their lengths are
                multiples of the number of chunks, and a rank has its chunks of each sequence. Without starts_k keys start
                where rows do
    q_ranges, k_ranges, kinds
                the mask is a list of slices of all tokens, the same on all ranks: q is [tokens, h, d]
    sink, inputs
                have the same values on all ranks. A rank's gradients of them are of its own rows (alltoall: of its heads): their
                sum over the ranks is the whole one, as it is of a model's other parameters
    seed        None: the generator of the group's first rank is asked
    sm_margin   multiprocessors that are left to messages

    At the first call of a kind ranks compare what they were given. Raises what attention raises, and RuntimeError where a
    rank has ended or does not answer within the group's timeout."""
    from .parallel.call import call
    slices = None
    if not (q_ranges is None and k_ranges is None):
        if q_ranges is None or k_ranges is None:
            raise ValueError("slices have q_ranges and k_ranges: one of them is not given")
        slices = q_ranges, k_ranges, q_ranges.new_zeros(len(q_ranges)) if kinds is None else kinds
    options = {"mask": mask, "score": score, "define": define, "inputs": inputs, "dropout": dropout, "seed": seed,
               "scale": scale, "longest_q": longest_q, "longest_k": longest_k, "deterministic": deterministic,
               "sm_margin": sm_margin, "plan": plan}
    o, lse, max_logit = call(q, k, v, group, method, order, sink, starts_q, starts_k, slices, options, return_max_logit)
    results = (o,) + (lse,) * bool(return_lse) + (max_logit,) * bool(return_max_logit)
    return results if len(results) > 1 else o


def shard(x, group=None, dim=1, order="zigzag", starts=None):
    """A rank's part of a tensor that all ranks have, cut along an axis as context_parallel's order says; each of packed
    sequences, where their starts are given."""
    from .parallel.order import shard as cut
    return cut(x, group, dim, order, starts)


def unshard(x, group=None, dim=1, order="zigzag", starts=None):
    """The whole tensor on all ranks, of their parts; without gradients."""
    from .parallel.order import unshard as join
    return join(x, group, dim, order, starts)

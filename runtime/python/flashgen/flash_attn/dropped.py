"""S_dmask: the weights of a call with dropout, negative where they were dropped. PyTorch computes them from the seed that
the kernels got, for tests; no kernel writes a matrix of weights."""
import torch

WORD = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)


def keep_mask(shape, seed, keep, first=0):
    """Which weights [b, h, nq, nk] are kept: lanes of Philox 4x32-10, as flashgen.h has it. seed: int32[4]. first: the
    number of the first batch entry."""
    b, h, nq, nk = shape
    low, high, offset_low, offset_high = (int(x) & WORD for x in seed.tolist())
    device, blocks = seed.device, -(-nk // 8)
    counter = (torch.arange(blocks, device=device).view(1, 1, -1), torch.arange(nq, device=device).view(1, -1, 1),
               (torch.arange(b * h, device=device) + first * h).view(-1, 1, 1), torch.tensor(offset_low, device=device))
    words = philox(torch.broadcast_tensors(*counter), low, high ^ offset_high)
    lanes = torch.stack([half for word in words for half in (word & 0xFFFF, word >> 16)], -1)
    return (lanes < bound(keep)).reshape(b, h, nq, 8 * blocks)[..., :nk]


def bound(keep):
    """The lanes below it are kept, of 65536."""
    return round(65536 * torch.tensor(keep, dtype=torch.float32).item())


def philox(counter, *key):
    """Four words of each counter, in int64."""
    a, b, c, d = counter
    for _ in range(10):
        (high_a, low_a), (high_c, low_c) = product(a, MULTIPLIERS[0]), product(c, MULTIPLIERS[1])
        a, b, c, d = high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a
        key = tuple((k + step) & WORD for k, step in zip(key, STEPS))
    return a, b, c, d


def product(x, multiplier):
    """The upper and the lower word of a product of 32-bit words, whose 64 bits int64 has not all."""
    low = (x & 0xFFFF) * multiplier
    high = (x >> 16) * multiplier + (low >> 16)
    return high >> 16, (high << 16 | low & 0xFFFF) & WORD


def signed_weights(q, k, words, scale, seed, keep, first=0):
    """[b, h, nq, nk] in q's dtype, of q [b, nq, h, d] and k [b, nk, hk, d]: exp(s - m), m the largest s of the row,
    negative where dropped, 0 where masked. A dropped weight is never 0, so that its sign is seen."""
    s, seen = scores(q, k, words, scale, first)
    top = s.amax(3, keepdim=True) if s.shape[3] else s.new_zeros(*s.shape[:3], 1)
    weights = torch.exp(s - top.clamp(min=-1e30))
    kept = keep_mask(s.shape, seed, keep, first)
    smallest = torch.finfo(q.dtype).smallest_normal
    return torch.where(kept | ~seen, weights, -weights.clamp(min=smallest)).to(q.dtype)


def scores(q, k, words, scale, first):
    """The scores in float32, -inf where masked, and what is seen."""
    b, nq, h, d = q.shape
    nk = k.shape[1]
    keys = k.float().repeat_interleave(h // k.shape[2], 2)
    s = torch.einsum("bihd,bjhd->bhij", q.float(), keys) * (d ** -0.5 if scale is None else scale)
    j, p = torch.arange(nk, device=q.device), torch.arange(nq, device=q.device)[:, None] + nk - nq
    if words.cap > 0:
        s = words.cap * torch.tanh(s / words.cap)
    if words.slopes is not None:
        slopes = words.slopes if words.slopes.dim() == 1 else words.slopes[first:first + b]
        s = s - slopes.reshape(-1, h, 1, 1) * (p - j).abs()
    seen = torch.ones_like(s, dtype=torch.bool)
    if words.left is not None:
        seen &= p - j <= words.left
    if words.right is not None:
        seen &= j - p <= words.right
    return s.masked_fill(~seen, float("-inf")), seen


def packed_signed_weights(q, k, starts_q, starts_k, words, scale, seed, keep):
    """The same of packed sequences, each in the corner of its own matrix; the lengths are read on the host."""
    ends_q, ends_k = starts_q.tolist(), starts_k.tolist()
    longest = [max((y - x for x, y in zip(ends, ends[1:])), default=0) for ends in (ends_q, ends_k)]
    made = q.new_zeros(len(ends_q) - 1, q.shape[1], *longest)
    for i in range(len(made)):
        rows, keys = (x[None, ends[i]:ends[i + 1]] for x, ends in ((q, ends_q), (k, ends_k)))
        made[i, :, :rows.shape[1], :keys.shape[1]] = signed_weights(rows, keys, words, scale, seed, keep, i)[0]
    return made

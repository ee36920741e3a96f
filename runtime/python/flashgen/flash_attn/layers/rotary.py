"""Rotary embeddings, by PyTorch's own operations: flashgen.append turns what goes into a cache."""
import torch


def apply_rotary_emb(x, cos, sin, interleaved=False, inplace=False, seqlen_offsets=0, cu_seqlens=None, max_seqlen=None):
    """x [b, n, h, d], or packed [tokens, h, d] with cu_seqlens int32[b + 1], its first columns turned by each row's
    position: seqlen_offsets, an int or int32[b], and the row's place in its sequence. cos, sin [positions,
    rotary_dim / 2]; rows that these do not reach stay as they are. Pairs are columns 2i and 2i + 1 if interleaved, else
    i and i + rotary_dim / 2. Differentiable; inplace writes to x."""
    pairs = cos.shape[-1]
    if 2 * pairs > x.shape[-1]:
        raise ValueError(f"cos has {pairs} columns: rotary_dim is {2 * pairs}, more than the head dim, {x.shape[-1]}")
    if cu_seqlens is None:
        rows = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
        positions = rows + (seqlen_offsets if isinstance(seqlen_offsets, int) else seqlen_offsets[:, None])
    else:
        positions = token_positions(cu_seqlens, x.shape[0], seqlen_offsets)
    turned = turn(x, *angles(cos, sin, positions), interleaved)
    return x.copy_(turned) if inplace else turned


def token_positions(starts, tokens, offsets):
    """[tokens]: the position of each token of packed sequences; offsets: an int, or [b]."""
    token = torch.arange(tokens, dtype=starts.dtype, device=starts.device)
    sequence = sequence_of(starts, token)
    return token - starts[sequence] + (offsets if isinstance(offsets, int) else offsets[sequence])


def sequence_of(starts, token):
    """[tokens]: which sequence each token is of; tokens behind the last one are of that."""
    return torch.searchsorted(starts[1:].contiguous(), token, right=True).clamp(max=len(starts) - 2)


def angles(cos, sin, positions):
    """Cosine and sine of each row's angles, [..., 1, pairs] in float32; 1 and 0 where the tables have none."""
    has = ((positions >= 0) & (positions < cos.shape[0]))[..., None, None]
    at = positions.clamp(0, max(cos.shape[0] - 1, 0)).long()
    return (torch.where(has, table[at].float().unsqueeze(-2), torch.tensor(other, device=table.device))
            for table, other in ((cos, 1.0), (sin, 0.0)))


def turn(x, cos, sin, interleaved):
    pairs = cos.shape[-1]
    first, rest = x[..., :2 * pairs].float(), x[..., 2 * pairs:]
    a, b = (first[..., ::2], first[..., 1::2]) if interleaved else first.chunk(2, -1)
    turned = (a * cos - b * sin, a * sin + b * cos)
    turned = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    return torch.cat((turned.to(x.dtype), rest), -1)

"""Attention to a cache, after new keys and values are written to it: flash_attn_with_kvcache of FlashAttention 2 and 3."""
import torch

from ..append import append
from ..attention import is_traced
from ..autograd import E4M3
from .attend import attend, check_dtypes, check_places, longest
from .layers.rotary import apply_rotary_emb, sequence_of, token_positions


def attend_to_cache(q, k_cache, v_cache, k, v, words, *, rotary, seqlens, rows, first, table, starts_q=None, starts_new=None,
                    rotary_seqlens=None, longest_q=None, bounds=None, descales=None, **options):
    """(out, lse), with new k and v written to the cache in place, at `seqlens` of each sequence.

    rotary: (cos, sin, interleaved). seqlens: int, int32 [b], or None: the cache is full. starts_q, starts_new: where packed
    queries and new keys start. rotary_seqlens: positions of the first new rows, where they are not seqlens. bounds: the
    name of a table, where lengths are to be read on the host and compared with it. descales: name -> array, of what is
    float8_e4m3fn."""
    check_dtypes(q, k_cache, v_cache)
    if (k is None) != (v is None):
        raise ValueError("one of k and v is given: new keys have values and values have keys")
    if k is None and rotary[0] is not None:
        raise ValueError("rotary_cos is given without k and v: only what goes into the cache is turned, and queries with it")
    if q.dtype == E4M3 and rotary[0] is not None:
        raise NotImplementedError("rotary_cos is given, and q is float8_e4m3fn: what is turned has 16 bits")
    b = q.shape[0] if starts_q is None else len(starts_q) - 1
    check_places({"rows": rows, "first_k": first, "table": table, "starts_q": starts_q, "starts_k": starts_new})
    if rows is not None and table is not None:
        table, rows = table[rows.long()], None
    with torch.no_grad():
        used = lengths(seqlens, b, k_cache, table)
        after = used if k is None else used + new_rows(k, starts_new)
        if bounds and table is not None:
            check_bounds(after, table, k_cache, bounds)
        if k is not None:
            check_rows(rows, used, new_rows(k, starts_new))
            q = write(q, k_cache, v_cache, k, v, words, rotary, used, rows, table, starts_q, starts_new, rotary_seqlens, descales)
        return attend(q, k_cache, v_cache, words, return_lse=True, used_k=after, rows=rows, first_k=first, table=table,
                      starts_q=starts_q, longest_q=longest(longest_q), **descales or {}, **options)


def lengths(seqlens, b, k_cache, table):
    """int32 [b]: the keys of each sequence before new ones come."""
    if seqlens is None:
        seqlens = k_cache.shape[1] * (1 if table is None else table.shape[1])
    if isinstance(seqlens, int):
        return torch.full((b,), seqlens, dtype=torch.int32, device=k_cache.device)
    if seqlens.dtype != torch.int32:
        raise TypeError(f"cache_seqlens is {str(seqlens.dtype).replace('torch.', '')}; expected int32")
    return seqlens


def new_rows(k, starts_new):
    return k.shape[1] if starts_new is None else starts_new[1:] - starts_new[:-1]


def check_rows(rows, used, new):
    """That no two sequences write to one place of a cache. On a GPU either may win, as in FlashAttention 2, and nobody looks;
    the host device takes it for a race, and the call says why."""
    if rows is None or rows.is_cuda or is_traced():
        return
    ends = {}  # of what is written to each cache so far
    for row, first, end in sorted(zip(rows.tolist(), used.tolist(), (used + new).tolist())):
        if first < min(end, ends.get(row, first)):
            raise ValueError(f"cache_batch_idx has {row} more than once, with new keys for place {first} of the same cache: "
                             "which of them stays is not defined")
        ends[row] = max(end, ends.get(row, end))


def check_bounds(used, table, k_cache, name):
    """That the table has a page for each key. It reads the lengths on the host, which waits for the device; not while a
    stream captures, where nobody may, nor while operators are recorded, for lengths of other calls."""
    if is_traced() or is_capturing(used):
        return
    most, room = int(used.max()) if len(used) else 0, table.shape[1] * k_cache.shape[1]
    if most > room:
        raise RuntimeError(f"a sequence has {most} keys and {name} places for {room}: {table.shape[1]} pages of "
                           f"{k_cache.shape[1]}")


def is_capturing(x):
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def write(q, k_cache, v_cache, k, v, words, rotary, used, rows, table, starts_q, starts_new, rotary_seqlens, descales):
    """Appends, and returns the queries, turned where there is a rotary embedding. Rows of 16 bits are divided by the descales
    of a cache of 8; those of 8 bits are in its units already."""
    cos, sin, interleaved = rotary
    places = {"used_k": used, "rows": rows, "table": table, "starts_q": starts_new}
    if k.dtype == v.dtype == k_cache.dtype == E4M3:
        k, v = k.to(torch.bfloat16), v.to(torch.bfloat16)
    else:
        places.update((name, x) for name, x in (descales or {}).items() if name != "q_descale")
    if cos is None:
        append(k_cache, v_cache, k, v, **places)
        return q
    base = used if rotary_seqlens is None else rotary_seqlens
    places.update(rotary_cos=cos, rotary_sin=sin, rotary="interleaved" if interleaved else "halves")
    if base is not used:
        places["row_positions"] = positions(k, starts_new, base)
    if turn_alike(q, k, words, starts_q, starts_new):
        return append(k_cache, v_cache, k, v, q=q, **places)
    append(k_cache, v_cache, k, v, **places)
    if words.is_plain:
        return turn_at(q, cos, sin, base, interleaved, starts_q)
    return apply_rotary_emb(q, cos, sin, interleaved, seqlen_offsets=base, cu_seqlens=starts_q)


def turn_alike(q, k, words, starts_q, starts_new):
    """Whether row i of the queries has the position of new row i of the keys, so that one launch turns both."""
    if starts_q is not starts_new or q.shape[:-2] != k.shape[:-2]:
        return False
    return not words.is_plain or starts_q is None and q.shape[1] == 1


def positions(k, starts_new, base):
    """int32 positions of new rows that begin at `base`, int32 [b]."""
    if starts_new is not None:
        return token_positions(starts_new, k.shape[0], base).int()
    return (torch.arange(k.shape[1], device=k.device, dtype=torch.int32) + base[:, None]).contiguous()


def turn_at(q, cos, sin, base, interleaved, starts_q):
    """All queries of a sequence turned by its first position."""
    if starts_q is None:  # as one row, of all rows' heads
        return apply_rotary_emb(q.flatten(1, 2)[:, None], cos, sin, interleaved, seqlen_offsets=base)[:, 0].view_as(q)
    token = torch.arange(q.shape[0], dtype=starts_q.dtype, device=q.device)
    base = base[sequence_of(starts_q, token)]
    return apply_rotary_emb(q[:, None], cos, sin, interleaved, seqlen_offsets=base)[:, 0]

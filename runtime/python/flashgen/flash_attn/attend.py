"""One call of flashgen.attention, for a function that has FlashAttention's arguments."""
import torch

from .. import tensors
from ..attention import attention
from ..autograd import E4M3
from .dropped import packed_signed_weights, signed_weights
from .words import expressions

COMPUTED = (torch.float16, torch.bfloat16)
PLACES = {"starts_q": "cu_seqlens_q", "starts_k": "cu_seqlens_k", "used_q": "seqused_q", "used_k": "seqused_k",
          "first_k": "leftpad_k", "rows": "cache_batch_idx", "table": "block_table"}


def attend(q, k, v, words, *, scale=None, dropout=0.0, deterministic=False, sm_margin=0, return_lse=False, seed=None,
           **places):
    """out, or with return_lse (out, lse). places: where sequences lie, and descales, by the names of flashgen.attention."""
    check_dtypes(q, k, v)
    check_places(places)
    return attention(q, k, v, scale=scale, dropout=dropout, seed=seed, deterministic=deterministic, sm_margin=sm_margin,
                     return_lse=return_lse, **expressions(words), **places)


def attend_for_tests(q, k, v, words, *, scale, dropout, starts_q=None, starts_k=None, **options):
    """(out, lse, S_dmask), the last one empty without dropout."""
    seed = tensors.fresh_seed(q) if dropout else None
    places = {} if starts_q is None else {"starts_q": starts_q, "starts_k": starts_k}
    out, lse = attend(q, k, v, words, scale=scale, dropout=dropout, seed=seed, return_lse=True, **places, **options)
    if not dropout:
        return out, lse, q.new_empty(0)
    with torch.no_grad():
        if starts_q is None:
            return out, lse, signed_weights(q, k, words, scale, seed, 1.0 - dropout)
        return out, lse, packed_signed_weights(q, k, starts_q, starts_k, words, scale, seed, 1.0 - dropout)


def check_dtypes(*given):
    for x in given:
        if x.dtype not in COMPUTED and x.dtype != E4M3:
            raise TypeError(f"a tensor is {str(x.dtype).replace('torch.', '')}: FlashAttention computes float16 and bfloat16")


def descales(q, k, v, of_q, of_k, of_v):
    """name -> float32 [b, hk], of what is float8_e4m3fn: FlashAttention 3 does not look at those of other tensors."""
    given = (("q_descale", q, of_q), ("k_descale", k, of_k), ("v_descale", v, of_v))
    return {name: scale for name, x, scale in given if scale is not None and x.dtype == E4M3}


def check_places(places):
    for name, x in places.items():
        if x is not None and name in PLACES and x.dtype != torch.int32:
            raise TypeError(f"{PLACES[name]} is {str(x.dtype).replace('torch.', '')}; expected int32")


def longest(most):
    """A bound of lengths, which only the choice of a kernel depends on; None: not known."""
    return None if most is None else int(most)


class WithoutGradient(torch.autograd.Function):
    """A result whose gradient is refused when it is asked for, and not before."""

    @staticmethod
    def forward(ctx, out, *given):
        return out.view_as(out)

    @staticmethod
    def backward(ctx, dout):
        raise NotImplementedError("attention over a cache has no gradient")


def over_cache(q, k, v, words, **options):
    """attend(), over keys in a cache or in pages: it has no gradient."""
    with torch.no_grad():
        results = attend(q, k, v, words, **options)
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)):
        return results
    if isinstance(results, tuple):
        return (WithoutGradient.apply(results[0], q, k, v), *results[1:])
    return WithoutGradient.apply(results, q, k, v)

"""In place of the module flash_attn_interface: the functions of FlashAttention 3, with its signatures, on flashgen's kernels.

Arguments that both versions have mean what flash_attn/flash_attn_interface.py says; those that only this one has:

    v                   its head dim may be another one than that of q and k
    qv                  is refused: there are no kernels for it yet
    *_descale           float32 [b, hk], of what is float8_e4m3fn: all of q, k and v, and the result is bfloat16 then, or k and v
                        alone beside a q of 16 bits; of others they are not looked at. There is no gradient. New rows of 16
                        bits are divided by the descales of such a cache; those of 8 bits are written as they are
    attention_chunk     0: none; else keys are seen of a row's own chunk of so many, counted from key 0
    seqused_q, seqused_k
                        int32 [b]: how many rows and keys of each packed sequence count
    sm_margin           multiprocessors that are left to other work
    num_splits, pack_gqa, scheduler_metadata
                        are accepted: keys are divided by the lengths that the device has
    return_attn_probs   returns (out, lse)
"""
import torch

from .combine import combine
from .flash_attn.attend import attend, descales, longest
from .flash_attn.cache import attend_to_cache
from .flash_attn.flash_attn_interface import parts
from .flash_attn.words import read
from .tensors import WORDS

WIDEST = 512  # columns of a value


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                    window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False,
                    sm_margin=0, return_attn_probs=False):
    """Attention of q [b, nq, h, d] to k [b, nk, hk, d] and v [b, nk, hk, dv]."""
    refuse(v, qv)
    words = read(causal, window_size, softcap, None, attention_chunk)
    return attend(q, k, v, words, scale=softmax_scale, deterministic=deterministic, sm_margin=sm_margin,
                  return_lse=return_attn_probs, **descales(q, k, v, q_descale, k_descale, v_descale))


def flash_attn_qkvpacked_func(qkv, softmax_scale=None, causal=False, q_descale=None, k_descale=None, v_descale=None,
                              window_size=(-1, -1), attention_chunk=0, softcap=0.0, deterministic=False, num_heads_q=None,
                              sm_margin=0, return_attn_probs=False):
    """qkv [b, n, 3, h, d], or with num_heads_q [b, n, heads of q, of k and of v, d]."""
    if num_heads_q is None:
        q, k, v = parts(qkv, 3)
    else:
        others = qkv.shape[-2] - num_heads_q
        if qkv.dim() != 4 or others <= 0 or others % 2:
            raise ValueError(f"qkv has the shape {tuple(qkv.shape)}; expected [b, n, {num_heads_q} + 2 hk, d]")
        q, k, v = qkv.split((num_heads_q, others // 2, others // 2), -2)
    return flash_attn_func(q, k, v, softmax_scale, causal, None, q_descale, k_descale, v_descale, window_size, attention_chunk,
                           softcap, deterministic=deterministic, sm_margin=sm_margin, return_attn_probs=return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None, seqused_k=None,
                           softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                           window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None,
                           deterministic=False, sm_margin=0, return_attn_probs=False):
    """Packed sequences: q [tokens_q, h, d], k [tokens_k, hk, d] and v [tokens_k, hk, dv]."""
    refuse(v, qv)
    words = read(causal, window_size, softcap, None, attention_chunk)
    return attend(q, k, v, words, scale=softmax_scale, deterministic=deterministic, sm_margin=sm_margin,
                  return_lse=return_attn_probs, starts_q=cu_seqlens_q, starts_k=cu_seqlens_k, used_q=seqused_q,
                  used_k=seqused_k, longest_q=longest(max_seqlen_q), longest_k=longest(max_seqlen_k),
                  **descales(q, k, v, q_descale, k_descale, v_descale))


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, page_table=None,
                            cu_seqlens_q=None, cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None,
                            q_descale=None, k_descale=None, v_descale=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), attention_chunk=0, softcap=0.0, rotary_interleaved=True,
                            scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0, return_softmax_lse=False):
    """Attention of q [b, nq, h, d], or packed with cu_seqlens_q, to a cache, to which new k and v [b, n, hk, d], or packed
    with cu_seqlens_k_new, are written first; as FlashAttention 2's, but that pages have any size, go together with
    cache_batch_idx, which names rows of page_table, and rotary_seqlens, int32 [b], may say where positions begin."""
    refuse(v_cache, qv)
    words = read(causal, window_size, softcap, None, attention_chunk)
    out, lse = attend_to_cache(
        q, k_cache, v_cache, k, v, words, rotary=(rotary_cos, rotary_sin, rotary_interleaved), seqlens=cache_seqlens,
        rows=cache_batch_idx, first=cache_leftpad, table=page_table, starts_q=cu_seqlens_q, starts_new=cu_seqlens_k_new,
        rotary_seqlens=None if rotary_seqlens is cache_seqlens else rotary_seqlens, longest_q=max_seqlen_q,
        scale=softmax_scale, sm_margin=sm_margin, descales=descales(q, k_cache, v_cache, q_descale, k_descale, v_descale))
    return (out, lse) if return_softmax_lse else out


def flash_attn_combine(out_partial, lse_partial, out=None, out_dtype=None):
    """(out, lse) of parts that have some of the keys each: out_partial [parts, b, n, h, dv] and lse_partial
    [parts, b, n, h], or without b of packed rows, both float32; out [b, n, h, dv] in out_dtype, float32 if there is none, and
    lse [b, n, h]. Kernels combine to 16 bits; float32, and more columns than kernels have, are PyTorch's operations."""
    if out_partial.dim() == 4:
        made, lse = flash_attn_combine(out_partial[:, None], lse_partial[:, None], None if out is None else out[None],
                                       out_dtype)
        return made[0] if out is None else out, lse[0]
    dtype = out_dtype or (out_partial.dtype if out is None else out.dtype)
    if dtype == torch.float32 or out_partial.shape[-1] > WIDEST:
        made, lse = plainly_combined(out_partial, lse_partial, dtype)
    else:
        made, lse = combine(out_partial, lse_partial.transpose(2, 3), dtype=WORDS.get(dtype, str(dtype)))
        lse = lse.transpose(1, 2)
    return made if out is None else out.copy_(made), lse


def plainly_combined(o, lse_parts, dtype):
    lse = torch.logsumexp(lse_parts, 0)
    weights = torch.exp(lse_parts - torch.where(lse.isinf(), torch.zeros_like(lse), lse))[..., None]
    return torch.where(weights > 0, o * weights, torch.zeros_like(o)).sum(0).to(dtype), lse


def get_scheduler_metadata(batch_size, max_seqlen_q, max_seqlen_k, num_heads_q, num_heads_kv, headdim, cache_seqlens,
                           qkv_dtype=torch.bfloat16, headdim_v=None, cu_seqlens_q=None, cu_seqlens_k_new=None,
                           cache_leftpad=None, page_size=None, max_seqlen_k_new=0, causal=False, window_size=(-1, -1),
                           attention_chunk=0, has_softcap=False, num_splits=0, pack_gqa=None, sm_margin=0):
    """int32 [1], which flash_attn_with_kvcache takes as often as one likes, and does not need: kernels divide their work by
    the lengths that the device has at that moment."""
    return torch.zeros(1, dtype=torch.int32, device=cache_seqlens.device)


def refuse(v, qv):
    """What no kernel computes yet."""
    if qv is not None:
        raise NotImplementedError("qv is given: there are no kernels for scores in two parts yet")
    if v.shape[-1] > WIDEST:
        raise NotImplementedError(f"v has {v.shape[-1]} columns: kernels have {WIDEST} at most")

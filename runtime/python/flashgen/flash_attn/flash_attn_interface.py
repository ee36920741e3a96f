"""The functions of FlashAttention 2, with its signatures. What each argument means is said once, here:

    q, k, v             [b, n, h, d], of varlen [tokens, h, d]; float16 or bfloat16, any d up to 512
    dropout_p           PyTorch's generator decides, so that torch.manual_seed repeats it
    softmax_scale       None: 1 / sqrt(d)
    window_size         (left, right), numbers or a tensor of two on the CPU: keys from p - left to p + right are seen, where
                        p is a row's place when both sequences end together; -1: no bound. causal: right is 0
    softcap             0: none
    alibi_slopes        float32 [h] or [b, h]: -slope |p - key| is added to a score
    deterministic       backward gives equal bits
    return_attn_probs   returns (out, lse, S_dmask): lse [b, h, n], packed [h, tokens], -inf where a row sees no key;
                        S_dmask is empty without dropout (dropped.py)
    cu_seqlens          int32 [b + 1]: where packed sequences start, and the last one ends. What no sequence covers is 0
    max_seqlen          a bound of the lengths, or None. No result depends on it
    block_table         int32 [b, pages]: k and v are pages [pages, page, hk, d], and cu_seqlens_k tells lengths alone. There is
                        no gradient
"""
from .attend import attend, attend_for_tests, longest, over_cache
from .cache import attend_to_cache
from .words import read

USE_TRITON_ROCM = False


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """Attention of q [b, nq, h, d] to k, v [b, nk, hk, d]."""
    words = read(causal, window_size, softcap, alibi_slopes)
    function = attend_for_tests if return_attn_probs else attend
    return function(q, k, v, words, scale=softmax_scale, dropout=dropout_p, deterministic=deterministic)


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                             alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """kv [b, nk, 2, hk, d]."""
    return flash_attn_func(q, *parts(kv, 2), dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                           deterministic, return_attn_probs)


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                              alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """qkv [b, n, 3, h, d]."""
    return flash_attn_func(*parts(qkv, 3), dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                           deterministic, return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    """Packed sequences: q [tokens_q, h, d], k and v [tokens_k, hk, d], or pages."""
    words = read(causal, window_size, softcap, alibi_slopes)
    bounds = {"longest_q": longest(max_seqlen_q), "longest_k": longest(max_seqlen_k)}
    if block_table is not None:
        out, lse, weights, _ = over_pages(q, k, v, cu_seqlens_q, cu_seqlens_k, None, None, block_table, words, softmax_scale,
                                          dropout_p, bounds)
        return (out, lse, weights) if return_attn_probs else out
    function = attend_for_tests if return_attn_probs else attend
    return function(q, k, v, words, scale=softmax_scale, dropout=dropout_p, deterministic=deterministic,
                    starts_q=cu_seqlens_q, starts_k=cu_seqlens_k, **bounds)


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                                    softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """kv [tokens_k, 2, hk, d]."""
    return flash_attn_varlen_func(q, *parts(kv, 2), cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p,
                                  softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
                                  return_attn_probs)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, dropout_p=0.0, softmax_scale=None, causal=False,
                                     window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                                     return_attn_probs=False):
    """qkv [tokens, 3, h, d]."""
    return flash_attn_varlen_func(*parts(qkv, 3), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, softmax_scale,
                                  causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
                            return_softmax_lse=False):
    """Attention of q [b, nq, h, d] to a cache [caches, nk, hk, d], or to pages [pages, page, hk, d] with block_table; new
    k, v [b, n, hk, d] are first written to it, behind cache_seqlens, an int or int32 [b]. There is no gradient.

    cache_batch_idx   int32 [b]: which cache a sequence has; cache_leftpad: int32 [b], its first keys, which are not seen
    rotary_cos, _sin  [positions, rotary_dim / 2]: new keys are turned by their places; queries by places from
                      cache_seqlens on where the mask is causal or a window, else all by that of cache_seqlens
    num_splits        is accepted: keys are divided by the lengths that the device has
    """
    words = read(causal, window_size, softcap, alibi_slopes)
    out, lse = attend_to_cache(
        q, k_cache, v_cache, k, v, words, rotary=(rotary_cos, rotary_sin, rotary_interleaved), seqlens=cache_seqlens,
        rows=cache_batch_idx, first=cache_leftpad, table=block_table, scale=softmax_scale, bounds="block_table")
    return (out, lse) if return_softmax_lse else out


def parts(packed, n):
    """q, k and v, or k and v, of a tensor that has them side by side, in the third axis from the end."""
    if packed.dim() < 4 or packed.shape[-3] != n:
        raise ValueError(f"a tensor of the shape {tuple(packed.shape)} is given; expected [..., {n}, heads, d]")
    return packed.unbind(-3)


# ---- beside the public functions, what FlashAttention's tests and some libraries import ----


def _get_block_size_n(device, head_dim, is_dropout, is_causal):
    """Keys whose maximum S_dmask is relative to: all of a row."""
    return 2**30


def _flash_attn_varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale,
                               causal, window_size_left=-1, window_size_right=-1, softcap=0.0, alibi_slopes=None,
                               return_softmax=False, block_table=None, leftpad_k=None, seqused_k=None, zero_tensors=False,
                               num_splits=0):
    """(out, lse, S_dmask, None) of packed queries, without a gradient."""
    words = read(causal, (window_size_left, window_size_right), softcap, alibi_slopes)
    bounds = {"longest_q": longest(max_seqlen_q), "longest_k": longest(max_seqlen_k)}
    if block_table is not None:
        if num_splits > 1:
            raise RuntimeError("num_splits > 1 is not supported with block_table: keys are divided by the lengths that the "
                               "device has")
        return over_pages(q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k, block_table, words, softmax_scale,
                          dropout_p, bounds)
    if leftpad_k is not None:
        raise NotImplementedError("leftpad_k is given without block_table: packed keys have no padding")
    places = {"starts_q": cu_seqlens_q, "starts_k": cu_seqlens_k, "used_k": seqused_k, **bounds}
    if return_softmax and seqused_k is None:
        return (*attend_for_tests(q, k, v, words, scale=softmax_scale, dropout=dropout_p, **places), None)
    out, lse = attend(q, k, v, words, scale=softmax_scale, dropout=dropout_p, return_lse=True, **places)
    return out, lse, q.new_empty(0), None


def over_pages(q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k, block_table, words, scale, dropout, bounds):
    """(out, lse, an empty S_dmask, None) of packed queries and keys in pages."""
    used = cu_seqlens_k[1:] - cu_seqlens_k[:-1] if seqused_k is None else seqused_k
    out, lse = over_cache(q, k, v, words, scale=scale, dropout=dropout, return_lse=True, starts_q=cu_seqlens_q, used_k=used,
                          first_k=leftpad_k, table=block_table, **bounds)
    return out, lse, q.new_empty(0), None


class _Raw:
    """In place of the functions of FlashAttention's extension, by which nobody else should call."""

    @staticmethod
    def _refuse(*arguments):
        raise RuntimeError("flash_attn_gpu has no functions here, and the `generator` argument is no longer supported: call "
                           "flash_attn_func and its like")

    fwd = bwd = varlen_fwd = varlen_bwd = fwd_kvcache = _refuse


flash_attn_gpu = _Raw

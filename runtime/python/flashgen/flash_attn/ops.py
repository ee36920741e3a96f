"""torch.ops.flash_attn_3: FlashAttention 3's operators, with its schemas, on flashgen's kernels. Programs that call these and
not its functions, PyTorch's own "FA3" among them, get them after stand_in(). They have no gradients of their own, as there, and
PyTorch compiles no operator with such schemas, whose results may be arguments.

Where the schemas have more results than flashgen has, they are empty: parts of a result, and scratch of backward."""
import torch

from ..attention import attention_backward
from ..autograd import E4M3
from ..flash_attn_interface import flash_attn_combine, get_scheduler_metadata, refuse
from .attend import attend, check_dtypes, check_places, descales, longest
from .cache import attend_to_cache
from .words import expressions, read

NAME = "flash_attn_3"
SCHEMAS = {
    "fwd": """(Tensor q, Tensor k, Tensor v, Tensor(k_new!)? k_new=None, Tensor(v_new!)? v_new=None, Tensor? q_v=None,
        Tensor(out!)? out=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? cu_seqlens_k_new=None,
        Tensor? seqused_q=None, Tensor? seqused_k=None, int? max_seqlen_q=None, int? max_seqlen_k=None, Tensor? page_table=None,
        Tensor? kv_batch_idx=None, Tensor? leftpad_k=None, Tensor? rotary_cos=None, Tensor? rotary_sin=None,
        Tensor? seqlens_rotary=None, Tensor? q_descale=None, Tensor? k_descale=None, Tensor? v_descale=None,
        float? softmax_scale=None, bool is_causal=False, int window_size_left=-1, int window_size_right=-1,
        int attention_chunk=0, float softcap=0., bool is_rotary_interleaved=False, Tensor? scheduler_metadata=None,
        int num_splits=0, bool? pack_gqa=None, int sm_margin=0) -> (Tensor(out!), Tensor, Tensor, Tensor)""",
    "bwd": """(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, Tensor(dq!)? dq=None,
        Tensor(dk!)? dk=None, Tensor(dv!)? dv=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None,
        Tensor? seqused_q=None, Tensor? seqused_k=None, int? max_seqlen_q=None, int? max_seqlen_k=None,
        float? softmax_scale=None, bool is_causal=False, int window_size_left=-1, int window_size_right=-1, float softcap=0.,
        bool deterministic=False, int sm_margin=0)
        -> (Tensor(dq!), Tensor(dk!), Tensor(dv!), Tensor, Tensor, Tensor, Tensor, Tensor)""",
    "fwd_combine": """(Tensor out_partial, Tensor lse_partial, Tensor(out!)? out=None, ScalarType? out_dtype=None)
        -> (Tensor(out!), Tensor)""",
    "get_scheduler_metadata": """(int batch_size, int max_seqlen_q, int max_seqlen_k, int num_heads, int num_heads_k,
        int headdim, int headdim_v, ScalarType qkv_dtype, Tensor seqused_k, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None,
        Tensor? cu_seqlens_k_new=None, Tensor? seqused_q=None, Tensor? leftpad_k=None, int? page_size=None,
        int max_seqlen_k_new=0, bool is_causal=False, int window_size_left=-1, int window_size_right=-1,
        int attention_chunk=0, bool has_softcap=False, int num_splits=0, bool? pack_gqa=None, int sm_margin=0) -> Tensor"""}
_library = None


def define():
    """Defines the operators, unless FlashAttention 3 itself has."""
    global _library
    if _library is None and not hasattr(torch.ops.flash_attn_3, "fwd"):
        _library = torch.library.Library(NAME, "DEF")
        functions = {"fwd": fwd, "bwd": bwd, "fwd_combine": fwd_combine, "get_scheduler_metadata": scheduler_metadata_of}
        for name, schema in SCHEMAS.items():
            _library.define(name + " ".join(schema.split()))
            _library.impl(name, functions[name], "CompositeExplicitAutograd")


def fwd(q, k, v, k_new=None, v_new=None, q_v=None, out=None, cu_seqlens_q=None, cu_seqlens_k=None, cu_seqlens_k_new=None,
        seqused_q=None, seqused_k=None, max_seqlen_q=None, max_seqlen_k=None, page_table=None, kv_batch_idx=None,
        leftpad_k=None, rotary_cos=None, rotary_sin=None, seqlens_rotary=None, q_descale=None, k_descale=None, v_descale=None,
        softmax_scale=None, is_causal=False, window_size_left=-1, window_size_right=-1, attention_chunk=0, softcap=0.0,
        is_rotary_interleaved=False, scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0):
    """out, lse [b, h, nq] or packed [h, tokens]."""
    refuse(v, q_v)
    words = read(is_causal, (window_size_left, window_size_right), softcap, None, attention_chunk)
    options = {"starts_q": cu_seqlens_q, "used_q": seqused_q, "longest_q": longest(max_seqlen_q), "scale": softmax_scale,
               "sm_margin": sm_margin}
    scales = descales(q, k, v, q_descale, k_descale, v_descale)
    if cu_seqlens_k is None and not (k_new is page_table is kv_batch_idx is leftpad_k is seqused_k is None):
        made, lse = attend_to_cache(
            q, k, v, k_new, v_new, words, rotary=(rotary_cos, rotary_sin, is_rotary_interleaved), seqlens=seqused_k,
            rows=kv_batch_idx, first=leftpad_k, table=page_table, starts_new=cu_seqlens_k_new, rotary_seqlens=seqlens_rotary,
            descales=scales, **options)
    else:
        with torch.no_grad():
            made, lse = attend(q, k, v, words, return_lse=True, starts_k=cu_seqlens_k, used_k=seqused_k,
                               longest_k=longest(max_seqlen_k), **scales, **options)
    return placed(made, out), lse, *nothing(lse, 2)


def bwd(dout, q, k, v, out, softmax_lse, dq=None, dk=None, dv=None, cu_seqlens_q=None, cu_seqlens_k=None, seqused_q=None,
        seqused_k=None, max_seqlen_q=None, max_seqlen_k=None, softmax_scale=None, is_causal=False, window_size_left=-1,
        window_size_right=-1, softcap=0.0, deterministic=False, sm_margin=0):
    """dq, dk and dv."""
    check_dtypes(q, k, v)
    if E4M3 in (q.dtype, k.dtype, v.dtype):
        raise NotImplementedError("a tensor is float8_e4m3fn: backward takes float16 and bfloat16")
    places = {"starts_q": cu_seqlens_q, "starts_k": cu_seqlens_k, "used_q": seqused_q, "used_k": seqused_k}
    check_places(places)
    words = read(is_causal, (window_size_left, window_size_right), softcap)
    made = attention_backward(dout, q, k, v, out, softmax_lse, scale=softmax_scale, wanted=(), deterministic=deterministic,
                              sm_margin=sm_margin, longest_q=longest(max_seqlen_q), longest_k=longest(max_seqlen_k),
                              **expressions(words), **places)
    return placed(made.q, dq), placed(made.k, dk), placed(made.v, dv), *nothing(softmax_lse, 5)


def fwd_combine(out_partial, lse_partial, out=None, out_dtype=None):
    return flash_attn_combine(out_partial, lse_partial, out, out_dtype)


def scheduler_metadata_of(batch_size, max_seqlen_q, max_seqlen_k, num_heads, num_heads_k, headdim, headdim_v, qkv_dtype,
                          seqused_k, *others, **options):
    return get_scheduler_metadata(batch_size, max_seqlen_q, max_seqlen_k, num_heads, num_heads_k, headdim, seqused_k)


def placed(made, given):
    """The result, in the tensor that the caller has for it if there is one."""
    return made if given is None else given.copy_(made)


def nothing(like, count):
    return [like.new_empty(0) for _ in range(count)]

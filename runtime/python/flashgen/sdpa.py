"""PyTorch's scaled_dot_product_attention and varlen_attn on our kernels: what PyTorch calls its flash attention.

register() tells PyTorch of them, and torch.nn.attention.activate_flash_attention_impl("flashgen") puts the functions below
in the place of the operators of aten that have their names, on CUDA. Names and orders of arguments and results are
those operators'. Their rng_state is the seed and offset of the dropout, uint64[2]."""
import torch

from .attention import attention, attention_backward
from .tensors import fresh_seed

NAME = "flashgen"


def register():
    """Makes "flashgen" one of torch.nn.attention.list_flash_attention_impls()."""
    try:
        from torch.nn.attention import register_flash_attention_impl
    except ImportError:
        raise RuntimeError(f"PyTorch {torch.__version__} has no torch.nn.attention.register_flash_attention_impl, which newer "
                           "ones have") from None
    register_flash_attention_impl(NAME, register_fn=activate)


class Activated:
    """The overrides, as long as nobody removes them."""

    def __init__(self, library):
        self.library = library

    def remove(self):
        self.library = None


def activate(key="CUDA"):
    """Overrides the operators of a dispatch key."""
    library = torch.library.Library("aten", "IMPL", key)
    for function in OVERRIDES:
        if hasattr(torch.ops.aten, function.__name__):
            library.impl(function.__name__, function, key)
    return Activated(library)


# ---- [b, n, h, d], or packed ----


@torch.no_grad()
def _flash_attention_forward(query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask,
                             *, scale=None, window_size_left=None, window_size_right=None, seqused_k=None,
                             alibi_slopes=None, block_table=None, page_table=None, num_splits=None, out=None, **others):
    """(o, lse, rng_state, nothing, nothing). query [b, nq, h, d], or [tokens, h, d] with cum_seq_q [b + 1]; key and value
    likewise, or pages [pages, page, hk, d] with block_table, which was page_table once. lse [b, h, nq], packed [h, tokens]. alibi_slopes [h] or [b, h].
    One split is what makes a sequence's result independent of the others."""
    if others:
        raise NotImplementedError(f"{', '.join(others)}: flashgen's flash attention does not append keys to a cache")
    out = empty_like(query, value.shape[-1]) if out is None else out
    table = block_table if page_table is None else page_table
    return (out, *forward(out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
                          return_debug_mask, scale, window_size_left, window_size_right, seqused_k, alibi_slopes, table,
                          num_splits))


@torch.no_grad()
def _flash_attention_forward_no_dropout_inplace(
        out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, *, scale=None,
        window_size_left=None, window_size_right=None, seqused_k=None, alibi_slopes=None, block_table=None, num_splits=None):
    """lse; o goes to out."""
    return forward(out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, scale,
                   window_size_left, window_size_right, seqused_k, alibi_slopes, block_table, num_splits)[0]


@torch.no_grad()
def _flash_attention_backward(grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                              is_causal, rng_state, unused, *, scale=None, window_size_left=None, window_size_right=None):
    """(dq, dk, dv), each of which lies in memory as what it belongs to does."""
    how = options(cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, scale, window_size_left, window_size_right)
    if dropout_p:
        how["seed"] = rng_state.view(torch.int32)
    made = attention_backward(grad_out, query, key, value, out, logsumexp, wanted=(), **how)
    return tuple(lying_like(x, dx) for x, dx in zip((query, key, value), made[:3]))


def forward(out, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, scale,
            window_size_left, window_size_right, seqused_k, alibi_slopes, block_table, num_splits):
    """(lse, rng_state, nothing, nothing)."""
    if return_debug_mask:
        raise NotImplementedError("return_debug_mask: kernels of flashgen keep no weights")
    how = options(cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, scale, window_size_left, window_size_right)
    how.update(used_k=seqused_k, table=block_table, batch_invariant=num_splits == 1)
    if dropout_p:
        how["seed"] = fresh_seed(query)
    if alibi_slopes is not None:
        how["score"] = "s - slope[h] * abs(p - k)" if alibi_slopes.dim() == 1 else "s - slope[b, h] * abs(p - k)"
        how["inputs"]["slope"] = ("h" if alibi_slopes.dim() == 1 else "b, h", alibi_slopes)
    _, lse = attention(query, key, value, out=out, return_lse=True, **how)
    rng_state = how["seed"].view(torch.uint64) if dropout_p else query.new_empty(2, dtype=torch.uint64)
    return lse, rng_state, query.new_empty((), dtype=torch.uint64), query.new_empty(0)


def options(cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, scale, left, right):
    """The arguments of flashgen.attention that forward and backward share."""
    mask, inputs = mask_of(is_causal, -1 if left is None else left, -1 if right is None else right)
    return {"mask": mask, "inputs": inputs, "dropout": dropout_p, "scale": scale, "starts_q": cum_seq_q,
            "starts_k": cum_seq_k, "longest_q": None if cum_seq_q is None else max_q,
            "longest_k": None if cum_seq_k is None else max_k,
            "deterministic": torch.are_deterministic_algorithms_enabled()}


def mask_of(is_causal, left, right):
    """The mask of a window and its numbers; a negative one is no bound, and a causal window ends at the diagonal."""
    if is_causal:
        right = 0
    if left < 0:
        return (None, {}) if right < 0 else ("causal", {}) if right == 0 else ("k <= p + right", {"right": right})
    if right < 0:
        return "p - k <= left", {"left": left}
    return ("window(left, 0)", {"left": left}) if right == 0 else ("window(left, right)", {"left": left, "right": right})


def empty_like(x, width):
    """A tensor whose axes lie in memory in the order of x's, and whose last one is so wide."""
    if width == x.shape[-1]:
        return torch.empty_like(x)
    order = sorted(range(x.dim()), key=x.stride().__getitem__, reverse=True)
    shape = (*x.shape[:-1], width)
    made = x.new_empty([shape[axis] for axis in order])
    return made.permute([order.index(axis) for axis in range(x.dim())])


def lying_like(x, dx):
    """A gradient as PyTorch's compiler expects it: with the strides of torch.empty_like(x)."""
    made = torch.empty_like(x)
    return dx if made.stride() == dx.stride() else made.copy_(dx)


# ---- [b, h, n, d] ----


def _scaled_dot_product_flash_attention(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *,
                                        scale=None):
    """(o, lse, None, None, nq, nk, rng_state, nothing, nothing). query [b, h, nq, d], key [b, hk, nk, d]; lse [b, h, nq]."""
    nq, nk = query.shape[2], key.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    o, lse, *others = _flash_attention_forward(q, k, v, None, None, nq, nk, dropout_p, is_causal, return_debug_mask, scale=scale)
    return (o.transpose(1, 2), lse, None, None, nq, nk, *others)


def _scaled_dot_product_flash_attention_backward(
        grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
        philox_offset, *, scale=None):
    """(dq, dk, dv)."""
    grad_out, query, key, value, out = (x.transpose(1, 2) for x in (grad_out, query, key, value, out))
    made = _flash_attention_backward(grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
                                     dropout_p, is_causal, philox_seed, philox_offset, scale=scale)
    return tuple(x.transpose(1, 2) for x in made)


OVERRIDES = (_flash_attention_forward, _flash_attention_forward_no_dropout_inplace, _flash_attention_backward,
             _scaled_dot_product_flash_attention, _scaled_dot_product_flash_attention_backward)

"""Models of transformers on our kernels: from_pretrained(..., attn_implementation="fg") after register().

transformers asks twice. First mask_of is asked, once for all layers, what rows see; then attend is called by each layer with
what mask_of returned. Where that is a causal or a whole mask, a window or padding, kernels compute it and no mask lies in
memory."""
import torch

from .attention import attention

NAME = "fg"  # transformers takes each name with "flash" in it for a package that it has to load


def register(name=NAME):
    """Makes the name an attn_implementation."""
    import transformers
    if not hasattr(transformers, "AttentionMaskInterface"):
        raise RuntimeError(f"transformers {transformers.__version__} has no AttentionMaskInterface: 5 and newer ones have")
    transformers.AttentionInterface.register(name, attend)
    transformers.AttentionMaskInterface.register(name, mask_of)


# ---- masks ----


def mask_of(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, attention_mask=None, local_size=None,
            allow_is_causal_skip=True, allow_is_bidirectional_skip=False, config=None, **others):
    """What rows see, as attend reads it.

    None            all keys, or of a causal layer those up to the row's own
    [b, nk]         of these, the keys that are true here
    [b, w, nk]      the same, of the last w keys alone; [1, w, 1] where all are true
    [b, 1, nq, nk]  what is true here, whatever the layer is

    attention_mask [b, keys so far] is true where there is no padding. q_offset and kv_offset are the places of the first
    row and key. allow_is_..._skip: no model has added something of its own to the mask. local_size: of a window or a chunk.
    A mask of three axes is what an earlier call returned, which generate() asks for and hands to the model.
    """
    if attention_mask is not None and attention_mask.dim() == 3:
        return attention_mask
    keys = padding(attention_mask, kv_offset, kv_length)
    is_whole = local_size is None or kv_offset + kv_length <= local_size
    if allow_is_bidirectional_skip and is_whole:
        return keys
    # of the last row, kernels take the last key for its own
    ends_at_row = not isinstance(q_offset, torch.Tensor) and q_offset + q_length == kv_offset + kv_length
    if allow_is_causal_skip and ends_at_row and is_whole:
        return keys
    if allow_is_causal_skip and ends_at_row and is_window(config, local_size):
        keys = torch.ones((1, 1), dtype=torch.bool, device=others.get("device")) if keys is None else keys
        return keys[:, None].expand(-1, local_size, -1)
    from transformers.masking_utils import sdpa_mask
    return sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
                     attention_mask=attention_mask, local_size=local_size, allow_is_causal_skip=False,
                     allow_is_bidirectional_skip=False, **others)


def padding(attention_mask, first, n):
    """The mask of n keys from the first one on, bool [b, n]; None where there is no padding. A graph that is traced
    does not look."""
    if attention_mask is None:
        return None
    missing = first + n - attention_mask.shape[1]
    if missing > 0:
        attention_mask = torch.nn.functional.pad(attention_mask, (0, missing))
    keys = attention_mask[:, first:first + n].bool()
    return None if not torch.compiler.is_compiling() and keys.all() else keys


def is_window(config, local_size):
    """Whether local_size is of a sliding window; chunks are another thing."""
    return local_size == getattr(config, "sliding_window", None) and getattr(config, "attention_chunk_size", None) is None


# ---- a layer ----


def attend(module, query, key, value, attention_mask=None, scaling=None, dropout=0.0, sliding_window=None, softcap=None,
           s_aux=None, is_causal=None, position_bias=None, cu_seq_lens_q=None, cu_seq_lens_k=None, max_length_q=None,
           max_length_k=None, deterministic=False, **kwargs):
    """(result [b, nq, h, d], None). query [b, h, nq, d], key and value [b, hk, nk, d]; attention_mask: of mask_of, or an
    own one, bool or to be added, [b or 1, h or 1, nq, nk].

    s_aux [h] are sinks, position_bias is added to the scores. cu_seq_lens_*, max_length_*: one row of packed documents."""
    if kwargs.get("output_attentions"):
        raise NotImplementedError("output_attentions: kernels of flashgen keep no weights")
    q, k, v = (computable(x, query, module).transpose(1, 2) for x in (query, key, value))
    how = {"scale": scaling, "dropout": dropout, "sink": s_aux, "bias": position_bias, "deterministic": deterministic}
    inputs, bounds = {}, []
    if softcap is not None:
        how["score"], inputs["cap"] = "softcap(s, cap)", softcap
    is_packed = cu_seq_lens_q is not None and cu_seq_lens_k is not None
    if is_packed:
        how.update(starts_q=cu_seq_lens_q.int(), starts_k=cu_seq_lens_k.int(), longest_q=number(max_length_q),
                   longest_k=number(max_length_k))
        attention_mask = None
    dims = 0 if attention_mask is None else attention_mask.dim()
    if dims == 4:
        how["bias"] = bias_of(attention_mask, position_bias, q)
    elif is_causal if is_causal is not None else getattr(module, "is_causal", True):
        width = attention_mask.shape[1] if dims == 3 else sliding_window
        bounds.append("causal" if width is None else "window(left, 0)")
        if width is not None:
            inputs["left"] = width - 1
    seen = attention_mask[:, 0] if dims == 3 else attention_mask
    if dims in (2, 3) and seen.shape == k.shape[:2]:
        bounds.append("seen[b, k] != 0")
        inputs["seen"] = ("b, k", seen.int())
    how.update(mask=" && ".join(bounds) or None, inputs=inputs)
    if is_packed:
        return attention(*(x.flatten(0, 1) for x in (q, k, v)), **how).unflatten(0, (1, -1)), None
    return attention(q, k, v, **how), None


def computable(x, query, module):
    """float32, which layers around may be kept in, is cast as the program or the model says."""
    if query.dtype != torch.float32:
        return x
    if torch.is_autocast_enabled(query.device.type):
        return x.to(torch.get_autocast_dtype(query.device.type))
    weights = (layer.weight.dtype for layer in module.modules() if isinstance(layer, torch.nn.Linear))
    return x.to(next(weights, x.dtype))


def bias_of(mask, position_bias, q):
    """What is added to the scores: [b or 1, h or 1, nq, nk]."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, float("-inf"))
    return mask if position_bias is None else mask + position_bias


def number(length):
    return None if length is None else int(length)

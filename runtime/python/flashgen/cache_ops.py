"""torch.ops.flashgen.append, which writes to a cache, and combine, as torch_ops.py has those of attention."""
import torch

from . import append_call, combine_call, tensors
from .op_parts import nothing

OTHERS = ("starts_q", "used_q", "rows", "table", "q", "rotary_cos", "rotary_sin", "row_positions", "k_descale", "v_descale")
APPENDED = ("k", "v", "k_new", "v_new", "used_k", *OTHERS)
COMBINED = ("o_parts", "lse_parts", "sink")
APPEND = ("(Tensor(a!) k, Tensor(b!) v, Tensor k_new, Tensor v_new, Tensor used_k, "
          + "".join(f"Tensor? {name}, " for name in OTHERS) + "*, str rotary) -> Tensor")
COMBINE = "(Tensor o_parts, Tensor lse_parts, Tensor? sink=None, *, str dtype) -> (Tensor, Tensor)"


def by_name(names, arrays):
    return {name: x for name, x in zip(names, arrays) if x is not None}


@torch.library.custom_op("flashgen::append", mutates_args=("k", "v"), schema=APPEND)
def append(*arrays, rotary):
    """The queries that were turned; empty where there are none."""
    turned = append_call.run(tensors, rotary, by_name(APPENDED, arrays))
    return nothing(arrays[0]) if turned is None else turned.contiguous()


@append.register_fake
def _(*arrays, rotary):
    q = by_name(APPENDED, arrays).get("q")
    return nothing(arrays[0]) if q is None else q.new_empty(q.shape)


@torch.library.custom_op("flashgen::combine", mutates_args=(), schema=COMBINE)
def combine(*arrays, dtype):
    """(o, lse)."""
    return tuple([x.contiguous() for x in combine_call.run(tensors, dtype, by_name(COMBINED, arrays))])


@combine.register_fake
def _(o_parts, lse_parts, sink=None, *, dtype):
    return o_parts.new_empty(o_parts.shape[1:], dtype=tensors.DTYPES[dtype]), lse_parts.new_empty(lse_parts.shape[1:])

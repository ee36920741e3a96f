"""What FlashAttention's arguments are as expressions of flashgen.

Numbers, the bounds of a window and the cap, are inputs of the call, so that other ones are no other kernel. A causal
mask and none stay what they are, because kernels know them best."""
from typing import NamedTuple, Optional

import torch


class Words(NamedTuple):
    """How keys are seen and scored. left, right: how many keys before and behind p are seen; None: all."""
    left: Optional[int]
    right: Optional[int]
    chunk: int  # 0: none
    cap: float  # 0: none
    slopes: Optional[torch.Tensor]  # [h] or [b, h]

    @property
    def is_plain(self):
        """Whether all keys are seen."""
        return self.left is None and self.right is None and not self.chunk


def read(causal, window_size, softcap, alibi_slopes=None, attention_chunk=0):
    """The Words of FlashAttention's arguments: -1 is no bound, a causal window ends at p. A window may be a tensor."""
    if len(window_size) != 2:
        raise ValueError(f"window_size is {window_size!r:.60}; expected (left, right)")
    left, right = (int(n) for n in window_size)
    if attention_chunk < 0:
        raise ValueError(f"attention_chunk is {attention_chunk}; expected 0, which is none, or more")
    if alibi_slopes is not None:
        check_slopes(alibi_slopes)
    return Words(None if left < 0 else left, 0 if causal else None if right < 0 else right, int(attention_chunk),
                 float(softcap or 0.0), alibi_slopes)


def check_slopes(slopes):
    if slopes.dtype != torch.float32 or slopes.dim() not in (1, 2):
        raise ValueError(f"alibi_slopes has the shape {tuple(slopes.shape)} and the dtype {slopes.dtype}; expected float32, "
                         "(heads) or (batch, heads)")


def expressions(words):
    """mask, score and inputs of flashgen.attention."""
    inputs = {}
    return {"mask": mask(words, inputs), "score": score(words, inputs), "inputs": inputs or None}


def mask(words, inputs):
    inputs.update((name, value) for name, value in (("left", words.left), ("right", words.right or None),
                                                    ("chunk", words.chunk or None)) if value is not None)
    right = {None: None, 0: "0"}.get(words.right, "right")
    if words.left is not None and right:
        window = f"window(left, {right})"
    elif words.left is not None:
        window = "p - k <= left"
    else:
        window = right and ("causal" if right == "0" else "k - p <= right")
    chunk = "chunked(chunk)" if words.chunk else None
    return " && ".join(filter(None, (window, chunk))) or None


def score(words, inputs):
    s = None
    if words.cap > 0:
        inputs["cap"] = words.cap
        s = "softcap(s, cap)"
    if words.slopes is None:
        return s
    axes = "h" if words.slopes.dim() == 1 else "b, h"
    inputs["slope"] = (axes, words.slopes.detach())
    past = "(k - p)" if words.right == 0 else "-abs(k - p)"  # where no key lies behind p its distance needs no abs
    return f"{s or 's'} + slope[{axes}] * {past}"

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
    left, right = window_size
    left, right = int(left), 0 if causal else int(right)
    if attention_chunk < 0:
        raise ValueError(f"attention_chunk is {attention_chunk}; expected 0, which is none, or more")
    if alibi_slopes is not None:
        check_slopes(alibi_slopes)
    return Words(None if left < 0 else left, None if right < 0 else right, attention_chunk, softcap, alibi_slopes)


def check_slopes(slopes):
    if slopes.dtype != torch.float32 or slopes.dim() not in (1, 2):
        raise ValueError(f"alibi_slopes has the shape {tuple(slopes.shape)} and the dtype {slopes.dtype}; expected float32, "
                         "(heads) or (batch, heads)")


def expressions(words):
    """mask, score and inputs of flashgen.attention."""
    inputs = {}
    return {"mask": mask(words, inputs), "score": score(words, inputs), "inputs": inputs or None}


def mask(words, inputs):
    left, right, chunk = words.left, words.right, words.chunk
    if left is None:
        window = None if right is None else "k - p <= right" if right else "causal"
    else:
        inputs["left"] = left
        window = "p - k <= left" if right is None else "window(left, right)" if right else "window(left, 0)"
    if right:
        inputs["right"] = right
    if not chunk:
        return window
    inputs["chunk"] = int(chunk)
    return f"{window} && chunked(chunk)" if window else "chunked(chunk)"


def score(words, inputs):
    s = None
    if words.cap > 0:
        inputs["cap"] = float(words.cap)
        s = "softcap(s, cap)"
    if words.slopes is None:
        return s
    axes = "h" if words.slopes.dim() == 1 else "b, h"
    inputs["slope"] = (axes, words.slopes.detach())
    past = "(k - p)" if words.right == 0 else "-abs(k - p)"  # where no key lies behind p its distance needs no abs
    return f"{s or 's'} + slope[{axes}] * {past}"

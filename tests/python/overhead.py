#!/usr/bin/env python3
"""overhead.py - what a call costs beside its launch, in microseconds: of NumPy, and of PyTorch where it is installed.

    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python python3 tests/python/overhead.py

The launch is replaced by a function of libc that does nothing; a shape that is new is looked up and prepared, with the
kernel compiled already."""
import ctypes
import timeit

from case import flashgen, np
from flashgen import call, library


class NoLaunch:
    """The library, but for fg_launch: a kernel and a shape are not the same thread, which pthread_equal says as 0."""
    fg_launch = ctypes.CDLL(None).pthread_equal
    fg_launch.restype, *_ = library.FUNCTIONS["fg_launch"]
    fg_launch.argtypes = library.FUNCTIONS["fg_launch"][1:]


def tell(what, function, number=20000):
    print(f"{what:<40} {min(timeit.repeat(function, number=number, repeat=5)) / number * 1e6:6.1f} us")


def hot(what, function):
    function()
    real, call.library = call.library, lambda: NoLaunch
    tell(what, function)
    call.library = real


def cold(what, function):
    def again():
        call.calls.clear()
        function()
    hot(what, function)
    real, call.library = call.library, lambda: NoLaunch
    tell(what + ", a new shape", again, 200)
    call.library = real


def main():
    q = np.zeros((1, 8, 2, 64), "f2")
    slope, weight = np.zeros(2, "f4"), np.zeros((64, 64), "f2")
    cold("NumPy", lambda: flashgen.attention(q, q, q, mask="causal"))
    hot("NumPy, float32", lambda: flashgen.attention(*[q.astype("f4")] * 3, mask="causal"))
    cold("NumPy, with an input",
         lambda: flashgen.attention(q, q, q, mask="causal", score="alibi(slope)", inputs={"slope": ("h", slope)}))
    hot("NumPy, linear", lambda: flashgen.linear(q, weight))
    try:
        import torch
    except ImportError:
        return
    t = torch.zeros((1, 8, 2, 64), dtype=torch.bfloat16)
    leaf = t.clone().requires_grad_()
    hot("PyTorch", lambda: flashgen.attention(t, t, t, mask="causal"))
    hot("PyTorch, with lse", lambda: flashgen.attention(t, t, t, mask="causal", return_lse=True))
    hot("PyTorch, for backward", lambda: flashgen.attention(leaf, leaf, leaf, mask="causal"))
    out, dout = flashgen.attention(leaf, leaf, leaf, mask="causal"), torch.ones_like(t)
    hot("PyTorch, backward with its own engine", lambda: torch.autograd.grad(out, leaf, dout, retain_graph=True))
    square = torch.zeros((64, 64), dtype=t.dtype, requires_grad=True)
    hot("PyTorch, linear", lambda: flashgen.linear(t, square.detach()))
    hot("PyTorch, linear for backward", lambda: flashgen.linear(leaf, square, epilogue="gelu"))
    from flashgen.flash_attn import flash_attn_func, flash_attn_with_kvcache
    hot("flash_attn_func", lambda: flash_attn_func(t, t, t, causal=True))
    cache, used = [torch.zeros((1, 64, 2, 64), dtype=t.dtype) for _ in "kv"], torch.tensor([3], dtype=torch.int32)
    hot("flash_attn_with_kvcache", lambda: flash_attn_with_kvcache(t, *cache, cache_seqlens=used))
    hot("the same, with new keys", lambda: flash_attn_with_kvcache(t, *cache, t, t, cache_seqlens=used))
    tell("torch.empty of the result", lambda: torch.empty(t.shape, dtype=t.dtype, device=t.device))


if __name__ == "__main__":
    main()

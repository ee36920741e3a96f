#!/usr/bin/env python3
"""check_attention.py - attention.py beside the formula in float64: NumPy's arrays, or PyTorch's.

    check_attention.py LIBFLASHGEN.SO [host|cuda:N]"""
import sys

import numpy as np
from attention import Attention


def reference(q, k, v):  # float64, causal; hk heads serve h / hk each
    q, k, v = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    nq, nk = s.shape[2:]
    s[..., ~np.tri(nq, nk, nk - nq, dtype=bool)] = -np.inf
    lse = np.log(np.exp(s).sum(-1))
    return (np.exp(s - lse[..., None]) @ v).transpose(0, 2, 1, 3), lse


def main(library, device="host"):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float16)
              for shape in ((2, 50, 4, 64), (2, 70, 2, 64), (2, 70, 2, 64))]
    attention = Attention(library, device, dtype="f16", head_dim="64", mask="causal")
    if device == "host":
        o, lse = attention.forward(*arrays, np.zeros)
    else:
        import torch
        there = [torch.from_numpy(array).to(device) for array in arrays]
        o, lse = attention.forward(*there, lambda shape, dtype: torch.zeros(
            shape, dtype=getattr(torch, dtype), device=device))
        o, lse = o.cpu().numpy(), lse.cpu().numpy()  # which waits for the launch
    want_o, want_lse = reference(*arrays)
    np.testing.assert_allclose(o, want_o, atol=4e-3)
    np.testing.assert_allclose(lse, want_lse, atol=1e-3)
    print("o and lse are right: largest difference %.1e" % abs(o - want_o).max())


if __name__ == "__main__":
    main(*sys.argv[1:])

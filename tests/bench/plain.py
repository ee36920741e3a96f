#!/usr/bin/env python3
"""plain.py - normalisers beside plain PyTorch, which keeps the scores in memory, compiled by torch.compile where it can be.

    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python tests/bench/plain.py [--dims 64 128] [--batch 4] [--length 4096]

bfloat16, 2048 / d heads. Milliseconds forward, and backward, ours / plain; events around a call, the median of 10. A result that is
further from plain's than 2 % is an error. FlexAttention knows no other normaliser than softmax."""
import argparse
import statistics
import sys

import torch

import c_api


def plain(normalizer):
    """A function of q, k, v [b, h, n, d] and the pairs that are hidden, None: none."""
    def weights(s, hidden):
        fill = float("-inf") if normalizer in ("sigmoid", "logsoftmax") else 0.0
        s = s if hidden is None else s.masked_fill(hidden, fill)
        if normalizer == "sigmoid":
            return torch.sigmoid(s - torch.log(torch.tensor(float(s.shape[3]))))
        if normalizer == "logsoftmax":
            p = s.log_softmax(3)
            return p if hidden is None else p.masked_fill(hidden, 0.0)
        if normalizer == "retention":
            return s / s.abs().sum(3, keepdim=True).clamp(min=1.0)
        return s

    def attend(q, k, v, hidden):
        s = (q @ k.transpose(2, 3)).float() * q.shape[3] ** -0.5
        return weights(s, hidden).to(v.dtype) @ v
    return torch.compile(attend)


def median(function, times=10):
    for _ in range(3):
        function()
    taken = []
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end))
    return statistics.median(taken)


def both(function, leaves, dout):
    """Milliseconds of forward without gradients, and of backward; and the result."""
    with torch.no_grad():
        forward = median(lambda: function(*leaves))
    out = function(*leaves)
    return forward, median(lambda: torch.autograd.grad(out, leaves, dout, retain_graph=True)), out.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--dims", type=int, nargs="*", default=[64, 128])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    print(torch.cuda.get_device_name())
    for d in options.dims:
        for mask in (None, "causal"):
            n = options.length
            hidden = None if mask is None else torch.ones(n, n, dtype=torch.bool, device="cuda").triu(1)
            made = [torch.randn(options.batch, n, 2048 // d, d, dtype=torch.bfloat16, device="cuda") for _ in "qkvo"]
            leaves, dout = [x.requires_grad_() for x in made[:3]], made[3]
            for normalizer in ("none", "retention", "sigmoid", "logsoftmax"):
                torch.compiler.reset()  # each function is compiled a few times at most, then no more
                attend = plain(normalizer)
                ours = both(lambda q, k, v: c_api.attention(q, k, v, mask=mask, normalizer=normalizer), leaves, dout)
                theirs = both(lambda q, k, v: attend(*[x.transpose(1, 2) for x in (q, k, v)], hidden).transpose(1, 2), leaves, dout)
                distance = ((ours[2] - theirs[2]).float().norm() / theirs[2].float().norm()).item()
                if not distance < 0.02:
                    sys.exit(f"{normalizer}, d {d}, {mask or 'full'}: {distance:.3f} apart")
                print(f"{normalizer:10} d {d:3} {mask or 'full':6}  forward {ours[0]:6.3f} / {theirs[0]:6.3f}   "
                      f"backward {ours[1]:6.3f} / {theirs[1]:6.3f}", flush=True)


main()

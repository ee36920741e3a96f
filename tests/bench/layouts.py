#!/usr/bin/env python3
"""layouts.py - packed sequences beside dense ones and FlashAttention-2's, on one GPU, in one process.

Two kinds of rows. Equal lengths: the same numbers dense and packed, whose times should be one. A mixture: lengths from 64 to
8192, log-uniform by a seed, 32k tokens in all; its pairs a second beside the dense kernel's at n 4096. Random normal
inputs, [tokens, h, d]; each contestant in turn, twice round: 5 launches to warm up, 20 queued, the median by events. What is
computed is compared with FlashAttention-2's, by sequences, before it is timed.

Needs PyTorch with a GPU, and flashgen's shared libraries; run it with --help for the choices."""

import argparse
import ctypes
import math
import random
import statistics
import time

import c_api
from c_api import Shape
from peers import Flashgen

torch = c_api.pytorch()


def mixture(tokens, seed):
    """Lengths from 64 to 8192, log-uniform, as many tokens in all."""
    draw, lengths = random.Random(seed), []
    while sum(lengths) < tokens:
        lengths.append(min(int(64 * 2 ** (7 * draw.random())), tokens - sum(lengths)))
    return lengths


def timed(launchers, rounds=2, launches=20):
    times = {name: [] for name in launchers}
    for _ in range(rounds):
        for name, launch in launchers.items():
            time.sleep(0.05)
            for _ in range(5):
                launch()
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(launches + 1)]
            for mark in marks[:-1]:
                mark.record()
                launch()
            marks[-1].record()
            torch.cuda.synchronize()
            times[name] += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return {name: statistics.median(t) for name, t in times.items()}


class Rows:
    """Sequences of these lengths, one behind the other."""

    def __init__(self, lengths, h, hk, d, causal):
        self.lengths, self.h, self.hk, self.d, self.causal = lengths, h, hk, d, causal
        self.tokens = sum(lengths)
        normal = lambda heads: torch.randn(self.tokens, heads, d, device="cuda", dtype=torch.bfloat16)
        self.q, self.k, self.v, self.dout = normal(h), normal(hk), normal(hk), normal(h)
        starts = [0]
        for n in lengths:
            starts.append(starts[-1] + n)
        self.starts = torch.tensor(starts, device="cuda", dtype=torch.int32)

    def pairs(self):
        return sum(n * (n + 1) / 2 if self.causal else n * n for n in self.lengths)

    def words(self, backward, layout, more):
        words = {"pass": "backward" if backward else "forward", "dtype": "bf16", "head_dim": str(self.d)}
        words["mask"] = "causal" if self.causal else "full"
        if layout == "packed":
            words.update(q_layout="packed", kv_layout="packed")
        return {**words, **more}

    def flashgen(self, fg, layout, backward, more):
        b, n = len(self.lengths), max(self.lengths)
        shape = Shape(ctypes.sizeof(Shape), b=b, h=self.h, hk=self.hk, nq=n, nk=n)
        t = {"q": self.q, "k": self.k, "v": self.v, "o": torch.empty_like(self.q)}
        t["lse"] = torch.empty(self.h * self.tokens, device="cuda")
        if backward:
            t.update(dout=self.dout, dq=torch.empty_like(self.q), dk=torch.empty_like(self.k), dv=torch.empty_like(self.v))
        if layout == "packed":
            shape.tokens_q = shape.tokens_k = self.tokens
            view = lambda x: x.transpose(0, 1)[None] if x.dim() == 3 else x
            t.update(starts_q=self.starts, starts_k=self.starts)
        else:
            view = lambda x: x.view(b, n, -1, self.d).transpose(1, 2) if x.dim() == 3 else x
        views = {name: view(x) for name, x in t.items()}
        if backward:
            own = {name: views[name] for name in views if name not in ("dout", "dq", "dk", "dv")}
            fg.launcher(fg.select(self.words(False, layout, {}), shape), shape, own)()
        kernel = fg.select(self.words(backward, layout, more), shape)
        self.made, self.name = t, fg.name(kernel)
        return fg.launcher(kernel, shape, views)

    def fa2(self, backward):
        aten, n = torch.ops.aten, max(self.lengths)
        if self.h != self.hk:
            k, v = (x.repeat_interleave(self.h // self.hk, 1) for x in (self.k, self.v))
        else:
            k, v = self.k, self.v
        forward = lambda: aten._flash_attention_forward(self.q, k, v, self.starts, self.starts, n, n, 0.0, self.causal, False)
        made = forward()
        if not backward:
            return forward, {"o": made[0]}
        run = lambda: aten._flash_attention_backward(
            self.dout, self.q, k, v, made[0], made[1], self.starts, self.starts, n, n, 0.0, self.causal, made[2], made[3])
        gradients = run()
        if self.h != self.hk:
            return run, {"dq": gradients[0]}
        return run, dict(zip(("dq", "dk", "dv"), gradients))


def check(rows, expected):
    for name, x in expected.items():
        ours, theirs = rows.made[name].float(), x.float()
        error = ((ours - theirs).norm() / theirs.norm()).item()
        if not error < 2e-2:
            raise SystemExit(f"{name} is wrong: {error:.2g} off")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libflashgen.so.0")
    parser.add_argument("--passes", default="fwd,bwd")
    parser.add_argument("--dims", default="64,128")
    parser.add_argument("--masks", default="full,causal")
    parser.add_argument("--family", help="of our kernels")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    c_api.need_gpu(torch)
    fg, more = Flashgen(a.library), {"family": a.family} if a.family else {}
    print(torch.cuda.get_device_name())
    print("pass d mask: equal lengths, ms dense, packed, dense / packed | mixture, ms, ours / FA2, pairs a second / dense n 4096")
    for backward in (p == "bwd" for p in a.passes.split(",")):
        for d in (int(x) for x in a.dims.split(",")):
            for causal in (m == "causal" for m in a.masks.split(",")):
                h = 2048 // d
                equal = Rows([4096] * (a.tokens // 4096), h, h, d, causal)
                both = {"dense": equal.flashgen(fg, "dense", backward, more), "packed": equal.flashgen(fg, "packed", backward, more)}
                both["packed"]()
                check(equal, equal.fa2(backward)[1])
                ms = timed(both)
                mixed = Rows(mixture(a.tokens, a.seed), h, h, d, causal)
                ours = mixed.flashgen(fg, "packed", backward, more)
                ours()
                fa2, expected = mixed.fa2(backward)
                check(mixed, expected)
                of = timed({"ours": ours, "fa2": fa2})
                rate = mixed.pairs() / of["ours"] / (equal.pairs() / ms["dense"])
                print(f"{'bwd' if backward else 'fwd'} {d:3d} {'causal' if causal else 'full':6s} {ms['dense']:7.3f} {ms['packed']:7.3f} "
                      f"{ms['dense'] / ms['packed']:.3f} | {len(mixed.lengths)} sequences {of['ours']:7.3f} {of['fa2'] / of['ours']:.2f} {rate:.3f}  {mixed.name}", flush=True)


if __name__ == "__main__":
    main()

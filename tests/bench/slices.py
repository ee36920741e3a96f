#!/usr/bin/env python3
"""slices.py - masks that are lists of slices beside the plain kernel, on one GPU, in one process.

    slices.py --library build/libflashgen.so [--passes fwd] [--dims 128,192/128] [--tokens 32768] [--lists window,random] [--json FILE]

The plain kernel is that of one packed sequence of all tokens, full, and causal where the list is; `of plain` is the list's rate of
visible pairs over the plain kernel's. Lists:

full, causal  one slice of all tokens
documents     16 of random lengths, causal
blocks        8 of equal lengths, each of which sees all of itself and of those before
prefix        the first eighth, causal, which 7 documents of as many tokens see beside themselves, causal
window        each row sees as many keys before it as an eighth of the tokens: a head that is causal, and two slices of kind 3
random        4096 slices of 32 to 256 rows and keys, of all kinds

bf16, random normal inputs; contestants in turn, twice round: 5 launches to warm up, 20 queued, the median by events. `list us` is
what the pass that makes the tiles' lists takes of it, by the profiler. Lists of 512 tokens are compared with a dense mask first.

Needs PyTorch with a GPU, and flashgen's shared libraries."""

import argparse
import ctypes
import json
import random

import c_api
from c_api import Shape
from layouts import timed
from peers import Flashgen

torch = c_api.pytorch()
FULL, CAUSAL, BOTH = 0, 1, 3


def documents(n, draw):
    ends = sorted(draw.sample(range(1, n), 15)) + [n]
    return [((a, b), (a, b), CAUSAL) for a, b in zip([0] + ends, ends)]


def blocks(n, draw):
    return [((i * n // 8, (i + 1) * n // 8), (0, (i + 1) * n // 8), FULL) for i in range(8)]


def prefix(n, draw):
    whole = [(i * n // 8, (i + 1) * n // 8) for i in range(8)]
    return [(one, one, CAUSAL) for one in whole] + [(one, whole[0], FULL) for one in whole[1:]]


def window(n, draw):
    w, middle = n // 8, n * 9 // 16
    return [((0, w), (0, w), CAUSAL), ((w, middle), (0, middle), BOTH), ((middle, n), (middle - w, n), BOTH)]


def small(n, draw):
    def run():
        length = draw.randint(32, 256)
        first = draw.randint(0, n - length)
        return first, first + length
    return [(run(), run(), draw.randint(0, 3)) for _ in range(min(4096, n // 8))]


LISTS = {
    "full": lambda n, draw: [((0, n), (0, n), FULL)], "causal": lambda n, draw: [((0, n), (0, n), CAUSAL)],
    "documents": documents, "blocks": blocks, "prefix": prefix, "window": window, "random": small}


def shown(slices, n):
    """The dense mask of a list: pairs that some slice shows."""
    mask = torch.zeros(n, n, dtype=torch.bool, device="cuda")
    for (q0, q1), (k0, k1), kind in slices:
        i, j = torch.arange(q1 - q0, device="cuda")[:, None], torch.arange(k1 - k0, device="cuda")
        part = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool, device="cuda")
        if kind & 1:
            part &= j <= i + (k1 - k0) - (q1 - q0)
        if kind & 2:
            part &= j >= i
        mask[q0:q1, k0:k1] |= part
    return mask


class Tokens:
    """q, k, v and dout of so many tokens, and launchers of our kernels for them."""

    def __init__(self, fg, n, h, hk, dims, family, plan):
        self.fg, self.n, self.h, self.hk, self.family, self.plan = fg, n, h, hk, family, plan
        self.d, self.dv = (int(x) for x in (dims.split("/") * 2)[:2])
        normal = lambda heads, width: torch.randn(n, heads, width, device="cuda", dtype=torch.bfloat16)
        self.q, self.k, self.v, self.dout = normal(h, self.d), normal(hk, self.d), normal(hk, self.dv), normal(h, self.dv)
        self.starts = torch.tensor([0, n], device="cuda", dtype=torch.int32)

    def words(self, backward, mask, more):
        return {"pass": "backward" if backward else "forward", "dtype": "bf16", "head_dim": f"{self.d}/{self.dv}", "mask": mask,
                **({"family": self.family} if self.family else {}), **more}

    def launcher(self, backward, mask, more, extents, others):
        shape = Shape(ctypes.sizeof(Shape), b=1, h=self.h, hk=self.hk, nq=self.n, nk=self.n, **extents)
        t = {"q": self.q, "k": self.k, "v": self.v, "o": torch.empty_like(self.dout), "lse": torch.empty(1, self.h, self.n, device="cuda")}
        view = lambda x: x.transpose(0, 1)[None] if x.dim() == 3 and x.shape[0] == self.n else x
        views = {name: view(x) for name, x in t.items()}
        forward = self.fg.select(self.words(False, mask, more), shape)
        run = self.fg.launcher(forward, shape, {**views, **others})
        self.made, self.name = t, self.fg.name(forward)
        if not backward:
            return run
        run()
        gradients = {"dout": self.dout, **{"d" + name: torch.empty_like(getattr(self, name)) for name in "qkv"}}
        kernel = self.fg.select(self.words(True, mask, more), shape)
        self.made, self.name = {**t, **gradients}, self.fg.name(kernel)
        return self.fg.launcher(kernel, shape, {**views, **{name: view(x) for name, x in gradients.items()}, **others})

    def plain(self, backward, mask):
        return self.launcher(backward, mask, {"q_layout": "packed", "kv_layout": "packed"}, {"tokens_q": self.n, "tokens_k": self.n},
                             {"starts_q": self.starts, "starts_k": self.starts})

    def of_list(self, backward, slices):
        ints = lambda x: torch.tensor(x, device="cuda", dtype=torch.int32)
        others = {"q_ranges": ints([s[0] for s in slices]), "k_ranges": ints([s[1] for s in slices]), "kinds": ints([s[2] for s in slices])}
        return self.launcher(backward, "full", {"slices": "true", **self.plan}, {"slices": len(slices)}, others)


def check(fg, name, dims, family):
    """A list of 512 tokens against a dense mask, both passes."""
    n, h, hk = 512, 4, 2
    tokens, slices = Tokens(fg, n, h, hk, dims, family, {}), LISTS[name](n, random.Random(2))
    tokens.of_list(True, slices)()
    mask = shown(slices, n)
    leaves = [getattr(tokens, x).float().requires_grad_() for x in "qkv"]
    q, k, v = (x.transpose(0, 1) if x.shape[1] == h else x.transpose(0, 1).repeat_interleave(h // hk, 0) for x in leaves)
    s = (q @ k.transpose(1, 2) * tokens.d**-0.5).masked_fill(~mask, -torch.inf)
    p = torch.softmax(s, 2).nan_to_num(0.0)
    o = (p @ v).transpose(0, 1)
    right = {"o": o.detach(), **dict(zip(("dq", "dk", "dv"), torch.autograd.grad(o, leaves, tokens.dout.float())))}
    for what, x in right.items():
        error = ((tokens.made[what].float() - x.nan_to_num(0.0)).norm() / x.nan_to_num(0.0).norm()).item()
        if not error < 2e-2:
            raise SystemExit(f"{name}, d {dims}: {what} is {error:.2g} off")


def list_time(launch):
    """us of the pass that makes lists, of one launch."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(5):
            launch()
        torch.cuda.synchronize()
    times = sorted(e.device_time for e in profile.events() if e.name.startswith("attn_slices"))
    return times[len(times) // 2] if times else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libflashgen.so")
    parser.add_argument("--passes", default="fwd,bwd")
    parser.add_argument("--dims", default="128")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--heads", default="64/8", help="of queries / of keys")
    parser.add_argument("--lists", default=",".join(LISTS))
    parser.add_argument("--family", default="wgmma", help="of our kernels")
    parser.add_argument("--plan", nargs="*", default=[], help="of our kernels, as block_q=192 block_kv=64")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    a = parser.parse_args()
    c_api.need_gpu(torch)
    fg, rows, plan = Flashgen(a.library), [], dict(word.split("=") for word in a.plan)
    h, hk = (int(x) for x in a.heads.split("/"))
    print(torch.cuda.get_device_name())
    print("| pass | d | list | slices | pairs, % | ms | of plain | list us | kernel |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for dims in a.dims.split(","):
        tokens = Tokens(fg, a.tokens, h, hk, dims, a.family, plan)
        for name in a.lists.split(","):
            check(fg, name, dims, a.family)
            slices = LISTS[name](a.tokens, random.Random(a.seed))
            pairs = int(shown(slices, a.tokens).sum())
            torch.cuda.empty_cache()
            mask = "full" if name in ("full", "blocks", "random") else "causal"
            all_pairs = a.tokens**2 if mask == "full" else a.tokens * (a.tokens + 1) // 2
            for backward in (p == "bwd" for p in a.passes.split(",")):
                both = {"plain": tokens.plain(backward, mask), "ours": tokens.of_list(backward, slices)}
                ms = timed(both)
                share = pairs / ms["ours"] / (all_pairs / ms["plain"])
                row = {"pass": "bwd" if backward else "fwd", "d": dims, "list": name, "slices": len(slices), "pairs": pairs, "ms": ms["ours"],
                       "of_plain": share, "list_us": list_time(both["ours"]), "name": tokens.name}
                rows.append(row)
                print(f"| {row['pass']} | {dims} | {name} | {len(slices)} | {100 * pairs / a.tokens**2:.1f} | {ms['ours']:.3f} | {share:.2f} | "
                      f"{row['list_us']:.1f} | {tokens.name.split('.')[1]} |", flush=True)
    if a.json:
        with open(a.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "tokens": a.tokens, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""hooks.py - what masks, scores and their gradients cost, and FlexAttention beside it, on one GPU.

Inputs, shapes and clocks of peers.py. For each hook, written NAME@LENGTH, these run in turn, twice round:
our kernels with it, the same kernels without (the spec's mask alone, or none), and FlexAttention through
torch.compile. Passes: fwd; bwd; both, forward and backward together, which is all that FlexAttention's
backward is timed in. A ratio is time with the hook over time without; for a window that time counts by
the share of pairs that it shows, of all pairs and, in parentheses, of those that the causal kernel shows.
The difference is ours to FlexAttention's results, the largest relative norm.

    hooks.py --library build/libflashgen.so --family mma --markdown
    hooks.py --family wgmma --passes fwd --hooks softcap@8192,alibi@8192,window@8192,bias@4096

Needs PyTorch with a GPU, and flashgen's shared libraries."""

import argparse
import itertools
import json
import statistics
import sys

import c_api
from peers import Cell, Flashgen, compile_all, dtype_of, measure

torch = c_api.pytorch()

WINDOW, CAP = 1023, 30.0


class Hook:
    """What a hook adds to a spec, and to FlexAttention's call; made for a cell."""

    words, grad = {}, None  # of ours; the tensor of ours that takes a gradient

    def __init__(self, cell):
        self.share = 1.0  # of the pairs of the kernel without it that are visible
        self.causal_share = None  # of those of the causal kernel, if it hides more than that does

    def tensors(self):
        """Tensors and inputs of our launch, forward; those of the backward besides."""
        return {}, [], {}, []

    mask = score = None  # of FlexAttention
    captured = gradient = None  # its tensor that takes a gradient; ours


class Softcap(Hook):
    words = {"score": f"softcap({CAP})"}

    @staticmethod
    def score(s, b, h, q, k):
        return CAP * torch.tanh(s / CAP)


class Alibi(Hook):
    words = {"score": "alibi"}

    def __init__(self, cell):
        super().__init__(cell)
        power = 1 << (cell.h.bit_length() - 1)
        slope = [2 ** (-8 * (i + 1) / power) for i in range(power)]
        slope += [2 ** (-4 * (2 * i + 1) / power) for i in range(cell.h - power)]
        slopes = torch.tensor(slope, device="cuda")
        self.score = lambda s, b, h, q, k: s + slopes[h] * (k - q)


class Window(Hook):
    words = {"mask": f"window({WINDOW}, 0)"}

    def __init__(self, cell):
        seen = min(WINDOW + 1, cell.n)
        visible = seen * cell.n - seen * (seen - 1) / 2
        self.share, self.causal_share = visible / cell.n**2, visible / (cell.n * (cell.n + 1) / 2)

    @staticmethod
    def mask(b, h, q, k):
        return (k <= q) & (q - k <= WINDOW)


class Causal(Hook):
    words = {"mask": "causal"}


class Relative(Hook):
    words = {"score": "relative(table)", "inputs": "table=f32[h, nq + nk - 1] grad"}

    def __init__(self, cell):
        super().__init__(cell)
        table = torch.randn(cell.h, 2 * cell.n - 1, device="cuda")
        self.table, self.gradient = table, torch.empty_like(table)
        captured = self.captured = table.clone().requires_grad_()
        last = cell.n - 1
        self.score = lambda s, b, h, q, k: s + captured[h, k - q + last]

    def tensors(self):
        return {}, [(self.table, None)], {}, [(self.table, self.gradient)]


class Bias(Hook):
    words = {"bias": "grad", "bias_dims": "h,q,k"}

    def __init__(self, cell):
        super().__init__(cell)
        bias = torch.randn(1, cell.h, cell.n, cell.n, device="cuda", dtype=cell.dtype)
        self.bias, self.gradient = bias, torch.empty_like(bias)
        captured = self.captured = bias[0].clone().requires_grad_()
        self.score = lambda s, b, h, q, k: s + captured[h, q, k]

    def tensors(self):
        return {"bias": self.bias}, [], {"bias": self.bias, "dbias": self.gradient}, []


HOOKS = {"softcap": Softcap, "alibi": Alibi, "window": Window, "relative": Relative, "bias": Bias}


def specs(cell, hook, deterministic):
    """The words of our two passes."""
    words = cell.words(None, {"mask": "full", **(hook.words if hook else {})})
    fixed = {"deterministic": "true"} if deterministic else {}
    return {"fwd": {**words, "pass": "forward"}, "bwd": {**words, "pass": "backward", **fixed}}


def ours(fg, cell, hook, deterministic):
    """Launchers of our passes by name, and what they write."""
    spec = specs(cell, hook, deterministic)
    for which, why in zip(spec, compile_all(fg, [(spec[which], cell.shape) for which in cell.passes])):
        if why:
            raise RuntimeError(f"{which}: {why}")
    tensors, inputs, more_tensors, more_inputs = hook.tensors() if hook else ({}, [], {}, [])
    o, lse = torch.empty_like(cell.dout), torch.empty(cell.b, cell.h, cell.n, device="cuda")
    t = {"q": cell.q, "k": cell.k, "v": cell.v, "o": o, "lse": lse}
    forward = fg.launcher(fg.select(spec["fwd"], cell.shape), cell.shape, {**t, **tensors}, inputs)
    forward()
    if not cell.backward:
        return {"fwd": forward}, [o]
    grads = [torch.empty_like(x) for x in (cell.q, cell.k, cell.v)]
    t.update(dout=cell.dout, dq=grads[0], dk=grads[1], dv=grads[2])
    backward = fg.launcher(fg.select(spec["bwd"], cell.shape), cell.shape, {**t, **more_tensors}, more_inputs)

    def both():
        forward()
        backward()

    both()
    made = [o, *grads] + ([hook.gradient] if hook and hook.captured is not None else [])
    return {"fwd": forward, "bwd": backward, "both": both}, made


def flex(cell, hook):
    """The same of FlexAttention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()  # or it stops compiling after 8 shapes
    mask = hook.mask and create_block_mask(hook.mask, None, None, cell.n, cell.n, device="cuda")
    run = torch.compile(flex_attention, dynamic=False)
    leaves = [x.detach().clone().requires_grad_(cell.backward) for x in (cell.q, cell.k, cell.v)]
    wanted = leaves + ([hook.captured] if hook.captured is not None else [])

    def forward():
        with torch.no_grad():
            return run(*leaves, score_mod=hook.score, block_mask=mask)

    def both():
        o = run(*leaves, score_mod=hook.score, block_mask=mask)
        return (o, *torch.autograd.grad(o, wanted, cell.dout))

    made = both() if cell.backward else (forward(),)
    return {"fwd": forward, "both": both} if cell.backward else {"fwd": forward}, list(made)


def disagreement(made, theirs):
    pairs = ((a.float().flatten(), b.detach().float().flatten()) for a, b in zip(made, theirs))
    return max(((a - b).norm() / b.norm()).item() for a, b in pairs)


def contest(launchers):
    """Mean milliseconds of two rounds, in turn."""
    times = {name: [] for name in launchers}
    for _ in range(2):
        for name, launch in launchers.items():
            times[name].append(measure(launch))
    return {name: statistics.mean(ms) for name, ms in times.items()}


def run_hook(fg, name, n, d, choice):
    dtype = dtype_of(choice.dtype)
    cell = Cell("bwd" in choice.passes, d, False, n, dtype, choice.heads, choice.family)
    cell.passes = ["fwd", "bwd"] if cell.backward else ["fwd"]
    hook = HOOKS[name](cell)
    launchers, made = ours(fg, cell, hook, choice.deterministic)
    plain, _ = ours(fg, cell, None, choice.deterministic)
    contestants = {("hook", p): x for p, x in launchers.items()}
    contestants.update({("plain", p): x for p, x in plain.items()})
    if hook.causal_share:
        causal, _ = ours(fg, cell, Causal(cell), choice.deterministic)
        contestants.update({("causal", p): x for p, x in causal.items()})
    differs = None
    if not choice.no_flex:
        try:
            theirs, results = flex(cell, hook)
            contestants.update({("flex", p): x for p, x in theirs.items()})
            differs = disagreement(made, results)
            del results
        except Exception as why:  # whatever PyTorch's compiler raises: its row stays empty
            print(f"  flex {name} d {d}: {type(why).__name__}: {str(why).splitlines()[0][:200]}", file=sys.stderr)
    ms = contest(contestants)
    row = {"hook": name, "d": d, "n": n, "dtype": choice.dtype, "share": hook.share, "differs": differs, "ms": {}}
    for (who, which), x in ms.items():
        row["ms"].setdefault(which, {})[who] = x
    row["cost"] = {p: x["hook"] / (x["plain"] * hook.share) for p, x in row["ms"].items()}
    if hook.causal_share:
        row["of_causal"] = {p: x["hook"] / (x["causal"] * hook.causal_share) for p, x in row["ms"].items()}
    row["flex"] = {p: x["flex"] / x["hook"] for p, x in row["ms"].items() if "flex" in x}
    return row


def line(row):
    parts = [f"{row['hook']:8} d {row['d']:>7} n {row['n']:6}"]
    for which, ms in row["ms"].items():
        text = " ".join(f"{who} {x:.3f}" for who, x in ms.items())
        against = f", {row['flex'][which]:.2f} x flex's speed" if which in row["flex"] else ""
        of_causal = f" ({row['of_causal'][which]:.2f} x of causal)" if "of_causal" in row else ""
        parts.append(f"{which}: {text} ms, cost {row['cost'][which]:.2f} x{of_causal}{against}")
    return "; ".join(parts) + (f"; differs {row['differs']:.1e}" if row["differs"] is not None else "")


def markdown(rows):
    passes = list(rows[0]["ms"])
    titles = {"fwd": "forward", "bwd": "backward", "both": "both"}
    head = ["", "d", "n"] + [titles[p] for p in passes] + [f"FlexAttention, {titles[p]}" for p in passes if p != "bwd"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in rows:
        cells = [row["hook"], row["d"], str(row["n"])]
        cells += [f"{row['ms'][p]['hook']:.2f} ms, {row['cost'][p]:.2f} x" for p in passes]
        for p in passes:
            if p != "bwd":
                there = p in row["flex"]
                cells.append(f"{row['ms'][p]['flex']:.2f} ms ({row['flex'][p]:.2f})" if there else "")
        print("| " + " | ".join(cells) + " |")


def main():
    split = lambda text: [x for x in text.split(",") if x]
    usual = "softcap@4096,alibi@4096,window@8192,relative@4096,bias@4096"
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--hooks", type=split, default=split(usual), help=f"of {', '.join(HOOKS)}; {usual}")
    options.add_argument("--dims", type=split, default=["64", "128"])
    options.add_argument("--heads", help="H, or H/HK; instead of 2048 / d")
    options.add_argument("--passes", type=split, default=["fwd", "bwd"], help="fwd, or fwd,bwd")
    options.add_argument("--family", help="of ours: simt, mma, wgmma")
    options.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    options.add_argument("--deterministic", action="store_true", help="our backward, with and without the hook")
    options.add_argument("--no-flex", action="store_true", help="ours alone")
    options.add_argument("--json", help="a file for the results")
    options.add_argument("--markdown", action="store_true", help="a table at the end")
    choice = options.parse_args()
    c_api.need_gpu(torch)
    fg, rows = Flashgen(choice.library), []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {choice.dtype}", flush=True)
    for hook, d in itertools.product(choice.hooks, choice.dims):
        name, n = hook.split("@")
        try:
            rows.append(run_hook(fg, name, int(n), d, choice))
            print(line(rows[-1]), flush=True)
        except RuntimeError as why:
            print(f"  {name} d {d} n {n}: {str(why).splitlines()[0]}", file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    if choice.markdown and rows:
        markdown(rows)
    if choice.json:
        with open(choice.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "family": choice.family, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()

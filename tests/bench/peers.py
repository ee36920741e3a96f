#!/usr/bin/env python3
"""peers.py - flashgen beside cuDNN, FlashAttention-2 and FlexAttention on one GPU, in one process.

Random normal inputs in [b, n, h, d] layout, 16384 tokens and 2048 / d heads in all, or --heads. Of each cell every
contestant is timed in turn, twice round: a pause of 0.1 s, 5 launches to warm up, 20 queued without a
host sync, the median of their times by events; or --sustained, what the card's power allows. TFLOP/s count
2 b h n n (d + dv) forward, half of it when causal, 2 b h n n (3 d + 2 dv) backward (what comes before and
after the main kernel included). Where FlashAttention-3's speed over cuDNN's is known of the card, ours over it follows.

Needs PyTorch with a GPU, and flashgen's shared libraries; run it with --help for the choices."""

import argparse
import concurrent.futures
import ctypes
import itertools
import json
import math
import statistics
import sys
import time

import fa3
import c_api
from fa3 import TOKENS, WIDTH, geometric_mean
from c_api import Shape

torch = c_api.pytorch()

PLAN_FIELDS = {"q": "block_q", "k": "block_kv", "s": "stages", "w": "warps"}
SHARED_KEYS = {"mma": "warps_per_key", "wgmma": "key_parts"}  # the field that "p" is of a family


class Flashgen(c_api.Flashgen):
    def launcher(self, kernel, shape, tensors, inputs=()):
        """A function that launches. Tensors in the order b h n d, or b h q k, as views; inputs by the order
        of their names: a number, or a tensor and its gradient, or None."""
        place = lambda t: t is not None and (t.data_ptr(), tuple(t.stride()) + (0,) * (4 - t.dim()))
        values = [x if isinstance(x, (int, float)) else (place(x[0]), place(x[1])) for x in inputs]
        size = self.workspace_bytes(kernel, shape)
        workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        views = {name: place(t) for name, t in tensors.items()}
        run = self.launch(kernel, shape, views, values, workspace.data_ptr(), stream)
        keep = (workspace, tensors, inputs)
        return lambda keep=keep: run()


# ---- one cell: inputs, and a launcher for each contestant ----


class Cell:
    """d: "128", or "192/128", of q and k / of v; heads: "16", or "32/8", of queries / of keys; b: the batch."""

    def __init__(self, backward, d, causal, n, dtype, heads=None, family=None, b=None):
        self.backward, self.causal, self.n, self.dtype, self.family = backward, causal, n, dtype, family
        self.d, self.dv = (int(x) for x in (d.split("/") * 2)[:2])
        self.h, self.hk = (int(x) for x in ((heads or str(WIDTH // self.d)).split("/") * 2)[:2])
        self.b = b or TOKENS // n
        self.q, self.k = self.random(self.h, self.d), self.random(self.hk, self.d)
        self.v, self.dout = self.random(self.hk, self.dv), self.random(self.h, self.dv)
        self.shape = Shape(ctypes.sizeof(Shape), b=self.b, h=self.h, hk=self.hk, nq=n, nk=n)

    def random(self, heads, width):
        return torch.randn((self.b, self.n, heads, width), device="cuda", dtype=self.dtype).transpose(1, 2)

    def flops(self):
        widths = 3 * self.d + 2 * self.dv if self.backward else self.d + self.dv
        return 2 * self.b * self.h * self.n * self.n * widths * (0.5 if self.causal else 1)

    def words(self, plan=None, more=None):
        words = {
            "pass": "backward" if self.backward else "forward",
            "dtype": "bf16" if self.dtype == torch.bfloat16 else "f16",
            "head_dim": f"{self.d}/{self.dv}",
            "mask": "causal" if self.causal else "full",
            **({"family": self.family} if self.family else {}),
            **(more or {}),
        }
        if plan:
            family, *fields = plan.split("-")
            words["family"] = family
            words.update({PLAN_FIELDS.get(f[0]) or SHARED_KEYS[family]: f[1:] for f in fields})
        return words

    def flashgen(self, fg, plan=None, more=None):
        """Launches our kernel of the plan, or of the chosen one; more: words of the spec besides. The
        forward that a backward needs is of whatever family has one."""
        t = {"q": self.q, "k": self.k, "v": self.v}
        if more and more.get("bias"):
            t["bias"] = torch.randn((1, self.h, self.n, self.n), device="cuda", dtype=self.dtype)
        lse = torch.empty(self.b, self.h, self.n, device="cuda")
        o = torch.empty_like(self.dout)
        if self.backward:
            forward = {k: v for k, v in self.words(None, more).items() if k not in ("family", "deterministic")}
            kernel = fg.select({**forward, "pass": "forward"}, self.shape)
            fg.launcher(kernel, self.shape, {**t, "o": o, "lse": lse})()
            t["dout"] = self.dout
            t.update({"d" + x: torch.empty_like(t[x]) for x in ("q", "k", "v")})
            if more and more.get("bias") == "grad":
                t["dbias"] = torch.empty_like(t["bias"])
        t.update({"o": o, "lse": lse})
        self.ours = t
        return fg.launcher(fg.select(self.words(plan, more), self.shape), self.shape, t)

    def fa2(self):
        aten = torch.ops.aten
        made = aten._scaled_dot_product_flash_attention(self.q, self.k, self.v, 0.0, self.causal, False)
        self.reference = made[0]
        if not self.backward:
            return lambda: aten._scaled_dot_product_flash_attention(self.q, self.k, self.v, 0.0, self.causal, False)
        o, lse, cum_q, cum_k, max_q, max_k, seed, offset = made[:8]
        run = lambda: aten._scaled_dot_product_flash_attention_backward(
            self.dout, self.q, self.k, self.v, o, lse, cum_q, cum_k, max_q, max_k, 0.0, self.causal, seed, offset
        )
        self.reference = run()
        return run

    def grouped(self):
        """cuDNN where query heads share keys: only PyTorch's public function passes that on."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        leaves = [x.detach().requires_grad_(self.backward) for x in (self.q, self.k, self.v)]

        def forward():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(
                    *leaves, is_causal=self.causal, enable_gqa=True
                )

        if not self.backward:
            return forward
        o = forward()
        return lambda: torch.autograd.grad(o, leaves, self.dout, retain_graph=True)

    def cudnn(self):
        if self.h != self.hk:
            return self.grouped()
        aten = torch.ops.aten
        forward = lambda: aten._scaled_dot_product_cudnn_attention(
            self.q, self.k, self.v, None, self.backward, 0.0, self.causal, False
        )
        if not self.backward:
            return forward
        o, lse, cum_q, cum_k, max_q, max_k, seed, offset = forward()[:8]
        return lambda: aten._scaled_dot_product_cudnn_attention_backward(
            self.dout, self.q, self.k, self.v, o, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, self.causal
        )

    def flex(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        mask = None
        if self.causal:
            mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, self.n, self.n, device="cuda")
        torch._dynamo.reset()  # or it stops compiling after 8 shapes
        run = torch.compile(flex_attention, dynamic=False)
        more = {"block_mask": mask, "enable_gqa": self.h != self.hk}
        if not self.backward:
            return lambda: run(self.q, self.k, self.v, **more)
        leaves = [x.detach().clone().requires_grad_() for x in (self.q, self.k, self.v)]
        o = run(*leaves, **more)
        return lambda: torch.autograd.grad(o, leaves, self.dout, retain_graph=True)

    def disagreement(self):
        """Of our results with FlashAttention-2's: the largest norm of a difference, relative."""
        ours = [self.ours[x] for x in (("dq", "dk", "dv") if self.backward else ("o",))]
        theirs = self.reference if self.backward else [self.reference]
        return max(((a - b).float().norm() / b.float().norm()).item() for a, b in zip(ours, theirs))


def dtype_of(name):
    return torch.bfloat16 if name == "bf16" else torch.float16


# What else of ours is timed beside the plain kernel: words of the spec, and the dtype.
ALSO = {
    "bias": ({"bias": "true", "bias_dims": "h,q,k"}, None),
    "biasgrad": ({"bias": "grad", "bias_dims": "h,q,k"}, None),
    "deterministic": ({"deterministic": "true"}, None),
    "f16": ({}, "f16"),
}


def timed(launch, warm, launches):
    """Milliseconds of each of so many launches behind a pause and those that warm up."""
    torch.cuda.synchronize()
    time.sleep(0.1)
    for _ in range(warm):
        launch()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(launches + 1)]
    events[0].record()
    for event in events[1:]:
        launch()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def measure(launch):
    return statistics.median(timed(launch, 5, 20))


def measure_sustained(launch):
    """The mean of 0.5 s behind another 0.5 s: the card's clock has fallen to what its power allows."""
    launches = math.ceil(500 / measure(launch))
    return statistics.mean(timed(launch, launches, launches))


def contest(cell, launchers, meter):
    """Mean TFLOP/s of two rounds."""
    times = {name: [] for name in launchers}
    for _ in range(2):
        for name, launch in launchers.items():
            times[name].append(meter(launch))
    return {name: cell.flops() / statistics.mean(ms) / 1e9 for name, ms in times.items()}


def compile_all(fg, jobs):
    """Compiles side by side what the cells will ask for; a plan that is refused is told and left out."""

    def one(job):
        try:
            return fg.select(*job) and None
        except RuntimeError as why:
            return str(why)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, jobs))


def peers_of(cell, names):
    """What launches each peer; one that cannot compute the cell is told and left out."""
    launchers = {}
    for name in names:
        try:
            launch = getattr(cell, name)()
            launch()
            launchers[name] = launch
        except (RuntimeError, NotImplementedError, ValueError) as why:
            print(f"  {name}: {str(why).splitlines()[0]}", file=sys.stderr)
    return launchers


def leads(rows, ours, table):
    """Ours over FlashAttention-3, of cells that the table has: ours over cuDNN here by its speed over cuDNN's there.
    Pairs of the ratio and the length, by pass and cell."""
    found = {}
    for row in rows:
        cell, speed = row["cell"], row["tflops"]
        if cell in table and "cudnn" in speed and any(p in speed for p in ours):
            ratio = max(speed[p] for p in ours if p in speed) / speed["cudnn"] / table[cell]
            found.setdefault(row["pass"], {})[cell] = ratio, row["n"]
    return found


def main():
    split = lambda text: [x for x in text.split(",") if x]
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--passes", type=split, default=["fwd", "bwd"])
    options.add_argument("--dims", type=split, default=["64", "128", "256"], help="d, or d/dv: 192/128")
    options.add_argument("--heads", help="H, or H/HK where query heads share keys: 32/8; instead of 2048 / d")
    options.add_argument("--family", help="of ours: simt, mma, wgmma")
    options.add_argument("--masks", type=split, default=["full", "causal"])
    options.add_argument("--lengths", type=split, default="512 1024 2048 4096 8192 16384".split())
    options.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    options.add_argument("--peers", type=split, default=["cudnn", "fa2"], help="of cudnn, fa2, flex")
    options.add_argument("--plans", type=split, default=[], help="plans of ours instead of the chosen one")
    options.add_argument("--also", type=split, default=[], help="of ours too: " + ", ".join(ALSO))
    options.add_argument("--sustained", action="store_true", help="a second of launches, the mean of its second half")
    options.add_argument("--json", help="a file for the results")
    choice = options.parse_args()
    c_api.need_gpu(torch)
    fg = Flashgen(choice.library)
    dtype = dtype_of(choice.dtype)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {choice.dtype}, TFLOP/s", flush=True)
    table = fa3.table_or_warning(torch.cuda.get_device_name()) if choice.dtype == "bf16" else {}

    axes = itertools.product(choice.passes, choice.dims, choice.masks, map(int, choice.lengths))
    rows, ours = [], choice.plans or ["flashgen"]
    for which, d, mask, n in axes:
        kind = (which == "bwd", d, mask == "causal", n)
        cell = Cell(*kind, dtype, choice.heads, choice.family)
        jobs = [(cell.words(plan if choice.plans else None), cell.shape) for plan in ours]
        refused = dict(zip(ours, compile_all(fg, jobs)))
        launchers = peers_of(cell, choice.peers)
        wrong = {}
        for plan in ours:
            if refused[plan]:
                print(f"  {which} {d} {mask}: {plan}: {refused[plan]}", file=sys.stderr)
                continue
            launch = cell.flashgen(fg, plan if choice.plans else None)
            launch()
            if "fa2" in launchers:
                wrong[plan] = cell.disagreement()
            launchers[plan] = launch
        for extra in choice.also:
            more, other = ALSO[extra]
            variant = Cell(*kind, dtype_of(other), choice.heads, choice.family) if other else cell
            launchers[extra] = variant.flashgen(fg, None, more)
        speed = contest(cell, launchers, measure_sustained if choice.sustained else measure)
        row = {"pass": which, "d": d, "mask": mask, "n": n, "tflops": speed, "differs": wrong}
        rows.append({"cell": fa3.cell_name(which, d, mask, n, choice.heads), **row})
        best = max((speed[p] for p in ours if p in speed), default=0)
        text = "  ".join(f"{name} {x:.0f}" for name, x in speed.items())
        ratios = "  ".join(f"/{p} {best / speed[p]:.3f}" for p in choice.peers if p in speed)
        worst = max(wrong.values(), default=0)
        print(f"{which} {d:>7} {mask:6} {n:6}: {text}  {ratios}  differs {worst:.1e}", flush=True)
        del cell, launchers
    for which, peer in itertools.product(choice.passes, choice.peers):
        part = [r["tflops"] for r in rows if r["pass"] == which and peer in r["tflops"]]
        ratios = [max(r[p] for p in ours if p in r) / r[peer] for r in part if any(p in r for p in ours)]
        if ratios:
            print(f"{which}: best of ours / {peer}: geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    for which, cells in leads(rows, ours, table).items():
        for cell in sorted(cells, key=cells.get):
            print(f"  {cell}: {cells[cell][0]:.3f} x FlashAttention-3")
        print(fa3.summary(f"{which}: ours / FlashAttention-3", list(cells.values())))
    if choice.json:
        with open(choice.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "dtype": choice.dtype, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()

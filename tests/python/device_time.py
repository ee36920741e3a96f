#!/usr/bin/env python3
"""device_time.py - what a call of the Python package costs the GPU, beside what `flashgen bench` measures of the same kernels.

    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python python3 tests/python/device_time.py --program build/flashgen

Both have the same protocol: normal numbers in [b, n, h, d], bfloat16, 16384 tokens and 2048 / d heads; as many sets of them as
are more than the L2 cache, in turn; a pause of 0.1 s, 5 calls to warm up, 20 queued, the median. Both are measured in turn,
twice round, and a mean of the two is told, in microseconds:

    bench     by events around each launch, of the kernel that the package chose
    kernels   by PyTorch's profiler: how long any kernel or fill of a call was on the device, those of other programs too
    events    by events around each call of the package, and of autograd: what a program sees
    others    launches a call of the package made that are not flashgen's: there should be none

Needs PyTorch with a GPU. Exit: 0, or 1 where kernels take over 3 % more than the bench says."""
import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time

import torch

import flashgen
from flashgen.context import kernel_name
from flashgen.library import library

TOKENS, WIDTH, WARM_UPS, CALLS, CACHES, BAR = 16384, 2048, 5, 20, 128 << 20, 0.03
OURS = ("attn_", "Memset")  # what the names of our kernels, and of our fills, begin with


class Selected:
    """The names of kernels that are selected meanwhile."""

    def __enter__(self):
        self.names, self.function = [], library().fg_select
        library().fg_select = self.select
        return self.names

    def select(self, op, shape, stream, kernel):
        status = self.function(op, shape, stream, kernel)
        if status == 0:
            self.names.append(kernel_name(kernel._obj))
        return status

    def __exit__(self, *_):
        library().fg_select = self.function


class Cell:
    """Calls of one shape, on sets of tensors in turn."""

    def __init__(self, d, mask, n):
        self.d, self.mask, self.n, self.h, self.b = d, mask, n, WIDTH // d, TOKENS // n
        tensor = self.b * n * self.h * d * 2
        self.sets = [self.new_set() for _ in range(min(CACHES // (4 * tensor) + 1, WARM_UPS + CALLS))]
        with Selected() as names:
            self.forwards()()
            self.backwards()()
        self.names = {"attn_fwd": None, "attn_bwd": None}
        self.names.update((name.partition("-")[0], name) for name in names)

    def new_set(self):
        return [torch.randn(self.b, self.n, self.h, self.d, device="cuda").bfloat16() for _ in range(4)]

    def forwards(self):
        """A function that calls forward on the next set."""
        sets = itertools.cycle(self.sets)

        def call():
            q, k, v, _ = next(sets)
            flashgen.attention(q, k, v, mask=self.mask)
        return call

    def backwards(self):
        made = []
        for q, k, v, dout in self.sets:
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            made.append((flashgen.attention(*leaves, mask=self.mask), leaves, dout))
        sets = itertools.cycle(made)

        def call():
            out, leaves, dout = next(sets)
            torch.autograd.grad(out, leaves, dout, retain_graph=True)
        return call

    def bench(self, program, name):
        shape = {"b": self.b, "h": self.h, "hk": self.h, "nq": self.n, "nk": self.n}
        command = [program, "bench", name, *(f"{x}={value}" for x, value in shape.items()), "--json", "--device", "cuda:0"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{' '.join(command)}: {ran.stderr.strip()}")
        return json.loads(ran.stdout)["rows"][0]["ms"] * 1000


def warmed(call):
    torch.cuda.synchronize()
    time.sleep(0.1)
    for _ in range(WARM_UPS):
        call()


def by_events(call):
    warmed(call)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(CALLS + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    return 1000 * statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:]))


def by_profiler(call):
    """Microseconds of a call on the device, and how many launches of it were not ours."""
    warmed(call)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    spans = [(x.time_range.start, x.time_range.end, x.name) for x in profile.events()
             if x.device_type == torch.autograd.DeviceType.CUDA]
    if not spans or len(spans) % CALLS:
        sys.exit(f"the profiler saw {len(spans)} launches in {CALLS} calls")
    return per_call(sorted(spans)), sum(not is_ours(name) for *_, name in spans) / CALLS


def is_ours(name):
    return name.startswith(OURS)


def per_call(spans):
    """The median over calls of how long any launch of a call ran: kernels that start early run beside the end of the one
    before, which is counted once."""
    each, busy, end = len(spans) // CALLS, [], 0.0
    for i in range(0, len(spans), each):
        of_call = 0.0
        for first, last, _ in spans[i:i + each]:
            of_call += max(last - max(first, end), 0.0)
            end = max(end, last)
        busy.append(of_call)
    return statistics.median(busy)


def main():
    split = lambda text: text.split(",")
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", default="build/flashgen", help="the flashgen program of the same build")
    options.add_argument("--dims", type=split, default=["64", "128"])
    options.add_argument("--masks", type=split, default=["full", "causal"])
    options.add_argument("--lengths", type=split, default=["1024", "8192"])
    choice = options.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, bf16, us")
    columns = ("bench", "kernels", "/ bench", "events", "/ bench", "others")
    print(f"{'':<24}" + "".join(f"{x:>10}" for x in columns) + "  kernel", flush=True)
    worst = 0.0
    for d, mask, n in itertools.product(map(int, choice.dims), choice.masks, map(int, choice.lengths)):
        cell = Cell(d, mask, n)
        for which, call in (("fwd", cell.forwards()), ("bwd", cell.backwards())):
            name = cell.names["attn_" + which]
            rounds = [(cell.bench(choice.program, name), *by_profiler(call), by_events(call)) for _ in range(2)]
            bench, kernels, others, events = map(statistics.mean, zip(*rounds))
            worst = max(worst, kernels / bench - 1)
            print(f"{which} {d:>4} {mask:<7}{n:>6}   {bench:10.1f}{kernels:10.1f}{kernels / bench:10.3f}{events:10.1f}"
                  f"{events / bench:10.3f}{others:10.0f}  {name.partition('.')[2]}", flush=True)
        del cell, call
    print(f"kernels take at most {100 * worst:+.1f} % more than the bench says; the bar is {100 * BAR:.0f} %")
    sys.exit(worst > BAR)


if __name__ == "__main__":
    main()

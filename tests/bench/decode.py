#!/usr/bin/env python3
"""decode.py - few query rows against many keys beside cuDNN, FlashAttention-2 and what reading K and V takes, in one process.

Each row is a launch inside a CUDA graph of many, over copies of K and V that together are more than L2 has, so that keys come
from memory; microseconds a launch, the median of 7 replays, contestants in turn, twice round. `copy` is the time in which the
card copies half of the bytes of K and V, measured by a kernel that copies 1 GB. All results are compared with PyTorch's in float32 first.
With --kv e4m3 the cache is fp8, of half the bytes, beside q of bfloat16 or, with dtype=f16, float16; PyTorch has no contestant there.

Needs PyTorch with a GPU, and flashgen's shared libraries; run it with --help for the choices."""

import argparse
import contextlib
import ctypes
import random
import statistics

import c_api
from c_api import Shape
from peers import Flashgen

torch = c_api.pytorch()
BYTES = 1 << 30  # of all copies of K and V


def graph(launch, launches):
    """A graph of so many launches, the i-th of them launch(i)."""
    stream = torch.cuda.current_stream()
    for i in range(3):
        launch(i)
    stream.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made, stream=stream):
        for i in range(launches):
            launch(i)
    return made


def timed(launchers, launches, rounds=2):
    """Microseconds of a launch, by contestant."""
    graphs = {name: graph(launch, launches) for name, launch in launchers.items()}
    times = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, made in graphs.items():
            made.replay()
            for _ in range(7):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                made.replay()
                end.record()
                torch.cuda.synchronize()
                times[name].append(begin.elapsed_time(end) * 1e3 / launches)
    return {name: statistics.median(t) for name, t in times.items()}


def copy_rate():
    """Bytes a microsecond, read and written."""
    x = torch.randn(BYTES // 4, device="cuda")
    y = torch.empty_like(x)
    return 2 * BYTES / timed({"copy": lambda i: torch.neg(x, out=y)}, 4)["copy"]  # by a kernel, which is faster than a copy engine


class Decode:
    """b sequences of these lengths in caches of n rows, nq queries each; heads: "32/8"; kv: dtype of the cache; None: that of q."""

    def __init__(self, lengths, heads, d, nq=1, *, dtype, kv=None):
        self.kv, size = kv, (kv or dtype).itemsize
        self.lengths, self.d, self.nq, self.b, self.n = lengths, d, nq, len(lengths), max(lengths)
        self.h, self.hk = (int(x) for x in heads.split("/"))
        bytes_of_one = 2 * size * self.b * self.n * self.hk * d
        self.copies = max(2, min(32, BYTES // bytes_of_one))
        normal = lambda n, heads: torch.randn(self.b, n, heads, d, device="cuda", dtype=dtype)
        self.q = normal(nq, self.h)
        self.k, self.v = ([normal(self.n, self.hk).to(kv or dtype) for _ in range(self.copies)] for _ in range(2))
        self.used = torch.tensor(lengths, device="cuda", dtype=torch.int32)
        self.bytes = 2 * size * sum(lengths) * self.hk * d
        self.launches = 60 if self.bytes < 1e8 else 12
        self.is_equal = min(lengths) == self.n

    def expected(self):
        """In float32, by sequences."""
        o = torch.empty(self.b, self.nq, self.h, self.d, device="cuda")
        for b, n in enumerate(self.lengths):
            k, v = (x[0][b, :n].float().repeat_interleave(self.h // self.hk, 1) for x in (self.k, self.v))
            s = torch.einsum("qhd,khd->hqk", self.q[b].float(), k) * self.d**-0.5
            seen = torch.arange(n, device="cuda") <= torch.arange(self.nq, device="cuda")[:, None] + n - self.nq
            s = s.masked_fill(~seen, -torch.inf)
            o[b] = torch.einsum("hqk,khd->qhd", s.softmax(-1), v)
        return o

    def pages(self, size):
        """Each copy's caches cut into pages of that size, in a random order, and the table of all."""
        columns = -(-self.n // size)
        rest = columns * size - self.n
        order = torch.randperm(self.b * columns, device="cuda")
        bits = lambda x: x.view(torch.uint8 if self.kv else torch.int16)  # PyTorch moves few things of fp8
        cut = lambda x: torch.nn.functional.pad(bits(x), (0, 0, 0, 0, 0, rest)).view(self.b * columns, size, self.hk, self.d)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device="cuda")
        table = place.view(self.b, columns).to(torch.int32)
        last = table[:, None, None, :]  # its strides are the first and the last of four
        turned = lambda x: cut(x)[order].contiguous().view(x.dtype)
        return [turned(x) for x in self.k], [turned(x) for x in self.v], last

    def flashgen(self, fg, words, page=0):
        """A launcher by the number of the copy, and its output."""
        layout = "paged" if page else "dense" if self.is_equal else "cached"
        shape = Shape(ctypes.sizeof(Shape), b=self.b, h=self.h, hk=self.hk, nq=self.nq, nk=self.n)
        o, lse = torch.empty_like(self.q), torch.empty(self.b, self.h, self.nq, device="cuda")
        k, v, more = self.k, self.v, {}
        if layout != "dense":
            more["used_k"] = self.used
        if page:
            k, v, more["table"] = self.pages(page)
            shape.pages, shape.page = len(k[0]), page
        words = {"head_dim": str(self.d), "mask": "causal", "kv_layout": layout, "kv_dtype": "e4m3" if self.kv else "spec", **words}
        kernel = fg.select(words, shape)
        rows = lambda x: x.transpose(1, 2)
        views = {"q": rows(self.q), "o": rows(o), "lse": lse, **more}
        runs = [fg.launcher(kernel, shape, {**views, "k": rows(k[i]), "v": rows(v[i])}) for i in range(self.copies)]
        return lambda i: runs[i % self.copies](), o, fg.name(kernel)

    def peer(self, backend):
        """PyTorch's attention by that backend; of one query, or of keys that all rows see."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        rows = lambda x: x.transpose(1, 2)

        def run(i):
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return torch.nn.functional.scaled_dot_product_attention(
                    rows(self.q), rows(self.k[i % self.copies]), rows(self.v[i % self.copies]), enable_gqa=True)

        run(0)
        return run


def measure(fg, title, case, words, pages, rate):
    """A line for a case: ours, cuDNN's, FlashAttention-2's, the copy's time; then ours by pages, over ours without."""
    expected, launchers, names = case.expected(), {}, {}
    for page in (0, *pages):
        name = f"page {page}" if page else "ours"
        run, o, names[name] = case.flashgen(fg, words, page)
        run(0)
        error = ((o.float() - expected).norm() / expected.norm()).item()
        if not error < 1e-2:
            raise SystemExit(f"{title}: {names[name]} is wrong: {error:.2g} off")
        launchers[name] = run
    if case.is_equal and case.nq == 1 and not case.kv:
        for name, backend in (("cudnn", "CUDNN_ATTENTION"), ("fa2", "FLASH_ATTENTION")):
            with contextlib.suppress(RuntimeError):
                launchers[name] = case.peer(backend)
    us, copy = timed(launchers, case.launches), case.bytes / rate
    ours, peers = us["ours"], " ".join(f"{us[x]:8.1f}" if x in us else "       -" for x in ("cudnn", "fa2"))
    best = min((us[x] for x in ("cudnn", "fa2") if x in us), default=None)
    paged = " ".join(f"{page}: {us[f'page {page}'] / ours:.3f}" for page in pages)
    print(f"{title:28s} {ours:8.1f} {peers} {copy:8.1f}  {best / ours if best else 0:5.2f} {ours / copy:5.2f}  {names['ours'].split('.')[1]:22s} {paged}",
          flush=True)


def cases(heads, d, seed, **types):
    for b, n in ((1, 512), (1, 8192), (16, 8192), (1, 131072), (64, 2048)):
        yield f"{heads} d {d}: {b} x {n}", lambda b=b, n=n: Decode([n] * b, heads, d, **types), b * n in (8192, 131072)
    draw = random.Random(seed)
    lengths = [int(100 * 160 ** draw.random()) for _ in range(64)]
    yield f"{heads} d {d}: 64 of 100 to 16000", lambda: Decode(lengths, heads, d, **types), False
    yield f"{heads} d {d}: 16 x 8192, 16 rows", lambda: Decode([8192] * 16, heads, d, nq=16, **types), False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libflashgen.so.0")
    parser.add_argument("--heads", default="32/8:128,64/8:64", help="heads/key heads:head dim, by commas")
    parser.add_argument("--only", default="", help="cases whose title has this")
    parser.add_argument("--pages", default="1,16,64,256")
    parser.add_argument("--kv", choices=("spec", "e4m3"), default="spec", help="dtype of the cache; spec: that of q")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("words", nargs="*", help="more of the spec: family=decode warps=4 batch_invariant=true")
    a = parser.parse_args()
    c_api.need_gpu(torch)
    torch.manual_seed(a.seed)
    words = dict(x.split("=", 1) for x in a.words)
    types = {"dtype": {"bf16": torch.bfloat16, "f16": torch.float16}[words.get("dtype", "bf16")],
             "kv": torch.float8_e4m3fn if a.kv == "e4m3" else None}
    with torch.cuda.stream(torch.cuda.Stream()):
        fg, rate = Flashgen(a.library), copy_rate()
        print(f"{torch.cuda.get_device_name()}, copies {rate / 1e6:.2f} TB/s")
        print("case: ours, cuDNN, FA2, the copy's time, us; best peer / ours, ours / copy; plan; paged / ours by the page's size")
        for one in a.heads.split(","):
            heads, d = one.split(":")
            for title, make, is_paged in cases(heads, int(d), a.seed, **types):
                if a.only in title:
                    measure(fg, title, make(), words, [int(x) for x in a.pages.split(",") if x] if is_paged else [], rate)
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

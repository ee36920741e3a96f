#!/usr/bin/env python3
"""latent.py - latent attention of few query rows (MLA with its projections absorbed: keys of 576 columns, of which the first 512
are the values, one key/value head) beside PyTorch, what copying K takes, and what the products take by torch.matmul, in one process.

Each row is a launch inside a CUDA graph, over copies of K that together are more than L2 has; microseconds, the median of 7 replays,
contestants in turn, twice round. `copy` is the time in which the card copies half of the bytes of K; `products` is that in which
torch.matmul makes as many products of large square matrices. The bar is the larger one of both. Results are compared with PyTorch's in
float32 first.

Needs PyTorch with a GPU, and flashgen's shared libraries; run it with --help for the choices."""

import argparse
import contextlib
import ctypes

import c_api
from c_api import Shape
from decode import BYTES, copy_rate, timed
from peers import Flashgen

torch = c_api.pytorch()
D, DV = 576, 512


def product_rate():
    """Operations a microsecond of torch.matmul."""
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    return 2 * n**3 / timed({"matmul": lambda i: torch.matmul(a, b, out=c)}, 12)["matmul"]


class Latent:
    """b sequences of n keys, of which nq rows of h heads see all, or of several rows those up to their own."""

    def __init__(self, b, n, h, nq):
        self.b, self.n, self.h, self.nq = b, n, h, nq
        self.bytes = 2 * b * n * D
        self.operations = 2 * b * n * nq * h * (D + DV)
        self.copies = max(2, min(32, BYTES // self.bytes))
        self.q = torch.randn(b, nq, h, D, device="cuda", dtype=torch.bfloat16)
        self.k = [torch.randn(b, n, 1, D, device="cuda", dtype=torch.bfloat16) for _ in range(self.copies)]

    def expected(self):
        """In float32, a sequence at a time."""
        o = torch.empty(self.b, self.nq, self.h, DV, device="cuda")
        seen = torch.arange(self.n, device="cuda") <= torch.arange(self.nq, device="cuda")[:, None] + self.n - self.nq
        for b in range(self.b):
            k = self.k[0][b, :, 0].float()
            s = torch.einsum("qhd,kd->hqk", self.q[b].float(), k) * D**-0.5
            o[b] = torch.einsum("hqk,kd->qhd", s.masked_fill(~seen, -torch.inf).softmax(-1), k[:, :DV])
        return o

    def flashgen(self, fg, words, page=0):
        """A launcher by the number of the copy, and its output."""
        shape = Shape(ctypes.sizeof(Shape), b=self.b, h=self.h, hk=1, nq=self.nq, nk=self.n)
        o, lse = self.q.new_empty(self.b, self.nq, self.h, DV), torch.empty(self.b, self.h, self.nq, device="cuda")
        k, more = self.k, {}
        if page:
            columns = self.n // page
            order = torch.randperm(self.b * columns, device="cuda")
            place = torch.empty_like(order)
            place[order] = torch.arange(len(order), device="cuda")
            k = [x.view(-1, page, 1, D)[order].contiguous() for x in k]
            more = {"table": place.view(self.b, columns).to(torch.int32)[:, None, None, :],
                    "used_k": torch.full((self.b,), self.n, device="cuda", dtype=torch.int32)}
            shape.pages, shape.page = len(order), page
        words = {"head_dim": f"{D}/{DV}", "mask": "causal", "latent": "true", "kv_layout": "paged" if page else "dense", **words}
        kernel = fg.select(words, shape)
        rows = lambda x: x.transpose(1, 2)
        runs = [fg.launcher(kernel, shape, {"q": rows(self.q), "o": rows(o), "lse": lse, "k": rows(x), **more}) for x in k]
        return lambda i: runs[i % self.copies](), o, fg.name(kernel)

    def sdpa(self):
        rows = lambda x: x.transpose(1, 2)

        def run(i):
            k = rows(self.k[i % self.copies])
            return torch.nn.functional.scaled_dot_product_attention(rows(self.q), k, k[..., :DV], enable_gqa=True)

        run(0)
        return run

    def plain(self):
        """Products and softmax by themselves, without a mask."""
        q = self.q.reshape(self.b, self.nq * self.h, D)

        def run(i):
            k = self.k[i % self.copies][:, :, 0]
            return torch.softmax(q @ k.transpose(1, 2) * D**-0.5, -1) @ k[..., :DV]

        run(0)
        return run


def measure(fg, case, words, pages, copy, product):
    """A line for a case: ours, PyTorch's, the copy's and the products' times; ours over the larger one; ours by pages over ours without."""
    expected, launchers, names = case.expected(), {}, {}
    for page in (0, *pages):
        name = f"page {page}" if page else "ours"
        run, o, names[name] = case.flashgen(fg, words, page)
        run(0)
        error = ((o.float() - expected).norm() / expected.norm()).item()
        if not error < 1e-2:
            raise SystemExit(f"{names[name]} is wrong: {error:.2g} off")
        launchers[name] = run
    if case.nq == 1:
        for name, make in (("sdpa", case.sdpa), ("plain", case.plain)):
            with contextlib.suppress(RuntimeError):
                launchers[name] = make()
    us = timed(launchers, 12)
    ours, bytes_us, product_us = us["ours"], case.bytes / copy, case.operations / product
    peers = " ".join(f"{us[x]:9.1f}" if x in us else "        -" for x in ("sdpa", "plain"))
    paged = " ".join(f"{page}: {us[f'page {page}'] / ours:.3f}" for page in pages)
    print(f"{case.b} x {case.n}, {case.h} heads, {case.nq} rows: {ours:8.1f} {peers} {bytes_us:8.1f} {product_us:8.1f}  "
          f"{bytes_us / ours:5.2f} {product_us / ours:5.2f}  {names['ours'].split('.')[1]:22s} {paged}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libflashgen.so.0")
    parser.add_argument("--cases", default="64x8192,16x8192,1x8192,128x1024", help="sequences x keys, by commas")
    parser.add_argument("--heads", default="128,16")
    parser.add_argument("--rows", default="1,2,3,4")
    parser.add_argument("--pages", default="64")
    parser.add_argument("words", nargs="*", help="more of the spec: family=wgmma stages=2 block_q=64")
    a = parser.parse_args()
    c_api.need_gpu(torch)
    torch.manual_seed(1)
    words = dict(x.split("=", 1) for x in a.words)
    with torch.cuda.stream(torch.cuda.Stream()):
        fg, copy, product = Flashgen(a.library), copy_rate(), product_rate()
        print(f"{torch.cuda.get_device_name()}, copies {copy / 1e6:.2f} TB/s, matmul {product / 1e6:.0f} TFLOP/s")
        print("case: ours, SDPA, plain products, the copy's time, the products' time, us; copy / ours, products / ours; plan; paged / ours")
        for heads in a.heads.split(","):
            for one in a.cases.split(","):
                b, n = (int(x) for x in one.split("x"))
                for nq in a.rows.split(","):
                    measure(fg, Latent(b, n, int(heads), int(nq)), words, [int(x) for x in a.pages.split(",") if x], copy, product)
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

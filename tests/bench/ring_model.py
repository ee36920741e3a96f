#!/usr/bin/env python3
"""ring_model.py - context parallelism on paper: where messages take longer than the computing that they hide behind.

    ring_model.py [--heads 64] [--head-dim 128] [--tflops 600]

Causal attention of one sequence in zigzag order, forward, bf16. Of c tokens a rank, h heads of d columns and hk key heads:

    ring      a step computes half of c x c pairs, 2 c^2 h d flops, while 4 c hk d bytes come: it hides them from
              c = 2 (flops / link) hk / h on, whatever the number of GPUs
    gather    4 (n - 1) c hk d bytes come before anything is computed; all keys are in memory
    alltoall  4 (n - 1) / n c (h + hk) d bytes go and come, before and after

Backward has 2.5 times the flops, at a rate of 0.8, and moves keys and float32 gradients, 3 times the bytes: c is 0.96
times forward's."""
import argparse

LINKS = {"NVLink": 450e9, "InfiniBand": 50e9}  # bytes a second and GPU, one direction
GPUS = (8, 64, 256, 1024)
BACKWARD = 3 / 2.5 * 0.8


def least_tokens(flops, link, group):
    """Of a rank, from which on a ring's messages take no longer than its computing."""
    return 2 * flops / link / group


def seconds(flops, link, n, c, h, hk, d):
    """Of all computing of a rank, and of the messages of ring, gather and alltoall."""
    computing = 2 * n * c * c * h * d / flops
    ring = (n - 1) * 4 * c * hk * d / link
    return computing, ring, ring, 4 * (n - 1) / n * c * (h + hk) * d / link


def tables(heads, d, flops):
    yield f"Least tokens a GPU from which on a ring hides its messages, forward (backward: {BACKWARD:.2f} times as many):"
    yield ""
    yield "| link | " + " | ".join(f"h / hk = {group}" for group in (1, 4, 8, 16)) + " |"
    yield "| --- |" + " --- |" * 4
    for name, link in LINKS.items():
        yield f"| {name} | " + " | ".join(f"{least_tokens(flops, link, group):.0f}" for group in (1, 4, 8, 16)) + " |"
    yield ""
    yield (f"Milliseconds forward at 8192 tokens a GPU, {heads} heads of {d}, 8 query heads a key head; NVLink up to 8 GPUs, "
           "else InfiniBand:")
    yield ""
    yield ("| GPUs | tokens | computing | ring's messages, hidden | gather's, not hidden | alltoall's, not hidden | "
           "K and V in memory: ring, gather |")
    yield "| --- |" + " --- |" * 6
    for n in GPUS:
        link, c, hk = LINKS["NVLink" if n <= 8 else "InfiniBand"], 8192, heads // 8
        times = [1e3 * x for x in seconds(flops, link, n, c, heads, hk, d)]
        alltoall = f"{times[3]:.1f}" if hk % n == 0 else "-"
        own = 4 * c * hk * d / 2**20
        yield (f"| {n} | {n * c} | {times[0]:.1f} | {times[1]:.1f} | {times[2]:.1f} | {alltoall} | {3 * own:.0f} MiB, "
               f"{(n + 1) * own:.0f} MiB |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--tflops", type=float, default=600)
    options = parser.parse_args()
    print("\n".join(tables(options.heads, options.head_dim, options.tflops * 1e12)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""context_parallel.py - a sequence over several GPUs beside the same one on one GPU: T1 / (n Tn), forward and both passes.

    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python torchrun --nproc-per-node 2 tests/bench/context_parallel.py
        [--tokens 65536] [--heads 16] [--kv-heads 16] [--dim 128] [--margins 0,8] [--methods ring,gather,alltoall] [--json FILE]

bf16, causal, zigzag, random normal inputs. Each rank computes the whole sequence alone, then its part; the slowest rank's
time counts. In turn, three times round: 3 calls to warm up, 10 queued, the median round by events. Results of 4096 tokens
are compared first: forward and gradients may be 2 % from one GPU's. Bars, of two H100: 0.92 in both columns, of ring.

Needs PyTorch with GPUs, one for each rank. NCCL_CGA_CLUSTER_SIZE=0 or 1 and a margin let messages run beside kernels."""
import argparse
import json
import os
import statistics

import torch
import torch.distributed as dist

import flashgen

CALLS, ROUNDS = 10, 3


def some(tokens, heads, kv_heads, dim):
    """q, k, v and dout, the same on all ranks."""
    generator = torch.Generator("cuda").manual_seed(0)
    return [torch.randn(1, tokens, h, dim, generator=generator, device="cuda", dtype=torch.bfloat16)
            for h in (heads, kv_heads, kv_heads, heads)]


def forward(function, q, k, v, dout):
    with torch.no_grad():
        return [function(q, k, v)]


def both(function, q, k, v, dout):
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = function(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, dout)]


def seconds(run):
    """Of a call, on this rank, while all ranks do the same."""
    for _ in range(3):
        run()
    dist.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
    begin.record()
    for _ in range(CALLS):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / CALLS


def slowest(x):
    x = torch.tensor(x, device="cuda", dtype=torch.float64)
    dist.all_reduce(x, dist.ReduceOp.MAX)
    return x.item()


def check(options, method, margin):
    """A short sequence, beside one GPU."""
    whole = some(4096, options.heads, options.kv_heads, options.dim)
    right = both(flashgen.attention, *whole)
    found = both(lambda q, k, v: flashgen.context_parallel(q, k, v, mask="causal", method=method, sm_margin=margin),
                 *(flashgen.shard(x.detach()) for x in whole))
    for name, x, y in zip(("o", "dq", "dk", "dv"), found, right):
        distance = (flashgen.unshard(x).float() - y.float()).norm() / y.float().norm()
        if not distance.item() < 0.02:
            raise SystemExit(f"{method}: {name} is {distance.item():.3g} from one GPU's")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    for name, number in (("tokens", 65536), ("heads", 16), ("kv-heads", 16), ("dim", 128)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--margins", default="0,8")
    parser.add_argument("--methods", default="ring,gather,alltoall")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl")
    n, is_first = dist.get_world_size(), dist.get_rank() == 0
    contestants = [(method, int(margin)) for method in options.methods.split(",")
                   for margin in (options.margins.split(",") if method == "ring" else "0")]
    for method, margin in contestants:
        check(options, method, margin)
    whole = some(options.tokens, options.heads, options.kv_heads, options.dim)
    own = [flashgen.shard(x) for x in whole]
    if is_first:
        print("| method | margin | forward ms | T1 / (n Tn) | forward + backward ms | T1 / (n Tn) |\n| --- " + "| --- " * 5 + "|")
    rows = []
    for method, margin in contestants:
        def parallel(q, k, v):
            return flashgen.context_parallel(q, k, v, mask="causal", method=method, sm_margin=margin)
        row = {"method": method, "margin": margin, "gpus": n, "tokens": options.tokens, "card": torch.cuda.get_device_name()}
        for name, passes in (("forward", forward), ("both", both)):
            rounds = [[slowest(seconds(lambda: passes(*contestant))) for contestant in ((flashgen.attention, *whole),
                                                                                        (parallel, *own))]
                      for _ in range(ROUNDS)]
            one, many = (statistics.median(times) for times in zip(*rounds))
            row.update({name + "_seconds": many, name + "_one_seconds": one, name: one / (n * many)})
        rows.append(row)
        if is_first:
            print(f"| {method} | {margin} | {1e3 * row['forward_seconds']:.2f} | {row['forward']:.3f} | "
                  f"{1e3 * row['both_seconds']:.2f} | {row['both']:.3f} |", flush=True)
    if is_first and options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

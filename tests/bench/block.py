#!/usr/bin/env python3
"""block.py - a whole transformer block beside PyTorch's, eager and compiled, on one GPU.

    tests/bench/block.py ./block [--widths 512 1024] [--batch 4] [--length 4096]

PROGRAM is tests/consumer/block.c, built as the page beside it says, and so are the shapes of its tensors. bfloat16, heads of 64,
causal; PyTorch's attention is scaled_dot_product_attention, its backend PyTorch's choice. Milliseconds of a forward that keeps what
backward needs, and of one with its backward, of all inputs and weights. Contestants in turn, twice round: 5 runs to warm up, 20
queued without a host sync, the median by events; the mean of both rounds. What the program computes is compared with eager's
first.

ours          the launches one by one
ours, graph   the same as one CUDA graph
eager, and compiled by torch.compile in the modes of --modes; reduce-overhead is with CUDA graphs

Needs PyTorch with a GPU; flashgen's libraries are found as the program finds them."""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import c_api

torch = c_api.pytorch()

HEAD, RUNS, MOST = 64, 20, 0.05  # MOST: where roundings turn a relu over, results of bf16 differ by 0.03
EXTENTS = {  # in units of the width
    "w_qkv": (3, 1), "w_o": (1, 1), "b_o": (1,), "gamma1": (1,), "beta1": (1,),
    "w_1": (4, 1), "b_1": (4,), "w_2": (1, 4), "b_2": (1,), "gamma2": (1,), "beta2": (1,)}


def forward(act, x, w_qkv, w_o, b_o, gamma1, beta1, w_1, b_1, w_2, b_2, gamma2, beta2):
    """x [b, n, width]."""
    f = torch.nn.functional
    q, k, v = (part.unflatten(2, (-1, HEAD)).transpose(1, 2) for part in f.linear(x, w_qkv).chunk(3, 2))
    o = f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    a = f.layer_norm(f.linear(o, w_o, b_o) + x, gamma1.shape, gamma1, beta1)
    h = f.linear(a, w_1, b_1)
    u = f.relu(h) if act == "relu" else f.gelu(h, approximate="tanh")
    return f.layer_norm(f.linear(u, w_2, b_2) + a, gamma2.shape, gamma2, beta2)


def make_inputs(batch, length, width):
    """x, then the weights in the order of EXTENTS; and dy."""
    def normal(*extents):
        return torch.randn(extents, dtype=torch.bfloat16, device="cuda")

    made = {"x": normal(batch, length, width)}
    for name, extents in EXTENTS.items():
        made[name] = normal(*(e * width for e in extents))
        if name.startswith("w"):
            made[name] *= (extents[1] * width) ** -0.5
        elif name.startswith("gamma"):
            made[name] = 1 + 0.2 * made[name]
    for t in made.values():
        t.requires_grad_()
    return made, normal(batch, length, width)


def median_ms(run):
    torch.cuda.synchronize()
    time.sleep(0.1)
    for _ in range(5):
        run()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(RUNS + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:]))


class Theirs:
    """PyTorch's block; mode: of torch.compile, or None."""

    def __init__(self, act, inputs, dy, mode):
        self.act, self.leaves, self.dy, self.is_compiled = act, list(inputs.values()), dy, mode is not None
        self.block = torch.compile(forward, mode=mode, fullgraph=True) if self.is_compiled else forward

    def forward(self):
        if self.is_compiled:
            torch.compiler.cudagraph_mark_step_begin()  # what the last run made may be written over
        return self.block(self.act, *self.leaves)

    def step(self):
        y = self.forward()
        return y, torch.autograd.grad(y, self.leaves, self.dy)

    def times(self):
        return {"": (median_ms(self.forward), median_ms(self.step))}


class Ours:
    """The program, which reads and writes files of a directory."""

    def __init__(self, program, directory, act, inputs, dy):
        batch, length, width = dy.shape
        self.directory, self.inputs = pathlib.Path(directory), inputs
        self.command = [program, directory, "cuda:0", str(width), str(batch), str(length), act, "bf16"]
        for name, t in {**inputs, "dy": dy}.items():
            t.detach().contiguous().view(torch.int16).cpu().numpy().tofile(self.directory / f"{name}.bin")

    def run(self, *words):
        done = subprocess.run([*self.command, *words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        return done.stdout

    def result(self, name, like):
        data = bytearray((self.directory / f"{name}.bin").read_bytes())
        return torch.frombuffer(data, dtype=torch.bfloat16).reshape(like.shape).to(like.device)

    def times(self):
        said = self.run("graph", str(RUNS))
        each = re.search(r"forward (\S+) ms, with backward (\S+) ms", said)
        graph = re.search(r"as a graph (\S+) ms", said)
        return {"": (float(each[1]), float(each[2])), ", graph": (None, float(graph[1]))}


def compare(ours, theirs):
    """That results and gradients are eager's, but for roundings."""
    ours.run()
    y, gradients = theirs.step()
    for name, expected in {"y": y, **{"d" + name: d for name, d in zip(ours.inputs, gradients)}}.items():
        found = ours.result(name, expected)
        apart = ((found.float() - expected.float()).norm() / expected.float().norm()).item()
        if not apart < MOST:
            sys.exit(f"{name}: {apart:.3f} apart from PyTorch's")


def contest(program, act, batch, length, width, modes):
    """Milliseconds of each contestant: forward, or None where it has no forward of its own, and with backward."""
    inputs, dy = make_inputs(batch, length, width)
    with tempfile.TemporaryDirectory() as directory:
        ours, eager = Ours(program, directory, act, inputs, dy), Theirs(act, inputs, dy, None)
        compare(ours, eager)
        contestants = {"ours": ours, "eager": eager, **{mode: Theirs(act, inputs, dy, mode) for mode in modes}}
        rounds = {}
        for _ in range(2):
            for name, contestant in contestants.items():
                for which, times in contestant.times().items():
                    rounds.setdefault(name + which, []).append(times)
    return {name: [statistics.mean(t) if None not in t else None for t in zip(*both)] for name, both in rounds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tests/consumer/block.c, built")
    parser.add_argument("--widths", type=int, nargs="*", default=[512, 1024])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--epilogues", nargs="*", default=["relu", "gelu"])
    parser.add_argument("--modes", nargs="*", default=["default", "reduce-overhead"])
    options = parser.parse_args()
    c_api.need_gpu(torch)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, bf16, b {options.batch}, n {options.length}, ms")
    for width in options.widths:
        for act in options.epilogues:
            torch.compiler.reset()
            times = contest(options.program, act, options.batch, options.length, width, options.modes)
            print(f"width {width} {act}")
            for name, (once, both) in times.items():
                print(f"  {name:16} forward {'   -   ' if once is None else f'{once:7.3f}'}   with backward {both:7.3f}", flush=True)


if __name__ == "__main__":
    main()

"""launches.py - what rows.py and linear.py share: times of `flashgen bench`, times of PyTorch's functions taken as that command
takes its own, what a copy reaches on the card, and a table that grows as rows come.

Both take as many sets of tensors in turn as exceed L2 twice, so that a launch finds nothing there: a pause of 0.1 s, 5 launches to warm
up, 20 queued, the median of their times by events. PyTorch's are queued behind a kernel that waits, so that none waits for its caller."""

import argparse
import json
import statistics
import subprocess
import sys
import time

import c_api

torch = c_api.pytorch()
WARM_UPS, LAUNCHES = 5, 20
CACHES = 128 << 20  # bytes, twice the L2 cache of an H200
WAIT = 40_000_000  # clocks, 20 ms: longer than 20 calls of a function of PyTorch take


def some_of(known):
    """The type of an option that is a list by commas; known: what it may have, None: anything."""
    def read(text):
        for one in text.split(","):
            if known and one not in known:
                raise argparse.ArgumentTypeError(f'there is no "{one}"; expected {", ".join(known)}')
        return text.split(",")
    return read


def numbers(text):
    return [int(x) for x in text.split(",")]


def options(text):
    """A parser with what both scripts take; text: the script's own."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/flashgen")
    parser.add_argument("--device", default="cuda:0", help="host: ours alone, by a model whose times mean little")
    parser.add_argument("--plans", default="all", help="first, N or all: of which the fastest counts")
    parser.add_argument("--passes", default=["forward", "backward"], type=some_of(["forward", "backward"]))
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("words", nargs="*", help="more of each spec: family=wgmma")
    return parser


def has_peers(choice):
    """Is PyTorch timed too? On the host device ours is timed alone."""
    if choice.device == "host":
        return False
    c_api.need_gpu(torch)
    torch.cuda.set_device(torch.device(choice.device))
    return True


def ours(choice, words, without=()):
    """The fastest plan's row: its name, ms, tflops and bytes. without: tensors that the launch has not."""
    command = [choice.program, "bench", "--json", "--device", choice.device, "--plans", choice.plans, *words, *choice.words]
    command += ["--without", ",".join(without)] if without else []
    run = subprocess.run(command, capture_output=True, text=True)
    rows = json.loads(run.stdout)["rows"] if run.returncode in (0, 1) and run.stdout else []
    if not rows:  # plans that a compiler refuses are told by 1; the others were timed
        sys.exit(f"{' '.join(command)}: exit {run.returncode}: {run.stderr.strip()}")
    best = min(rows, key=lambda row: row["ms"])
    return {**best, "bytes": best["ms"] * best["tb_per_s"] * 1e9}


def sets_of(size):
    """How many sets of tensors of that many bytes are taken in turn, as `flashgen bench` does."""
    return min(WARM_UPS + LAUNCHES, int(CACHES / size) + 1)


def timed(function, sets):
    """The median ms of function(i), i being the number of a set. Results are held, so that each has memory of its own."""
    held = [None] * sets
    torch.cuda.synchronize()
    time.sleep(0.1)
    for i in range(WARM_UPS):
        held[i % sets] = function(i % sets)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(LAUNCHES + 1)]
    torch.cuda._sleep(WAIT)
    for i, mark in enumerate(marks[:-1]):
        mark.record()
        held[(WARM_UPS + i) % sets] = function((WARM_UPS + i) % sets)
    marks[-1].record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


def copy_rate(size=2 << 30):
    """TB/s, bytes read and written, of a copy that reads and writes `size` bytes in all, by a kernel or as PyTorch copies, whichever is
    faster. Without a size 1 GB is copied."""
    count, sets = max(1, int(size) // 8), sets_of(size)
    pairs = [(torch.randn(count, device="cuda"), torch.empty(count, device="cuda")) for _ in range(sets)]
    copies = lambda i: torch.neg(pairs[i][0], out=pairs[i][1]), lambda i: pairs[i][1].copy_(pairs[i][0])
    return 8 * count / min(timed(one, sets) for one in copies) * 1e-9


def compiled(function):
    """By torch.compile, for one shape at a time; backward may be run again and again."""
    torch.compiler.reset()
    torch._functorch.config.donated_buffer = False
    return torch.compile(function, dynamic=False)


def peer(function, direction, make, sets):
    """A call gives ms of a function of PyTorch. make(): its arguments, a set. Backward makes the gradients of all arguments that are
    floats."""
    arguments = [make() for _ in range(sets)]
    if direction == "forward":
        return torch.no_grad()(lambda: timed(lambda i: function(*arguments[i]), sets))
    leaves = [[x.requires_grad_() for x in one if x.is_floating_point()] for one in arguments]
    results = [function(*one) for one in arguments]
    results = [one if isinstance(one, tuple) else (one,) for one in results]
    begun = [[torch.randn_like(x) for x in one] for one in results]
    return lambda: timed(lambda i: torch.autograd.grad(results[i], leaves[i], begun[i], retain_graph=True), sets)


def beside(choice, peers, words, without=()):
    """Ours as ours() has it, with the ratios of peers to it, by name: the lesser of their times before it and after it."""
    before = {name: run() for name, run in peers.items()}
    own = ours(choice, words, without)
    return {**own, "ratio": {name: min(ms, peers[name]()) / own["ms"] for name, ms in before.items()}}


def ratio_text(row, name):
    return f"{row['ratio'][name]:.2f}" if name in row["ratio"] else None


def empty():
    """Gives memory back that nothing uses, before a program or a larger case takes it."""
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class Table:
    """A table of Markdown whose rows are printed as they come, and kept for --json."""

    def __init__(self, columns):
        self.rows = []
        print("| " + " | ".join(columns) + " |")
        print("| --- " * len(columns) + "|", flush=True)

    def add(self, cells, row):
        """cells: texts, None where there is nothing; row: what --json has of them."""
        self.rows.append(row)
        print("| " + " | ".join(x if x is not None else "-" for x in cells) + " |", flush=True)

    def keep(self, path, about):
        if path:
            with open(path, "w") as file:
                json.dump({**about, "rows": self.rows}, file, indent=1)


def about(choice):
    """What the numbers are of, for --json and the line above the table."""
    if choice.device == "host":
        return {"device": "host"}
    return {"device": torch.cuda.get_device_name(), "pytorch": torch.__version__, "cuda": torch.version.cuda}

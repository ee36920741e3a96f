#!/usr/bin/env python3
"""templates.py - kernels of several directories of templates beside the built-in ones, on one GPU: what a change is worth.

Inputs, shapes and clocks of peers.py. A cell is written PASS:D:MASK:N, and :FIELD=VALUE for more words of the spec. Each is
timed with all templates in turn, to and fro, in one process: two processes, or two GPUs, differ by more than most changes.
Milliseconds, the median of the rounds, and their ratio to the built-in templates'.

    cp -r templates mine    # and change them
    templates.py --library build/libflashgen.so --cells 'fwd:64:window(1023, 0):8192,fwd:128:causal:512' mine

Needs PyTorch with a GPU, and flashgen's shared libraries."""

import argparse
import re
import statistics

import flashgen
from peers import Cell, Flashgen, compile_all, dtype_of, measure

torch = flashgen.pytorch()

USUAL = "fwd:64:full:8192,fwd:64:causal:512,fwd:64:causal:8192,fwd:64:window(1023, 0):8192,fwd:128:causal:512,fwd:128:full:8192"


def read_cell(text, choice):
    """What launches a cell, and the words of its spec: "fwd:64:causal:512:block_q=192"."""
    which, d, mask, n, *fields = text.split(":")
    cell = Cell(which == "bwd", d, False, int(n), dtype_of(choice.dtype), choice.heads, choice.family)
    return cell, {"mask": mask, **dict(field.split("=", 1) for field in fields)}


def time_cell(text, contexts, choice):
    """Milliseconds by the templates' name; none where they have no kernel for it."""
    cell, words = read_cell(text, choice)
    launchers = {}
    for name, fg in contexts.items():
        (why,) = compile_all(fg, [(cell.words(None, words), cell.shape)])
        if why:
            print(f"  {text}, {name}: {why}", flush=True)
            continue
        launchers[name] = cell.flashgen(fg, None, words)
        launchers[name]()
    times = {name: [] for name in launchers}
    for turn in range(choice.rounds):
        for name in list(launchers)[:: 1 if turn % 2 == 0 else -1]:
            times[name].append(measure(launchers[name]))
    return {name: statistics.median(ms) for name, ms in times.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("directories", nargs="+", help="of templates")
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--cells", default=USUAL, help=f"commas inside ( ) make no list; {USUAL}")
    options.add_argument("--heads", help="H, or H/HK; instead of 2048 / d")
    options.add_argument("--family", default="wgmma", help="of ours: simt, mma, wgmma")
    options.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    options.add_argument("--rounds", type=int, default=5)
    choice = options.parse_args()
    flashgen.need_gpu(torch)
    contexts = {"built-in": Flashgen(choice.library)}
    contexts.update({x: Flashgen(choice.library, templates=x) for x in choice.directories})
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {choice.dtype}, ms", flush=True)
    for text in re.split(r",(?![^(]*\))", choice.cells):
        ms = time_cell(text, contexts, choice)
        line = "  ".join(f"{name} {x:.4f} ({x / ms.get('built-in', x):.3f})" for name, x in ms.items())
        print(f"{text}: {line}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

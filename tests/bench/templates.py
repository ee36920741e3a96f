#!/usr/bin/env python3
"""templates.py - changed kernels beside the usual ones, on one GPU: what a change is worth.

A change is switches to be turned, as FLASHGEN_SWITCH has them, or a directory of templates in place of the built-in ones.
Inputs, shapes and clocks of peers.py. A cell is written PASS:D:MASK:N, and :FIELD=VALUE for more words of the spec. Each is
timed with all changes in turn, to and fro, in one process: two processes, or two GPUs, differ by more than most changes.
Milliseconds, the median of the rounds, and their ratio to the usual kernel's. A change that is none for a cell is told and not
timed; told is also where another plan is chosen with it, which the words of the cell can pin.

    templates.py --library build/libflashgen.so --cells 'bwd:64:causal:512' --family mma starts_early=0
    cp -r templates mine    # and change them
    templates.py --library build/libflashgen.so --cells 'fwd:64:window(1023, 0):8192,fwd:128:causal:512' mine

Needs PyTorch with a GPU, and flashgen's shared libraries."""

import argparse
import re
import statistics

import c_api
from peers import Cell, Flashgen, compile_all, dtype_of, measure

torch = c_api.pytorch()

CELLS = "fwd:64:full:8192,fwd:64:causal:512,fwd:64:causal:8192,fwd:64:window(1023, 0):8192,fwd:128:causal:512,fwd:128:full:8192"


def read_cell(text, choice):
    """What launches a cell, and the words of its spec: "fwd:64:causal:512:block_q=192"."""
    which, d, mask, n, *fields = text.split(":")
    cell = Cell(which == "bwd", d, False, int(n), dtype_of(choice.dtype), choice.heads, choice.family)
    return cell, {"mask": mask, **dict(field.split("=", 1) for field in fields)}


class Contestant:
    """The usual kernels, or changed ones."""

    def __init__(self, library, change=None):
        self.name = change or "usual"
        self.switches = change if change and re.fullmatch(r"\w+=\w+(,\w+=\w+)*", change) else ""
        with c_api.under_switches(self.switches):
            self.fg = Flashgen(library, templates=None if self.switches else change)

    def enter(self, cell, words):
        """A function that launches the cell's kernel, its name and its text. RuntimeError: there is none."""
        with c_api.under_switches(self.switches):
            (why,) = compile_all(self.fg, [(cell.words(None, words), cell.shape)])
            if why:
                raise RuntimeError(why)
            kernel = self.fg.name(self.fg.select(cell.words(None, words), cell.shape))
            text = self.fg.text(cell.words(plan_of(kernel), words))
            return cell.flashgen(self.fg, None, words), kernel, text


def plan_of(kernel):
    """ "mma-q128-k64-s2-w4" of a kernel's name."""
    return kernel.rsplit(".", 2)[1]


def time_cell(text, contestants, choice):
    """Milliseconds by the contestant's name; none where it has no kernel of its own for the cell."""
    cell, words = read_cell(text, choice)
    launchers, plans, texts = {}, [], []

    def tell(one, what):
        print(f"  {text}, {one.name}: {what}", flush=True)

    for one in contestants:
        try:
            launch, kernel, made = one.enter(cell, words)
        except RuntimeError as why:
            tell(one, why)
            continue
        if texts and made == texts[0]:
            tell(one, "it changes nothing")
            continue
        if plans and plan_of(kernel) != plans[0]:
            tell(one, f"the plan is {plan_of(kernel)}, not {plans[0]}")
        plans.append(plan_of(kernel))
        texts.append(made)
        launchers[one.name] = launch
        launch()
    times = {name: [] for name in launchers}
    for turn in range(choice.rounds):
        for name in list(launchers)[:: 1 if turn % 2 == 0 else -1]:
            times[name].append(measure(launchers[name]))
    return {name: statistics.median(ms) for name, ms in times.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("changes", nargs="+", help="NAME=0, NAME=1, or several with commas; or a directory of templates")
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--cells", default=CELLS, help=f"commas inside ( ) make no list; {CELLS}")
    options.add_argument("--heads", help="H, or H/HK; instead of 2048 / d")
    options.add_argument("--family", default="wgmma", help="of ours: simt, mma, wgmma")
    options.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    options.add_argument("--rounds", type=int, default=5)
    choice = options.parse_args()
    c_api.need_gpu(torch)
    contestants = [Contestant(choice.library, change) for change in (None, *choice.changes)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {choice.dtype}, ms", flush=True)
    for text in re.split(r",(?![^(]*\))", choice.cells):
        ms = time_cell(text, contestants, choice)
        line = "  ".join(f"{name} {x:.4f} ({x / ms.get('usual', x):.3f})" for name, x in ms.items())
        print(f"{text}: {line}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""groups.py - the cells by which flashgen's speed on a Hopper GPU is judged, a group at a time.

    groups.py --library build/libflashgen.so --passes bwd grid
    groups.py --list

Inputs and clocks of peers.py. In the groups of cells ours and cuDNN run in turn, twice round; beside ours / cuDNN stands
FlashAttention-3 / cuDNN of the card's table (fa3_h100.json, fa3_h200.json), and what follows: ours / FlashAttention-3.
Other groups have another kernel of ours to compare with:

    hooks          each of hooks.py's beside the same kernels without it, and FlexAttention
    deterministic  the backward with deterministic = true beside the plain one
    f16            beside bf16

Without a group all are run. Each takes a minute or two. Needs PyTorch with a GPU, and flashgen's shared libraries;
--list needs neither."""

import argparse
import itertools
import json
import sys
import typing

import fa3
import c_api
import hooks
from peers import ALSO, Cell, Flashgen, compile_all, contest, dtype_of, measure, peers_of

torch = c_api.pytorch()


class Place(typing.NamedTuple):
    """Where a kernel is timed: d may be "192/128", heads "32/8"; None: the usual ones of peers.py."""

    d: str
    mask: str
    n: int
    heads: typing.Optional[str] = None
    b: typing.Optional[int] = None


def places(dims, lengths, heads=None, b=None, masks=("full", "causal")):
    return [Place(d, mask, n, heads, b) for d, mask, n in itertools.product(dims.split(), masks, lengths)]


LENGTHS = 512, 1024, 2048, 4096, 8192, 16384

# Beside cuDNN and FlashAttention-3.
CELLS = {
    "grid": places("64 128 256", LENGTHS),
    "dims": places("40 72 80 112 160", [4096], "16"),
    "wide": places("96 192", [4096, 8192]),
    "unequal": places("192/128", [8192], "16", masks=["causal"]),
    "grouped": places("128", [4096], "32/8") + places("128", [4096], "64/8"),
    "long": places("128", [32768], "8", 1),
    "odd": places("64 128", [1000, 4000]),
    "small": places("128", [512, 1024], "32", 1)
    + places("128", [2048], "16", 1)
    + places("64", [384], "12", 2)
    + places("64", [197], "12", 8)
    + places("64", [128], "12", 32),
}
# Beside ours without it: rows of peers.py's ALSO.
VARIANTS = {
    "deterministic": places("64 128 256", LENGTHS[1:]),
    "f16": places("64 128 256", [1024, 4096, 16384]),
}
ONLY_BACKWARD = {"deterministic"}
HOOKS = [(name, d, 4096 if name == "bias" else 8192) for name in hooks.HOOKS for d in ("64", "128")]
GROUPS = [*CELLS, *VARIANTS, "hooks"]


def passes_of(group, choice):
    return [x for x in choice.passes if x == "bwd" or group not in ONLY_BACKWARD]


def cell_at(which, place, choice, dtype="bf16"):
    mask = place.mask == "causal"
    return Cell(which == "bwd", place.d, mask, place.n, dtype_of(dtype), place.heads, choice.family, place.b)


def microseconds(cell, speed):
    return cell.flops() / speed / 1e6


def time_cell(fg, which, place, choice):
    """TFLOP/s of ours and of cuDNN, and ours in us; cuDNN is left out where it refuses the cell."""
    cell = cell_at(which, place, choice)
    launchers = peers_of(cell, ["cudnn"])
    (why,) = compile_all(fg, [(cell.words(), cell.shape)])
    if why:
        raise RuntimeError(why)
    launchers["ours"] = cell.flashgen(fg)
    speed = contest(cell, launchers, measure)
    return speed, {who: microseconds(cell, x) for who, x in speed.items()}


def cell_line(name, speed, us, fa3_over_cudnn):
    """The text of a cell, and its ratios by peer."""
    text = "  ".join(f"{who} {speed[who]:.0f} ({us[who]:.1f} us)" for who in ("ours", "cudnn") if who in speed)
    ratio = {}
    if "cudnn" in speed:
        ratio["cudnn"] = speed["ours"] / speed["cudnn"]
        text += f"  ours/cudnn {ratio['cudnn']:.3f}"
    if "cudnn" in speed and fa3_over_cudnn:
        ratio["fa3"] = ratio["cudnn"] / fa3_over_cudnn
        text += f"  fa3/cudnn {fa3_over_cudnn:.3f}  ours/fa3 {ratio['fa3']:.3f}"
    return f"{name:28}: {text}", ratio


def each(items, one):
    """The rows of all items. One that fails is told, and its row says why."""
    rows = []
    for item in items:
        try:
            rows.append(one(item))
        except RuntimeError as why:
            rows.append({"failed": str(why).splitlines()[0], "item": list(item)})
            print(f"  {' '.join(map(str, item))}: {rows[-1]['failed']}", file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    return rows


def run_cells(fg, group, which, choice, table):
    def one(place):
        name = fa3.cell_name(which, *place)
        speed, us = time_cell(fg, which, place, choice)
        text, ratio = cell_line(name, speed, us, table.get(name))
        print(text, flush=True)
        return {"cell": name, "n": place.n, "tflops": speed, "ratio": ratio}

    rows = each(CELLS[group], one)
    for peer in ("cudnn", "fa3"):
        ratios = [(row["ratio"][peer], row["n"]) for row in rows if peer in row.get("ratio", {})]
        if ratios:
            print(fa3.summary(f"{group} {which}, ours/{peer}", ratios), flush=True)
    return rows


def run_variant(fg, group, which, choice):
    """Time with it over time without."""
    words, dtype = ALSO[group]

    def one(place):
        cell = cell_at(which, place, choice)
        other = cell_at(which, place, choice, dtype) if dtype else cell
        launchers = {"plain": cell.flashgen(fg), group: other.flashgen(fg, None, words)}
        speed = contest(cell, launchers, measure)
        name, times = fa3.cell_name(which, *place), speed["plain"] / speed[group]
        text = "  ".join(f"{who} {x:.0f} ({microseconds(cell, x):.1f} us)" for who, x in speed.items())
        print(f"{name:28}: {text}  {times:.3f} x the time", flush=True)
        return {"cell": name, "tflops": speed, "times": times}

    rows = each(VARIANTS[group], one)
    times = [row["times"] for row in rows if "times" in row]
    if times:
        mean = fa3.geometric_mean(times)
        print(f"{group} {which}: geometric mean {mean:.3f} x the time, most {max(times):.3f}", flush=True)
    return rows


def run_hooks(fg, which, choice):
    """Speed with the hook over speed without, by visible pair of the causal kernel for a window."""
    passes = ["fwd", "bwd"] if which == "bwd" else ["fwd"]
    settings = argparse.Namespace(passes=passes, dtype="bf16", heads=None, family=choice.family)
    settings.deterministic, settings.no_flex = False, choice.no_flex

    def one(item):
        name, d, n = item
        row = hooks.run_hook(fg, name, n, d, settings)
        share = 1 / row.get("of_causal", row["cost"])[which]
        of = "causal's, by visible pair" if "of_causal" in row else "plain's"
        print(f"{hooks.line(row)}; {which} at {share:.3f} of {of}", flush=True)
        return {**row, "share_of_speed": share}

    return each(HOOKS, one)


def run_group(fg, group, which, choice, table):
    if group == "hooks":
        return run_hooks(fg, which, choice)
    if group in VARIANTS:
        return run_variant(fg, group, which, choice)
    return run_cells(fg, group, which, choice, table)


def list_groups(choice, table):
    for group in choice.groups:
        for which in passes_of(group, choice):
            if group == "hooks":
                print(f"{group} {which}: " + ", ".join(f"{name} {d} {n}" for name, d, n in HOOKS))
                continue
            print(f"{group} {which}:")
            for place in CELLS.get(group) or VARIANTS[group]:
                name = fa3.cell_name(which, *place)
                known = f"  fa3/cudnn {table[name]:.3f}" if group in CELLS and name in table else ""
                print(f"  {name}{known}")


def check_tables():
    """Every row of the tables is of a cell here: a name that is spelled otherwise would never be found."""
    cells = {fa3.cell_name(which, *x) for group in CELLS.values() for x in group for which in ("fwd", "bwd")}
    for card in fa3.TABLES:
        for name in fa3.over_cudnn(card):
            if name not in cells:
                raise SystemExit(f'{fa3.TABLES[card]}: "{name}" is no cell of a group')


def main():
    split = lambda text: [x for x in text.split(",") if x]
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("groups", nargs="*", metavar="GROUP", help="of " + ", ".join(GROUPS))
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--passes", type=split, default=["fwd", "bwd"], help="fwd, bwd, or fwd,bwd")
    options.add_argument("--family", help="of ours: simt, mma, wgmma")
    options.add_argument("--no-flex", action="store_true", help="hooks beside ours alone")
    options.add_argument("--card", help="whose table counts, instead of this GPU's")
    options.add_argument("--list", action="store_true", help="the cells, and what the card's table has of them")
    options.add_argument("--json", help="a file for the results")
    choice = options.parse_args()
    for text, known in [(x, GROUPS) for x in choice.groups] + [(x, ["fwd", "bwd"]) for x in choice.passes]:
        if text not in known:
            options.error(f'there is no "{text}"; expected {", ".join(known)}')
    choice.groups = choice.groups or GROUPS
    if choice.list:
        check_tables()
        return list_groups(choice, fa3.table_or_warning(choice.card) if choice.card else {})
    c_api.need_gpu(torch)
    card, rows = torch.cuda.get_device_name(), {}
    fg = Flashgen(choice.library)
    print(f"{card}, PyTorch {torch.__version__}, TFLOP/s", flush=True)
    table = fa3.table_or_warning(choice.card or card)
    for group in choice.groups:
        for which in passes_of(group, choice):
            rows[f"{group} {which}"] = run_group(fg, group, which, choice, table)
    if choice.json:
        with open(choice.json, "w") as file:
            json.dump({"device": card, "groups": rows}, file, indent=1)
    return int(any("failed" in row for part in rows.values() for row in part))


if __name__ == "__main__":
    sys.exit(main())

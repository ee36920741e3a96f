"""fa3.py - how FlashAttention-3 compares with cuDNN on a card like this one, for runs in which it is not at hand.

A table has both, timed in turn in one run. Ours over cuDNN here, divided by FlashAttention-3 over cuDNN there, is ours
over FlashAttention-3."""

import json
import math
import os
import statistics

# By the name that the driver gives a card: other H100s have other clocks and memory.
TABLES = {"NVIDIA H100 80GB HBM3": "fa3_h100.json", "NVIDIA H200": "fa3_h200.json"}
TOKENS, WIDTH = 16384, 2048  # all tokens, and heads times head dim, of a cell that names neither
POWER_LENGTH, POWER_SHARE = 8192, 0.95  # from this length on the card's power limits its clock
BOUNDS = 0.98, 1, 1.05


def cell_name(which, d, mask, n, heads=None, b=None):
    """ "bwd 64 full 512"; behind it " b1 h32/8" where batch or heads are not the usual ones. d: 64, or 192/128."""
    usual = TOKENS // n, str(WIDTH // int(str(d).split("/")[0]))
    here = b or usual[0], heads or usual[1]
    return f"{which} {d} {mask} {n}" + ("" if here == usual else " b{} h{}".format(*here))


def over_cudnn(card):
    """FlashAttention-3's speed over cuDNN's, by name of the cell; None: there is no table of the card."""
    if card not in TABLES:
        return None
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), TABLES[card])) as file:
        table = json.load(file)
    found = {cell: fa3 / cudnn for cell, (cudnn, fa3) in table["cells"].items()}
    found.update({cell: cudnn / fa3 for cell, (cudnn, fa3) in table.get("microseconds", {}).items()})
    return {**found, **table.get("ratios", {})}


def table_or_warning(card):
    """The table, or an empty one and a line that says so."""
    table = over_cudnn(card)
    if table is None:
        known = " and ".join(TABLES)
        print(f"there is a table of FlashAttention-3 for {known}, none for {card}: ours / cuDNN alone", flush=True)
    return table or {}


def counted(ratio, n):
    """What a ratio counts as: from 0.95 on as 1 where the card's power decides."""
    return 1.0 if n >= POWER_LENGTH and POWER_SHARE <= ratio < 1 else ratio


def geometric_mean(values):
    return math.exp(statistics.mean(map(math.log, values)))


def summary(title, ratios):
    """One line of many ratios, pairs of a ratio and the length of its cell. Mean and least are of the plain ratios;
    those below a bound are counted as counted() has them."""
    plain = [x for x, _ in ratios]
    below = [f"{sum(counted(x, n) < bound for x, n in ratios)} below {bound:g}" for bound in BOUNDS]
    mean, least = geometric_mean(plain), min(plain)
    return f"{title}: geometric mean {mean:.3f}, least {least:.3f}, of {len(plain)}: {', '.join(below)}"

#!/usr/bin/env python3
"""costs.py - what normalisers, dropout and their like cost: the time of plain softmax over theirs, by `flashgen bench`.

    costs.py --program build/flashgen [--device cuda:0] [--size b=4 nq=4096] [--only dropout=true ...] [--json FILE]

Rows are the words that a spec says besides; columns are head dim and mask. Heads make 2048 columns. All of a column
are timed one after the other, softmax first and last, of which the lesser time counts: "softmax again", the first over
the last, says how steady the machine is."""
import argparse
import json
import subprocess
import sys

BOTH = ["normalizer=none", "normalizer=retention", "normalizer=sigmoid", "normalizer=logsoftmax", "dropout=true", "sink=true"]
FORWARD = ["max_logit=true"]


def times(options, words):
    """The best plan's milliseconds of each spec of one run, in the order of the words."""
    command = [options.program, "bench", "--json", "--device", options.device, *words, *options.size]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    return [row["ms"] for row in json.loads(run.stdout)["rows"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/flashgen")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", nargs="*", default=["b=4", "nq=4096"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--dims", type=int, nargs="*", default=[64, 128])
    parser.add_argument("--json")
    options = parser.parse_args()
    columns = [(d, mask) for d in options.dims for mask in ("full", "causal")]
    table = {}
    for direction in ("forward", "backward"):
        wanted = BOTH + (FORWARD if direction == "forward" else [])
        for d, mask in columns:
            base = [f"head_dim={d}", f"mask={mask}", f"pass={direction}"]
            if not any(word.startswith("h=") for word in options.size):
                base.append(f"h={2048 // d}")
            wanted = [words for words in wanted if not options.only or words in options.only]
            first = times(options, base)[0]
            own = {words: times(options, [*base, *words.split()])[0] for words in wanted}
            last = times(options, base)[0]
            for words in wanted:
                table.setdefault((words, direction), []).append(min(first, last) / own[words])
            table.setdefault(("softmax again", direction), []).append(first / last)
    print("| | " + " | ".join(f"d {d} {mask}" for d, mask in columns) + " |")
    print("| --- " * (len(columns) + 1) + "|")
    for (words, direction), row in table.items():
        print(f"| {words}, {direction} | " + " | ".join(f"{x:.2f}" for x in row) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump([{"words": words, "pass": direction, "ratios": row} for (words, direction), row in table.items()], file)


main()

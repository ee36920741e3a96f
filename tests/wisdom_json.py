#!/usr/bin/env python3
"""wisdom_json.py WISDOM TABLE.json: has a table all that good lines of wisdom say?

TABLE.json is what `wisdom show --all --json` or `tune --json` prints of the file, which has one line
of each thing. Each value is compared with the line's text, read here anew: a shape is an object with
a number for each extent of the text, and no other. Prints how many lines and shapes of each kind
there are; exit 1 with a sentence for the first thing that is wrong.
"""
import collections
import json
import sys

DENSE = ("b", "h", "hk", "nq", "nk")  # numbers without a name, in this order
TEXTS = ("variant", "device", "status", "expression", "reason")


def fail(format, *values):
    sys.exit("wisdom_json: " + format % values)


def read_shape(text):
    """ "3,2,1,1,90,pages=12,page=16,16" or "rows=9,16": the last number is align. """
    *extents, align = text.split(",")
    pairs = [x.split("=") if "=" in x else (DENSE[i], x) for i, x in enumerate(extents)]
    return {name: int(value) for name, value in pairs} | {"align": int(align)}


def read_number(text):
    """None: JSON has no infinity and no NaN."""
    return None if "n" in text else float(text)


def read_line(line):
    fields = dict(field.split("=", 1) for field in line.split("\t")[2:])
    return {key: value if key in TEXTS else read_shape(value) if key == "shape" else read_number(value)
            for key, value in fields.items()}


def thing(m):
    return m["variant"], m["device"], m["generation"], sorted(m["shape"].items())


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = sorted((read_line(x) for x in file.read().split("\n") if x.startswith("w1\t")), key=thing)
    with open(sys.argv[2], encoding="utf-8") as file:
        table = json.load(file)
    if table["schema"] != 2:
        fail("schema %s", table["schema"])
    measured = sorted(table["measured"], key=thing)
    if len(measured) != len(lines):
        fail("%d measurements of %d lines", len(measured), len(lines))
    for m, line in zip(measured, lines):
        if m != line:
            fail("the table has\n%s, the line\n%s", m, line)
        if list(m["shape"]) != list(line["shape"]):
            fail("extents in the order %s, the line has %s", list(m["shape"]), list(line["shape"]))
    kinds = collections.Counter(" ".join(m["shape"]) for m in measured)
    print(len(measured), "measurements;", "; ".join(f"{n} of {kind}" for kind, n in sorted(kinds.items())))


if __name__ == "__main__":
    main()

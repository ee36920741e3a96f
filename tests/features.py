"""features.py - how often the templates of attention ask about a feature.

    features.py SOURCE check           whether the counts are those of tests/features.txt
    features.py SOURCE write           writes them there, unless one has grown

A line counts where it has `if`, `elseif`, `and`, `or` or `not` and a word of FEATURES. Of a .cut file that is Lua: lines
that begin with @, and values $( ). Tables of plans and switches do not count, nor a feature's own modules. For each .cut
file tests/features.txt also has the features that it names at all. A count that falls is written down, so that it cannot
rise again.
"""
import pathlib
import re
import sys

FEATURES = {
    "slices": r"slices", "packed": r"is_packed|has_rest|listed", "second sum": r"beside", "second": r"norm\.second",
    "plain score": r"is_s", "dropout": r"\w*\.drop", "input in tiles": r"tiled", "scaled weights": r"types\.p\.below",
    "descales": r"descale", "max_logit": r"max_logit", "trial": r"trial", "dense": r"is_dense", "pages": r"paged|is_paged|pages",
    "parts of keys": r"parts|has_parts", "order": r"deterministic|is_ordered", "o in float32": r"o_dtype|o_leaves_by_registers"}
OWN = {  # files of which a feature is the subject
    "slices": r"slices\.(cut|lua)|records\.lua|walk\.cut", "packed": r"packed\.lua|list\.cut|cached\.lua", "dropout": r"dropout\.lua",
    "descales": r"descale\.lua", "max_logit": r"max_logit\.(cut|lua)", "pages": r"paged\.lua|pages\.cut", "parts of keys": r"parts\.cut",
    "order": r"_order\.cut", "input in tiles": r"/input\.cut|backward_input\.cut|input_grads\.(cut|lua)"}
TABLES = re.compile(r"_(switches|plans\w*|refused)\.lua$")
ASKS = re.compile(r"\b(if|elseif|and|or|not)\b")


def values(line):
    """What stands in $( ) on the line."""
    found, at = [], line.find("$(")
    while at >= 0:
        depth, end = 1, at + 2
        while depth and end < len(line):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        found.append(line[at + 2:end - 1])
        at = line.find("$(", end)
    return " ; ".join(found)


def lua_lines(path):
    for line in path.read_text().splitlines():
        if path.suffix == ".cut":
            stripped = line.lstrip()
            line = stripped[1:] if stripped.startswith("@") else values(line)
        yield re.sub(r"--.*", "", line)


def counted(root):
    """Of each file the lines that ask about a feature; of .cut files those it names."""
    count, named = {}, {}
    for path in sorted((root / "templates" / "attention").rglob("*")):
        name = str(path.relative_to(root / "templates" / "attention"))
        if path.suffix not in (".cut", ".lua") or TABLES.search(name):
            continue
        words = {feature: re.compile(r"(?<![\w.])(?:[\w.]*\.)?(?:%s)\b" % word) for feature, word in FEATURES.items()
                 if not re.search(OWN.get(feature, "$^"), "/" + name)}
        lines = list(lua_lines(path))
        count[name] = sum(bool(ASKS.search(line)) and any(word.search(line) for word in words.values()) for line in lines)
        if path.suffix == ".cut":
            named[name] = [feature for feature, word in words.items() if any(word.search(line) for line in lines)]
    return count, named


def written(count, named):
    lines = [f"{sum(count.values())} in all"]
    for name in sorted(count, key=lambda name: (-count[name], name)):
        if count[name] or named.get(name):
            lines.append(f"{count[name]} {name}" + (": " + ", ".join(named[name]) if named.get(name) else ""))
    return "\n".join(lines) + "\n"


def main(source, command):
    root = pathlib.Path(source)
    path, (count, named) = root / "tests" / "features.txt", counted(root)
    text = written(count, named)
    if command == "write":
        before = int(path.read_text().split()[0]) if path.exists() else sum(count.values())
        if sum(count.values()) > before:
            sys.exit(f"{sum(count.values())} questions about features: they were {before}")
        path.write_text(text)
        return
    have, want = set(text.splitlines()), set(path.read_text().splitlines())
    for line in sorted(have - want):
        print("now:     ", line)
    for line in sorted(want - have):
        print("expected:", line)
    if have != want:
        sys.exit("tests/features.txt: fewer questions about features are written down by `tests/features.py . write`; more want a module")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("check", "write"):
        sys.exit(__doc__)
    main(*sys.argv[1:])

"""modules.py - the files of gen/ and runtime/ stand above each other: who may include whom, and no circles.

    modules.py SOURCE

Exit code 1 with a line for each rule that is broken:
- gen/ includes no header of runtime/ but the public one and uses nothing of it, and runtime/ neither of the
  command line;
- the command line knows contexts, ops and kernels by the public header, as every program does, and by tools.h:
  it includes no header that says what they hold;
- what an architecture can do is asked of its row in arch.c, not of its name;
- headers do not include each other in a circle;
- files of C do not use each other's functions and variables in a circle, but for those of CIRCLES, each of
  which is one piece of work that several files share.
Files are known by their names, so that folders may move.
"""
import collections
import pathlib
import re
import sys

PUBLIC = "flashgen.h"
OPAQUE = {"context.h", "ops.h", "kernels.h"}  # what the structs hold that the public header only names

# What may be a circle, and why. Files of a circle that is none any more are an error too.
CIRCLES = {
    "the parser of expressions is one; its words, tokens and types are files of it":
        {"formula_parse.c", "formula_names.c", "formula_token.c", "formula_type.c"},
    "the smart constructors of trees fold":
        {"tree.c", "tree_fold.c"},
    "a printer of trees is mutual recursion":
        {"tree_emit.c", "tree_hoist.c", "tree_sum.c"},
    "a row of fields has the functions that read and print its type, and those read points":
        {"field.c", "field_formula.c", "point.c", "point_formula.c"},
}


def sources(root):
    """All files of the libraries and the program, by name, the command line's as cli/NAME: the part they belong
    to, and their text."""
    found = {}
    for folder in ("gen", "runtime"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            part = "cli" if "cli" in path.parts else folder
            found[("cli/" if part == "cli" else "") + path.name] = (part, path.read_text())
    return found


def resolve(files, part, header):
    """The file that an include names: one of its own folder first."""
    return "cli/" + header if part == "cli" and "cli/" + header in files else header


def includes(text):
    return re.findall(r'^#include "(?:[^"]*/)?([^"/]+)"', text, re.M)


def code(text):
    """C without comments and strings."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def definitions(text):
    """Names with external linkage that a file of C defines: functions, and variables with a value or size."""
    for m in re.finditer(r"^(?!static\b|extern\b|typedef\b|return\b)[A-Za-z_][\w \*]*?\b(\w+)\(", text, re.M):
        yield m[1]
    for m in re.finditer(r"^(?!static\b|extern\b|typedef\b)[A-Za-z_][\w \*]*?\b(\w+)(?:\[[^\]]*\])* ?(?:=|;)", text, re.M):
        yield m[1]


def circles(graph):
    """The sets of more than one node that all reach each other (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = set()
            while node not in group:
                group.add(stack.pop())
            if len(group) > 1:
                result.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return result


def check_includes(files):
    for name, (part, text) in files.items():
        for header in includes(text):
            other = files.get(resolve(files, part, header), files.get("cli/" + header, (None,)))[0]
            if part == "gen" and other not in (None, "gen") and header != PUBLIC:
                yield f"{name} of gen/ includes {header} of {'runtime/cli' if other == 'cli' else other}/"
            if part == "runtime" and other == "cli":
                yield f"{name} of runtime/ includes {header} of the command line"


def check_command_line(files):
    for name in (n for n, (part, _) in files.items() if part == "cli"):
        seen, ahead = set(), [name]
        while ahead:
            part, text = files[ahead.pop()]
            ahead += {h for h in (resolve(files, part, h) for h in includes(text)) if h in files} - seen
            seen.update(ahead)
        for header in sorted(seen & OPAQUE):
            yield f"{name} of the command line includes {header}, itself or by another header"


def check_headers(files):
    graph = {name: [h for h in (resolve(files, part, h) for h in includes(text)) if h in files]
             for name, (part, text) in files.items() if name.endswith(".h")}
    for group in circles(graph):
        yield f"headers include each other in a circle: {', '.join(sorted(group))}"


def uses(files):
    """Which files of C use what of which others. gen_library.c has gen's functions a second time."""
    texts = {name: code(text) for name, (_, text) in files.items()
             if name.endswith(".c") and name != "gen_library.c"}
    owner = {}
    for name, text in texts.items():
        for symbol in definitions(text):
            owner.setdefault(symbol, name)
    graph = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, text in texts.items():
        graph[name]
        for word in set(re.findall(r"\b[A-Za-z_]\w*_\w+", text)):
            if owner.get(word, name) != name:
                graph[name][owner[word]].add(word)
    return graph


def check_floors(files, graph):
    for name, others in graph.items():
        part = files[name][0]
        for other in others:
            above = files[other][0]
            if (part, above) in (("gen", "runtime"), ("gen", "cli"), ("runtime", "cli")):
                yield f"{name} of {part}/ uses {', '.join(sorted(others[other]))} of {other}"


def check_archs(files):
    for name, (_, text) in files.items():
        for m in re.finditer(r'strcmp\([^()]*arch[^()]*, "(?:host|sm_)[^()]*\)', text):
            yield f"{name} compares the name of an architecture: {m[0]}"


def check_uses(files, graph):
    allowed = list(CIRCLES.values())
    seen = []
    for group in circles(graph):
        if group in allowed:
            seen.append(group)
            continue
        yield f"files use each other in a circle: {', '.join(sorted(group))}"
        for a in sorted(group):
            for b in sorted(group & set(graph[a])):
                yield f"    {a} -> {b}: {', '.join(sorted(graph[a][b]))}"
    for group in allowed:
        if group not in seen:
            yield f"this is no circle any more: {', '.join(sorted(group))}"


def main():
    files = sources(pathlib.Path(sys.argv[1]))
    if PUBLIC not in files or "cli/cli.h" not in files:
        sys.exit(f"{sys.argv[1]} holds no gen/ and runtime/")
    graph = uses(files)
    broken = [*check_includes(files), *check_command_line(files), *check_headers(files),
              *check_floors(files, graph), *check_archs(files), *check_uses(files, graph)]
    print("\n".join(broken) or f"{len(files)} files, none above what uses it")
    sys.exit(1 if broken else 0)


main()

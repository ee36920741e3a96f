"""costs.py - writes the table of tests/README.md from what ctest printed.

    CTEST_PARALLEL_LEVEL=2 cmake --workflow --preset test | tee log; python3 tests/costs.py build log

A suite's figure is the seconds that its tests ran, which on a machine with nothing else to do are about its CPU seconds.
Suites that the log does not have keep their figures."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "README.md"
BEGIN = "| suite | proves | s | label |\n| --- | --- | --- | --- |\n"
ROW = re.compile(r"^\| (\S+) \| (.*) \| ([0-9.]+|-) \| (\S+) \|$", re.M)
TEST = re.compile(r"Test +#\d+: (\S+) \.*[ *]*(Passed|Failed|Skipped) +([0-9.]+) sec")
CURRENT = re.compile(r"^(t_\w+?|combos_\w+?)_\d+$")


def labels_of(build):
    """The label of each test of the preset `test`, but for those that need a GPU."""
    made = subprocess.run(["ctest", "--test-dir", build, "-E", "_quick$", "-LE", "gpu", "--show-only=json-v1"], check=True,
                          capture_output=True, text=True)
    tests = json.loads(made.stdout[made.stdout.index("{"):])["tests"]
    return {t["name"]: next((p["value"][0] for p in t["properties"] if p["name"] == "LABELS"), "-") for t in tests}


def suite_of(test):
    """A suite may be several tests, with a number behind its name."""
    return CURRENT.sub(r"\1", test)


def files_of(suite):
    """The files that may have the head comment of the suite."""
    yield from HERE.glob(f"*/{suite}.c")
    yield HERE / f"{suite}.py"
    yield HERE / "tasks" / f"{suite.removeprefix('task_')}.py"
    yield HERE / "tasks" / f"{suite.removeprefix('task_')}.sh"
    yield HERE / "python" / f"test_{suite.removeprefix('python_')}.py"
    yield HERE / "bench" / f"{suite.removeprefix('bench_')}.py"
    yield HERE / "bench" / f"{suite.removeprefix('bench_')}.c"
    yield HERE / f"{suite.split('_')[0]}.py"


def purpose(suite):
    """The first sentence of its head comment."""
    for path in files_of(suite):
        if not path.is_file():
            continue
        text = path.read_text()
        if path.suffix == ".sh":
            head = text.splitlines()[0].removeprefix("# ")
        elif path.suffix == ".c":
            head = re.sub(r"^ ?\*", "", text.split("*/")[0].removeprefix("/*"), flags=re.M)
        else:
            head = text.split('"""')[1]
        head = re.sub(r"^\S+\.(c|py) - ", "", re.sub(r"\s+", " ", head).strip())
        return re.split(r"(?<=[^.])[.:;](?= |$)", head)[0].replace("|", "\\|")
    return "host applications, built against the installed package" if suite.startswith("package") else suite


def main(build, log):
    labels = {suite_of(name): label for name, label in labels_of(build).items()}
    page = PAGE.read_text()
    start = page.index(BEGIN) + len(BEGIN)
    table = page[start:].split("\n\n")[0]
    seconds = {suite: float(number) for suite, _, number, _ in ROW.findall(table) if number != "-"}
    found = {}
    for name, how, number in TEST.findall(pathlib.Path(log).read_text(errors="replace")):
        if how != "Skipped":
            found[suite_of(name)] = found.get(suite_of(name), 0) + float(number)
    seconds.update(found)
    order = sorted(labels, key=lambda suite: (-seconds.get(suite, 0), suite))
    rows = [f"| {suite} | {purpose(suite)} | {format(seconds[suite], '.1f') if suite in seconds else '-'} | {labels[suite]} |" for suite in order]
    PAGE.write_text(page[:start] + "\n".join(rows) + "\n\n" + page[start + len(table):].lstrip("\n"))
    print(f"{sum(seconds.get(suite, 0) for suite in labels):.0f} s, {len(labels)} suites")


main(*sys.argv[1:])

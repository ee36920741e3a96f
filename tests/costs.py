"""costs.py - what each test costs in CPU seconds; writes the table of tests/README.md.

    FLASHGEN_TENTH=0 tests/costs.py BUILD [-j N] [--only REGEX]

It runs the tests of the preset `test` one by one, N at a time, and keeps the figures of those that it did not run. CPU
seconds, children included, depend little on what else the machine does; FLASHGEN_TENTH chooses which rare cases count."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "README.md"
BEGIN = "| suite | proves | CPU s | label |\n| --- | --- | --- | --- |\n"
ROW = re.compile(r"^\| (\S+) \| (.*) \| ([0-9.]+|-) \| (\S+) \|$", re.M)


def listed(build):
    """Labels of each test that the preset `test` runs, of a machine without a GPU."""
    made = subprocess.run(["ctest", "--test-dir", build, "-E", "_quick$", "-LE", "gpu", "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = json.loads(made.stdout[made.stdout.index("{"):])["tests"]
    return {test["name"]: next((p["value"][0] for p in test["properties"] if p["name"] == "LABELS"), "-") for test in tests}


def cost(build, name):
    """CPU seconds of one test; ends the program where it fails."""
    with open(os.devnull, "w") as null:
        child = subprocess.Popen(["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$"], stdout=null, stderr=null)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    print(f"{name}\t{used.ru_utime + used.ru_stime:.1f}\texit {child.returncode}", flush=True)
    return used.ru_utime + used.ru_stime if child.returncode == 0 else None


def suite_of(test):
    """Parts of a suite are tests with a number behind its name."""
    return re.sub(r"^(t_\w+?)_\d+$", r"\1", test)


def purpose(suite):
    """The first sentence of the suite's file, behind its name."""
    for path in [*HERE.glob(f"*/{suite}.c"), HERE / "python" / f"test_{suite.removeprefix('python_')}.py", HERE / f"{suite}.py", HERE / "bench" / f"{suite.removeprefix('bench_')}.py"]:
        if path.is_file():
            head = path.read_text().split("*/")[0] if path.suffix == ".c" else path.read_text().split('"""')[1]
            text = re.sub(r"\s+", " ", re.sub(r"^ ?\*", "", head.removeprefix("/*"), flags=re.M)).strip()
            text = re.sub(r"^\S+\.(c|py) - ", "", text)
            return re.split(r"(?<=[^.])[.:;](?= |$)", text)[0].replace("|", "\\|")
    return "the README's and the examples' commands" if suite.startswith("package") else suite


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build")
    words.add_argument("-j", type=int, default=1)
    words.add_argument("--only", default="", metavar="REGEX")
    given = words.parse_args()
    labels = listed(given.build)
    chosen = [name for name in labels if re.search(given.only, name)]
    with ThreadPoolExecutor(given.j) as pool:
        costs = dict(zip(chosen, pool.map(lambda name: cost(given.build, name), chosen)))
    page = PAGE.read_text()
    start = page.index(BEGIN) + len(BEGIN)
    table = page[start:].split("\n\n")[0]
    seconds = {suite: float(number) for suite, _, number, _ in ROW.findall(table) if number != "-"}
    for suite in {suite_of(name) for name in chosen}:
        parts = [costs[name] for name in chosen if suite_of(name) == suite]
        if None not in parts:
            seconds[suite] = sum(parts)
    rows = {suite_of(name): label for name, label in labels.items()}
    order = sorted(rows, key=lambda suite: (-seconds.get(suite, 0), suite))
    lines = [f"| {suite} | {purpose(suite)} | {seconds[suite]:.1f} | {rows[suite]} |" if suite in seconds else f"| {suite} | {purpose(suite)} | - | {rows[suite]} |" for suite in order]
    PAGE.write_text(page[:start] + "\n".join(lines) + page[start + len(table):])
    print(f"{sum(seconds.get(suite, 0) for suite in rows):.0f} CPU seconds of {len(rows)} suites")
    sys.exit(None in costs.values())


main()

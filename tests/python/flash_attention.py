#!/usr/bin/env python3
"""flash_attention.py - FlashAttention's own tests, run on flashgen's functions: a sample of them, and how it went as a table.

    git clone https://github.com/Dao-AILab/flash-attention
    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python \\
      python3 tests/python/flash_attention.py --repository flash-attention --version 2 --cases 4000 --jobs 8

It needs a GPU, PyTorch, pytest and einops. Functions of a few cases are run whole; of all others together as many cases as
--cases says, the same ones for the same --seed. Exit: 0 no case failed, 1 some did, 2 nothing was run."""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

FEW = 80  # cases of a function that is run whole
GIB = 2**30
RACE_NEEDS = 100 * GIB  # version 3's test of races takes 70 GiB before it begins

# The test file, what it imports from beside it, and the switches of what flashgen has not. They are copied elsewhere: beside
# the original lies FlashAttention's own package, which Python would import.
FILES = {2: ("tests/test_flash_attn.py", (), {}),
         3: ("hopper/test_flash_attn.py", ("hopper/padding.py", "hopper/test_util.py"),
             {"FLASH_ATTENTION_DISABLE_FP8": "TRUE"})}
# What is changed in a copy: values of 512 columns have no kernels, and stand in loops with those that have.
CHANGES = {2: (), 3: ((r"\b256, 512, d\b", "256, d"),)}
LEFT_OUT = {"test_flash3_bw_compatibility": "the schemas of torch.ops.flash_attn_3, which are not flashgen's"}


def main():
    options = arguments()
    if options.jobs > 1:
        record = in_jobs(options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            record = run(options, pathlib.Path(folder))
    if options.record:
        pathlib.Path(options.record).write_text(json.dumps(record))
    else:
        tell(record)
    outcomes = {case["outcome"] for case in record}
    sys.exit(1 if "failed" in outcomes else 0 if "passed" in outcomes else 2)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--repository", required=True, type=pathlib.Path, help="a checkout of flash-attention")
    parser.add_argument("--version", type=int, choices=(2, 3), default=2, help="of FlashAttention")
    parser.add_argument("--cases", type=int, default=4000, help="how many of the functions that have many; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--match", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--shard", default="1/1", help="i/n: the i-th of n parts of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="parts of the sample that run at the same time")
    parser.add_argument("--record", help="a file that gets the outcomes as JSON, instead of the table")
    return parser.parse_args()


# ---- running ----


def run(options, folder):
    """The outcomes of a part of the sample: a list of {"function", "name", "outcome", "why", "launches"}."""
    file = copy(options, folder)
    import pytest
    from flashgen.flash_attn import stand_in
    stand_in()
    sampler = Sampler(options)
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--no-summary", "--tb=line", "--rootdir", str(folder),
                 str(file)], plugins=[sampler, refusals()])
    return sampler.record


def copy(options, folder):
    """The test file with what it needs, in a folder of their own."""
    file, beside, switches = FILES[options.version]
    os.environ.update(switches)
    for name in (file, *beside):
        text = (options.repository / name).read_text()
        for pattern, other in CHANGES[options.version]:
            text = re.sub(pattern, other, text)
        (folder / pathlib.Path(name).name).write_text(text)
    return folder / pathlib.Path(file).name


class Launches:
    """How many kernels flashgen launched."""

    def __init__(self):
        from flashgen import call
        self.count, self.launch, call.launch = 0, call.launch, self

    def __call__(self, *arguments):
        self.count += 1
        return self.launch(*arguments)


class Sampler:
    """Chooses cases, and keeps what became of them."""

    def __init__(self, options):
        self.options, self.record, self.launches, self.before = options, [], Launches(), 0

    def pytest_collection_modifyitems(self, items):
        import pytest
        chosen = sample(items, self.options)
        for item in chosen:
            why = reason_to_skip(item.originalname, self.options.version)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))
        items[:] = chosen

    def pytest_runtest_setup(self, item):
        self.before = self.launches.count

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.keep(report)

    def keep(self, report):
        why = ""
        if report.outcome == "skipped":
            why = report.longrepr[2].removeprefix("Skipped").lstrip(": ") or "the test itself says no more"
        elif report.outcome == "failed":
            why = getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr))
        name = report.nodeid.partition("::")[2]
        self.record.append({"function": name.partition("[")[0], "name": name, "outcome": report.outcome, "why": why,
                            "launches": self.launches.count - self.before})


def refusals():
    """A plugin: a case that flashgen has no kernels for is skipped, with its sentence."""
    import pytest

    class Refusals:
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(self, item, call):
            report = (yield).get_result()
            if call.excinfo and call.excinfo.errisinstance(NotImplementedError):
                report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {call.excinfo.value}")
    return Refusals()


def sample(items, options):
    """The cases of a shard: all of functions with few, and every n-th of the others after a shuffle."""
    by_function = collections.defaultdict(list)
    for item in items:
        if re.search(options.match, item.name):
            by_function[item.originalname].append(item)
    few = [item for cases in by_function.values() if len(cases) <= FEW for item in cases]
    many = [item for cases in by_function.values() if len(cases) > FEW for item in cases]
    random.Random(options.seed).shuffle(many)
    step = max(len(many) // options.cases, 1) if options.cases else 1
    i, n = map(int, options.shard.split("/"))
    return (few + many[::step])[i - 1::n]


def reason_to_skip(function, version):
    import torch
    if function in LEFT_OUT:
        return LEFT_OUT[function]
    if version == 3 and "race" in function and torch.cuda.is_available() and torch.cuda.mem_get_info()[1] < RACE_NEEDS:
        return "it takes 70 GiB of the GPU before it begins"
    return None


def in_jobs(options):
    """The outcomes of all parts of the sample, each run by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{i}.json" for i in range(1, options.jobs + 1)]
        jobs = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--jobs", "1", "--shard", f"{i}/{options.jobs}",
                                  "--record", str(file)], stdout=subprocess.DEVNULL) for i, file in enumerate(files, 1)]
        for job in jobs:
            job.wait()
        missing = [str(i) for i, file in enumerate(files, 1) if not file.exists()]
        if missing:
            print(f"parts that ended early: {', '.join(missing)}", file=sys.stderr)
        lost = [{"function": "a part", "name": f"part {i}", "outcome": "failed", "why": "it ended early", "launches": 0}
                for i in missing]
        return [case for file in files if file.exists() for case in json.loads(file.read_text())] + lost


# ---- telling ----


def tell(record):
    """A row of each function, why cases were skipped, and which failed."""
    counts = collections.defaultdict(collections.Counter)
    for case in record:
        counts[case["function"]][case["outcome"]] += 1
        counts[case["function"]]["no launch"] += case["outcome"] == "passed" and not case["launches"]
    columns = ("passed", "failed", "skipped", "no launch")
    row("function", columns)
    for function, counted in sorted(counts.items()):
        row(function, [counted[column] for column in columns])
    row("all", [sum(counted[column] for counted in counts.values()) for column in columns])
    print("no launch: passed, and no kernel of flashgen was launched\n\nskipped, why")
    for why, count in collections.Counter(case["why"] for case in record if case["outcome"] == "skipped").most_common():
        print(f"{count:>7}  {why}")
    failed = [case for case in record if case["outcome"] == "failed"]
    if failed:
        print("\nfailed")
    for case in failed:
        print(f"  {case['name']}: {(case['why'].splitlines() or [''])[0][:150]}")


def row(first, cells):
    print(f"{first:<44}" + "".join(f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()

"""flash_worker.py - a worker of flash_attention.py: FlashAttention's test file with flashgen's functions, run by pytest."""
import gc
import os
import pathlib
import re
import sys
import tempfile

import pytest
import torch

import workers
from flashgen import call
from flashgen.flash_attn import stand_in
from sampled import Sample, chosen

GIB = 2**30
RACE_NEEDS = 100 * GIB  # version 3's test of races takes 70 GiB before it begins
NO_MEMORY = r"out of memory|ALLOC_FAILED|_OUT_OF_MEMORY"

# The test file, what it imports from beside it, and the switches of what flashgen has not. They are copied elsewhere: beside
# the original lies FlashAttention's own package, which Python would import.
FILES = {2: ("tests/test_flash_attn.py", (), {}),
         3: ("hopper/test_flash_attn.py", ("hopper/padding.py", "hopper/test_util.py"),
             {"FLASH_ATTENTION_DISABLE_FP8": "TRUE"})}
# What is changed in a copy: values of 512 columns have no kernels, and stand in loops with those that have.
CHANGES = {2: (), 3: ((r"\b256, 512, d\b", "256, d"),)}


def work(options):
    """Runs cases of the pool's list, until none is left."""
    task = workers.Task(options.worker)
    limit_memory(options, task.is_alone)
    folder = pathlib.Path(tempfile.mkdtemp(dir=options.worker))
    file = copy(options, folder)
    stand_in()
    sample = Sample(lambda module: chosen(module, options.cases, options.seed, options.match))
    status = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--no-header", "--no-summary", "--tb=line", "--rootdir",
                          str(folder), str(file)], plugins=[sample, Runner(options.version, task)])
    task.leave(0 if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED) else 1)


def limit_memory(options, is_alone):
    """A worker beside others may take a part, and gives back what it does not use."""
    if not is_alone and options.jobs > 1 and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(options.memory or 0.9 / options.jobs)


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
        self.count, self.launch, call.launch = 0, call.launch, self

    def __call__(self, *arguments):
        self.count += 1
        return self.launch(*arguments)


class Runner:
    """A plugin of pytest: runs what the pool gives, and tells it what became of each case."""

    def __init__(self, version, task):
        self.version, self.task, self.launches, self.reports, self.before = version, task, Launches(), [], 0

    def pytest_collectreport(self, report):
        if report.failed:
            print(report.longreprtext, file=sys.stderr)
            self.task.leave(1)

    def pytest_runtestloop(self, session):
        for i in self.task.cases([item.name for item in session.items]):
            item = session.items[i]
            self.reports, self.before = [], self.launches.count
            why = reason_to_skip(item.originalname, self.version)
            if why:
                self.reports.append(("skipped", why))
            else:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            self.task.tell(i, self.outcome(item.name))
            if not is_sound():
                self.task.leave(1)  # the GPU answers this process no more
        return True

    def outcome(self, name):
        """Of all of a case's reports: what went wrong first, else the last one."""
        wrong = [x for x in self.reports if x[0] in ("failed", "memory")]
        outcome, why = (wrong or self.reports[-1:] or [("failed", "it ended without a report")])[0]
        return {"function": name.partition("[")[0], "name": name, "outcome": outcome, "why": why,
                "launches": self.launches.count - self.before}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """A case that flashgen has no kernels for is skipped, with its sentence."""
        report = (yield).get_result()
        if call.excinfo and call.excinfo.errisinstance(NotImplementedError):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {call.excinfo.value}")

    def pytest_runtest_logreport(self, report):
        why = ""
        if report.outcome == "skipped":
            why = report.longrepr[2].removeprefix("Skipped").lstrip(": ") or "the test itself says no more"
        elif report.outcome == "failed":
            why = getattr(getattr(report.longrepr, "reprcrash", None), "message", str(report.longrepr))
        if report.when == "call" or report.outcome != "passed":
            is_memory = report.outcome == "failed" and re.search(NO_MEMORY, why)
            self.reports.append(("memory" if is_memory else report.outcome, why))


def is_sound():
    """Whether the GPU still answers; gives back what the last case took of its memory."""
    if not torch.cuda.is_initialized():
        return True
    for name in ("last_exc", "last_value", "last_traceback"):  # pytest keeps them, and they the case's tensors
        vars(sys).pop(name, None)
    try:
        torch.cuda.synchronize()
        if torch.cuda.memory_reserved() > GIB:
            gc.collect()
            torch.cuda.empty_cache()
    except RuntimeError:
        return False
    return True


def reason_to_skip(function, version):
    if version == 3 and "race" in function and torch.cuda.is_available() and torch.cuda.mem_get_info()[1] < RACE_NEEDS:
        return "it takes 70 GiB of the GPU before it begins"
    return None

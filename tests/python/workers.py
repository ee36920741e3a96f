"""workers.py - a list of cases that processes take one after the other, and what became of each, in the files of a folder.

    next        the place in the list of the case that is taken next
    cases.json  numbers of cases, once a worker has told how many there are
    N.jsonl     what worker N has begun, and what became of it
    N.err       what it and the programs in it wrote to stderr"""
import fcntl
import json
import os
import subprocess
import sys
import time

MOST_STARTS = 100  # of workers in place of others that ended early
NONE = 1 << 40  # more than there are cases
PATIENCE = 20  # seconds that a case may take when no other is begun any more


# ---- in a worker ----


class Task:
    """What a worker has of its pool. FLASHGEN_WORKER is its number."""

    def __init__(self, folder):
        self.folder = folder
        self.is_alone = (folder / "alone").exists()
        self.file = open(folder / f"{os.environ['FLASHGEN_WORKER']}.jsonl", "a", buffering=1)

    def cases(self, names):
        """The numbers of the cases that this worker takes, of all."""
        print(json.dumps({"count": len(names)}), file=self.file)
        numbers = self.folder / "cases.json"
        numbers = json.loads(numbers.read_text()) if numbers.exists() else range(len(names))
        while (place := changed(self.folder / "next", 1)) < len(numbers):
            print(json.dumps({"begun": numbers[place], "name": names[numbers[place]]}), file=self.file)
            yield numbers[place]

    def tell(self, number, outcome):
        print(json.dumps({"ended": number, **outcome}), file=self.file)

    def leave(self, status):
        """Ends the process at once: what a failed case left behind may not end by itself."""
        self.file.close()
        sys.stderr.flush()
        os._exit(status)


def changed(path, by):
    """The number in a file, to which `by` is added; nobody else sees it in between."""
    with open(path, "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        number = int(file.read())
        file.seek(0)
        file.write(str(number + by))
        file.truncate()
    return number


# ---- the pool ----


class Pool:
    """command: what a worker runs, after which it gets --worker FOLDER."""

    def __init__(self, folder, command, jobs, seconds=None):
        self.folder, self.command, self.jobs = folder, command, jobs
        self.ends = time.monotonic() + seconds if seconds else float("inf")
        self.began, self.starts, self.told, self.errors, self.statuses = time.monotonic(), 0, 0, [], {}

    def run(self):
        """(outcomes, how many cases were not run). Where memory was short, a case was run again, with "alone" in what is
        told of it."""
        record, count = self.round(self.jobs)
        short = [number for number, case in record.items() if case["outcome"] == "memory"]
        if short and time.monotonic() < self.ends:
            (self.folder / "alone").touch()
            (self.folder / "cases.json").write_text(json.dumps(short))
            again, _ = self.round(1)
            for number, case in again.items():
                outcome = "failed" if case["outcome"] == "memory" else case["outcome"]
                record[number] = {**case, "outcome": outcome, "alone": True}
        not_run = sum(case["outcome"] == "memory" for case in record.values()) + count - len(record)
        done = [case for _, case in sorted(record.items()) if case["outcome"] != "memory"]
        return self.errors + done, not_run

    def round(self, jobs):
        """Number -> outcome of the cases of the list, and how many it has."""
        (self.folder / "next").write_text("0")
        first = self.starts
        running = [self.start() for _ in range(jobs)]
        while running:
            time.sleep(0.1)
            if time.monotonic() > self.ends and changed(self.folder / "next", 0) < NONE:
                changed(self.folder / "next", NONE)
            if time.monotonic() > self.ends + PATIENCE:
                for process in running:
                    process.kill()
            for process in [process for process in running if process.poll() is not None]:
                running.remove(process)
                self.statuses[process.number] = process.returncode
                if process.returncode and self.is_more(process) and self.starts - first < jobs + MOST_STARTS:
                    running.append(self.start())
            self.tell_progress(first)
        return self.outcomes(first)

    def start(self):
        self.starts += 1
        environment = {"OMP_NUM_THREADS": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", **os.environ,
                       "FLASHGEN_WORKER": str(self.starts)}
        with open(self.folder / f"{self.starts}.err", "w") as errors:
            process = subprocess.Popen([sys.executable, *self.command, "--worker", str(self.folder)], env=environment,
                                       stdout=subprocess.DEVNULL, stderr=errors)
        process.number = self.starts
        return process

    def lines(self, number):
        file = self.folder / f"{number}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def is_more(self, process):
        """What is to be done when a worker ended early: whether another one goes on. It ended before it had a list: no."""
        lines = self.lines(process.number)
        if lines:
            return True
        why = (self.folder / f"{process.number}.err").read_text().strip().splitlines()[-1:] or ["it says nothing"]
        self.errors.append(failure(f"worker {process.number}", f"it ended before its first case: {why[0]}"))
        return False

    def outcomes(self, first):
        record, count = {}, 0
        for number in range(first + 1, self.starts + 1):
            begun = None
            for line in self.lines(number):
                count = max(count, line.get("count", 0))
                if "begun" in line:
                    begun, name = line["begun"], line["name"]
                if "ended" in line:
                    record[line.pop("ended")] = line
            if begun is not None and begun not in record:  # it was the last one
                why = (self.folder / f"{number}.err").read_text().strip().splitlines()[-1:]
                record[begun] = failure(name, f"the process ended with {self.statuses[number]}: {''.join(why)}")
        return record, count

    def tell_progress(self, first):
        """A line for each tenth."""
        done = changed(self.folder / "next", 0)
        lines = self.lines(first + 1)
        count = lines[0]["count"] if lines else 0
        if count and not (self.folder / "alone").exists() and min(10 * done // count, 10) > self.told:
            self.told = min(10 * done // count, 10)
            print(f"{10 * self.told} % begun, {time.monotonic() - self.began:.0f} s", file=sys.stderr, flush=True)


def failure(name, why):
    return {"function": name.partition("[")[0], "name": name, "outcome": "failed", "why": why, "launches": 0}

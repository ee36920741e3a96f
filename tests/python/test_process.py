"""The package in a process: what it does on import, in many threads, after a fork, and what it prints."""
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import unittest.mock

from case import SOURCE, Case, flashgen, main, np
from flashgen import context, nvrtc

SMALL = """
import numpy as np, flashgen
q = np.ones((1, 4, 1, 8), "f2")
out = flashgen.attention(q, q, q)
assert (out == 1).all()
"""


def python(text, **environment):
    """A program's exit status and what it prints, all together."""
    made = subprocess.run([sys.executable, "-B", "-c", text], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return made.returncode, made.stdout


def on_terminal(text, **environment):
    """The same, with a terminal for its output."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-B", "-c", text], {**os.environ, **environment})
    printed = b""
    while True:
        try:
            read = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            read = b""
        if not read:
            break
        printed += read
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed.decode()


class Process(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = os.path.join(self.folder.name, "cache")

    def slow_compiler(self):
        path = os.path.join(self.folder.name, "cc")
        with open(path, "w") as file:
            file.write('#!/bin/sh\n[ "$1" = --version ] || sleep 1\nexec cc "$@"\n')
        os.chmod(path, 0o755)
        return path

    def test_import_opens_nothing(self):
        self.assertEqual(python("import flashgen, sys; from flashgen import library\n"
                                "assert library._loaded is None and 'numpy' not in sys.modules\n"
                                "assert 'torch' not in sys.modules", FLASHGEN_LIBRARY="/nowhere"), (0, ""))

    def test_cold_use_prints_nothing(self):
        self.assertEqual(python(SMALL, FLASHGEN_CACHE=self.cache), (0, ""))
        self.assertTrue(os.listdir(self.cache))

    def test_slow_compile_is_told_a_terminal_only(self):
        self.assertEqual(context.PATIENCE, 2.0)
        slow = {"FLASHGEN_CC": self.slow_compiler()}
        text = "import time\nfrom flashgen import context\ncontext.PATIENCE = 0.5\n" + SMALL
        self.assertEqual(python(text, FLASHGEN_CACHE=self.cache, **slow), (0, ""))
        code, printed = on_terminal(text, FLASHGEN_CACHE=self.cache + "2", **slow)
        self.assertEqual((code, printed.split()), (0, "flashgen: compiling a kernel".split()))
        self.assertEqual(on_terminal(text + "time.sleep(1)\n", FLASHGEN_CACHE=self.cache + "2", **slow), (0, ""))

    def test_missing_library(self):
        code, printed = python(SMALL, FLASHGEN_LIBRARY="/nowhere/libflashgen.so")
        self.assertIn("FlashgenMissing: flashgen's library cannot be loaded: /nowhere/libflashgen.so: cannot", printed)

    def test_threads(self):
        """Cold and hot calls of many threads, with one context, and no more compiles than kernels."""
        code, printed = python(f"""
import sys, threading
sys.path.insert(0, {str(SOURCE / "tests" / "python")!r})
import test_process
test_process.race()
""", FLASHGEN_CACHE=self.cache)
        self.assertEqual((code, printed), (0, "2 compiles\n"))

    def test_fork(self):
        """A child has a context of its own, whatever the parent's threads do."""
        q = np.ones((1, 4, 1, 8), "f2")
        flashgen.attention(q, q, q, mask="causal")
        parents = context.context("host")
        with context._lock:  # as a thread of the parent may have it
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    assert (flashgen.attention(q, q, q, mask="causal") == 1).all()
                    assert context.context("host") is not parents
                    os._exit(0)
                except BaseException as error:
                    print(error, file=sys.stderr)
                    os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIs(context.context("host"), parents)

    def test_calls_are_kept_and_dropped(self):
        """A second call prepares nothing; so many shapes are not kept forever."""
        q = np.ones((1, 4, 1, 8), "f2")
        flashgen.attention(q, q, q, mask="causal")
        before = flashgen.call.calls.copy()
        self.assertGreater(len(before), 0)
        flashgen.attention(q.copy(), q, q, mask="causal")
        self.assertEqual(flashgen.call.calls, before)
        most, flashgen.call.MOST_CALLS = flashgen.call.MOST_CALLS, len(before) + 3
        try:
            for n in range(5, 15):
                flashgen.attention(q, *[np.ones((1, n, 1, 8), "f2")] * 2, mask="causal")
                self.assertLessEqual(len(flashgen.call.calls), len(before) + 3)
        finally:
            flashgen.call.MOST_CALLS = most

    def test_doctor(self):
        run = [sys.executable, "-B", "-m", "flashgen"]
        made = subprocess.run([*run, "doctor"], env={**os.environ, "FLASHGEN_CACHE": self.cache}, text=True,
                              capture_output=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        lines = dict(line.split(None, 1) for line in made.stdout.splitlines())
        self.assertEqual(list(lines), "flashgen library numpy torch compiler host NVRTC cuda:0 cache".split())
        self.assertEqual(lines["flashgen"], f"ok     {flashgen.__version__}")
        self.assertEqual(lines["host"], "ok     a kernel was made and its numbers are right")
        self.assertEqual(lines["cache"], f"ok     {self.cache}")
        without = {**os.environ, "FLASHGEN_CACHE": self.cache + "2", "FLASHGEN_CC": "/nowhere", "CUDA_VISIBLE_DEVICES": ""}
        made = subprocess.run([*run, "doctor"], env=without, text=True, capture_output=True)
        self.assertEqual(made.returncode, 1)
        self.assertIn("compiler  none   the C compiler of the host device (FLASHGEN_CC): /nowhere", made.stdout)
        made = subprocess.run([*run, "doctor"], env={**os.environ, "FLASHGEN_LIBRARY": "/nowhere"}, text=True,
                              capture_output=True)
        self.assertEqual((made.returncode, made.stdout.count("\n")), (1, 2))
        self.assertIn("library   none", made.stdout)
        made = subprocess.run([*run, "doktor"], text=True, capture_output=True)
        self.assertEqual((made.returncode, made.stderr), (2, "usage: python -m flashgen doctor\n"))

    def test_nvrtc_of_pip(self):
        """What pip installs is found."""
        for name in ("cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13", "cu13/lib/libnvrtc-builtins.so.13.0"):
            self.new_file("nvidia", name)
        sys.path.insert(0, self.folder.name)
        try:
            found = [str(path) for path in nvrtc.installed() if str(path).startswith(self.folder.name)]
        finally:
            sys.path.remove(self.folder.name)
        self.assertEqual([os.path.basename(path) for path in found], ["libnvrtc.so.13", "libnvrtc.so.12"])

    def new_nvrtc(self, folder, *version):
        self.new_file(folder, "libnvrtc-builtins.so.{}.{}".format(*version))
        return self.new_file(folder, f"libnvrtc.so.{version[0]}")

    def new_file(self, *names):
        path = pathlib.Path(self.folder.name, *names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path.resolve()

    def test_which_nvrtc(self):
        """The newest whose kernels the driver runs, and of equal ones what is loaded, or else comes first."""
        old, toolkit, pip, late = (self.new_nvrtc(*x) for x in (("a", 12, 2), ("b", 12, 4), ("c", 12, 8), ("d", 13, 0)))
        unknown, again = self.new_file("e", "libnvrtc.so.12"), self.new_nvrtc("f", 12, 8)
        every = [old, unknown, toolkit, pip, again, late]
        self.assertEqual([nvrtc.best(every, [], driver) for driver in (None, 13, 12, 11)], [late, late, pip, None])
        self.assertEqual([nvrtc.best(every, [x], 12) for x in (again, toolkit, late, unknown)], [again, pip, pip, pip])
        self.assertIsNone(nvrtc.best([old, unknown], [old], 12))
        self.assertIsNone(nvrtc.best([], [late], None))

    def test_nvrtc_is_chosen_once(self):
        """By what the variables of the environment say, through links as toolkits have them."""
        self.new_nvrtc("g", 99, 9)
        file = self.new_nvrtc("g", 13, 7).rename(pathlib.Path(self.folder.name, "g", "libnvrtc.so.13.7.1"))
        link = pathlib.Path(self.folder.name, "g", "libnvrtc.so.13")
        link.symlink_to(file.name)
        with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(link.parent)}), \
                unittest.mock.patch.object(nvrtc, "driver", lambda: None), \
                unittest.mock.patch.object(nvrtc, "installed", lambda: []):
            os.environ.pop("FLASHGEN_NVRTC", None)
            nvrtc.provide()
            self.assertEqual(os.environ["FLASHGEN_NVRTC"], str(link.resolve().with_name(link.name)))
            os.environ["FLASHGEN_NVRTC"] = "/mine"
            nvrtc.provide()
            self.assertEqual(os.environ["FLASHGEN_NVRTC"], "/mine")


def race():
    """Threads that start at once, each with two specs and its own numbers."""
    barrier, wrong = threading.Barrier(8), []

    def work(i):
        barrier.wait()
        for n in (4, 5, 6) * 5:
            v = np.full((1, n, 2, 8), i, "f2")
            if not all((flashgen.attention(v, v, v, mask=mask) == i).all() for mask in ("causal", None)):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        sys.exit(f"wrong in threads {wrong}")
    print(context.context("host").counts().compiles, "compiles")


if __name__ == "__main__":
    main()

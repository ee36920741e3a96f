"""flash_attention.py itself, on a test file of ours in place of FlashAttention's: what it chooses, and what it tells of cases
that pass, fail, are refused, lack memory or end their process. It needs pytest."""
import json
import pathlib
import subprocess
import sys
import tempfile
import types

from case import SOURCE, Case, main, skip
from device import torch

try:
    import sampled
except ImportError:
    skip("torch", "pytest is missing: what runs FlashAttention's tests is not tested")

TESTS = '''
import os, pathlib, pytest, torch

@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal,local", [(False, False), (True, False)])
@pytest.mark.parametrize("d", list(range(30)))
def test_many(d, causal, local, dtype):
    assert d != 7
    if d == 8:
        raise NotImplementedError("there is no eight")
    short = pathlib.Path(__file__).parents[1] / f"{causal}{dtype}"
    if d == 9 and (causal or not short.exists()):
        short.touch()
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much")
    if d == 10 and causal:
        os.kill(os.getpid(), 9)

def test_one():
    pytest.skip("it is not the day")

@pytest.mark.parametrize("n", [1, 2])
def test_few(n):
    from flash_attn import flash_attn_func
    q = torch.zeros(1, 4, 1, 8, dtype=torch.float16)
    flash_attn_func(q, q, q)
'''


class Runner(Case):
    def run_on(self, text, *words):
        """(exit status, its table, name of a case -> what it tells of it)."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "tests" / "test_flash_attn.py"
            file.parent.mkdir()
            file.write_text(text)
            command = [sys.executable, "-B", SOURCE / "tests" / "python" / "flash_attention.py", "--repository", folder]
            made = subprocess.run([*command, "--record", file.parent / "record", *words], capture_output=True, text=True)
            record = json.loads((file.parent / "record").read_text())
            return made.returncode, made.stdout, {case["name"]: case for case in record}

    def test_outcomes(self):
        status, table, record = self.run_on(TESTS, "--cases", "0", "--jobs", "2")
        self.assertEqual((status, len(record)), (1, 30 * 4 + 3))
        of = lambda *places: record["test_many[{}-{}-False-dtype{}]".format(*places)]  # noqa: E731
        for causal in (False, True):
            self.assertEqual((of(7, causal, 0)["outcome"], of(7, causal, 0)["why"]), ("failed", "assert 7 != 7"))
            self.assertEqual((of(8, causal, 1)["outcome"], of(8, causal, 1)["why"]), ("skipped", "there is no eight"))
            self.assertTrue(of(9, causal, 0)["alone"])
        self.assertEqual((of(9, False, 0)["outcome"], of(9, True, 0)["outcome"]), ("passed", "failed"))
        self.assertIn("ended with -9", of(10, True, 1)["why"])
        self.assertEqual(record["test_one"]["why"], "it is not the day")
        self.assertGreater(record["test_few[1]"]["launches"], 0)
        self.assertRegex(table, r"test_many +108 +8 +4 +108 +4\n")

    def test_what_is_not_run_is_told(self):
        status, table, record = self.run_on(TESTS, "--match", "few|many.1", "--seconds", "0.001")
        self.assertEqual((status, record), (1, {}))
        self.assertIn("46 cases were not run", table)

    def test_a_file_that_cannot_be_read(self):
        status, table, _ = self.run_on("import nothing_of_this_name")
        self.assertEqual(status, 1)
        self.assertIn("No module named 'nothing_of_this_name'", table)

    def test_sample(self):
        """The same for the same seed, each case once, and named as pytest names it."""
        names = {}
        exec(TESTS, names)
        module = types.SimpleNamespace(**names)
        cases = sampled.chosen(module, 50, 1)
        self.assertEqual(cases, sampled.chosen(module, 50, 1))
        self.assertNotEqual(cases, sampled.chosen(module, 50, 2))
        self.assertEqual((len(cases), len(set(cases))), (53, 53))
        marks = sampled.Marks(module.test_many.pytestmark)
        self.assertEqual((marks.count, marks.names()), (120, ["d", "causal", "local", "dtype"]))
        self.assertEqual((marks.values(30), marks.name(30)), ([7, True, False, torch.float16], "7-True-False-dtype0"))


if __name__ == "__main__":
    main()

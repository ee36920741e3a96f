"""python.py - does a task of a new user in Python, which needs PyTorch.

    python.py TASK.py"""
import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from case import skip  # noqa: E402

try:
    import torch  # noqa: F401
except ImportError:
    skip("torch", "PyTorch is missing")
runpy.run_path(str(HERE / sys.argv[1]), run_name="__main__")

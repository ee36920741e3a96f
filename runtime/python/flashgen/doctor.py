"""What this machine has: `python -m flashgen doctor`. Each line is a name, a word and what it is about."""
import importlib
import os
import sys
import tempfile

from . import library
from .context import Context, context, select

ROWS, COLUMNS = 4, 8  # of the launch that is tried


def doctor():
    """Prints what is there; 0 if kernels can run, else 1."""
    tell("flashgen", "ok", library.VERSION)
    try:
        library.library()
    except RuntimeError as error:
        tell("library", "none", error)
        return 1
    tell("library", "ok", library.path())
    modules = {name: module(name) for name in ("numpy", "torch")}
    find_compiler("compiler", "host")
    works = [look("host", modules["numpy"] or modules["torch"])]
    find_compiler("NVRTC", "sm_90a")
    works.append(look("cuda:0", modules["torch"]))
    tell("cache", "ok", cache())
    return 0 if any(works) else 1


def tell(name, word, what):
    print(f"{name:<9} {word:<6} {what}")


def module(name):
    """The module, or None where it is not installed."""
    try:
        found = importlib.import_module(name)
    except ImportError:
        tell(name, "none", "not installed")
        return None
    tell(name, "ok", found.__version__)
    return found


def find_compiler(name, device):
    """Whether it makes a kernel, with a cache that has none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            op = Context(device, folder).op({"head_dim": str(COLUMNS), "dtype": "f16", "family": "simt"})
            select(op, library.sized(library.Shape, b=1, h=1, hk=1, nq=ROWS, nk=ROWS), None)
            tell(name, "ok", f"it compiles for {device}")
        except RuntimeError as error:
            tell(name, "none", error)


def look(device, arrays):
    """Whether kernels run there: with arrays, one is compiled and its numbers are looked at."""
    try:
        context(device)
        if arrays is None:
            tell(device, "ok", "not tried, for want of arrays")
        elif right(arrays, device):
            tell(device, "ok", "a kernel was made and its numbers are right")
        else:
            tell(device, "wrong", "a kernel was made and its numbers are wrong")
            return False
    except (RuntimeError, AssertionError) as error:  # what PyTorch raises where it was built without CUDA
        tell(device, "none", error)
        return False
    return True


def right(arrays, device):
    """Where all scores are equal each row is the mean of the values that it sees."""
    from .attention import attention
    place = {} if arrays.__name__ == "numpy" else {"device": device.replace("host", "cpu")}
    v = arrays.ones((1, ROWS, 1, COLUMNS), dtype=arrays.float16, **place)
    for row in range(ROWS):
        v[0, row] = row
    out = attention(v * 0, v, v, mask="causal")
    return all(abs(float(out[0, row, 0, 0]) - row / 2) < 1e-2 for row in range(ROWS))


def cache():
    """Where compiled kernels are kept, as environment.md says."""
    own, shared = os.environ.get("FLASHGEN_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    folder = shared if os.path.isabs(shared) else os.path.join(os.path.expanduser("~"), ".cache")
    return own or os.path.join(folder, "flashgen")


def main(arguments):
    if arguments != ["doctor"]:
        print("usage: python -m flashgen doctor", file=sys.stderr)
        return 2
    return doctor()

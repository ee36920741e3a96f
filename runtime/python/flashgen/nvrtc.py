"""Which NVRTC compiles, where a machine has several: the newest that the driver can run kernels of.

A toolkit's lies in a folder of the loader's, or in CUDA_HOME or /usr/local/cuda, and conda's beside Python; pip's
nvidia-cuda-nvrtc, which comes with PyTorch, in Python's path. The file beside it that has a part of the compiler,
libnvrtc-builtins.so.12.8, tells its version."""
import ctypes
import importlib.util
import os
import pathlib
import re
import sys

NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
OLDEST = (12, 3)
USUAL = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def provide():
    """Sets FLASHGEN_NVRTC, by which the library finds it. Whoever has set it has chosen; where none is found the library
    looks itself."""
    if os.environ.get("FLASHGEN_NVRTC"):
        return
    path = best(toolkits() + installed(), loaded(), driver())
    if path is not None:
        os.environ["FLASHGEN_NVRTC"] = str(path)


def best(paths, loaded, driver):
    """The newest, and of equal ones the first. A driver runs no kernels of a later major version of CUDA. One of the same
    version that the process has loaded already comes before it: two would share the builtins of one."""
    def is_fit(path):
        return version(path) is not None and version(path) >= OLDEST and (driver is None or version(path)[0] <= driver)

    path = max(filter(is_fit, paths), key=version, default=None)
    return next((one for one in loaded if path and version(one) == version(path)), path)


def version(path):
    """(12, 8), or None where no builtins lie beside it."""
    found = [re.fullmatch(r"libnvrtc-builtins\.so\.(\d+)\.(\d+)", file.name)
             for file in path.parent.glob("libnvrtc-builtins.so.*")]
    made = [(int(match[1]), int(match[2])) for match in found if match]
    return max((one for one in made if path.name.endswith(f".so.{one[0]}")), default=None)


def toolkits():
    """The files where the library looks, in its order."""
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders += USUAL
    folders += [os.path.join(home, "lib64") for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    return files([*folders, os.path.join(sys.prefix, "lib")])


def installed():
    """The files of pip's."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else ()
    return files(sorted(path for folder in folders for path in pathlib.Path(folder).glob("*/lib")))


def files(folders):
    """A link's own name has no more than the major version, and its target's folder the builtins."""
    links = [pathlib.Path(folder, name) for folder in folders for name in NAMES]
    found = [link.resolve().with_name(link.name) for link in links if link.exists()]
    return [path for path in found if path.exists()]


def loaded():
    """The files that this process has loaded, PyTorch's for example."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(maxsplit=5)[5].strip() for line in file if "/libnvrtc.so." in line}
    except (OSError, IndexError):
        return []
    return [pathlib.Path(path).with_name(name) for path in sorted(paths) for name in NAMES
            if pathlib.Path(path).name.startswith(name) and pathlib.Path(path).with_name(name).exists()]


def driver():
    """The major version of CUDA that the driver is of; None: there is no driver."""
    try:
        number, library = ctypes.c_int(), ctypes.CDLL("libcuda.so.1")
        return number.value // 1000 if library.cuDriverGetVersion(ctypes.byref(number)) == 0 else None
    except (OSError, AttributeError):
        return None

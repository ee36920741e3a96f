"""NVRTC of pip's nvidia-cuda-nvrtc, for machines where the loader finds no other one."""
import ctypes
import importlib.util
import os
import pathlib

NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")  # as the library looks for it


def provide():
    """Loads pip's, so that the library finds it by its name. Whoever sets FLASHGEN_NVRTC has chosen."""
    if os.environ.get("FLASHGEN_NVRTC") or any(loads(name) for name in NAMES):
        return
    for path in installed():
        if loads(path):
            return


def loads(name):
    try:
        ctypes.CDLL(str(name))
    except OSError:
        return False
    return True


def installed():
    """The files of NVRTC in Python's path, the newest first."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else ()
    found = [path for folder in folders for path in pathlib.Path(folder).glob("*/lib/libnvrtc.so.1[23]")]
    return sorted(found, key=lambda path: path.name, reverse=True)

"""Contexts, one a device, with their ops and kernels: opened when they are first needed, and anew after a fork."""
import ctypes as c
import os
import sys
import threading

from . import nvrtc
from .errors import raise_for
from .library import Config, Counts, Info, Spec, library, sized

PATIENCE = 2.0  # seconds of a compile after which a person at a terminal is told

_contexts = {}
_lock = threading.Lock()
calls = {}  # what call.py has prepared: its handles belong to the contexts


class Context:
    """A device, "host" or "cuda:N", with the ops that were defined on it."""

    def __init__(self, device, cache=None):
        self.device = device
        self.handle = c.c_void_p()
        self.ops = {}  # fields and texts of a spec -> fg_op
        if device != "host":
            nvrtc.provide()
        check("fg_open", c.byref(sized(Config, device=device.encode(), cache=cache and cache.encode())), c.byref(self.handle))

    def op(self, texts):
        """The op of a spec, a dict of field -> text."""
        key = tuple(texts.items())
        op = self.ops.get(key)
        if op is None:
            op = self.ops[key] = self.define(texts)
        return op

    def define(self, texts):
        op, spec = c.c_void_p(), sized(Spec, **{field: encoded(field, text) for field, text in texts.items()})
        check("fg_define", self.handle, c.byref(spec), c.byref(op))
        return op

    def counts(self):
        """What the context has done so far: an fg_counts."""
        counts = sized(Counts)
        library().fg_context_counts(self.handle, c.byref(counts))
        return counts


def encoded(field, text):
    if "\0" in text:
        raise ValueError(f"{field}: {text!r:.60} has a zero byte, at which a text ends")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{field}: {text!r:.60} has half a letter, a surrogate") from None


def check(name, *arguments, selecting=False):
    """Calls a function of the library, and raises what it says."""
    lib = library()
    status = getattr(lib, name)(*arguments)
    if status:
        raise_for(status, lib.fg_error().decode(), selecting)


def context(device):
    """The context of a device."""
    found = _contexts.get(device)
    if found is None:
        with _lock:
            found = _contexts.get(device)
            if found is None:
                found = _contexts[device] = Context(device)
    return found


def select(op, shape, stream):
    """The best kernel of an op for a shape; compiled if nothing has it."""
    kernel = c.c_void_p()
    teller = None
    if sys.stderr is not None and sys.stderr.isatty():
        teller = threading.Timer(PATIENCE, print, ("flashgen: compiling a kernel",), {"file": sys.stderr})
        teller.daemon = True
        teller.start()
    try:
        check("fg_select", op, c.byref(shape), stream, c.byref(kernel), selecting=True)
    finally:
        if teller:
            teller.cancel()
    return kernel


def no_stream():
    """The current stream of the host device, which has none."""


def kernel_name(kernel):
    """The name of a kernel's variant."""
    info = sized(Info)
    check("fg_kernel_info", kernel, c.byref(info))
    return info.name.decode()


def forget():
    """In the child of a fork: the parent's contexts may not be used, and its locks may be held by nobody."""
    global _lock
    _lock = threading.Lock()
    _contexts.clear()
    calls.clear()


os.register_at_fork(after_in_child=forget)

#!/usr/bin/env python3
"""c_api.py - flashgen's C API for the scripts here. The structs are read from runtime/flashgen.h
itself, so they do not drift from it.

Run by itself it has a C compiler confirm the structs, launches kernels on the host device with arrays of its own, forward and
backward, with a score that has an input with a gradient and a number, and compares with the formula; it looks at a kernel's name
in its text, and takes a kernel under a switch: no GPU, no PyTorch."""

import argparse
import contextlib
import ctypes
import math
import os
import re
import subprocess

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "flashgen.h")
PLAIN = {
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}


def read_field(text, known, constants):
    """The names and types of one declaration of a struct: "int64_t b, h", "void *data"."""
    function = re.match(r"\w+ \(\*(\w+)\)\(", text)
    if function:
        yield function.group(1), ctypes.c_void_p
        return
    base, rest = re.match(r"(?:const )?(\w+) (.*)", text).groups()
    for declarator in rest.split(","):
        pointer, name, length = re.fullmatch(r"((?:\*|const |\s)*)(\w+)(?:\[(\w+)\])?", declarator.strip()).groups()
        stars = pointer.count("*")
        kind = ctypes.c_char_p if stars == 1 and base == "char" else ctypes.c_void_p if stars else known[base]
        yield name, kind * int(constants.get(length, length)) if length else kind


def read_structs(path):
    """Every struct of the header whose members it gives, by name."""
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/|^#.*?$", "", file.read(), flags=re.S | re.M)
    constants = dict(re.findall(r"enum \{ (\w+) = (\d+) \};", text))
    known = dict(PLAIN)
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S):
        lines = [line.strip() for line in " ".join(body.split()).split(";")]
        fields = [x for line in lines if line for x in read_field(line, known, constants)]
        known[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return {name: kind for name, kind in known.items() if name not in PLAIN}


STRUCTS = read_structs(HEADER)
Spec, Shape, Tensor, Args, Info, Config, InputValue = (
    STRUCTS["fg_" + x] for x in "spec shape tensor args info config input_value".split()
)


@contextlib.contextmanager
def under_switches(text):
    """What is opened, emitted and compiled meanwhile is so under FLASHGEN_SWITCH=text; "": as usual."""
    before = os.environ.get("FLASHGEN_SWITCH")
    os.environ["FLASHGEN_SWITCH"] = text
    try:
        yield
    finally:
        if before is None:
            del os.environ["FLASHGEN_SWITCH"]
        else:
            os.environ["FLASHGEN_SWITCH"] = before


class Flashgen:
    def __init__(self, path, device=None, templates=None):
        """templates: a directory of them instead of the built-in ones."""
        self.lib = ctypes.CDLL(path)
        self.lib.fg_error.restype = ctypes.c_char_p
        self.lib.fg_workspace_bytes.restype = ctypes.c_size_t
        self.context = ctypes.c_void_p()
        config = Config(
            size=ctypes.sizeof(Config), device=device and device.encode(), templates=templates and templates.encode()
        )
        self.check(self.lib.fg_open(ctypes.byref(config), ctypes.byref(self.context)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.fg_error().decode())

    def select(self, words, shape):
        """The kernel of a spec, a dict of field texts; compiled if it has to be."""
        op, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        spec = Spec(size=ctypes.sizeof(Spec), **{k: v.encode() for k, v in words.items()})
        self.check(self.lib.fg_define(self.context, ctypes.byref(spec), ctypes.byref(op)))
        self.check(self.lib.fg_select(op, ctypes.byref(shape), None, ctypes.byref(kernel)))
        return kernel

    def name(self, kernel):
        info = Info(size=ctypes.sizeof(Info))
        self.check(self.lib.fg_kernel_info(kernel, ctypes.byref(info)))
        return info.name.decode()

    def text(self, words):
        """The text of a spec's kernel, but for the command that makes it again, which has the switches in it."""
        spec = Spec(size=ctypes.sizeof(Spec), **{k: v.encode() for k, v in words.items()})
        text, free = ctypes.c_void_p(), ctypes.CDLL(None).free
        self.check(self.lib.fg_emit(self.context, ctypes.byref(spec), None, ctypes.byref(text)))
        whole = ctypes.string_at(text).decode()
        free(text)
        return re.sub(r"^// again:.*\n(?://   .*\n)*", "", whole, flags=re.M)

    def launch(self, kernel, shape, tensors, inputs, workspace, stream=None):
        """A function that launches. tensors: name -> (address, strides); inputs, in the order of their
        names: a number, or a pair of tensors, the value and its gradient or None."""

        def tensor(t):
            address, strides = t
            return Tensor(address, (ctypes.c_int64 * 4)(*strides))

        args = Args(size=ctypes.sizeof(Args))
        for name, t in tensors.items():
            setattr(args, name, tensor(t))
        values = (InputValue * len(inputs))()
        for to, x in zip(values, inputs):
            to.size = ctypes.sizeof(InputValue)
            if isinstance(x, (int, float)):
                to.number = x
                continue
            value, grad = x
            to.value = tensor(value)
            if grad:
                to.grad = tensor(grad)
        args.inputs, args.n_inputs = ctypes.addressof(values), len(inputs)
        keep = (kernel, shape, args, values, workspace, stream)

        def run(keep=keep):
            self.check(
                self.lib.fg_launch(kernel, ctypes.byref(shape), ctypes.byref(args), ctypes.c_void_p(workspace), stream)
            )

        return run

    def workspace_bytes(self, kernel, shape):
        return self.lib.fg_workspace_bytes(kernel, ctypes.byref(shape))


# ---- the check by hand: one row, two keys ----


def check_sizes(compiler):
    """The structs here are as large, and their members where a C compiler has them."""
    facts = [(f"sizeof({name})", ctypes.sizeof(kind)) for name, kind in STRUCTS.items()]
    for name, kind in STRUCTS.items():
        facts += [(f"offsetof({name}, {x[0]})", getattr(kind, x[0]).offset) for x in kind._fields_]
    claims = "\n".join(f'_Static_assert({what} == {value}, "{what} is not {value}");' for what, value in facts)
    text = f'#include "{HEADER}"\n{claims}\n'
    command = [compiler, "-std=c11", "-fsyntax-only", "-x", "c", "-"]
    made = subprocess.run(command, input=text, text=True, capture_output=True)
    if made.returncode:
        raise SystemExit(f"the structs differ from flashgen.h's:\n{made.stderr}")
    print(f"{len(STRUCTS)} structs as in flashgen.h, {len(facts)} facts")


def to_bf16(x):
    """Exact for the few numbers used here."""
    return ctypes.c_uint32.from_buffer(ctypes.c_float(x)).value >> 16


def from_bf16(x):
    return ctypes.c_float.from_buffer(ctypes.c_uint32(x << 16)).value


def aligned(kind, n):
    """An array of n at a multiple of 64 bytes."""
    raw = (ctypes.c_char * (n * ctypes.sizeof(kind) + 64))()
    offset = -ctypes.addressof(raw) % 64
    return (kind * n).from_buffer(raw, offset)


def pytorch():
    """The module, or None: --help needs none."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def need_gpu(torch):
    if torch is None:
        raise SystemExit("PyTorch is not installed: these figures are of flashgen beside what it has")
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no GPU")


def own_check(library):
    """softmax of (c table[k]) over two keys, q = 0: weights and the table's gradient in closed form."""
    fg, d, c = Flashgen(library, "host"), 8, 1.5
    shape = Shape(ctypes.sizeof(Shape), b=1, h=1, hk=1, nq=1, nk=2)
    arrays = {x: aligned(ctypes.c_uint16, d * (2 if x in ("k", "v", "dk", "dv") else 1)) for x in
              ("q", "k", "v", "o", "dout", "dq", "dk", "dv")}
    arrays["lse"] = aligned(ctypes.c_float, 1)
    table, gradient = aligned(ctypes.c_float, 2), aligned(ctypes.c_float, 2)
    table[:] = [0.25, 1.0]
    arrays["v"][0], arrays["v"][d], arrays["dout"][0] = to_bf16(1.0), to_bf16(3.0), to_bf16(2.0)
    tensors = {x: (ctypes.addressof(a), (len(a), len(a), d, 1)) for x, a in arrays.items() if x != "lse"}
    tensors["lse"] = (ctypes.addressof(arrays["lse"]), (1, 1, 1, 1))
    words = {"head_dim": str(d), "score": "s + c * table[k]", "inputs": "table=f32[k] grad, c=float"}
    inputs = [c, ((ctypes.addressof(table), (1, 0, 0, 0)), (ctypes.addressof(gradient), (1, 0, 0, 0)))]
    for which in ("forward", "backward"):
        kernel = fg.select({**words, "pass": which}, shape)
        workspace = aligned(ctypes.c_char, max(fg.workspace_bytes(kernel, shape), 1))
        need = ("q", "k", "v", "o", "lse") + (("dout", "dq", "dk", "dv") if which == "backward" else ())
        values = inputs if which == "backward" else [c, (inputs[1][0], None)]
        fg.launch(kernel, shape, {x: tensors[x] for x in need}, values, ctypes.addressof(workspace))()
        print(f"{fg.name(kernel)}: ran")
    far = 1 / (1 + math.exp(c * (table[0] - table[1])))  # of key 1
    expected = {"o": (from_bf16(arrays["o"][0]), 1 + 2 * far, 1e-2),
                "lse": (arrays["lse"][0], math.log(math.exp(c * table[0]) + math.exp(c * table[1])), 1e-4),
                "dtable[0]": (gradient[0], c * 2 * far * (1 - far) * (1 - 3), 2e-2),
                "dtable[1]": (gradient[1], c * 2 * far * (1 - far) * (3 - 1), 2e-2)}
    for name, (found, right, within) in expected.items():
        if not abs(found - right) <= within:
            raise SystemExit(f"{name} is {found}, not {right}")
        print(f"{name} {found:.4f}, by the formula {right:.4f}")


def check_names(library):
    """What libflashgen-gen.so writes into a text is the name that libflashgen.so gives the kernel."""
    fg, words = Flashgen(library, "host"), {"head_dim": "8", "mask": "window(3, 0)", "family": "simt"}
    name = fg.name(fg.select(words, Shape(ctypes.sizeof(Shape), b=1, h=1, hk=1, nq=4, nk=4)))
    text = fg.text({**words, "block_q": "4"}).splitlines()[0]
    if "window_3_0" not in name or text.split(".")[0] != "// " + name.split(".")[0]:
        raise SystemExit(f"a kernel is called {name}, its text {text}")
    print(f"{name}: so in its text")


def check_switches(library):
    """A switch that is turned off is another text of the same kernel, and one that is off already is none."""
    words, texts = {"head_dim": "64", "family": "mma"}, {}
    for switches in ("", "starts_early=0", "heads_side_by_side=0"):
        with under_switches(switches):
            texts[switches] = Flashgen(library, "host").text(words)
    usual, without, same = texts.values()
    if "starts_early" not in usual or "starts_early" in without or same != usual:
        raise SystemExit("the texts of kernels do not differ as their switches do")
    print("a switch that is on makes another text when it is turned off, one that is off does not")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--library", default="libflashgen.so.0", help="path of flashgen's shared library")
    options.add_argument("--cc", default="cc", help="a C compiler")
    choice = options.parse_args()
    check_sizes(choice.cc)
    own_check(choice.library)
    check_names(choice.library)
    check_switches(choice.library)

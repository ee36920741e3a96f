#!/usr/bin/env python3
"""attention.py - attention on arrays of Python, by ctypes and flashgen.h's functions alone.

    attention.py LIBFLASHGEN.SO [host|cuda:N]

Arrays are taken as DLPack gives them: NumPy's on the host device, PyTorch's on a GPU."""
import ctypes as c
import sys

import numpy as np


def struct(name, *fields):  # of flashgen.h; those that are filled begin with their size
    return type(name, (c.Structure,), {"_fields_": list(fields)})


Shape = struct("fg_shape", *((axis, c.c_int64) for axis in "b h hk nq nk align".split()))
Tensor = struct("fg_tensor", ("data", c.c_void_p), ("stride", c.c_int64 * 4))
Input = struct("fg_input_value", ("value", Tensor), ("grad", Tensor), ("number", c.c_double))
TENSORS = "q k v o dout dq dk dv bias dbias lse dlse".split()
Args = struct("fg_args", ("size", c.c_size_t), *((name, Tensor) for name in TENSORS),
              ("scale", c.c_float), ("inputs", Input * 8))
FIELDS = ("kernel pass dtype head_dim mask bias bias_dims bias_dtype grad_dtype normalizer "
          "deterministic")
Spec = struct("fg_spec", ("size", c.c_size_t), *((name, c.c_char_p) for name in FIELDS.split()))
Config = struct("fg_config", ("size", c.c_size_t), ("device", c.c_char_p))
DLTensor = struct("DLTensor", ("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32),
                  ("dtype", c.c_uint8 * 4), ("shape", c.POINTER(c.c_int64)),
                  ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64))

pointer_of = c.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def tensor(array):
    """[b, n, h, d], or [b, h, n] packed; the array must outlive it."""
    capsule = array.__dlpack__()
    t = DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    shape = t.shape[:t.ndim]
    packed = [int(np.prod(shape[i + 1:])) for i in range(t.ndim)]
    stride = t.strides[:t.ndim] if t.strides else packed
    order = (stride[0], stride[2], stride[1], stride[3]) if t.ndim == 4 else (0, 0, 0, 0)
    return Tensor(t.data + t.byte_offset, (c.c_int64 * 4)(*order))


class Attention:
    def __init__(self, library, device, **fields):
        self.lib = c.CDLL(library)
        self.lib.fg_error.restype = c.c_char_p
        self.lib.fg_workspace_bytes.restype = c.c_size_t
        self.context, self.op = c.c_void_p(), c.c_void_p()
        config, spec = Config(c.sizeof(Config), device.encode()), Spec(c.sizeof(Spec))
        for name, text in fields.items():
            setattr(spec, name, text.encode())
        self.call("fg_open", c.byref(config), c.byref(self.context))
        self.call("fg_define", self.context, c.byref(spec), c.byref(self.op))

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments):
            raise RuntimeError(self.lib.fg_error().decode())

    def forward(self, q, k, v, empty, stream=None):
        """o and lse of q [b, nq, h, d] and k, v [b, nk, hk, d]; empty(shape, dtype) makes one."""
        (b, nq, h, _), (_, nk, hk, dv) = q.shape, v.shape
        o, lse = empty((b, nq, h, dv), "float16"), empty((b, h, nq), "float32")
        shape, kernel = Shape(b, h, hk, nq, nk, 0), c.c_void_p()
        args = Args(c.sizeof(Args), *map(tensor, (q, k, v, o)), lse=tensor(lse))
        self.call("fg_select", self.op, c.byref(shape), stream, c.byref(kernel))
        scratch = empty((self.lib.fg_workspace_bytes(kernel, c.byref(shape)) + 1,), "uint8")
        self.call("fg_launch", kernel, c.byref(shape), c.byref(args),
                  c.c_void_p(tensor(scratch).data), stream)
        return o, lse


def reference(q, k, v):  # float64, causal; hk heads serve h / hk each
    q, k, v = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    nq, nk = s.shape[2:]
    s[..., ~np.tri(nq, nk, nk - nq, dtype=bool)] = -np.inf
    lse = np.log(np.exp(s).sum(-1))
    return (np.exp(s - lse[..., None]) @ v).transpose(0, 2, 1, 3), lse


def main(library, device="host"):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float16)
              for shape in ((2, 50, 4, 64), (2, 70, 2, 64), (2, 70, 2, 64))]
    attention = Attention(library, device, dtype="f16", head_dim="64", mask="causal")
    if device == "host":
        o, lse = attention.forward(*arrays, np.zeros)
    else:
        import torch
        there = [torch.from_numpy(array).to(device) for array in arrays]
        o, lse = attention.forward(*there, lambda shape, dtype: torch.zeros(
            shape, dtype=getattr(torch, dtype), device=device))
        o, lse = o.cpu().numpy(), lse.cpu().numpy()  # which waits for the launch
    want_o, want_lse = reference(*arrays)
    np.testing.assert_allclose(o, want_o, atol=4e-3)
    np.testing.assert_allclose(lse, want_lse, atol=1e-3)
    print("o and lse are right: largest difference %.1e" % abs(o - want_o).max())


if __name__ == "__main__":
    main(*sys.argv[1:])

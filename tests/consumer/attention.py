"""attention.py - attention on arrays of Python, by ctypes and flashgen.h's functions alone.

    attention = Attention("libflashgen.so", "host", head_dim="64", mask="causal", dtype="f16")
    o, lse = attention.forward(q, k, v, numpy.zeros)

Arrays are taken as DLPack gives them: NumPy's on the host device, PyTorch's on a GPU, as in
check_attention.py."""
import ctypes as c

import numpy as np


def struct(name, *fields):  # of flashgen.h; those that are filled begin with their size
    return type(name, (c.Structure,), {"_fields_": list(fields)})


Shape = struct("fg_shape", ("size", c.c_size_t),
               *((axis, c.c_int64) for axis in "b h hk nq nk align".split()))
Tensor = struct("fg_tensor", ("data", c.c_void_p), ("stride", c.c_int64 * 4))
TENSORS = "q k v o dout dq dk dv bias dbias lse dlse".split()
Args = struct("fg_args", ("size", c.c_size_t), *((name, Tensor) for name in TENSORS),
              ("given", c.c_uint32), ("scale", c.c_float), ("inputs", c.c_void_p),
              ("n_inputs", c.c_int64))
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
        shape, kernel = Shape(c.sizeof(Shape), b, h, hk, nq, nk, 0), c.c_void_p()
        args = Args(c.sizeof(Args), *map(tensor, (q, k, v, o)), lse=tensor(lse))
        self.call("fg_select", self.op, c.byref(shape), stream, c.byref(kernel))
        scratch = empty((self.lib.fg_workspace_bytes(kernel, c.byref(shape)) + 1,), "uint8")
        self.call("fg_launch", kernel, c.byref(shape), c.byref(args),
                  c.c_void_p(tensor(scratch).data), stream)
        return o, lse

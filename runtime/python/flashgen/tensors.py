"""PyTorch's tensors, on the host device and on GPUs: the functions of arrays.py."""
from functools import partial

import torch
from torch.autograd import forward_ad

from .autograd import E4M3, differentiable, differentiable_rows, tied  # noqa: F401
from .context import no_stream
from .layout import Fact

WORDS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.int32: "i32"}
if E4M3:
    WORDS[E4M3] = "e4m3"
DTYPES = {word: dtype for dtype, word in WORDS.items()}
DTYPES["u8"] = torch.uint8
IS_TRACED = False
NO_DISPATCH = getattr(torch.Tensor, "__torch_dispatch__", None)
ROUNDED = None  # a float32 tensor is not rounded behind the caller's back


def describe(arrays):
    if forward_ad._current_level >= 0:
        check_no_tangents(arrays)
    return tuple([(x.shape, x.stride(), x.dtype, x.device) for x in arrays])


def facts(descriptions):
    return [Fact(tuple(shape), strides, WORDS.get(dtype, str(dtype).replace("torch.", "")),
                 "host" if device.type == "cpu" else str(device)) for shape, strides, dtype, device in descriptions]


def check_no_tangents(arrays):
    """Kernels get addresses, by which a dual tensor would lose its tangent."""
    for x in arrays:
        if forward_ad.unpack_dual(x).tangent is not None:
            raise NotImplementedError("a tensor has a tangent of forward-mode AD, which flashgen's kernels do not compute: they "
                                      "have gradients of reverse mode")


def is_traced(kind):
    """Whether tensors of a class see operators in place of addresses."""
    return getattr(kind, "__torch_dispatch__", NO_DISPATCH) is not NO_DISPATCH


def needs_gradient(given):
    """Whether PyTorch will ask for gradients of any of the tensors."""
    if torch.is_grad_enabled():
        for x in given.values():
            if x.requires_grad:
                return True
    return False


def addresses(arrays):
    return [x.data_ptr() for x in arrays]


def stream_of(device):
    """A function that gives the current stream of the device, as a number."""
    if device == "host":
        return no_stream
    return partial(torch._C._cuda_getCurrentRawStream, torch.device(device).index)


def check_writable(out, name="out"):
    """A tensor always is; one that is expanded has a stride of 0, which the library refuses."""


empty_like = torch.empty_like


def empty(shape, word, like):
    return torch.empty(shape, dtype=DTYPES[word], device=like.device)


def fixed(x, word, width):
    x = x.detach()
    if x.dtype == torch.int64:  # what int32 cannot hold stays no column of a row
        x = x.clamp(-1, 2**31 - 1)
    x = x.to(DTYPES[word], copy=True, memory_format=torch.contiguous_format)
    if width is not None and width != x.shape[-1]:
        return torch.nn.functional.pad(x, (0, width - x.shape[-1]))
    return x


def unfixed(x, word, width):
    return (x if width is None else x[..., :width]).to(DTYPES[word])


def copy_into(out, x):
    out.copy_(x)


def seed_words(seed, like):
    halves = [half - (half >> 31 << 32) for number in seed for half in (number & 0xFFFFFFFF, number >> 32)]
    return torch.tensor(halves, dtype=torch.int32).to(like.device, non_blocking=True)


def filled(n, number, like):
    return torch.full((n,), number, dtype=torch.int32, device=like.device)


def fresh_seed(like):
    """Four words of the generator of the tensor's device: the same again after torch.manual_seed, new ones with
    each replay of a graph."""
    return torch.randint(-2**31, 2**31, (4,), dtype=torch.int32, device=like.device)

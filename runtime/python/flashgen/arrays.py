"""NumPy's arrays, on the host device: what call.py has to know of them and do with them.

bfloat16, which NumPy does not have, is uint16 here: the upper half of a float32; float8_e4m3fn is that of ml_dtypes, or
uint8: its bits. tensors.py has the same functions
for PyTorch."""
import numpy as np

from .context import no_stream
from .layout import Fact

WORDS = {"float16": "f16", "uint16": "bf16", "float32": "f32", "int32": "i32", "uint8": "e4m3", "float8_e4m3fn": "e4m3"}
DTYPES = {word: np.dtype(name) for name, word in WORDS.items() if word != "e4m3"}
DTYPES["u8"] = np.dtype("uint8")
IS_TRACED = False  # what it does with arrays is not recorded for another time
ROUNDED = "bf16"  # what float32 is computed in, unless dtype= says otherwise


def describe(arrays):
    """All that a prepared call depends on, hashable."""
    return tuple([(x.shape, x.strides, x.dtype) for x in arrays])


def facts(descriptions):
    """The Fact of each description."""
    return [Fact(shape, whole(strides, dtype.itemsize), word(dtype), "host") for shape, strides, dtype in descriptions]


def whole(strides, size):
    return None if any(stride % size for stride in strides) else tuple(stride // size for stride in strides)


def word(dtype):
    return WORDS.get(dtype.name, dtype.name) if dtype.isnative else str(dtype)


def needs_gradient(given):
    """NumPy has no gradients: attention_backward makes them."""
    return False


def addresses(arrays):
    return [x.ctypes.data for x in arrays]  # which a number of NumPy, that is no array, does not have


def stream_of(device):
    return no_stream


def check_writable(out, name="out"):
    if not out.flags.writeable:
        raise ValueError(f"{name} is an array that may not be written to")


empty_like = np.empty_like


def empty(shape, word, like):
    return np.empty(shape, DTYPES[word])


def fixed(x, word, width):
    """A contiguous copy in another dtype, its last axis made so wide with zeros; width None: as it is."""
    x = convert(x, word)
    if width is not None and width != x.shape[-1]:
        wide = np.zeros(x.shape[:-1] + (width,), x.dtype)
        wide[..., :x.shape[-1]] = x
        return wide
    return x.copy()


def convert(x, word):
    have = WORDS.get(x.dtype.name)
    if have == word:
        return x
    if have == "bf16":
        x = (x.astype(np.uint32) << 16).view(np.float32)
    if word == "i32":  # what it cannot hold stays no column of a row
        x = np.asarray(np.clip(x, -1, 2**31 - 1))
    return round_to_bf16(x) if word == "bf16" else x.astype(DTYPES[word])


def round_to_bf16(x):
    """The nearest bfloat16 of each number, ties to even, as uint16."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def unfixed(x, word, width):
    """The first columns of a result, in the dtype of what it belongs to."""
    return convert(x if width is None else x[..., :width], word)


def copy_into(out, x):
    out[...] = x


def seed_words(seed, like):
    """int32[4] of a seed and an offset, 64 bits each, low words first."""
    return np.array(seed, np.uint64).view(np.int32)


def filled(n, number, like):
    """int32[n], all of them the number."""
    return np.full(n, number, np.int32)


def fresh_seed(like):
    raise ValueError("dropout of NumPy arrays needs a seed: seed=1, or seed=(seed, offset)")

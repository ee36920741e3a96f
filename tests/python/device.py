"""device.py - what tests of PyTorch's tensors share: torch, the device, which is the CPU or FLASHGEN_TEST_DEVICE, and random
tensors on it."""
import os

from case import skip

DEVICE = os.environ.get("FLASHGEN_TEST_DEVICE", "host").replace("host", "cpu")
try:
    import torch
except ImportError:
    skip("torch", "PyTorch is missing: what takes its tensors is not tested")
if DEVICE != "cpu" and not torch.cuda.is_available():
    skip("gpu", "PyTorch finds no GPU")


def random(*shape, dtype=torch.float16, grad=False, seed=0):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return made.to(DEVICE, dtype).requires_grad_(grad)

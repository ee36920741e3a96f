"""flashgen: attention kernels that are made for what you ask: attention(q, k, v, mask=..., score=...)."""
from .attention import Gradients, attention, attention_backward
from .errors import FlashgenMissing
from .library import VERSION as __version__

__all__ = ["Gradients", "FlashgenMissing", "attention", "attention_backward", "__version__"]

"""flashgen: attention kernels that are made for what you ask: attention(q, k, v, mask=..., score=...)."""
from .append import append
from .attention import Gradients, attention, attention_backward
from .combine import combine
from .errors import FlashgenMissing
from .library import VERSION as __version__

__all__ = ["Gradients", "FlashgenMissing", "append", "attention", "attention_backward", "combine", "register_sdpa",
           "register_transformers", "__version__"]


def register_sdpa():
    """After it torch.nn.attention.activate_flash_attention_impl("flashgen") has PyTorch's flash attention, which is under
    scaled_dot_product_attention and varlen_attn, done by our kernels, on CUDA."""
    from . import sdpa
    sdpa.register()


def register_transformers(name="fg"):
    """After it from_pretrained(..., attn_implementation="fg") has a model of transformers attend by our kernels."""
    from . import transformers
    transformers.register(name)

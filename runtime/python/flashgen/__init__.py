"""flashgen: attention kernels that are made for what you ask: attention(q, k, v, mask=..., score=...), and what stands beside
them in a transformer: linear, ffn, layernorm, log_softmax, cross_entropy."""
from .append import append
from .attention import Gradients, attention, attention_backward
from .combine import combine
from .context_parallel import context_parallel, shard, unshard
from .errors import FlashgenMissing
from .layernorm import LayernormGradients, layernorm, layernorm_backward
from .library import VERSION as __version__
from .linear import FfnGradients, LinearGradients, ffn, ffn_backward, linear, linear_backward
from .linear_norm import LinearNormGradients, linear_norm, linear_norm_backward
from .logsoftmax import cross_entropy, cross_entropy_backward, log_softmax, log_softmax_backward

__all__ = ["FfnGradients", "Gradients", "FlashgenMissing", "LayernormGradients", "LinearGradients", "LinearNormGradients", "append",
           "attention", "attention_backward", "combine", "context_parallel", "cross_entropy", "cross_entropy_backward", "ffn", "ffn_backward",
           "layernorm", "layernorm_backward", "linear", "linear_backward", "linear_norm", "linear_norm_backward", "log_softmax", "log_softmax_backward", "register_sdpa",
           "register_transformers", "shard", "unshard", "__version__"]


def register_sdpa():
    """After it torch.nn.attention.activate_flash_attention_impl("flashgen") has PyTorch's flash attention, which is under
    scaled_dot_product_attention and varlen_attn, done by our kernels, on CUDA."""
    from . import sdpa
    sdpa.register()


def register_transformers(name="fg"):
    """After it from_pretrained(..., attn_implementation="fg") has a model of transformers attend by our kernels."""
    from . import transformers
    transformers.register(name)

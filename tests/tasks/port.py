"""A task of a new user, a call of flash-attn is ported, first by its import alone, then to attention(). From flash_attention.md."""
import sys
import torch
import flashgen.flash_attn

flashgen.flash_attn.stand_in()
from flash_attn import flash_attn_func, flash_attn_with_kvcache  # noqa: E402

torch.manual_seed(4)
q, k, v = (torch.randn(2, 90, h, 64, dtype=torch.float16) for h in (4, 2, 2))
slopes = torch.rand(4)
theirs = flash_attn_func(q, k, v, softmax_scale=0.1, causal=True, window_size=(40, 0), alibi_slopes=slopes)
ours = flashgen.attention(q, k, v, scale=0.1, mask="window(40, 0)", score="alibi(slope)", inputs={"slope": ("h", slopes)})
assert torch.equal(theirs, ours) or (theirs - ours).abs().max() < 2e-3

cache_k, cache_v = (torch.randn(8, 16, 2, 64, dtype=torch.float16) for _ in "kv")
table, used = torch.randperm(8).int().view(2, 4), torch.tensor([60, 17], dtype=torch.int32)
theirs = flash_attn_with_kvcache(q[:, :1], cache_k, cache_v, cache_seqlens=used, block_table=table, causal=True)
ours = flashgen.attention(q[:, :1], cache_k, cache_v, table=table, used_k=used, mask="causal")
assert (theirs - ours).abs().max() < 2e-3

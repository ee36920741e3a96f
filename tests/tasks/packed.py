"""A task of a new user, three documents packed into one tensor, forward and backward. From training.md."""
import torch
from flashgen import attention

torch.manual_seed(3)
lengths = [50, 1, 90]
starts = torch.tensor([0, 50, 51, 141], dtype=torch.int32)
q, k, v = (torch.randn(141, h, 64, dtype=torch.bfloat16, requires_grad=True) for h in (4, 2, 2))
out = attention(q, k, v, mask="causal", starts_q=starts, starts_k=starts)
out.float().square().sum().backward()

for q_, k_, v_, o, dk in zip(*(x.split(lengths) for x in (q.detach(), k.detach(), v.detach(), out, k.grad))):
    Q, K, V = (x.double().transpose(0, 1).requires_grad_() for x in (q_, k_, v_))
    right = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)
    right.square().sum().backward()
    for found, wanted in ((o.transpose(0, 1), right), (dk.transpose(0, 1), K.grad)):
        assert (found - wanted).norm() < 8e-3 * wanted.norm() + 1e-2, (found - wanted).norm() / wanted.norm()

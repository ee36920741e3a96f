"""A task of a new user, a score of one's own, whose inputs have gradients. From pytorch.md and own_formula.md."""
import torch
from flashgen import attention

torch.manual_seed(1)
q, k, v = (torch.randn(2, 70, 4, 64, dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")
near = torch.rand(4, requires_grad=True)
out = attention(q, k, v, mask="causal", score="near[h] * s / (1.0 + abs(s)) - float(p - k) / 50.0", inputs={"near": ("h", near)})
out.float().square().sum().backward()

Q, K, V = (x.detach().double().transpose(1, 2).requires_grad_() for x in (q, k, v))
NEAR = near.detach().double().requires_grad_()
s = Q @ K.transpose(2, 3) / 8
distance = torch.arange(70)[:, None] - torch.arange(70)[None, :]
s = (NEAR[:, None, None] * s / (1 + s.abs()) - distance / 50).masked_fill(distance < 0, -torch.inf)
right = s.softmax(3) @ V
right.square().sum().backward()
for found, wanted in ((out.transpose(1, 2), right), (q.grad.transpose(1, 2), Q.grad), (k.grad.transpose(1, 2), K.grad), (near.grad, NEAR.grad)):
    assert (found - wanted).norm() < 8e-3 * wanted.norm(), (found - wanted).norm() / wanted.norm()

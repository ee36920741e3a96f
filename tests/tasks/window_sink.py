"""A task of a new user, a sliding window of 128 with a learned sink, as gpt-oss has. From fields.md and training.md."""
import torch
from flashgen import attention

torch.manual_seed(2)
q, k, v = (torch.randn(1, 200, h, 64, dtype=torch.bfloat16, requires_grad=True) for h in (8, 2, 2))
sink = torch.randn(8, requires_grad=True)
out = attention(q, k, v, mask="window(127, 0)", sink=sink)
out.float().square().sum().backward()

Q, K, V = (x.detach().double().transpose(1, 2).requires_grad_() for x in (q, k, v))
SINK = sink.detach().double().requires_grad_()
distance = torch.arange(200)[:, None] - torch.arange(200)[None, :]
s = (Q @ K.repeat_interleave(4, 1).transpose(2, 3) / 8).masked_fill((distance < 0) | (distance > 127), -torch.inf)
p = torch.cat([s, SINK[None, :, None, None].expand(1, 8, 200, 1)], 3).softmax(3)[..., :-1]
right = p @ V.repeat_interleave(4, 1)
right.square().sum().backward()
for found, wanted in ((out.transpose(1, 2), right), (k.grad.transpose(1, 2), K.grad), (sink.grad, SINK.grad)):
    assert (found - wanted).norm() < 8e-3 * wanted.norm(), (found - wanted).norm() / wanted.norm()

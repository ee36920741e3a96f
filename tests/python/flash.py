"""flash.py - what the tests of FlashAttention's functions share: tensors, the plain formula in float64, and how far from it is
right. Tensors are on the CPU, or on FLASHGEN_TEST_DEVICE."""
from case import Case
from device import DEVICE, random, torch

B, NQ, NK, H, HK, D = 2, 19, 33, 4, 2, 16
LIMIT = 1.5e-3  # of float16, twice mathematics.md's: the sizes of terms are not looked at here


def ints(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def some(b=B, nq=NQ, nk=NK, h=H, hk=HK, d=D, dv=None, grad=True):
    return (random(b, nq, h, d, grad=grad), random(b, nk, hk, d, grad=grad, seed=1),
            random(b, nk, hk, dv or d, grad=grad, seed=2))


def plain(q, k, v, left=-1, right=-1, chunk=0, cap=0.0, slopes=None, kept=None, scale=None):
    """(o, lse, weights) in float64. kept: what dropout keeps, and its quotient."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    nq, nk = q.shape[2], k.shape[2]
    j, p = torch.arange(nk, device=q.device), torch.arange(nq, device=q.device)[:, None] + nk - nq
    s = q @ k.transpose(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    if cap:
        s = cap * torch.tanh(s / cap)
    if slopes is not None:
        s = s - slopes.double().reshape(-1, q.shape[1], 1, 1) * (j - p).abs()
    seen = torch.ones(nq, nk, dtype=torch.bool, device=q.device)
    for is_bound, test in ((left >= 0, p - j <= left), (right >= 0, j - p <= right)):
        seen &= test | (not is_bound)
    if chunk:
        seen &= torch.div(p, chunk, rounding_mode="floor") == torch.div(j, chunk, rounding_mode="floor")
    weights = torch.where(seen, s.masked_fill(~seen, -1e300).softmax(3), torch.zeros_like(s))
    lse = s.masked_fill(~seen, float("-inf")).logsumexp(3)
    used = weights if kept is None else weights * kept[0] / kept[1]
    return (used @ v).transpose(1, 2), lse, weights


class Flash(Case):
    def near(self, found, right, limit=LIMIT):
        self.assertEqual(found.shape, right.shape)
        norm = right.norm().item()
        self.assertLess((found.double() - right).norm().item(), limit * norm if norm else 1e-6)

    def compare(self, leaves, ours, theirs):
        """Values and gradients of two functions of the leaves."""
        out = ours(*leaves)
        dout = random(*out.shape, seed=3)
        found = torch.autograd.grad(out, leaves, dout)
        exact = [x.detach().double().requires_grad_() for x in leaves]
        right_out = theirs(*exact)
        self.near(out, right_out)
        for x, y in zip(found, torch.autograd.grad(right_out, exact, dout.double())):
            self.near(x, y)

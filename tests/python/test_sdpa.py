"""scaled_dot_product_attention and varlen_attn on our kernels. PyTorch does so on CUDA alone; on the CPU the same functions
are put in the place of the CPU's operators, so that PyTorch calls them as it would, with its own gradients."""
import inspect
import unittest
from unittest import mock

from case import Case, main, skip
from test_torch import DEVICE, LIMITS, flashgen, plain, random, torch

try:
    from torch.nn.attention import SDPBackend, activate_flash_attention_impl, restore_flash_attention_impl, sdpa_kernel
    from torch.nn.attention import current_flash_attention_impl, list_flash_attention_impls
    from torch.nn.attention.varlen import varlen_attn
except ImportError:
    skip("torch", f"PyTorch {torch.__version__} takes no flash attention of others: SDPA is not tested")

from flashgen import call, sdpa, spec  # noqa: E402
from flashgen.prepare import prepare  # noqa: E402

B, H, HK, N, D = 2, 4, 2, 48, 16
STARTS = torch.tensor([0, 15, 15, 60], dtype=torch.int32, device=DEVICE)
ROWS = (slice(0, 15), slice(15, 60))
FLASH = torch.ops.aten._scaled_dot_product_flash_attention
VARLEN = inspect.signature(varlen_attn).parameters  # which PyTorch has changed
HAS_WINDOWS = "window_size" in VARLEN


def window(left, right):
    return {"window_size": (left, right)} if HAS_WINDOWS else {"is_causal": right == 0}


def causal(nq, nk, left=10**6, right=0):
    distance = torch.arange(nq, device=DEVICE)[:, None] + nk - nq - torch.arange(nk, device=DEVICE)
    return (distance <= left) & (distance >= -right)


def exact(q, k, v, mask=None, scale=None):
    """o in float64, of q, k and v [b, h, n, d]."""
    return plain(*(x.transpose(1, 2) for x in (q, k, v)), mask=mask, scale=scale)[0].transpose(1, 2)


class Activated(Case):
    """Counts our launches."""

    def setUp(self):
        flashgen.register_sdpa()
        if DEVICE == "cpu":
            self.handle = sdpa.activate("CPU")
        else:
            activate_flash_attention_impl("flashgen")
        self.launches, self.launch = 0, call.launch
        call.launch = self.count

    def tearDown(self):
        call.launch = self.launch
        if DEVICE == "cpu":
            self.handle.remove()
            del self.handle
        else:
            restore_flash_attention_impl()

    def count(self, *arguments):
        self.launches += 1
        return self.launch(*arguments)

    def near(self, found, right):
        self.assertEqual(found.shape, right.shape)
        self.assertLess(((found.double() - right).norm() / right.norm()).item(), LIMITS[torch.float16])

    def attend(self, q, k, v, dropout=0.0, is_causal=False, scale=None):
        """SDPA, by its flash attention; PyTorch has none of ours to choose on the CPU, and so its operator is called."""
        if DEVICE == "cpu":
            return FLASH(q, k, v, dropout, is_causal, scale=scale)[0]
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, None, dropout, is_causal, scale=scale,
                                                                    enable_gqa=q.shape[1] != k.shape[1])

    def compare(self, arrays, right, function):
        out = function(*arrays)
        self.assertEqual(self.launches, 1)
        self.near(out, right(*[x.detach().double() for x in arrays]))
        dout = random(*out.shape, seed=9)
        found = torch.autograd.grad(out, arrays, dout)
        self.assertEqual(self.launches, 2)
        leaves = [x.detach().double().requires_grad_() for x in arrays]
        for x, y in zip(found, torch.autograd.grad(right(*leaves), leaves, dout.double())):
            self.near(x, y)
        self.launches = 0
        return out, found

    def test_sdpa(self):
        dense = [random(B, h, N, D, grad=True, seed=i) for i, h in enumerate((H, HK, HK))]
        for is_causal in (False, True):
            self.compare(dense, lambda q, k, v: exact(q, k, v, causal(N, N) if is_causal else None, 0.3),
                         lambda q, k, v: self.attend(q, k, v, 0.0, is_causal, 0.3))

    def test_layouts(self):
        """The result lies as the query does, and gradients as what they belong to: PyTorch's compiler counts on it."""
        heads_last = [random(B, N, H, D, grad=True, seed=i) for i in range(3)]
        right = lambda q, k, v: exact(*(x.transpose(1, 2) for x in (q, k, v)), causal(N, N))  # noqa: E731
        out, _ = self.compare(heads_last, right, lambda *x: self.attend(*[y.transpose(1, 2) for y in x], is_causal=True))
        self.assertTrue(out.transpose(1, 2).is_contiguous())
        for arrays in ([x.detach().transpose(1, 2) for x in heads_last], [random(B, H, N, D, seed=i) for i in range(3)]):
            out, lse, starts_q, starts_k, nq, nk, state, _, _ = sdpa._scaled_dot_product_flash_attention(*arrays)
            self.assertEqual((starts_q, starts_k, nq, nk, lse.shape), (None, None, N, N, (B, H, N)))
            self.assertEqual((state.dtype, state.shape), (torch.uint64, (2,)))
            self.assertEqual(out.stride(), torch.empty_like(arrays[0]).stride())
            made = sdpa._scaled_dot_product_flash_attention_backward(out, *arrays, out, lse, None, None, N, N, 0.0, False, state,
                                                                     state)
            for x, dx in zip(arrays, made):
                self.assertEqual(dx.stride(), torch.empty_like(x).stride())
        wide = sdpa.empty_like(arrays[0].transpose(1, 2), 24)
        self.assertEqual((wide.shape, wide.stride()), ((B, N, H, 24), (H * N * 24, 24, N * 24, 1)))

    def test_dropout(self):
        q, k = (random(B, H, N, D) for _ in "qk")
        ones = torch.ones_like(q).requires_grad_()
        torch.manual_seed(5)
        out = self.attend(q, k, ones, 0.25)
        dv, = torch.autograd.grad(out.sum(), ones)
        self.assertAlmostEqual(dv.double().sum().item() / out.double().sum().item(), 1.0, delta=1e-3)
        self.assertGreater((out.double() - 1).abs().max().item(), 0.05)
        self.assertFalse(torch.equal(out, self.attend(q, k, ones, 0.25)))
        torch.manual_seed(5)
        self.assertTrue(torch.equal(out, self.attend(q, k, ones, 0.25)))

    def packed(self, left, right):
        """Of three documents, one of them empty."""
        def ours(q, k, v):
            return varlen_attn(q, k, v, STARTS, STARTS, 45, 45, **window(left, right))

        def theirs(q, k, v):
            parts = [exact(*(x[None, rows].transpose(1, 2) for x in (q, k, v)),
                           causal(*[rows.stop - rows.start] * 2, *(10**6 if n < 0 else n for n in (left, right))))
                     for rows in ROWS]
            return torch.cat([x[0].transpose(0, 1) for x in parts])

        # cuDNN is asked before flash attention where it can do it
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            arrays = [random(60, H, D, grad=left < 0, seed=i) for i in range(3)]
            if left < 0:
                self.compare(arrays, theirs, ours)
            else:
                self.near(ours(*arrays), theirs(*arrays))
                self.assertEqual(self.launches, 1)
                self.launches = 0

    def test_varlen(self):
        for left, right in ((-1, -1), (-1, 0), (7, 0), (7, 3), (-1, 3), (7, -1))[:6 if HAS_WINDOWS else 2]:
            self.packed(left, right)

    def test_varlen_pages(self):
        if "block_table" not in VARLEN:
            self.skipTest(f"varlen_attn of PyTorch {torch.__version__} takes no pages")
        used = torch.tensor([40, 3, 64], dtype=torch.int32, device=DEVICE)
        table = torch.randperm(12).view(3, 4).to(DEVICE, torch.int32)
        pool = [random(12, 16, HK, D, seed=i) for i in range(2)]
        q = random(60, H, D)
        starts = torch.tensor([0, 1, 2, 60], dtype=torch.int32, device=DEVICE)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            out = varlen_attn(q, *pool, starts, None, 58, 64, window_size=(-1, 0), enable_gqa=True, seqused_k=used,
                              block_table=table)
        self.assertEqual(self.launches, 1)
        for i, n in enumerate(used.tolist()):
            k, v = (x[table[i].long()].reshape(1, 64, HK, D)[:, :n].transpose(1, 2) for x in pool)
            rows = slice(*starts[i:i + 2].tolist())
            own = q[None, rows].transpose(1, 2)
            self.near(out[rows], exact(own, k, v, causal(own.shape[2], n))[0].transpose(0, 1))

    def test_options(self):
        """One split is batch-invariant, and PyTorch's own switch asks for equal gradients."""
        q, k, v = (random(B, N, H, D, seed=i) for i in range(3))
        seen = []
        with mock.patch.object(call, "prepare", lambda *x: seen.append(spec.Options(*x[2])) or prepare(*x)):
            call.calls.clear()
            _, lse, *_ = sdpa._flash_attention_forward(q, k, v, None, None, N, N, 0.0, True, False, num_splits=1)
            self.assertEqual((seen[-1].batch_invariant, seen[-1].deterministic), (True, False))
            torch.use_deterministic_algorithms(True)
            try:
                sdpa._flash_attention_backward(q, q, k, v, q, lse, None, None, N, N, 0.0, True, lse, lse)
            finally:
                torch.use_deterministic_algorithms(False)
            self.assertEqual((seen[-1].batch_invariant, seen[-1].deterministic), (False, True))

    def test_alibi_and_out(self):
        q, k, v = (random(B, N, H, D, seed=i) for i in range(3))
        for slopes in (random(H, dtype=torch.float32), random(B, H, dtype=torch.float32)):
            found = sdpa._flash_attention_forward(q, k, v, None, None, N, N, 0.0, False, False, alibi_slopes=slopes)
            at = torch.arange(N, device=DEVICE)
            right = plain(q, k, v, lambda s: s - slopes.double().view(-1, H, 1, 1) * (at[:, None] - at).abs())
            self.near(found[0], right[0])
            self.assertLess((found[1] - right[1]).abs().max().item(), 1e-4)
        out = torch.empty_like(q)
        lse = sdpa._flash_attention_forward_no_dropout_inplace(out, q, k, v, None, None, N, N, 0.0, True, False)
        right = flashgen.attention(q, k, v, mask="causal", return_lse=True)
        self.assertTrue(torch.equal(out, right[0]) and torch.equal(lse, right[1]))
        dense = (q, k, v, None, None, N, N, 0.0, True, False)
        self.says(NotImplementedError, "k_cache: flashgen's flash attention does not append keys to a cache",
                  sdpa._flash_attention_forward, *dense, k_cache=k)
        self.assertIs(sdpa._flash_attention_forward(*dense, out=out)[0], out)
        self.says(NotImplementedError, "return_debug_mask: kernels of flashgen keep no weights", sdpa._flash_attention_forward, q,
                  k, v, None, None, N, N, 0.0, True, True)


class Registered(unittest.TestCase):
    def test_registry(self):
        """Registering activates nothing."""
        flashgen.register_sdpa()
        self.assertIn("flashgen", list_flash_attention_impls())
        self.assertIsNone(current_flash_attention_impl())
        activate_flash_attention_impl("flashgen")
        self.assertEqual(current_flash_attention_impl(), "flashgen")
        restore_flash_attention_impl()
        self.assertIsNone(current_flash_attention_impl())


if __name__ == "__main__":
    main()

"""flashgen.attention on PyTorch's tensors, on the CPU or on FLASHGEN_TEST_DEVICE: beside float64 autograd of the plain
formula, and what it refuses."""
from case import Case, flashgen, main, np
from device import DEVICE, random, torch

B, H, HK, NQ, NK, D = 2, 4, 2, 19, 33, 16
LIMITS = {torch.bfloat16: 8e-3, torch.float16: 1.5e-3}  # twice mathematics.md's: the sizes of terms are not looked at here
P = torch.arange(NQ, device=DEVICE)[:, None] + NK - NQ
K = torch.arange(NK, device=DEVICE)[None, :]


def some(dtype=torch.float16, grad=True, d=D, dv=D):
    return (random(B, NQ, H, d, dtype=dtype, grad=grad), random(B, NK, HK, d, dtype=dtype, grad=grad, seed=1),
            random(B, NK, HK, dv, dtype=dtype, grad=grad, seed=2))


def plain(q, k, v, change=lambda s: s, mask=None, sink=None, scale=None):
    """o and lse in float64, by PyTorch's own functions."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = change(q @ k.transpose(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale))
    if mask is not None:
        s = s.masked_fill(~mask, -1e300)
    if sink is not None:
        s = torch.cat((s, sink.double()[None, :, None, None].expand(*s.shape[:3], 1)), 3)
    p = s.softmax(3)[..., :k.shape[2]]
    return (p @ v).transpose(1, 2), s.logsumexp(3)


class Torch(Case):
    def near(self, found, right, dtype=torch.float16):
        self.assertEqual(found.shape, right.shape)
        self.assertLess(((found.double() - right).norm() / right.norm()).item(), LIMITS[dtype])

    def compare(self, leaves, ours, theirs, dtype=torch.float16):
        """Values and gradients of two functions of the leaves, each of which gives o and lse."""
        out, lse = ours(*leaves)
        dout, dlse = random(*out.shape, dtype=dtype, seed=3), random(*lse.shape, dtype=torch.float32, seed=4)
        found = torch.autograd.grad((out, lse), leaves, (dout, dlse))
        exact = [x.detach().double().requires_grad_() for x in leaves]
        right_out, right_lse = theirs(*exact)
        right = torch.autograd.grad((right_out, right_lse), exact, (dout.double(), dlse.double()))
        self.near(out, right_out, dtype)
        self.assertLess((lse - right_lse).abs().max().item(), 1e-4)
        for leaf, x, y in zip(leaves, found, right):
            self.assertEqual(x.dtype, leaf.dtype)
            self.near(x, y, dtype)

    def test_gradients(self):
        for dtype in (torch.float16, torch.bfloat16):
            for d in (D, 59):
                self.compare(some(dtype, d=d, dv=24), lambda q, k, v: flashgen.attention(q, k, v, mask="causal", return_lse=True),
                             lambda q, k, v: plain(q, k, v, mask=K <= P), dtype)

    def test_gradients_of_all(self):
        """A score's input, a bias that is broadcast, and a sink in another dtype."""
        leaves = (*some(), random(H, dtype=torch.float32, grad=True), random(1, H, NQ, NK, dtype=torch.float32, grad=True),
                  random(H, grad=True))

        def ours(q, k, v, slope, bias, sink):
            return flashgen.attention(q, k, v, mask="causal", score="s + slope[h] / 8 * (k - p)",
                                      inputs={"slope": ("h", slope)}, bias=bias, sink=sink, return_lse=True)

        def theirs(q, k, v, slope, bias, sink):
            return plain(q, k, v, lambda s: s + slope.view(-1, 1, 1) / 8 * (K - P) + bias, K <= P, sink)

        self.compare(leaves, ours, theirs)

    def test_only_what_is_asked_for(self):
        q, k, v = some()
        slope = torch.ones(H, device=DEVICE)
        out = flashgen.attention(q.detach(), k, v.detach(), mask="causal", score="alibi(slope)", inputs={"slope": ("h", slope)})
        out.sum().backward()
        self.assertIsNotNone(k.grad)
        self.assertIsNone(q.grad)
        with torch.no_grad():
            self.assertFalse(flashgen.attention(q, k, v, mask="causal").requires_grad)
        self.assertFalse(flashgen.attention(*some(grad=False), mask="causal").requires_grad)

    def test_lse_alone(self):
        q, k, v = some()
        flashgen.attention(q, k, v, mask="causal", return_lse=True)[1].sum().backward()
        right = [x.detach().double().requires_grad_() for x in (q, k, v)]
        plain(*right, mask=K <= P)[1].sum().backward()
        self.near(q.grad, right[0].grad)
        self.assertEqual(v.grad.abs().max().item(), 0)

    def test_strides(self):
        """Heads first, a packed q k v, an expanded gradient, odd addresses."""
        q, k, v = some(grad=False)
        want = flashgen.attention(q, k, v, mask="causal")
        heads_first = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
        self.assertTrue(torch.equal(flashgen.attention(*heads_first, mask="causal"), want))
        kv = torch.stack((k, v), 2).requires_grad_()
        self.assertTrue(torch.equal(flashgen.attention(q, *kv.unbind(2), mask="causal"), want))
        flashgen.attention(q, *kv.unbind(2), mask="causal").sum().backward()
        right = [x.clone().requires_grad_() for x in (k, v)]
        flashgen.attention(q, *right, mask="causal").backward(torch.ones_like(q))
        self.assertTrue(torch.equal(kv.grad, torch.stack([x.grad for x in right], 2)))
        odd = torch.zeros(q.numel() + 1, dtype=q.dtype, device=DEVICE)[1:].view(q.shape).copy_(q)
        self.assertTrue(torch.equal(flashgen.attention(odd, k, v, mask="causal"), want))
        out = torch.empty_like(want)
        self.assertIs(flashgen.attention(q, k, v, mask="causal", out=out), out)
        self.assertTrue(torch.equal(out, want))

    def test_parameters_and_modules(self):
        weight = torch.nn.Parameter(random(B, NQ, H, D))
        flashgen.attention(weight, *some(grad=False)[1:], mask="causal").sum().backward()
        self.assertEqual(weight.grad.shape, weight.shape)

    def test_dropout(self):
        """PyTorch's generator decides; forward and backward drop the same."""
        q, k, v = some()

        def run():
            out = flashgen.attention(q, k, v, mask="causal", dropout=0.25)
            return (out, *torch.autograd.grad(out.sum(), (q, k, v)))

        torch.manual_seed(42)
        first, second = run(), run()
        torch.manual_seed(42)
        again = run()
        for x, y, z in zip(first, second, again):
            self.assertTrue(torch.equal(x, z))
            self.assertFalse(torch.equal(x, y))
        seed = torch.tensor([7, 0, 3, 0], dtype=torch.int32, device=DEVICE)
        self.assertTrue(torch.equal(flashgen.attention(q, k, v, mask="causal", dropout=0.25, seed=seed),
                                    flashgen.attention(q, k, v, mask="causal", dropout=0.25, seed=(7, 3))))
        # weights of a constant value: what comes out of v = 1 is what was kept of each row, and dv what of each key
        ones = torch.ones_like(v).requires_grad_()
        out = flashgen.attention(q, k, ones, mask="causal", dropout=0.25, seed=(1 << 63, 0))
        dv, = torch.autograd.grad(out.sum(), ones)
        self.assertAlmostEqual(dv.double().sum().item() / out.double().sum().item(), 1.0, delta=1e-3)

    def test_seed_words(self):
        """The same numbers for NumPy and PyTorch."""
        from flashgen import arrays, tensors
        for seed in ((1, 2), (0xFFFFFFFF80000000, 0x80000000FFFFFFFF)):
            np.testing.assert_array_equal(tensors.seed_words(seed, torch.zeros(1)).numpy(), arrays.seed_words(seed, None))

    def test_normalizers(self):
        for normalizer in ("logsoftmax", "retention", "sigmoid", "none"):
            q, k, v = some()
            out = flashgen.attention(q, k, v, mask="causal", normalizer=normalizer)
            out.sum().backward()
            self.assertTrue(torch.isfinite(q.grad).all())
        out, r = flashgen.attention(*some(), mask="causal", normalizer="retention", return_lse=True)
        self.assertTrue(out.requires_grad and not r.requires_grad)
        out, lse, u, most = flashgen.attention(*some(), normalizer="logsoftmax", return_lse=True, return_max_logit=True)
        self.assertTrue(lse.requires_grad and not u.requires_grad and not most.requires_grad)
        out, most = flashgen.attention(*some(), mask="causal", return_max_logit=True)
        self.assertEqual((out.shape, most.shape), ((B, NQ, H, D), (B, H)))
        out.sum().backward()

    def test_packed(self):
        q, k, v = (random(40, n, D, grad=True, seed=i) for i, n in enumerate((H, HK, HK)))
        starts = torch.tensor([0, 15, 40], dtype=torch.int32, device=DEVICE)
        out = flashgen.attention(q, k, v, mask="causal", starts_q=starts, starts_k=starts)
        found = torch.autograd.grad(out.sum(), (q, k, v))
        for rows in (slice(0, 15), slice(15, 40)):
            alone = [x.detach()[None, rows].requires_grad_() for x in (q, k, v)]
            one = flashgen.attention(*alone, mask="causal")
            self.near(out[rows], one[0].double())
            for x, y in zip(found, torch.autograd.grad(one.sum(), alone)):
                self.near(x[rows], y[0].double())

    def test_numpy_has_the_same_bits(self):
        if DEVICE != "cpu":
            self.skipTest("NumPy's arrays are on the host device")
        q, k, v = some(grad=False)
        found = flashgen.attention(q, k, v, mask="causal").numpy()
        np.testing.assert_array_equal(found, flashgen.attention(*(x.numpy() for x in (q, k, v)), mask="causal"))

    def test_errors(self):
        q, k, v = some()
        wrong = lambda kind, sentence, *arrays, **options: self.says(  # noqa: E731
            kind, sentence, flashgen.attention, *arrays, **options)
        wrong(TypeError, "q is float32: kernels compute float16 and bfloat16, so cast q, k and v first",
              *(x.float() for x in (q, k, v)))
        wrong(TypeError, "k is bfloat16 and q float16: they have to be equal", q, k.bfloat16(), v)
        wrong(TypeError, "v is a ndarray, q a Tensor: they have to be alike", q.detach(), k, np.zeros(v.shape, "f2"))
        wrong(TypeError, "bias is a ndarray, q a Tensor", q.detach(), k.detach(), v.detach(), bias=np.zeros((1, 1, 1, 1)))
        wrong(ValueError, "k is on meta, q on", q.detach(), k.detach().to("meta"), v.detach())
        wrong(ValueError, "q is on meta: kernels run on the CPU, which is the host device, and on CUDA's GPUs",
              *(x.detach().to("meta") for x in (q, k, v)))
        used = torch.tensor([9, 3], dtype=torch.int32, device=DEVICE)
        wrong(ValueError, "a tensor requires a gradient, which attention over a cache does not have", q, k, v, used_k=used)
        wrong(ValueError, "a tensor requires a gradient, and out= has none", q, k, v, out=torch.empty_like(q))
        sink = torch.zeros(H, device=DEVICE, requires_grad=True)
        wrong(ValueError, "sink has shape (4, 1); expected (4,)", q, k, v, sink=sink[:, None])
        edge = torch.ones(H, device=DEVICE, requires_grad=True)
        launch, flashgen.call.launch = flashgen.call.launch, lambda *_: self.fail("it was launched")
        wrong(ValueError, "x has a gradient and cannot stand in a mask", q, k, v, mask="k <= p + x[h]",
              inputs={"x": ("h", edge)})
        flashgen.call.launch = launch
        out = flashgen.attention(q, k, v, mask="causal")
        dq, = torch.autograd.grad(out, q, torch.ones_like(out, requires_grad=True), create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
            dq.sum().backward()


if __name__ == "__main__":
    main()

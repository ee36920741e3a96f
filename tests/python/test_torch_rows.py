"""flashgen.linear, ffn, layernorm, log_softmax and cross_entropy on PyTorch's tensors, on the CPU or on FLASHGEN_TEST_DEVICE:
beside the formulas, and what they refuse."""
import row_formula as formula
from case import Case, flashgen, main, np
from device import DEVICE, random, torch
from formula import LIMITS, error

LEAD, IN, OUT = (3, 5), 24, 40
WORDS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def exact(x):
    return None if x is None else x.detach().cpu().double().numpy()


def some(*shapes, dtype=torch.float16, grad=True):
    """Leaves; None stays so."""
    return [None if shape is None else random(*shape, dtype=dtype, grad=grad, seed=i) for i, shape in enumerate(shapes)]


class Rows(Case):
    def near(self, name, found, pair, dtype):
        value, size = pair
        self.assertEqual((tuple(found.shape), found.dtype), (value.shape, dtype), name)
        self.assertLessEqual(error(exact(found), value, size), LIMITS[WORDS[dtype]], name)

    def gradients(self, results, leaves, douts):
        """name -> gradient of the leaves that are given."""
        leaves = {name: x for name, x in leaves.items() if x is not None}
        return dict(zip(leaves, torch.autograd.grad(results, list(leaves.values()), douts)))

    def test_linear(self):
        for i, epilogue in enumerate(("none", "relu", "gelu", "swiglu")):
            dtype, wide = (torch.float16, torch.bfloat16)[i % 2], (2 if epilogue == "swiglu" else 1) * OUT
            x, w, b, more, dy = some((*LEAD, IN), (wide, IN), (wide,) if i != 1 else None, (*LEAD, OUT) if i != 2 else None,
                                     (*LEAD, OUT), dtype=dtype)
            y = flashgen.linear(x, w, b, epilogue=epilogue, residual=more)
            right = formula.linear(*(exact(one) for one in (x, w, b, more)), epilogue, exact(dy))
            self.near("y", y, right["y"], dtype)
            found = self.gradients(y, {"x": x, "weight": w, "bias": b, "residual": more}, dy.detach())
            self.assertTrue(torch.equal(found.pop("residual", dy), dy))
            for name, one in found.items():
                self.near("d" + name, one, right[name], dtype)

    def test_ffn(self):
        x, w1, b1, w2, b2, more, dy = some((*LEAD, IN), (OUT, IN), (OUT,), (IN, OUT), (IN,), (*LEAD, IN), (*LEAD, IN))
        y = flashgen.ffn(x, w1, b1, w2, b2, epilogue="gelu_erf", residual=more)
        found = self.gradients(y, {"x": x, "w1": w1, "b1": b1, "w2": w2, "b2": b2, "more": more}, dy.detach())
        arrays = [one.detach() for one in (x, w1, b1, w2, b2)]
        same, kept = flashgen.ffn(*arrays, epilogue="gelu_erf", residual=more.detach(), return_kept=True)
        right = flashgen.ffn_backward(dy.detach(), *arrays, kept, epilogue="gelu_erf")
        for one, other in zip((y, *found.values()), (same, *right, dy)):
            self.assertTrue(torch.equal(one, other))

    def test_layernorm(self):
        """With z, whose gradient flows in, and without."""
        for i, (dtype, norm) in enumerate(((torch.float32, "layer"), (torch.float16, "rms"), (torch.bfloat16, "layer"))):
            for with_z in (False, True):
                shape, width = (*LEAD, IN), (IN,)
                x, gamma, beta, bias, more, dout, dz = some(shape, width, width if i == 0 else None, width if i != 1 else None,
                                                            shape if i != 2 else None, shape, shape, dtype=dtype)
                made = flashgen.layernorm(x, gamma, beta, bias=bias, residual=more, norm=norm, eps=0.25, return_z=with_z)
                results, douts = (made, [dout.detach(), dz.detach()]) if with_z else ([made], [dout.detach()])
                right = formula.layernorm(*(exact(one) for one in (x, gamma, beta, bias, more)), norm, 0.25, exact(dout),
                                          exact(dz) if with_z else None)
                for name, one in zip(("out", "z"), results):
                    self.near(name, one, right[name], dtype)
                leaves = {"x": x, "gamma": gamma, "beta": beta, "bias": bias, "residual": more}
                for name, one in self.gradients(results, leaves, douts).items():
                    self.near("d" + name, one, right["x" if name == "residual" else name], dtype)

    def test_linear_norm(self):
        """The gradients are those of its backward, and come to what is given; that of z flows in."""
        shapes = (*LEAD, IN), (OUT, IN), (OUT,), (OUT,), (OUT,), (*LEAD, OUT), (*LEAD, OUT), (*LEAD, OUT)
        x, w, gamma, beta, bias, more, dout, dz = some(*shapes)
        dout, dz = dout.detach(), dz.detach()
        out, z = flashgen.linear_norm(x, w, gamma, beta, bias=bias, residual=more, return_z=True)
        found = torch.autograd.grad((out, z), (x, w, gamma, beta, bias, more), (dout, dz))
        x, w, gamma, beta, bias, more = (one.detach() for one in (x, w, gamma, beta, bias, more))
        same, z, mean, rstd = flashgen.linear_norm(x, w, gamma, beta, bias=bias, residual=more, return_z=True,
                                                   return_stats=True)
        right = flashgen.linear_norm_backward(dout, x, w, gamma, beta, z=z, mean=mean, rstd=rstd, dz=dz, bias=bias)
        for one, other in zip((out, *found), (same, *right)):
            self.assertTrue(torch.equal(one, other))

    def test_what_is_saved(self):
        """For backward: z where it is returned, and not what it is the sum of."""
        x, gamma, more = some((*LEAD, IN), (IN,), (*LEAD, IN))
        for with_z, others in ((False, [x, more]), (True, [])):
            made = flashgen.layernorm(x, gamma, residual=more, return_z=with_z)
            saved = (made[0] if with_z else made).grad_fn.saved_tensors
            rows = [one.data_ptr() for one in saved if one.shape == x.shape]
            self.assertEqual(rows, [one.data_ptr() for one in others or made[1:]])

    def test_z_alone(self):
        """The result has no gradient of its own: what comes to z goes on as it is."""
        x, gamma, more, dz = some((*LEAD, IN), (IN,), (*LEAD, IN), (*LEAD, IN))
        _, z = flashgen.layernorm(x, gamma, residual=more, return_z=True)
        found = self.gradients(z, {"x": x, "gamma": gamma, "residual": more}, dz.detach())
        self.assertTrue(torch.equal(found["x"], dz) and torch.equal(found["residual"], dz) and (found["gamma"] == 0).all())

    def test_losses(self):
        x, dy, dloss = random(*LEAD, 33, grad=True), random(*LEAD, 33, seed=1), random(*LEAD, dtype=torch.float32, seed=2)
        y = flashgen.log_softmax(x)
        dx, = torch.autograd.grad(y, x, dy)
        seen = formula.log_softmax_backward(exact(dy), exact(y))
        self.near("y", y, formula.log_softmax(exact(x))["y"], torch.float16)
        self.near("dx", dx, seen["x"], torch.float16)
        target = torch.arange(15, device=DEVICE).view(LEAD) * 3 - 3  # the first one is no column
        weight = random(33, dtype=torch.float32, seed=3)
        loss, lse = flashgen.cross_entropy(x, target, weight, return_lse=True)
        right = formula.cross_entropy(exact(x), target.cpu().numpy(), exact(weight), exact(dloss))
        np.testing.assert_allclose(exact(loss), right["loss"][0], atol=1e-4)
        np.testing.assert_allclose(exact(lse), right["lse"][0], atol=1e-4)
        self.assertTrue(loss.requires_grad and not lse.requires_grad)
        dx, = torch.autograd.grad(loss, x, dloss)
        self.near("dx", dx, right["x"], torch.float16)
        self.assertEqual((loss[0, 0].item(), dx[0, 0].abs().max().item()), (0, 0))
        beyond = torch.tensor([2 ** 32 + 3, -2 ** 63, 3], device=DEVICE)  # the first two are no int32, and no column
        self.assertEqual((flashgen.cross_entropy(x[0, :3], beyond) == 0).tolist(), [True, True, False])

    def test_like_pytorch(self):
        """The mean of its cross entropy, and its layer norm."""
        x, target = random(*LEAD, 33, dtype=torch.float32), torch.arange(15, device=DEVICE).view(LEAD)
        target[1, 1] = -100
        found = flashgen.cross_entropy(x, target).sum() / (target >= 0).sum()
        right = torch.nn.functional.cross_entropy(x.flatten(0, 1), target.flatten())
        self.assertLess(abs((found - right).item()), 1e-5)
        norm = torch.nn.LayerNorm(IN, device=DEVICE)
        x = random(*LEAD, IN, dtype=torch.float32)
        self.assertLess((flashgen.layernorm(x, norm.weight, norm.bias) - norm(x)).abs().max().item(), 1e-5)

    def test_only_what_is_asked_for(self):
        x, w, b, more = some((*LEAD, IN), (OUT, IN), (OUT,), (*LEAD, OUT), grad=False)
        made = []
        launch, flashgen.call.launch = flashgen.call.launch, lambda *given: (made.append(given[0]), launch(*given))
        try:
            y = flashgen.linear(x, w, b, residual=more.requires_grad_(), epilogue="relu")
            y.backward(more.detach())
            self.assertEqual((len(made), torch.equal(more.grad, more.detach())), (1, True))
            flashgen.linear(x, w.requires_grad_(), b, epilogue="relu").sum().backward()
            self.assertEqual(([output.name for output in made[-1].outputs], b.grad), (["dw"], None))
            with torch.no_grad():
                self.assertFalse(flashgen.linear(x, w, b, epilogue="relu").requires_grad)
            self.assertEqual([output.name for output in made[-1].outputs], ["y"])
        finally:
            flashgen.call.launch = launch

    def test_no_rows(self):
        x, w, b = some((0, IN), (OUT, IN), (OUT,))
        y = flashgen.linear(x, w, b, epilogue="gelu")
        for leaf, one in zip((x, w, b), torch.autograd.grad(y.sum(), (x, w, b))):
            self.assertEqual(one.shape, leaf.shape)
            self.assertTrue((one == 0).all())
        self.assertEqual(flashgen.cross_entropy(x, torch.zeros(0, dtype=torch.int64, device=DEVICE)).shape, (0,))

    def test_strides(self):
        """A part of wider rows, a transposed weight, an expanded gradient."""
        x, w = some((*LEAD, 2 * IN), (IN, OUT), grad=False)
        right = flashgen.linear(x[..., IN:].contiguous(), w.t().contiguous())
        self.assertTrue(torch.equal(flashgen.linear(x[..., IN:], w.t()), right))
        found = []
        for dy in (torch.ones(OUT, device=DEVICE, dtype=x.dtype).expand(*LEAD, OUT), torch.ones_like(right)):
            leaf = x[..., IN:].detach().requires_grad_()
            found.append(torch.autograd.grad(flashgen.linear(leaf, w.t()), leaf, dy)[0])
        self.assertTrue(torch.equal(*found))

    def test_numpy_has_the_same_bits(self):
        if DEVICE != "cpu":
            self.skipTest("NumPy's arrays are on the host device")
        x, w = some((*LEAD, IN), (OUT, IN), grad=False)
        np.testing.assert_array_equal(flashgen.linear(x, w).numpy(), flashgen.linear(x.numpy(), w.numpy()))

    def test_errors(self):
        x, w, b = some((*LEAD, IN), (OUT, IN), (OUT,))
        gamma, target = random(IN), torch.zeros(LEAD, dtype=torch.int64, device=DEVICE)
        weight = torch.ones(IN, device=DEVICE, requires_grad=True)
        wrong = lambda kind, sentence, *given, **options: self.says(  # noqa: E731
            kind, sentence, flashgen.linear, *given, **options)
        wrong(TypeError, "x is float32: kernels compute float16 and bfloat16, so cast x and weight first", x.float(), w.float())
        wrong(TypeError, "bias is float32 and x float16: they have to be equal", x, w, b.float())
        wrong(TypeError, "weight is a ndarray, x a Tensor: they have to be alike", x.detach(), np.zeros((OUT, IN), "f2"))
        wrong(ValueError, "weight is on meta, x on", x.detach(), w.detach().to("meta"))
        self.says(ValueError, "weight requires a gradient, which cross_entropy does not have", flashgen.cross_entropy, x,
                  target, weight)
        self.says(TypeError, "gamma is float16 and x float32: they have to be equal", flashgen.layernorm, x.float(), gamma)
        y = flashgen.linear(x, w)
        dx, = torch.autograd.grad(y, x, torch.ones_like(y, requires_grad=True), create_graph=True)
        self.says(NotImplementedError, "a gradient of a gradient is asked for", dx.sum().backward)


if __name__ == "__main__":
    main()

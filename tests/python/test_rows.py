"""flashgen.linear, ffn, layernorm, log_softmax, cross_entropy and their gradients, on arrays of NumPy, beside the formulas."""
import re

import row_formula as formula
from case import SOURCE, Case, flashgen, main, np
from flashgen import arrays, call
from flashgen.context import calls
from flashgen.row_kinds import BITS, GATED, NORMS, PLAIN
from formula import LIMITS, error

LEAD, IN, OUT = (3, 5), 24, 40
WORDS = {"f16": "f2", "bf16": "u2", "f32": "f4"}


def random(*shape, word="f16", seed=0):
    """A dtype's numbers: bfloat16 is uint16."""
    made = np.random.default_rng([seed, *shape]).standard_normal(shape).astype("f4")
    return arrays.convert(made, word)


def exact(x):
    """The numbers of an array."""
    return x if x is None or x.dtype.kind == "i" else arrays.convert(x, "f32").astype("f8")


class Rows(Case):
    def near(self, name, found, pair, word, more=0.0):
        value, size = pair
        self.assertEqual((found.shape, found.dtype), (value.shape, np.dtype(WORDS[word])), name)
        self.assertLessEqual(error(exact(found), value, size), LIMITS[word] + more, name)

    def launched(self, function, *given, **options):
        """What it gives, and the calls that it prepared or would have: their outputs' names and what they copied."""
        calls.clear()
        made = function(*given, **options)
        return made, [([output.name for output in one.outputs], [name for name, *_ in one.fixes]) for one in calls.values()]


class Linear(Rows):
    def check(self, epilogue="none", word="f16", bias=True, residual=True):
        rows_of_w = 2 * OUT if epilogue in formula.GATES else OUT
        x, w = random(*LEAD, IN, word=word), random(rows_of_w, IN, word=word, seed=1)
        b = random(rows_of_w, word=word, seed=2) if bias else None
        more, dy = random(*LEAD, OUT, word=word, seed=3) if residual else None, random(*LEAD, OUT, word=word, seed=4)
        right = formula.linear(*(exact(one) for one in (x, w, b, more)), epilogue, exact(dy))
        y, kept = flashgen.linear(x, w, b, epilogue=epilogue, residual=more, return_kept=True)
        self.near("y", y, right["y"], word)
        np.testing.assert_array_equal(flashgen.linear(x, w, b, epilogue=epilogue, residual=more), y)
        grads = flashgen.linear_backward(dy, x, w, b, kept=kept, epilogue=epilogue)
        for name in ("x", "weight") + ("bias",) * bias:
            self.near("d" + name, getattr(grads, name), right[name], word)
        self.assertEqual((kept is None, grads.bias is None), (epilogue == "none", not bias))

    def test_epilogues(self):
        for i, epilogue in enumerate((*formula.ACTIVATIONS, *formula.GATES)):
            with self.subTest(epilogue):
                self.check(epilogue, ("f16", "bf16")[i % 2], i % 3 != 1, i % 3 != 2)

    def test_what_is_kept(self):
        """The epilogues that there are, and what their rows say of derivatives."""
        text = (SOURCE / "templates/linear/epilogue.lua").read_text()
        body = text[text.rindex("return {"):]
        tests = re.findall(r"^local (\w+) = \{[^}]*is_test = true", text, re.M)
        gated, plain = re.findall(r"(\w+) = gated", body), re.findall(r"(\w+) = \{\}", body)
        norms = re.findall(r'(\w+) = \{ norm = "(\w+)" \}', body)
        self.assertEqual((BITS, GATED, PLAIN), (tuple(tests), tuple(gated), tuple(plain)))
        self.assertEqual({norm: epilogue for epilogue, norm in norms}, NORMS)
        names = re.findall(r"(\w+) = (?:\{|gated|\1)", body)
        self.assertEqual(sorted(names), sorted((*formula.ACTIVATIONS, *formula.GATES, *NORMS.values())))

    def test_float32(self):
        """It is rounded, to bfloat16 or float16, and the result is float32 again; the gradients too."""
        x, w, b, dy = (random(*shape, word="f32") for shape in ((*LEAD, IN), (OUT, IN), (OUT,), (*LEAD, OUT)))
        for word, how in (("bf16", {}), ("f16", {"dtype": "f16"})):
            small = [arrays.convert(one, word) for one in (x, w, b, dy)]
            for given, how in (((x, w, b, dy), how), (small, {})):
                y, kept = flashgen.linear(*given[:3], epilogue="silu", return_kept=True, **how)
                grads = flashgen.linear_backward(given[3], *given[:3], kept=kept, epilogue="silu", **how)
                if given is not small:
                    found = y, *grads
            for one, right in zip(found, (y, *grads)):
                self.assertEqual(one.dtype, np.float32)
                np.testing.assert_array_equal(one, exact(right).astype("f4"))

    def test_no_rows(self):
        x, w, b = random(0, IN), random(OUT, IN), random(OUT)
        y, kept = flashgen.linear(x, w, b, epilogue="relu", return_kept=True)
        self.assertEqual((y.shape, flashgen.linear(x.reshape(3, 0, IN), w).shape), ((0, OUT), (3, 0, OUT)))
        grads = flashgen.linear_backward(y, x, w, b, kept=kept, epilogue="relu")
        for one in grads[1:]:
            np.testing.assert_array_equal(one, 0)

    def test_strides(self):
        """Rows that are equally far apart are not copied, and how arrays lie in memory makes no difference."""
        x, w, b = random(*LEAD, IN), random(OUT, IN), random(OUT)
        right = flashgen.linear(x, w, b)
        wide, deep = np.zeros((*LEAD, IN + 8), "f2"), np.zeros((2 * LEAD[0], *LEAD[1:], IN), "f2")
        wide[..., 8:], deep[::2] = x, x
        for lies, copies in ((wide[..., 8:], []), (deep[::2], ["x"]), (x.swapaxes(0, 1).copy().swapaxes(0, 1), ["x"]),
                             (np.asfortranarray(x), ["x"]), (x[::-1].copy()[::-1], ["x"])):
            found, made = self.launched(flashgen.linear, lies, w, b)
            np.testing.assert_array_equal(found, right)
            self.assertEqual(made, [(["y"], copies)])
        found, made = self.launched(flashgen.linear, x[:, 1:2], w, b)
        np.testing.assert_array_equal(found, right[:, 1:2])
        self.assertEqual(made, [(["y"], [])])
        odd = np.zeros(w.size + 1, "f2")[1:].reshape(w.shape)
        odd[...] = w
        np.testing.assert_array_equal(flashgen.linear(x, odd, b.repeat(2)[::2]), right)
        np.testing.assert_array_equal(flashgen.linear(x, np.asfortranarray(w), b), right)
        np.testing.assert_array_equal(flashgen.linear(x[0, 0], w, b), right[0, 0])

    def test_plan(self):
        x, w = random(*LEAD, IN), random(OUT, IN)
        found = [flashgen.linear(x, w, plan={"family": family, "block_q": [32]}) for family in ("simt", "mma")]
        self.assertLess(error(*found, 0), 1e-3)


class Ffn(Rows):
    def check(self, epilogue, word, biases=True):
        wide = (2 if epilogue in formula.GATES else 1) * OUT
        x, dy, more = (random(*LEAD, IN, word=word, seed=seed) for seed in range(3))
        w1, w2 = random(wide, IN, word=word, seed=3), random(IN, OUT, word=word, seed=4)
        b1, b2 = (random(wide, word=word, seed=5), random(IN, word=word, seed=6)) if biases else (None, None)
        y, kept = flashgen.ffn(x, w1, b1, w2, b2, epilogue=epilogue, residual=more, return_kept=True)
        grads = flashgen.ffn_backward(dy, x, w1, b1, w2, b2, kept, epilogue=epilogue)
        hidden = exact(kept[0])
        self.near("hidden", kept[0], formula.linear(*(exact(one) for one in (x, w1, b1)), epilogue=epilogue)["y"], word)
        second = formula.linear(hidden, *(exact(one) for one in (w2, b2, more)), dy=exact(dy))
        self.near("y", y, second["y"], word)
        self.near("dw2", grads.w2, second["weight"], word)
        rounded = exact(arrays.convert(second["x"][0].astype("f4"), word))
        first = formula.linear(*(exact(one) for one in (x, w1, b1)), None, epilogue, rounded)
        for name in ("x", "weight") + ("bias",) * biases:
            self.near("d" + name, getattr(grads, {"x": "x", "weight": "w1", "bias": "b1"}[name]), first[name], word)
        if biases:
            self.near("db2", grads.b2, second["bias"], word)
        else:
            self.assertEqual((grads.b1, grads.b2), (None, None))

    def test_ffn(self):
        self.check("gelu", "f16")
        self.check("swiglu", "bf16", biases=False)

    def test_launches(self):
        """Two of them, which write the hidden rows and the result and nothing else."""
        x, w1, w2 = random(*LEAD, IN), random(OUT, IN), random(IN, OUT)
        _, made = self.launched(flashgen.ffn, x, w1, None, w2, None)
        self.assertEqual([names for names, _ in made], [["y"], ["y"]])


class LinearNorm(Rows):
    def check(self, word, norm="layer", bias=True, residual=True, beta=True, eps=1e-5):
        x, w, more = (random(*shape, word=word, seed=seed) for seed, shape in enumerate(((*LEAD, IN), (OUT, IN), (*LEAD, OUT))))
        dout, dz = (random(*LEAD, OUT, word=word, seed=seed) for seed in (3, 4))
        gamma, shift, b = (random(OUT, word=word, seed=seed) for seed in range(5, 8))
        shift, b, more = (one if is_there else None for one, is_there in ((shift, beta), (b, bias), (more, residual)))
        options = {"norm": norm, "eps": eps}
        right_z = formula.linear(*(exact(one) for one in (x, w, b, more)))["y"]
        out, z, mean, rstd = flashgen.linear_norm(x, w, gamma, shift, bias=b, residual=more, **options, return_z=True,
                                                  return_stats=True)
        right = formula.layernorm(right_z[0], exact(gamma), exact(shift), **options)
        self.near("z", z, right_z, word)
        self.near("out", out, right["out"], word)
        self.near("rstd", rstd, right["rstd"], "f32")
        if norm == "layer":
            np.testing.assert_allclose(mean, right["mean"][0], atol=1e-5)
        np.testing.assert_array_equal(flashgen.linear_norm(x, w, gamma, shift, bias=b, residual=more, **options), out)
        for more_of in ({"dz": dz}, {}):
            grads = flashgen.linear_norm_backward(dout, x, w, gamma, shift, z=z, rstd=rstd, mean=mean, bias=b, **options,
                                                  **more_of)
            of_norm = formula.layernorm(exact(z), exact(gamma), exact(shift), **options, dout=exact(dout),
                                        dz=exact(dz) if more_of else None)
            of_norm["residual"] = of_norm.pop("x")
            of_linear = formula.linear(exact(x), exact(w), None, None, "none", exact(grads.residual))
            for name in ("residual", "gamma") + ("beta",) * beta:
                self.near("d" + name, getattr(grads, name), of_norm[name], word)
            for name in ("x", "weight") + ("bias",) * bias:
                self.near("d" + name, getattr(grads, name), of_linear[name], word)
            self.assertEqual((grads.beta is None, grads.bias is None), (not beta, not bias))

    def test_constant_rows(self):
        """Their deviation is 0, however large they are and whichever blocks share them."""
        for out, family in ((200, "wgmma"), (328, "wgmma"), (744, "wgmma"), (2056, "mma"), (744, "simt")):
            x, w, gamma = (np.full(shape, of, "f2") for shape, of in (((4, 64), 777.3), ((out, 64), 31.7), ((out,), 1)))
            self.assertLess(np.abs(flashgen.linear_norm(x, w, gamma, plan={"family": family})).max(), 1e-2, (out, family))

    def test_layer(self):
        self.check("f16")
        self.check("bf16", bias=False, residual=False, beta=False, eps=0.25)

    def test_rms(self):
        self.check("bf16", "rms", beta=False, eps=0.25)

    def test_errors(self):
        x, w, gamma = random(*LEAD, IN), random(OUT, IN), random(OUT)
        self.says(ValueError, "epilogue layernorm has arguments of its own: call linear_norm", flashgen.linear, x, w,
                  epilogue="layernorm")
        self.says(ValueError, "gamma has shape (24,); expected (40,)", flashgen.linear_norm, x, w, gamma[:IN])
        self.says(ValueError, "beta is given, and norm rms has none", flashgen.linear_norm, x, w, gamma, gamma, norm="rms")
        self.says(TypeError, "gamma is float32 and x float16: they have to be equal", flashgen.linear_norm, x, w,
                  gamma.astype("f4"))


class Layernorm(Rows):
    def check(self, word, norm="layer", bias=False, residual=False, beta=True, eps=1e-5):
        width, is_sum = 72, bias or residual
        x, more, dout, dz = (random(*LEAD, width, word=word, seed=seed) for seed in range(4))
        gamma, shift, b = (random(width, word=word, seed=seed) for seed in range(4, 7))
        given = {"bias": b if bias else None, "residual": more if residual else None}
        shift = shift if beta and norm == "layer" else None
        options = {"norm": norm, "eps": eps}
        right = formula.layernorm(*(exact(one) for one in (x, gamma, shift, given["bias"], given["residual"])), **options,
                                  dout=exact(dout), dz=exact(dz))
        limit = 2e-7 * (abs(right["mean"][0]) * right["rstd"][0]).max() if word == "f32" else 0.0
        out, z, mean, rstd = flashgen.layernorm(x, gamma, shift, **given, **options, return_z=True, return_stats=True)
        self.near("out", out, right["out"], word, limit)
        self.near("z", z, right["z"], word)
        self.near("rstd", rstd, right["rstd"], "f32")
        if norm == "layer":
            np.testing.assert_allclose(mean, right["mean"][0], atol=1e-6)
        else:
            self.assertIsNone(mean)
        np.testing.assert_array_equal(flashgen.layernorm(x, gamma, shift, **given, **options), out)
        for more_of in ({}, {"z": z}):
            grads = flashgen.layernorm_backward(dout, None if more_of and is_sum else x, gamma, shift, rstd=rstd, mean=mean,
                                                dz=dz, **given, **options, **more_of)
            for name in ("x", "gamma") + ("beta",) * (shift is not None) + ("bias",) * bias:
                self.near("d" + name, getattr(grads, name), right[name], word, limit)
            self.assertEqual((grads.beta is None, grads.bias is None), (shift is None, not bias))
        without = flashgen.layernorm_backward(dout, x, gamma, shift, rstd=rstd, mean=mean, **given, **options)
        self.near("dx of out", without.x, formula.layernorm(
            *(exact(one) for one in (x, gamma, shift, given["bias"], given["residual"])), **options, dout=exact(dout))["x"],
            word, limit)

    def test_layer(self):
        self.check("f16", bias=True, residual=True)
        self.check("bf16", residual=True, beta=False)
        self.check("f32", bias=True, eps=0.5)
        self.check("f16")

    def test_rms(self):
        self.check("f32", "rms", bias=True, residual=True)
        self.check("bf16", "rms", eps=0.25)

    def test_results(self):
        """They come in one order, and z is x where nothing is added."""
        x, gamma = random(*LEAD, 16), random(16)
        out, z = flashgen.layernorm(x, gamma, return_z=True)
        self.assertIs(z, x)
        self.assertEqual([one is None for one in flashgen.layernorm(x, gamma, norm="rms", return_stats=True)],
                         [False, True, False])
        self.assertEqual(out.shape, x.shape)
        self.assertEqual(flashgen.layernorm(x[:0], gamma).shape, (0, *LEAD[1:], 16))

    def test_strides(self):
        """Vectors whose elements are apart are copied; odd addresses of rows are not."""
        x, gamma = random(*LEAD, 16), random(16)
        odd = np.zeros((*LEAD, 19), "f2")[..., 1:17]
        odd[...] = x
        found, made = self.launched(flashgen.layernorm, odd, gamma.repeat(2)[::2])
        np.testing.assert_array_equal(found, flashgen.layernorm(x, gamma))
        self.assertEqual(made, [(["out"], ["gamma"])])


class Losses(Rows):
    def some(self, word, width=33):
        x = random(*LEAD, width, word=word)
        if word != "bf16":
            x[0, 1, ::3] = -np.inf
        return x

    def test_log_softmax(self):
        for word in WORDS:
            x, dy = self.some(word), random(*LEAD, 33, word=word, seed=1)
            y, seen = flashgen.log_softmax(x), np.isfinite(exact(x))
            value, size = formula.log_softmax(exact(x))["y"]
            np.testing.assert_array_equal(np.isfinite(exact(y)), seen)
            self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
            self.assertLessEqual(error(exact(y)[seen], value[seen], size[seen]), LIMITS[word])
            self.near("dx", flashgen.log_softmax_backward(dy, y), formula.log_softmax_backward(exact(dy), exact(y))["x"], word)
        self.assertEqual(flashgen.log_softmax(x[:0]).shape, (0, *x.shape[1:]))
        one = random(8, word="f32")
        np.testing.assert_array_equal(flashgen.log_softmax(one), flashgen.log_softmax(one[None])[0])

    def test_cross_entropy(self):
        """With targets of either integer, weights of any dtype, and rows that do not count."""
        target = np.random.default_rng(3).integers(0, 33, LEAD)
        target[0, 0], target[2, 2], target[1, 1] = -100, 33, 2 ** 31 - 1
        for word, weight, kind in (("f16", None, "i8"), ("bf16", random(33), "i4"), ("f32", random(33, word="f32"), "i8")):
            x, dloss = self.some(word), random(*LEAD, word="f32", seed=1)
            x[0, 1] = x[0, 0]  # a target whose logit is -inf has no finite loss
            loss, lse = flashgen.cross_entropy(x, target.astype(kind), weight, return_lse=True)
            right = formula.cross_entropy(exact(x), target, exact(weight), dloss)
            for name, found in (("loss", loss), ("lse", lse)):
                np.testing.assert_allclose(found, right[name][0], atol=1e-4, rtol=1e-6)
                self.assertEqual(found.dtype, np.float32)
            dx = flashgen.cross_entropy_backward(dloss, x, target.astype(kind), lse, weight)
            self.near("dx", dx, right["x"], word)
            for row in ((0, 0), (2, 2), (1, 1)):
                self.assertTrue(loss[row] == 0 and (exact(dx[row]) == 0).all())
            np.testing.assert_array_equal(flashgen.cross_entropy(x[0, 1], np.array(target[0, 1]), weight), loss[0, 1])
        self.assertEqual(flashgen.cross_entropy(x[:0], target[:0]).shape, (0, *LEAD[1:]))

    def test_targets_beyond_int32(self):
        """Are no columns, whatever their lower 32 bits are."""
        x = random(5, 33, word="f32")
        target = np.array([2 ** 32 + 3, -2 ** 63, 2 ** 63 - 1, -2 ** 32 + 1, 3])
        loss, lse = flashgen.cross_entropy(x, target, return_lse=True)
        dx = flashgen.cross_entropy_backward(np.ones_like(loss), x, target, lse)
        self.assertTrue((loss[:4] == 0).all() and (dx[:4] == 0).all() and loss[4] > 0)


class Errors(Case):
    def setUp(self):
        self.launch = call.launch
        call.launch = lambda *_: self.fail("it was launched")

    def tearDown(self):
        call.launch = self.launch

    def test_linear(self):
        x, w = random(*LEAD, IN), random(OUT, IN)

        def wrong(kind, sentence, x=x, w=w, *more, **options):
            self.says(kind, sentence, flashgen.linear, x, w, *more, **options)

        wrong(ValueError, "x has shape (3, 5, 24); expected (3, 5, 16)", w=w[:, :16])
        wrong(ValueError, "x has shape (); expected [..., width]", x=np.zeros((), "f2"))
        wrong(ValueError, "weight has shape (24,); expected (any, any)", w=w[0])
        wrong(ValueError, "bias has shape (24,); expected (40,)", x, w, random(24))
        wrong(ValueError, "residual has shape (3, 5, 24); expected (3, 5, 40)", residual=x)
        wrong(ValueError, "weight has shape (39, 24); expected (38, 24)", w=w[1:], epilogue="swiglu")
        wrong(ValueError, "width: kernel=linear takes multiples of 8, not 39", w=w[1:])
        wrong(TypeError, "weight is float32 and x float16: they have to be equal", w=w.astype("f4"))
        wrong(TypeError, "x is float64: kernels compute float16 and bfloat16, so cast x and weight first", x.astype("f8"),
              w.astype("f8"))
        wrong(TypeError, "x is float16, which is computed as it is: dtype='bf16' is for float32", dtype="bf16")
        wrong(TypeError, "weight is a NoneType, x a ndarray: they have to be alike", w=None)
        wrong(TypeError, "a NoneType is given; expected an array of NumPy or a tensor of PyTorch", x=None)
        wrong(TypeError, "sm_margin is a float; expected a number", sm_margin=1.5)
        wrong(ValueError, 'there is no "softplus"', epilogue="softplus")
        wrong(TypeError, "epilogue is a NoneType; expected a word", epilogue=None)
        wrong(TypeError, "plan is a str; expected a dict: {'family': 'simt'}", plan="simt")
        wrong(NotImplementedError, "no plan fits", plan={"family": "simt", "block_q": 7})
        wrong(ValueError, "plan: there is no blocks; expected family, block_q", plan={"blocks": 1})
        dy = random(*LEAD, OUT)
        self.says(ValueError, "kept is missing: epilogue relu needs what linear(..., return_kept=True) returned",
                  flashgen.linear_backward, dy, x, w, epilogue="relu")
        self.says(TypeError, "kept is float16; expected int32", flashgen.linear_backward, dy, x, w, kept=dy[..., :2],
                  epilogue="relu")
        self.says(ValueError, "kept has shape (3, 5, 24); expected (3, 5, 40)", flashgen.linear_backward, dy, x, w, kept=x,
                  epilogue="silu")

    def test_layernorm(self):
        x, gamma = random(*LEAD, 16), random(16)

        def wrong(kind, sentence, *given, **options):
            self.says(kind, sentence, flashgen.layernorm, *given, **options)

        wrong(ValueError, "x has shape (3, 5, 16); expected (3, 5, 8)", x, gamma[:8])
        wrong(TypeError, "gamma is float32 and x float16: they have to be equal", x, gamma.astype("f4"))
        wrong(ValueError, "beta is given, and norm rms has none", x, gamma, gamma, norm="rms")
        wrong(ValueError, "norm is 'batch'; expected \"layer\" or \"rms\"", x, gamma, norm="batch")
        wrong(TypeError, "eps is a str; expected a number", x, gamma, eps="small")
        wrong(NotImplementedError, "width=12 is no multiple of 8", x[..., :12], gamma[:12])
        wrong(NotImplementedError, "width=16392 is more than 16384", random(1, 16392), random(16392))
        stats = {"rstd": random(*LEAD, word="f32")}
        self.says(TypeError, "rstd is float16; expected float32", flashgen.layernorm_backward, x, x, gamma, norm="rms",
                  rstd=random(*LEAD))
        self.says(TypeError, "gamma is a NoneType, dout a ndarray", flashgen.layernorm_backward, x, x, None, **stats)

    def test_losses(self):
        x, target = random(3, 16), np.zeros(3, "i4")
        wrong = lambda kind, sentence, *given: self.says(kind, sentence, flashgen.cross_entropy, *given)  # noqa: E731
        wrong(ValueError, "target has shape (2,); expected (3,)", x, target[:2])
        wrong(TypeError, "target is float32; expected int32 or int64", x, target.astype("f4"))
        wrong(TypeError, "weight is float64; expected float32 or float16 or bfloat16", x, target, np.ones(16))
        wrong(TypeError, "target is a int32, x a ndarray: they have to be alike", x[0], target[0])
        wrong(ValueError, "weight has shape (15,); expected (16,)", x, target, np.ones(15, "f4"))
        self.says(TypeError, "x is float64: kernels compute float16, bfloat16 and float32, so cast x first",
                  flashgen.log_softmax, x.astype("f8"))
        self.says(ValueError, "dy has shape (2, 16); expected (3, 16)", flashgen.log_softmax_backward, x[:2], x)


class Launch(Case):
    """What the library's fg_launch finds."""

    def test_sentences(self):
        x, gamma = random(3, 16), random(16)
        self.says(ValueError, "eps = -1: expected", flashgen.layernorm, x, gamma, eps=-1.0)
        self.says(ValueError, "sm_margin = 6: expected 0 to 5", flashgen.linear, x, random(8, 16), sm_margin=6)
        self.says(ValueError, "mean is missing", flashgen.layernorm_backward, x, x, gamma, rstd=np.ones(3, "f4"))
        self.says(ValueError, "x is missing", flashgen.layernorm_backward, x, None, gamma, norm="rms", rstd=np.ones(3, "f4"))


if __name__ == "__main__":
    main()

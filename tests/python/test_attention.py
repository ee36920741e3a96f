"""flashgen.attention and attention_backward on arrays of NumPy, beside the formulas: each hook, forward and backward."""
from case import Case, flashgen, main, np
from formula import LIMITS, Reference, error, keep_mask
from flashgen import arrays
from flashgen.context import context

B, H, HK, NQ, NK, D = 2, 4, 2, 19, 33, 16
Q, K = np.arange(NQ)[:, None], np.arange(NK)[None, :]
P = Q + NK - NQ
CAUSAL = P >= K


def random(*shape, dtype="f2", seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def some(dtype="f2", nq=NQ, d=D, dv=D):
    return (random(B, nq, H, d, dtype=dtype), random(B, NK, HK, d, dtype=dtype, seed=1),
            random(B, NK, HK, dv, dtype=dtype, seed=2))


def rounded(x):
    """float32 as bfloat16 has it."""
    return arrays.convert(arrays.round_to_bf16(x), "f32")


class Hooks(Case):
    def near(self, name, found, value, size, word):
        self.assertEqual(found.shape, value.shape, name)
        self.assertLess(error(found, value, size), LIMITS[word], name)

    def check(self, options, reference, word="f16", inputs=None, dlse=False, arrays_of=None):
        """Forward and backward beside the formulas. inputs: name -> (derivative of the score, axes that are summed).
        The mask is causal where options have none."""
        options = {"mask": "causal", **options}
        q, k, v = arrays_of or some("f2" if word == "f16" else "f4")
        exact = rounded if word == "bf16" else np.asarray
        right = Reference(*(exact(x) for x in (q, k, v)), **reference)
        kept = {"softmax": "lse", "logsoftmax": "lse", "retention": "r"}.get(right.normalizer)
        out = flashgen.attention(q, k, v, return_lse=kept is not None, **options)
        out, *rest = out if kept else (out,)
        self.assertEqual(out.dtype, q.dtype)
        self.near("o", out.swapaxes(1, 2), right.o, right.o_size, word)
        if kept:
            value = getattr(right, kept)
            np.testing.assert_allclose(rest[0], value, atol=1e-4, rtol=1e-5 if kept == "r" else 1e-6)
        if len(rest) > 1:
            self.assertLess(error(rest[1].swapaxes(1, 2), right.u, 0), 1e-4)
        dout = random(*out.shape, dtype=out.dtype, seed=3)
        dlse = random(B, H, q.shape[1], dtype="f4", seed=4) if dlse else None
        grads = flashgen.attention_backward(dout, q, k, v, out, *(rest or [None])[:1], dlse=dlse, **options,
                                            **({"u": rest[1]} if rest[1:] else {}))
        right.backward(exact(dout), 0.0 if dlse is None else dlse)
        for name in "qkv":
            found = getattr(grads, name)
            self.assertEqual(found.dtype, q.dtype)
            self.near("d" + name, found.swapaxes(1, 2), getattr(right, "d" + name), getattr(right, f"d{name}_size"), word)
        if "sink" in options:
            self.near("dsink", grads.sink, right.dsink, right.dsink_size, word)
        for name, (derivative, axes) in (inputs or {}).items():
            found = grads.bias if name == "bias" else grads.inputs[name]
            value, size = right.of_input(derivative, axes)
            self.near("d" + name, found.reshape(value.shape), value, size, word)
        return out, grads

    def test_causal(self):
        self.check({}, {"mask": CAUSAL}, dlse=True)

    def test_bfloat16_of_float32(self):
        self.check({"mask": None}, {}, word="bf16")

    def test_default_is_no_mask(self):
        q, k, v = some()
        out, lse = flashgen.attention(q, k, v, return_lse=True)
        right = Reference(q, k, v).backward(out)
        self.near("o", out.swapaxes(1, 2), right.o, right.o_size, "f16")
        dk = flashgen.attention_backward(out, q, k, v, out, lse).k
        self.near("dk", dk.swapaxes(1, 2), right.dk, right.dk_size, "f16")

    def test_float16_of_float32(self):
        q, k, v = some("f4")
        out = flashgen.attention(q, k, v, mask="causal", dtype="f16")
        self.assertEqual(out.dtype, np.float32)
        right = Reference(*(x.astype("f2") for x in (q, k, v)), mask=CAUSAL)
        self.near("o", out.swapaxes(1, 2), right.o, right.o_size, "f16")

    def test_mask_score_and_numbers(self):
        """A window and a cap that are numbers of the launch, and a definition."""
        for width in (7, np.int64(12)):
            self.check(
                {"mask": "near(width)", "define": {"near(n)": "k <= p && p - k < n"}, "score": "softcap(s, cap)",
                 "inputs": {"width": width, "cap": 1.5}},
                {"mask": CAUSAL & (P - K < width),
                 "score": lambda s: (1.5 * np.tanh(s / 1.5), 1 / np.cosh(s / 1.5) ** 2)})

    def test_inputs_have_gradients(self):
        """A slope of each head, and a table of each distance, which is in another dtype."""
        slope = random(H, dtype="f4") / 8
        table = random(H, NQ + NK - 1, dtype="f2")
        spread = K - Q + NQ - 1
        bias = slope[:, None, None] * (K - P) + table.astype(float)[:, spread]
        options = {"score": "s + slope[h] * (k - p) + table[h, k - q + nq - 1]",
                   "inputs": {"table": ("h, nq + nk - 1", table), "slope": ("h", slope)}}
        out, grads = self.check(options, {"mask": CAUSAL, "bias": bias}, inputs={"slope": (K - P, (0, 2, 3))})
        self.assertEqual((grads.inputs["table"].shape, grads.inputs["table"].dtype), (table.shape, table.dtype))
        right = Reference(*some(), mask=CAUSAL, bias=bias).backward(random(*out.shape, dtype="f2", seed=3))
        for at in (0, NQ - 1, NQ + 3, NQ + NK - 2):
            value, size = right.of_input(spread == at, (0, 2, 3))
            self.assertLess(np.linalg.norm(grads.inputs["table"][:, at] - value), 1e-2 * np.linalg.norm(size) + 1e-6)

    def test_wanted(self):
        q, k, v = some()
        slope = {"mask": "causal", "inputs": {"slope": ("h", np.ones(H, "f4"))}, "score": "alibi(slope)"}
        out, lse = flashgen.attention(q, k, v, return_lse=True, **slope)
        self.assertEqual(flashgen.attention_backward(out, q, k, v, out, lse, wanted=(), **slope).inputs, {})
        self.says(ValueError, "wanted: bias is not given, or has no gradient", flashgen.attention_backward, out, q, k, v,
                  out, lse, wanted=("bias",), **slope)

    def test_bias(self):
        for shape, axes in (((B, H, NQ, NK), ()), ((1, H, 1, NK), (0, 2))):
            bias = random(*shape, dtype="f4")
            self.check({"mask": None, "bias": bias}, {"bias": bias}, inputs={"bias": (1.0, axes)})

    def test_sink(self):
        sink = random(H, dtype="f4")
        self.check({"mask": "window(5, 0)", "sink": sink}, {"mask": CAUSAL & (P - K <= 5), "sink": sink}, dlse=True)

    def test_dropout(self):
        for seed in ((1, 0), (0x123456789ABC, 0xFEDCBA987654)):
            kept, share = keep_mask((B, H, NQ, NK), seed, 1 - 0.3)
            self.assertAlmostEqual(kept.mean(), 0.7, delta=0.03)
            self.check({"dropout": 0.3, "seed": seed}, {"mask": CAUSAL, "factor": kept / share})
        q, k, v = some()
        words = np.array([1, 0, 0, 0], "i4")
        np.testing.assert_array_equal(flashgen.attention(q, k, v, mask="causal", dropout=0.3, seed=1),
                                      flashgen.attention(q, k, v, mask="causal", dropout=0.3, seed=words))

    def test_normalizers(self):
        decay = 0.25 * np.exp((K - P) * 0.125)
        self.check({"normalizer": "logsoftmax"}, {"mask": CAUSAL, "normalizer": "logsoftmax"}, dlse=True)
        rate = np.full(H, 0.125, "f4")
        self.check({"normalizer": "retention", "score": "decay(rate) * 0.25", "inputs": {"rate": ("h", rate)}},
                   {"mask": CAUSAL, "normalizer": "retention", "score": lambda s: (s * decay, decay)})
        self.check({"normalizer": "none"}, {"mask": CAUSAL, "normalizer": "none"})
        self.check({"normalizer": "sigmoid"}, {"mask": CAUSAL, "normalizer": "sigmoid"})
        self.check({"normalizer": "sigmoid", "sigmoid_bias": 0.0},
                   {"mask": CAUSAL, "normalizer": "sigmoid", "sigmoid_bias": 0.0})
        self.check({"normalizer": "sigmoid", "sigmoid_bias": 0.75},
                   {"mask": CAUSAL, "normalizer": "sigmoid", "sigmoid_bias": 0.75})

    def test_head_dims(self):
        """Any head dim: zeros are put behind its columns, and the scale is that of the columns that were given."""
        self.check({}, {"mask": CAUSAL}, arrays_of=some(d=59, dv=43), dlse=True)
        self.check({"scale": 0.25}, {"mask": CAUSAL, "scale": 0.25}, arrays_of=some("f4", d=20, dv=16), word="bf16")

    def test_head_dims_of_logsoftmax(self):
        self.check({"normalizer": "logsoftmax"}, {"mask": CAUSAL, "normalizer": "logsoftmax"}, arrays_of=some(d=59, dv=43))

    def test_scale_and_max_logit(self):
        q, k, v = some()
        right = Reference(q, k, v, CAUSAL, scale=-0.5)
        out, lse, most = flashgen.attention(q, k, v, mask="causal", scale=-0.5, return_lse=True, return_max_logit=True)
        self.near("o", out.swapaxes(1, 2), right.o, right.o_size, "f16")
        np.testing.assert_allclose(most, right.max_logit, atol=1e-4)
        np.testing.assert_array_equal(flashgen.attention(q, k, v, mask="causal", scale=-0.5, return_max_logit=True)[1], most)

    def test_rows_and_keys_that_are_not_there(self):
        q, k, v = some()
        out, lse = flashgen.attention(q, k[:, :9], v[:, :9], mask="causal", return_lse=True)
        self.assertTrue((out[:, :NQ - 9] == 0).all() and (lse[..., :NQ - 9] == -np.inf).all())
        self.assertEqual(flashgen.attention(q[:, :0], k, v, mask="causal").shape, (B, 0, H, D))
        np.testing.assert_array_equal(flashgen.attention(q, k[:, :0], v[:, :0], mask="causal"), 0)
        grads = flashgen.attention_backward(q, q, k[:, :0], v[:, :0], q, np.zeros((B, H, NQ), "f4"), mask="causal")
        self.assertEqual(grads.k.shape, (B, 0, HK, D))
        np.testing.assert_array_equal(grads.q, 0)


class Arrays(Case):
    """How arrays lie in memory makes no difference."""

    def setUp(self):
        self.arrays = some()
        self.out, self.lse = flashgen.attention(*self.arrays, mask="causal", return_lse=True)
        self.grads = flashgen.attention_backward(*self.arrays[:1], *self.arrays, self.out, self.lse, mask="causal")

    def same(self, change):
        q, k, v = (change(x) for x in self.arrays)
        np.testing.assert_array_equal(flashgen.attention(q, k, v, mask="causal"), self.out)
        grads = flashgen.attention_backward(change(self.arrays[0]), q, k, v, change(self.out), self.lse, mask="causal")
        for found, right in zip(grads[:3], self.grads):
            np.testing.assert_array_equal(found, right)

    def test_heads_first(self):
        self.same(lambda x: np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2))

    def test_columns_apart(self):
        self.same(lambda x: np.asfortranarray(x))
        self.same(lambda x: x.repeat(2, 3)[..., ::2])

    def test_backwards(self):
        self.same(lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1])

    def test_odd_addresses_and_strides(self):
        def move(x, width, first):
            wide = np.zeros(x.shape[:-1] + (width,), x.dtype)
            wide[..., first:first + x.shape[-1]] = x
            return wide[..., first:first + x.shape[-1]]
        self.same(lambda x: move(x, D + 8, 3))
        self.same(lambda x: move(x, D + 3, 0))
        self.same(lambda x: move(x, D + 8, 8))
        q, k, v = some(dv=D - 3)
        np.testing.assert_array_equal(flashgen.attention(move(q, D + 8, 3), k, v), flashgen.attention(q, k, v))

    def test_out(self):
        out = np.empty_like(self.out)
        self.assertIs(flashgen.attention(*self.arrays, mask="causal", out=out), out)
        np.testing.assert_array_equal(out, self.out)
        for lies in (np.empty(self.out.shape[:-1] + (2 * D,), "f2")[..., ::2],
                     np.empty(self.out.shape[:-1] + (2 * D,), "f2")[..., 3:3 + D]):
            found, lse = flashgen.attention(*self.arrays, mask="causal", out=lies, return_lse=True)
            self.assertIs(found, lies)
            np.testing.assert_array_equal(lies, self.out)
            np.testing.assert_array_equal(lse, self.lse)
        wide = np.empty(self.out.shape, "f4")
        q, k, v = (x.astype("f4") for x in self.arrays)
        flashgen.attention(q, k, v, mask="causal", dtype="f16", out=wide)
        np.testing.assert_array_equal(wide, self.out)

    def test_bfloat16_bits(self):
        """uint16 is bfloat16, as it is."""
        q, k, v = (arrays.round_to_bf16(x) for x in self.arrays)
        out = flashgen.attention(q, k, v, mask="causal")
        self.assertEqual(out.dtype, np.uint16)
        np.testing.assert_array_equal(arrays.convert(out, "f32"),
                                      flashgen.attention(*(x.astype("f4") for x in self.arrays), mask="causal"))

    def test_rounding(self):
        """To the nearest, ties to even; what is no number stays so."""
        found = arrays.round_to_bf16(np.array([1.0, 1.00390625, 1.01171875, 1.0040, -3e38, 3.4e38, np.inf, np.nan], "f4"))
        self.assertEqual(arrays.round_to_bf16(np.array([-1, 0x7FFFFFFF], "i4").view("f4")).tolist(), [0x7FC0] * 2)
        self.assertEqual(found.tolist(), [0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xff62, 0x7f80, 0x7f80, 0x7fc0])

    def test_options_reach_the_spec(self):
        """What tiny arrays cannot show."""
        def last():
            return dict(list(context("host").ops)[-1])
        flashgen.attention(*self.arrays, mask="causal", batch_invariant=True)
        self.assertEqual((last()["batch_invariant"], last().get("deterministic")), ("true", None))
        flashgen.attention_backward(*self.arrays[:1], *self.arrays, self.out, self.lse, mask="causal", deterministic=True)
        self.assertEqual((last()["deterministic"], last()["pass"]), ("true", "backward"))

    def test_plan(self):
        for family in ("simt", "mma"):
            out = flashgen.attention(*self.arrays, mask="causal", plan={"family": family, "block_kv": [16, 32, 64]})
            self.assertLess(error(out, self.out, 0), 1e-3)


if __name__ == "__main__":
    main()

"""Gradients of flashgen.attention, one case of each hook and of several together, beside float64 autograd of the plain formula;
errors are judged as the suites of the C library judge them."""
from case import Case, flashgen, main
from device import DEVICE, random, torch
from exact import KEPT, LIMITS, Exact, Input, error
from formula import keep_mask

if DEVICE == "cpu":  # the host device is slow
    B, H, HK, NQ, NK, D = 2, 4, 2, 19, 33, 16
else:
    B, H, HK, NQ, NK, D = 2, 4, 2, 203, 339, 64
ROWS = torch.arange(NQ, device=DEVICE)[:, None]
KEYS = torch.arange(NK, device=DEVICE)
PLACES = ROWS + NK - NQ
CAUSAL = KEYS <= PLACES
FAR = PLACES - KEYS
STARTS_Q, STARTS_K = [0, NQ // 3, NQ // 3, NQ - 2], [0, NK // 2, NK - 9, NK - 1]  # the last tokens are no sequence's


def ints(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def numbers(*shape, dtype=torch.float32, seed=5):
    return random(*shape, dtype=dtype, seed=seed, grad=True)


def of_heads(x):
    return x.view(1, -1, 1, 1)


def some(dtype=torch.float16, b=B, nq=NQ, nk=NK, h=H, hk=HK, d=D, dv=D):
    return (random(b, nq, h, d, dtype=dtype, grad=True), random(b, nk, hk, d, dtype=dtype, grad=True, seed=1),
            random(b, nk, hk, dv, dtype=dtype, grad=True, seed=2))


class Gradients(Case):
    def near(self, name, found, value, size, dtype):
        self.assertEqual(found.shape, value.shape, name)
        self.assertLessEqual(error(found, value, size), LIMITS[dtype], name)

    def near_rows(self, name, found, value):
        """What is kept of rows: lse and r, which are sums of them, and u."""
        if name == "u":
            self.assertLessEqual(error(found, value, torch.zeros(1)), 1e-4, name)
            return
        self.assertTrue(torch.equal(found.isfinite(), value.isfinite()), name)
        off = (found.double() - value)[value.isfinite()].abs()
        limit = 1e-4 + (1e-5 if name == "r" else 1e-6) * value[value.isfinite()].abs()
        self.assertTrue((off <= limit).all(), f"{name} is off by {off.max() if len(off) else 0}")

    def check(self, mask="causal", seen=CAUSAL, qkv=None, score=None, by=None, inputs=None, masks=None, with_dlse=False,
              kept=None, **options):
        """score and mask are expressions; by and seen are what they mean: a function of s, and a bool for each pair. inputs:
        name -> Input or number; masks: what the mask names, as a call has it. kept: which weights dropout keeps, and its
        quotient."""
        q, k, v = qkv or some()
        inputs = inputs or {}
        normalizer = options.get("normalizer", "softmax")
        arrays = {name: x for name, x in inputs.items() if isinstance(x, Input)}
        declared = {name: (x.axes, x.value) if name in arrays else x for name, x in inputs.items()}
        declared.update(masks or {})
        results = flashgen.attention(q, k, v, mask=mask, score=score, inputs=declared, return_lse=normalizer in KEPT, **options)
        out, *rest = results if normalizer in KEPT else (results,)
        shared = {name: x for name, x in options.items() if name in ("bias", "sink", "normalizer", "sigmoid_bias", "scale")}
        right = Exact(*(x.transpose(1, 2) for x in (q, k, v)), seen, by, arrays, **shared,
                      factor=1.0 if kept is None else kept[0] / kept[1])
        self.near("o", out.transpose(1, 2), right.results["o"], right.sizes["o"], q.dtype)
        for name, x in zip(KEPT.get(normalizer, ()), rest):
            self.near_rows(name, x if name != "u" else x.transpose(1, 2), right.results[name])

        dout = random(*out.shape, dtype=q.dtype, seed=3)
        dlse = random(*rest[0].shape, dtype=torch.float32, seed=4) if with_dlse else None
        leaves = {"q": q, "k": k, "v": v, **{name: options[name] for name in ("bias", "sink") if name in options},
                  **{name: x.value for name, x in arrays.items() if x.value.requires_grad}}
        found = torch.autograd.grad([out, *rest[:1]] if with_dlse else [out], list(leaves.values()),
                                    [dout, dlse] if with_dlse else [dout])
        exact = right.backward(dout.double().transpose(1, 2), dlse.double() if with_dlse else None)
        for (name, leaf), x in zip(leaves.items(), found):
            self.assertEqual(x.dtype, leaf.dtype, name)
            self.near("d" + name, x.transpose(1, 2) if name in ("q", "k", "v") else x, *exact[name], q.dtype)

    # ---- shapes and dtypes ----

    def test_plain(self):
        for dtype in LIMITS:
            self.check(None, None, some(dtype))
            self.check(qkv=some(dtype), with_dlse=True)

    def test_heads_and_widths(self):
        self.check(qkv=some(h=3, hk=3))
        self.check(qkv=some(h=6, hk=1), with_dlse=True)
        self.check(qkv=some(torch.bfloat16, d=D + 3, dv=D // 2))
        self.check(qkv=some(), scale=0.4)

    def test_rows_that_see_nothing(self):
        q, k, v = some(nq=NK, nk=NQ)
        seen = torch.arange(NQ, device=DEVICE) <= torch.arange(NK, device=DEVICE)[:, None] + NQ - NK
        self.check(qkv=(q, k, v), seen=seen, with_dlse=True)

    def test_one_key(self):
        """dq and dk are exactly 0, of terms that are not."""
        self.check(None, None, some(nk=1))

    def test_large_scores(self):
        q, k, v = some(torch.bfloat16)
        self.check(qkv=(q, k, v), scale=20.0)

    # ---- masks ----

    def test_windows(self):
        self.check("window(7, 0)", CAUSAL & (FAR <= 7))
        self.check("window(left, right)", (FAR <= 5) & (-FAR <= 3), inputs={"left": 5, "right": 3}, with_dlse=True)

    def test_mask_of_an_input(self):
        length, seen = ints(4, NK - 8), random(B, NK, seed=6) > -1
        self.check("k < length[b] || k <= p", (KEYS < length.view(-1, 1, 1, 1)) | CAUSAL, masks={"length": ("b", length)})
        self.check("seen[b, k] != 0", seen[:, None, None], masks={"seen": ("b, k", seen.int())})

    # ---- scores ----

    def test_softcap(self):
        self.check(score="softcap(s, cap)", by=lambda s: 1.5 * torch.tanh(s / 1.5), inputs={"cap": 1.5}, with_dlse=True)

    def test_alibi(self):
        slope = Input("h", torch.tensor([0.5, 0.25, 0.125, 0.0625], device=DEVICE, requires_grad=True), of_heads)
        self.check(score="alibi(slope)", by=lambda s, slope: s - slope * FAR, inputs={"slope": slope}, with_dlse=True)
        self.check(None, None, score="s - slope[h] * abs(k - p)", by=lambda s, slope: s - slope * FAR.abs(),
                   inputs={"slope": slope})

    def test_inputs_of_many_extents(self):
        """One of a head, of a sequence's head, a row, a key, a sequence's keys, a pair, a distance, and a single one."""
        inputs = {
            "a": Input("h", numbers(H), of_heads),
            "c": Input("b, h", numbers(B, H), lambda x: x[..., None, None]),
            "e": Input("q", numbers(NQ), lambda x: x[:, None]),
            "f": Input("k", numbers(NK), lambda x: x),
            "g": Input("b, k", numbers(B, NK), lambda x: x[:, None, None]),
            "i": Input("h, q, k", numbers(H, NQ, NK), lambda x: x),
            "m": Input("h, nq + nk - 1", numbers(H, NQ + NK - 1), lambda x: x[:, KEYS - ROWS + NQ - 1]),
            "x": Input("1", numbers(1), lambda x: x)}
        scores = {
            "a": ("s * (1 + a[h] / 4)", lambda s, a: s * (1 + a / 4)),
            "c": ("s + c[b, h] * sqrt(k + 1.0) / 4", lambda s, c: s + c * torch.sqrt(KEYS + 1.0) / 4),
            "e": ("s * e[q]", lambda s, e: s * e),
            "f": ("s + f[k]", lambda s, f: s + f),
            "g": ("s + s * g[b, k] / 2", lambda s, g: s + s * g / 2),
            "i": ("s + i[h, q, k] * abs(s)", lambda s, i: s + i * s.abs()),
            "m": ("relative(m)", lambda s, m: s + m),
            "x": ("s * tanh(x[0])", lambda s, x: s * torch.tanh(x))}
        for name, (score, by) in scores.items():
            with self.subTest(score):
                self.check(score=score, by=by, inputs={name: inputs[name]})

    def test_inputs_together(self):
        """Three with gradients, of two dtypes, one integer and one number, in one score, over q and k alone and together."""
        gate = random(B, NQ, dtype=torch.bfloat16, seed=7, grad=True)
        inputs = {"cap": 5.0, "gate": Input("b, q", gate, lambda x: x[:, None, :, None]),
                  "slope": Input("h", numbers(H), of_heads),
                  "table": Input("hk, k", numbers(HK, NK), lambda x: x.repeat_interleave(H // HK, 0)[:, None])}
        self.check(score="softcap(s, cap) * gate[b, q] - slope[h] * (p - k) / 32 + table[hk, k]",
                   by=lambda s, gate, slope, table: 5 * torch.tanh(s / 5) * gate - slope * FAR / 32 + table, inputs=inputs,
                   with_dlse=True)

    # ---- what is added, dropped, or sums up in another way ----

    def test_bias(self):
        for shape in ((B, H, NQ, NK), (1, H, 1, NK), (1, 1, NQ, NK), (B, 1, 1, 1)):
            with self.subTest(shape):
                self.check(bias=numbers(*shape))
        self.check(None, None, bias=numbers(1, H, NQ, NK, dtype=torch.float16), with_dlse=True)

    def test_sink(self):
        self.check("window(5, 0)", CAUSAL & (FAR <= 5), sink=numbers(H), with_dlse=True)
        self.check(qkv=some(torch.bfloat16), sink=numbers(H, dtype=torch.bfloat16))

    def test_dropout(self):
        kept, share = keep_mask((B, H, NQ, NK), (7, 3), 1 - 0.3)
        kept = torch.from_numpy(kept).to(DEVICE).double()
        self.check(dropout=0.3, seed=(7, 3), kept=(kept, share))
        self.check(dropout=0.3, seed=(7, 3), kept=(kept, share), with_dlse=True, sink=numbers(H), score="softcap(s, cap)",
                   by=lambda s: 2 * torch.tanh(s / 2), inputs={"cap": 2.0})

    def test_retention(self):
        rate = Input("h", torch.full((H,), 0.125, device=DEVICE, requires_grad=True), of_heads)
        self.check(normalizer="retention", score="decay(rate) * 0.25",
                   by=lambda s, rate: s * (-rate * FAR).exp() * 0.25, inputs={"rate": rate})

    def test_logsoftmax(self):
        self.check(normalizer="logsoftmax", with_dlse=True)
        self.check("window(9, 0)", CAUSAL & (FAR <= 9), some(torch.bfloat16), normalizer="logsoftmax")

    def test_sigmoid(self):
        self.check(normalizer="sigmoid")
        self.check(normalizer="sigmoid", sigmoid_bias=0.75, bias=numbers(1, H, 1, NK))

    def test_none(self):
        self.check(normalizer="none")

    # ---- sequences behind each other ----

    def test_packed(self):
        """Sequences of other lengths, one of them without rows, one shorter than its segment; tokens of none have 0."""
        q, k, v = (x.detach().flatten(0, 1)[:n].requires_grad_() for x, n in zip(some(), (NQ, NK, NK)))
        slope, sink = numbers(H), numbers(H)
        used = ints(*(b - a for a, b in zip(STARTS_K, STARTS_K[1:]))) - ints(3, 0, 2)
        out, lse = flashgen.attention(q, k, v, mask="causal", starts_q=ints(*STARTS_Q), starts_k=ints(*STARTS_K), used_k=used,
                                      sink=sink, score="alibi(slope)", inputs={"slope": ("h", slope)}, return_lse=True)
        dout, dlse = random(*out.shape, seed=3), random(*lse.shape, dtype=torch.float32, seed=4)
        leaves = {"q": q, "k": k, "v": v, "sink": sink, "slope": slope}
        found = dict(zip(leaves, torch.autograd.grad((out, lse), list(leaves.values()), (dout, dlse))))
        right = {name: [torch.zeros_like(x, dtype=torch.float64) for _ in range(2)] for name, x in leaves.items()}
        right["o"] = [torch.zeros_like(out, dtype=torch.float64) for _ in range(2)]
        for i, n in enumerate(used.tolist()):
            rows, keys = slice(*STARTS_Q[i:i + 2]), slice(STARTS_K[i], STARTS_K[i] + n)
            far = torch.arange(STARTS_Q[i + 1] - STARTS_Q[i], device=DEVICE)[:, None] + n - (rows.stop - rows.start) - \
                torch.arange(n, device=DEVICE)
            one = Exact(*(x[None, s].transpose(1, 2) for x, s in ((q, rows), (k, keys), (v, keys))), far >= 0,
                        lambda s, slope: s - slope * far, {"slope": Input("h", slope, of_heads)}, sink=sink)
            right["o"][0][rows], right["o"][1][rows] = (
                x[0].transpose(0, 1).detach() for x in (one.results["o"], one.sizes["o"]))
            self.near_rows("lse", lse[:, rows], one.results["lse"][0])
            made = one.backward(dout[None, rows].double().transpose(1, 2), dlse[None, :, rows].double())
            for name, (value, size) in made.items():
                part = {"q": rows, "k": keys, "v": keys}.get(name)
                value, size = (value, size) if part is None else (x[0].transpose(0, 1) for x in (value, size))
                at = slice(None) if part is None else part
                right[name][0][at] += value
                right[name][1][at] += size ** 2 if part is None else size
        for name in ("sink", "slope"):
            right[name][1].sqrt_()
        for name, pair in right.items():
            self.near(name, out if name == "o" else found[name], *pair, q.dtype)
        self.assertTrue((out[STARTS_Q[-1]:] == 0).all() and (found["q"][STARTS_Q[-1]:] == 0).all())
        self.assertTrue((found["k"][STARTS_K[-1]:] == 0).all() and (found["v"][STARTS_K[1] - 3:STARTS_K[1]] == 0).all())

    def test_cached(self):
        """Keys in a cache have none, and the call says so."""
        q, k, v = some()
        self.says(ValueError, "a tensor requires a gradient, which attention over a cache does not have", flashgen.attention,
                  q, k, v, used_k=ints(9, 3))


class Float32(Case):
    def test_parts_of_keys(self):
        """Two halves of the keys, merged in float32, give what all keys do, far nearer than bfloat16 is to itself."""
        q, k, v = (x.detach() for x in some(dtype=torch.bfloat16))
        dout = random(B, NQ, H, D, dtype=torch.bfloat16, seed=7)
        how = {"mask": None, "o_dtype": "f32", "plan": {"family": "simt"}}
        halves = [(k[:, keys], v[:, keys]) for keys in (slice(0, NK // 2), slice(NK // 2, NK))]
        made = [flashgen.attention(q, *half, return_lse=True, **how) for half in halves]
        o, lse = flashgen.combine(*(torch.stack(x) for x in zip(*made)), dtype="f32")
        grads = [flashgen.attention_backward(dout, q, *half, o, lse, grad_dtype="f32", **how) for half in halves]
        q, k, v = (x.double().requires_grad_() for x in (q, k, v))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(H // HK, 2)) * D ** -0.5
        whole = torch.einsum("bhqk,bkhd->bqhd", s.softmax(3), v.repeat_interleave(H // HK, 2))
        whole.backward(dout.double())
        dk, dv = (torch.cat([x[i] for x in grads], 1) for i in (1, 2))
        for name, found, exact in (("o", o, whole), ("q", grads[0].q + grads[1].q, q.grad), ("k", dk, k.grad),
                                   ("v", dv, v.grad)):
            self.assertIs(found.dtype, torch.float32, name)
            self.assertLess((found - exact).norm() / exact.norm(), 1e-4, name)

    def test_autograd(self):
        """o in float32 has a float32 gradient, which is rounded to the dtype of q; q's gradient is like q."""
        q, k, v = some(dtype=torch.bfloat16)
        o = flashgen.attention(q, k, v, mask="causal", o_dtype="f32")
        self.assertIs(o.dtype, torch.float32)
        o.sum().backward()
        found, q.grad = q.grad, None
        flashgen.attention(q, k, v, mask="causal").sum().backward()
        self.assertIs(found.dtype, torch.bfloat16)
        self.assertLess((found - q.grad).norm() / q.grad.norm(), 1e-2)

    def test_errors(self):
        q, k, v = (x.detach() for x in some(dtype=torch.bfloat16))
        self.says(TypeError, "out is bfloat16; expected float32", flashgen.attention, q, k, v, o_dtype="f32",
                  out=torch.empty_like(q))
        self.says(ValueError, "o_dtype is 'bf16'; expected \"f32\"", flashgen.attention, q, k, v, o_dtype="bf16")
        self.says(ValueError, "grad_dtype is 'f16'; expected \"f32\"", flashgen.attention_backward, q, q, k, v, q, q,
                  grad_dtype="f16")
        o, lse = flashgen.attention(q, k, v, mask="causal", o_dtype="f32", return_lse=True)
        self.says(TypeError, "dout is float16; expected bfloat16 or float32", flashgen.attention_backward, q.half(), q, k, v, o,
                  lse)


if __name__ == "__main__":
    main()

"""flashgen.attention on arrays of float8_e4m3fn, which NumPy has as uint8: results beside float64, and what is refused."""
from case import Case, flashgen, main, np

B, H, HK, NQ, NK, D = 2, 4, 2, 19, 133, 32
BITS = np.arange(256)
EXPONENT, FRACTION = BITS >> 3 & 15, BITS & 7
SIZES = np.where(EXPONENT > 0, (8 + FRACTION) * 2.0 ** (EXPONENT - 10.0), FRACTION * 2.0 ** -9)
VALUES = np.where(BITS >> 7, -SIZES, SIZES)  # but of 0x7f and 0xff, which are NaN


def random(*shape, seed=0):
    """Bits of numbers up to 3.75 in size."""
    source = np.random.default_rng([seed, *shape])
    return (source.integers(0, 0x48, shape) | source.integers(0, 2, shape) << 7).astype(np.uint8)


def descales(seed, *shape):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype("f4")


def some():
    return random(B, NQ, H, D), random(B, NK, HK, D, seed=1), random(B, NK, HK, D, seed=2)


def bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32).astype("f8")


def whole(x, scale, block):
    """[b, heads, n, d] of what [b, n, heads, d] stands for, each key/value head's or block's descale in it."""
    x = x.swapaxes(1, 2)
    heads = np.repeat(scale, x.shape[1] // HK, axis=1)
    return x * (np.repeat(heads, block, axis=2)[:, :, :x.shape[2], None] if block else heads[:, :, None, None])


def right(q, k, v, block, q_descale, k_descale, v_descale):
    """o and the size of its terms."""
    q, k, v = (whole(x, scale, block) for x, scale in ((q, q_descale), (k, k_descale), (v, v_descale)))
    k, v = (np.repeat(x, H // HK, axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(D)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p @ v, np.sqrt(p ** 2 @ v ** 2)


class Fp8(Case):
    def near(self, found, expected, limit):
        value, size = expected
        found = found.swapaxes(1, 2)
        self.assertEqual(found.shape, value.shape)
        self.assertLess(np.linalg.norm(found - value) / max(np.linalg.norm(value), np.linalg.norm(size)), limit)

    def scales(self, block):
        more = (lambda n: (-(-n // block),)) if block else (lambda n: ())
        return {"q_descale": descales(5, B, HK, *more(NQ)), "k_descale": descales(6, B, HK, *more(NK)),
                "v_descale": descales(7, B, HK, *more(NK))}

    def test_all_of_e4m3(self):
        q, k, v = some()
        for block in (0, 64):
            scales = self.scales(block)
            expected = right(VALUES[q], VALUES[k], VALUES[v], block, **scales)
            o = flashgen.attention(q, k, v, mask=None, descale_block=block, **scales)
            self.assertEqual(o.dtype, np.uint16)
            self.near(bf16(o), expected, 3.2e-2)
            for word, dtype in (("f16", "f2"), ("f32", "f4")):
                o = flashgen.attention(q, k, v, mask=None, descale_block=block, o_dtype=word, **scales)
                self.assertEqual(o.dtype, np.dtype(dtype))
                self.near(o, expected, 3.2e-2)

    def test_keys_of_e4m3(self):
        q, k, v = some()
        q = VALUES[q].astype("f2")
        scales = self.scales(0)
        del scales["q_descale"]
        ones = np.ones((B, HK))
        o = flashgen.attention(q, k, v, mask=None, **scales)
        self.assertEqual(o.dtype, np.float16)
        self.near(o, right(q.astype("f8"), VALUES[k], VALUES[v], 0, ones, **scales), 7e-4)
        o = flashgen.attention(q, k, v, mask=None)
        self.near(o, right(q.astype("f8"), VALUES[k], VALUES[v], 0, ones, ones, ones), 7e-4)

    def test_cache(self):
        """Rows that are appended are divided by descales and rounded, behind the rotation; attention takes them back."""
        rounded = lambda x: np.abs(np.abs(x)[..., None] - SIZES[:127]).argmin(-1).astype(np.uint8) | (x < 0).astype(np.uint8) << 7
        k, v = (np.random.default_rng(seed).standard_normal((B, 8, HK, D)).astype("f2") for seed in (1, 2))
        scales = {"k_descale": descales(6, B, HK) / 64, "v_descale": descales(7, B, HK) / 64}
        q, half = VALUES[random(B, 1, H, D)].astype("f2"), D // 2
        at = np.arange(8)[:, None] / 7 ** np.arange(half)
        cos, sin = np.cos(at).astype("f4"), np.sin(at).astype("f4")
        cache = random(B, 8, HK, D, seed=3), random(B, 8, HK, D, seed=4)
        for first, last in ((0, 5), (5, 8)):
            turned = flashgen.append(*cache, k[:, first:last], v[:, first:last], used_k=np.full(B, first, "i4"), rotary_cos=cos,
                                     rotary_sin=sin, q=np.repeat(q, last - first, 1), **scales)
        exact, c, s = k.astype("f8"), cos[:, None].astype("f8"), sin[:, None].astype("f8")
        exact = np.concatenate([exact[..., :half] * c - exact[..., half:] * s, exact[..., :half] * s + exact[..., half:] * c], -1)
        for found, right_one, scale in ((cache[0], exact, "k_descale"), (cache[1], v.astype("f8"), "v_descale")):
            bits = rounded(np.clip(right_one / scales[scale].astype("f8")[:, None, :, None], -448, 448))
            self.assertLess((VALUES[found] != VALUES[bits]).mean(), 1e-3)  # float32 may be on the other side of a tie
        o = flashgen.attention(turned[:, -1:], *cache, used_k=np.full(B, 8, "i4"), mask=None, **scales)
        self.near(o, right(turned[:, -1:].astype("f8"), VALUES[cache[0]], VALUES[cache[1]], 0, np.ones((B, HK)), **scales), 7e-4)

    def test_out_and_strides(self):
        q, k, v = some()
        scales = self.scales(0)
        expected = flashgen.attention(q, k, v, **scales)
        out = np.empty_like(expected)
        self.assertIs(flashgen.attention(q, k, v, out=out, **scales), out)
        np.testing.assert_array_equal(out, expected)
        wide = {name: np.broadcast_to(x[:, :1], x.shape) for name, x in scales.items()}
        alike = {name: np.repeat(x[:, :1], HK, axis=1) for name, x in scales.items()}
        np.testing.assert_array_equal(flashgen.attention(q, k, v, **wide), flashgen.attention(q, k, v, **alike))

    def test_refused(self):
        q, k, v = some()
        half = VALUES[q].astype("f2")
        scale = descales(5, B, HK)
        says, call = self.says, flashgen.attention
        says(ValueError, "q_descale is given, and q is float16", call, half, k, v, q_descale=scale)
        says(ValueError, f"k_descale has shape ({B}, {H}); expected ({B}, {HK})", call, q, k, v, k_descale=descales(5, B, H))
        says(TypeError, "k_descale is float16; expected float32", call, q, k, v, k_descale=scale.astype("f2"))
        says(ValueError, f"v_descale has shape ({B}, {HK}); expected ({B}, {HK}, 3)", call, q, k, v, v_descale=scale,
             descale_block=64)
        says(ValueError, "descale_block is 64, and k is float16", call, half, half[:, :, :HK], half[:, :, :HK], descale_block=64)
        says(ValueError, 'o_dtype is \'f16\'; expected "f32", or None for the dtype of q', call, half, half[:, :, :HK],
             half[:, :, :HK], o_dtype="f16")
        says(TypeError, "v is float16 and q float8_e4m3fn: they have to be equal", call, q, k, VALUES[v].astype("f2"))
        says(ValueError, "dtype: e4m3 is of the forward; backward takes bf16 and f16", flashgen.attention_backward,
             np.zeros((B, NQ, H, D), np.uint16), q, k, v, np.zeros((B, NQ, H, D), np.uint16), np.zeros((B, H, NQ), "f4"))


if __name__ == "__main__":
    main()

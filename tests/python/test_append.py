"""flashgen.append and flashgen.combine, on arrays of NumPy: bits of a cache, turned keys and queries, and parts of keys."""
from case import Case, flashgen, main, np

B, N, NK, H, HK, D, DV = 3, 4, 10, 4, 2, 16, 24
USED = np.array([2, 8, 0], "i4")  # the second one's last two rows have no place
ROWS = np.array([4, 0, 2], "i4")
PAGE, TABLE = 3, np.array([[7, 2, 1, 9], [5, 3, 8, 0], [6, 4, 10, 11]], "i4")
STARTS = np.array([1, 4, 8, 9], "i4")
PAIRS = 6


def random(*shape, seed=0, dtype="f2"):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def slots(is_packed, is_paged):
    """(new row, place of the cache) of each row that has one."""
    most = NK if not is_paged else PAGE * TABLE.shape[1]
    for b in range(B):
        for i in range(STARTS[b + 1] - STARTS[b] if is_packed else N):
            at = USED[b] + i
            if at < most:
                place = (TABLE[b, at // PAGE], at % PAGE) if is_paged else (ROWS[b], at)
                yield (STARTS[b] + i,) if is_packed else (b, i), place, at


def turned(x, at, cos, sin, interleaved):
    """A row [heads, d], turned by its position."""
    x, first = x.astype("f8"), np.asarray(x, "f8")[:, :2 * PAIRS]
    a, b = (first[:, ::2], first[:, 1::2]) if interleaved else (first[:, :PAIRS], first[:, PAIRS:])
    pairs = a * cos[at] - b * sin[at], a * sin[at] + b * cos[at]
    x[:, :2 * PAIRS] = np.stack(pairs, 2).reshape(len(x), -1) if interleaved else np.concatenate(pairs, 1)
    return x


class Append(Case):
    def cache(self, is_paged, d=D, dv=DV):
        shape = (12, PAGE, HK) if is_paged else (5, NK, HK)
        return random(*shape, d), random(*shape, dv, seed=1)

    def new(self, is_packed, d=D, dv=DV):
        rows = (STARTS[-1] + 1,) if is_packed else (B, N)
        return random(*rows, HK, d, seed=2), random(*rows, HK, dv, seed=3), random(*rows, H, d, seed=4)

    def places(self, is_packed, is_paged):
        return {"used_k": USED, **({"starts_q": STARTS} if is_packed else {}),
                **({"table": TABLE} if is_paged else {"rows": ROWS})}

    def test_bits(self):
        """What is written has the new rows' bits, and all else keeps its own; any head dim, columns that are apart."""
        for is_packed in (False, True):
            for is_paged in (False, True):
                for d, dv in ((D, DV), (19, 13)):
                    k, v = self.cache(is_paged, d, dv)
                    if is_paged and is_packed:
                        k = np.repeat(k, 2, -1)[..., ::2]
                    k_new, v_new, _ = self.new(is_packed, d, dv)
                    right = k.copy(), v.copy()
                    for row, place, _ in slots(is_packed, is_paged):
                        right[0][place], right[1][place] = k_new[row], v_new[row]
                    self.assertIsNone(flashgen.append(k, v, k_new, v_new, **self.places(is_packed, is_paged)))
                    np.testing.assert_array_equal(k, right[0])
                    np.testing.assert_array_equal(v, right[1])

    def test_rotary(self):
        angle = random(NK + 3, PAIRS, seed=5, dtype="f4")
        for dtype in ("f2", "f4"):
            cos, sin = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
            for interleaved in (False, True):
                k, v = self.cache(False)
                k_new, v_new, q = self.new(False)
                before = k.copy()
                found = flashgen.append(k, v, k_new, v_new, q=q, rotary_cos=cos, rotary_sin=sin,
                                        rotary="interleaved" if interleaved else "halves", **self.places(False, False))
                self.assertEqual((found.shape, found.dtype), (q.shape, q.dtype))
                for row, place, at in slots(False, False):
                    np.testing.assert_allclose(k[place], turned(k_new[row], at, cos, sin, interleaved), atol=2e-3)
                    np.testing.assert_allclose(found[row], turned(q[row], at, cos, sin, interleaved), atol=2e-3)
                    np.testing.assert_array_equal(k[place][:, 2 * PAIRS:], k_new[row][:, 2 * PAIRS:])
                np.testing.assert_array_equal(k[[1, 3]], before[[1, 3]])

    def test_row_positions(self):
        """Rows have positions of their own; one that the tables lack is not written, and its query is 0."""
        cos, sin = (random(5, PAIRS, seed=i) for i in (5, 6))
        k, v = self.cache(False)
        before = k.copy()
        k_new, v_new, q = self.new(False)
        at = np.array([[4, 3, 2, 1], [0, 0, 0, 0], [5, -1, 0, 1]], "i4")
        found = flashgen.append(k, v, k_new, v_new, q=q, rotary_cos=cos, rotary_sin=sin, row_positions=at,
                                **self.places(False, False))
        for row, place, _ in slots(False, False):
            if 0 <= at[row] < 5:
                np.testing.assert_allclose(k[place], turned(k_new[row], at[row], cos, sin, False), atol=5e-3, rtol=1e-2)
            else:
                np.testing.assert_array_equal(k[place], before[place])
                self.assertTrue((found[row] == 0).all())

    def test_then_attention(self):
        """Decode: attention to what was appended is attention to all keys."""
        k, v = random(2, 8, HK, D), random(2, 8, HK, D, seed=1)
        whole = flashgen.attention(random(2, 1, H, D, seed=2), k, v, mask=None)
        cache = np.zeros_like(k), np.zeros_like(v)
        for first, last in ((0, 5), (5, 7), (7, 8)):
            flashgen.append(*cache, k[:, first:last], v[:, first:last], used_k=np.full(2, first, "i4"))
        found = flashgen.attention(random(2, 1, H, D, seed=2), *cache, mask="causal", used_k=np.full(2, 8, "i4"))
        np.testing.assert_allclose(found, whole, atol=1e-3)

    def test_errors(self):
        k, v = self.cache(False)
        k_new, v_new, q = self.new(False)
        cos = random(NK, PAIRS)

        def wrong(kind, sentence, k=k, v=v, k_new=k_new, v_new=v_new, used_k=USED, **options):
            self.says(kind, sentence, flashgen.append, k, v, k_new, v_new, used_k=used_k, **options)

        wrong(ValueError, "k_new has shape (3, 4, 2, 24); expected (3, 4, 2, 16)", k_new=v_new)
        wrong(ValueError, "k_new has shape (4, 2, 16); expected (any, any, any, any)", k_new=k_new[0])
        wrong(TypeError, "v_new is float32; expected float16", v_new=v_new.astype("f4"))
        wrong(TypeError, "k is float32; expected float16 or bfloat16 or float8_e4m3fn", k=k.astype("f4"))
        wrong(ValueError, "k_descale is given, and the cache is float16", k_descale=np.ones((B, HK), "f4"))
        eight = {"k": k.astype("u1"), "v": v[..., :D].astype("u1"), "v_new": v_new[..., :D]}
        wrong(TypeError, "k_new is float32; expected float16 or bfloat16", **{**eight, "k_new": k_new.astype("f4")})
        wrong(TypeError, "v_new is float16; expected bfloat16", **{**eight, "k_new": k_new.astype("u2")})
        wrong(TypeError, "v is float16; expected float8_e4m3fn", **{**eight, "v": v})
        wrong(ValueError, f"v_descale has shape ({B},); expected ({B}, {HK})", **eight, v_descale=np.ones(B, "f4"))
        wrong(TypeError, "used_k is int64; expected int32", used_k=USED.astype("i8"))
        wrong(TypeError, "used_k is a list, k a ndarray: they have to be alike", used_k=[1, 2, 3])
        wrong(ValueError, "rows has shape (2,); expected (3,)", rows=ROWS[:2])
        wrong(ValueError, "rotary is 'both'; expected \"halves\" or \"interleaved\"", rotary="both")
        wrong(ValueError, "q is given without rotary_cos", q=q)
        wrong(ValueError, "rotary_cos is given without rotary_sin", rotary_cos=cos)
        wrong(ValueError, "rotary_sin has shape (9, 6); expected (10, 6)", rotary_cos=cos, rotary_sin=cos[1:])
        wrong(ValueError, "rotary_cos has 9 columns; expected from 1 to 8", rotary_cos=random(5, 9), rotary_sin=random(5, 9))
        wrong(ValueError, "q has 3 heads, which is not a multiple of the 2 of k", q=q[:, :, :3], rotary_cos=cos, rotary_sin=cos)
        pages = self.cache(True)
        wrong(ValueError, "rows is for a cache without pages", k=pages[0], v=pages[1], table=TABLE, rows=ROWS)
        frozen = v.copy()
        frozen.flags.writeable = False
        wrong(ValueError, "v is an array that may not be written to", v=frozen)


class Combine(Case):
    def test_parts(self):
        """Any strides, parts without keys, a sink; against the formula."""
        for dv in (D, 19):
            o = random(5, B, H, N, dv, dtype="f4").swapaxes(2, 3)
            lse = random(5, B, N, H, dtype="f4").swapaxes(2, 3) * 3
            lse[2:, 0] = lse[:, 1, 1] = -np.inf
            o[:, 1, :, 1] = np.nan
            for dtype, sink in (("f16", None), ("bf16", random(H, dtype="f4"))):
                found, found_lse = flashgen.combine(o, lse, dtype=dtype, sink=sink)
                logits = lse.astype("f8") if sink is None else np.concatenate(
                    (lse, np.broadcast_to(sink[:, None], lse.shape[1:])[None])).astype("f8")
                with np.errstate(divide="ignore"):
                    right = np.log(np.exp(logits).sum(0))
                with np.errstate(invalid="ignore"):
                    weights = np.nan_to_num(np.exp(lse - right))
                value = (weights.swapaxes(2, 3)[..., None] * np.nan_to_num(o)).sum(0)
                if dtype == "bf16":
                    found = (found.astype("u4") << 16).view("f4")
                np.testing.assert_allclose(found, value, atol=2e-3, rtol=1e-3 if dtype == "f16" else 5e-3)
                np.testing.assert_allclose(found_lse, right, atol=1e-5)

    def test_of_attention(self):
        """Keys in two parts are all keys."""
        q, k, v = random(2, 5, H, D), random(2, 12, HK, D, seed=1), random(2, 12, HK, D, seed=2)
        o, lse = zip(*(flashgen.attention(q, k[:, keys], v[:, keys], mask=None, return_lse=True)
                       for keys in (slice(0, 7), slice(7, 12))))
        found, found_lse = flashgen.combine(np.stack(o), np.stack(lse))
        whole, whole_lse = flashgen.attention(q, k, v, mask=None, return_lse=True)
        np.testing.assert_allclose(found, whole, atol=2e-3)
        np.testing.assert_allclose(found_lse, whole_lse, atol=1e-4)

    def test_errors(self):
        o, lse = random(2, B, N, H, D, dtype="f4"), random(2, B, H, N, dtype="f4")
        self.says(ValueError, "o_parts has shape (3, 4, 4, 16); expected (any, any, any, any, any)", flashgen.combine, o[0],
                  lse)
        self.says(ValueError, "o_parts has 0 parts; expected 1 to 256", flashgen.combine, o[:0], lse[:0])
        self.says(ValueError, "lse_parts has shape (2, 3, 4, 3); expected (2, 3, 4, 4)", flashgen.combine, o, lse[..., 1:])
        self.says(TypeError, "o_parts is bfloat16; expected float32 or float16", flashgen.combine, o.astype("u2"), lse)
        self.says(ValueError, "dtype is 'f64'; expected \"f16\", \"bf16\" or \"f32\"", flashgen.combine, o, lse, dtype="f64")
        self.says(TypeError, "lse_parts is a list, o_parts a ndarray", flashgen.combine, o, [1.0])


if __name__ == "__main__":
    main()

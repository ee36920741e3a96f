"""Packed, cached and paged sequences: each as if it were alone."""
from case import Case, flashgen, main, np
from flashgen.context import context
from formula import LIMITS, Reference, error

H, HK, D = 4, 2, 16
NQ, NK = (5, 0, 19, 7), (9, 4, 33, 3)  # of each sequence; the last one has rows that see no key
GAP = 2  # tokens behind the last sequence


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("f2")


def starts(lengths):
    return np.cumsum((0, *lengths)).astype("i4")


def causal(nq, nk):
    return np.arange(nk)[None, :] <= np.arange(nq)[:, None] + nk - nq


class Layouts(Case):
    def near(self, found, value, size, word="f16"):
        self.assertLess(error(found, value, size), LIMITS[word])

    def test_packed(self):
        q, k, v = random(sum(NQ) + GAP, H, D), random(sum(NK) + GAP, HK, D, seed=1), random(sum(NK) + GAP, HK, D, seed=2)
        slope = np.array([0.5, 0.25, 0.125, 0.0625], "f4")
        options = {"mask": "causal", "starts_q": starts(NQ), "starts_k": starts(NK), "score": "alibi(slope)",
                   "inputs": {"slope": ("h", slope)}}
        for longest in ({}, {"longest_q": 19, "longest_k": 40}):
            out, lse = flashgen.attention(q, k, v, return_lse=True, **longest, **options)
        self.assertEqual((out.shape, lse.shape), (q.shape, (H, len(q))))
        dout, dlse = random(*q.shape, seed=3), random(*lse.shape, seed=4).astype("f4")
        grads = flashgen.attention_backward(dout, q, k, v, out, lse, dlse=dlse, **options)
        total, size = 0.0, 0.0
        for i, (nq, nk) in enumerate(zip(NQ, NK)):
            rows, keys = (slice(sum(n[:i]), sum(n[:i + 1])) for n in (NQ, NK))
            distance = np.arange(nk)[None, :] - (np.arange(nq)[:, None] + nk - nq)
            right = Reference(*(x[None] for x in (q[rows], k[keys], v[keys])), mask=causal(nq, nk),
                              bias=slope[:, None, None] * distance).backward(dout[None, rows], dlse[None, :, rows])
            self.near(out[rows].swapaxes(0, 1), right.o[0], right.o_size[0])
            np.testing.assert_allclose(lse[:, rows], right.lse[0], atol=1e-4)
            for name, where in (("q", rows), ("k", keys), ("v", keys)):
                self.near(getattr(grads, name)[where].swapaxes(0, 1), getattr(right, "d" + name)[0],
                          getattr(right, f"d{name}_size")[0])
            value, part = right.of_input(distance, (0, 2, 3))
            total, size = total + value, np.hypot(size, part)
        self.near(grads.inputs["slope"], total, size)
        for x in (out, grads.q, grads.k, grads.v):  # what no sequence has
            self.assertTrue((x[-GAP:] == 0).all())
        self.assertTrue((lse[:, -GAP:] == -np.inf).all())

    def test_used(self):
        """Of a packed sequence only the first rows and keys count."""
        q, k, v = random(20, H, D), random(20, HK, D, seed=1), random(20, HK, D, seed=2)
        at = np.array([0, 8, 20], "i4")
        used_q, used_k = np.array([3, 12], "i4"), np.array([8, 5], "i4")
        out = flashgen.attention(q, k, v, mask=None, starts_q=at, starts_k=at, used_q=used_q, used_k=used_k)
        for i in range(2):
            rows, keys = slice(at[i], at[i] + used_q[i]), slice(at[i], at[i] + used_k[i])
            right = Reference(q[None, rows], k[None, keys], v[None, keys])
            self.near(out[rows].swapaxes(0, 1), right.o[0], right.o_size[0])
            self.assertTrue((out[at[i] + used_q[i]:at[i + 1]] == 0).all())

    def test_parts(self):
        """Two parts of the rows and three of the keys, joined, are the whole; a number is that of all sequences."""
        q, k, v = random(2, 21, H, D), random(2, 33, HK, D, seed=1), random(2, 33, HK, D, seed=2)
        dout = random(2, 21, H, D, seed=3)
        options = {"mask": "window(9, 0)", "score": "softcap(3.0)", "dropout": 0.25, "seed": 5}
        whole, lse = flashgen.attention(q, k, v, return_lse=True, **options)
        right = flashgen.attention_backward(dout, q, k, v, whole, lse, **options)
        sums = [np.zeros(x.shape) for x in (q, k, v)]
        for rows in (slice(0, 8), slice(8, 21)):
            parts = []
            for keys in (slice(0, 11), slice(11, 12), slice(12, 33)):
                place = {"pos_q": rows.start, "pos_k": np.full(2, keys.start, "i4"), "whole_q": 21, "whole_k": 33, **options}
                cut = q[:, rows], k[:, keys], v[:, keys]
                parts.append(flashgen.attention(*cut, return_lse=True, **place))
                made = flashgen.attention_backward(dout[:, rows], *cut, whole[:, rows], np.ascontiguousarray(lse[..., rows]), **place)
                for sum_of, where, x in zip(sums, (rows, keys, keys), made):
                    sum_of[:, where] += x
            o, lse_of = flashgen.combine(np.stack([o for o, _ in parts]), np.stack([x for _, x in parts]))
            np.testing.assert_allclose(o, whole[:, rows], atol=4e-3)
            np.testing.assert_allclose(lse_of, lse[..., rows], atol=1e-4)
        for name, x in zip("qkv", sums):
            np.testing.assert_allclose(x, getattr(right, name), atol=2e-2)

    def test_parts_of_packed_sequences(self):
        """Each sequence has a place of its own."""
        q, k, v = random(12, H, D), random(30, HK, D, seed=1), random(30, HK, D, seed=2)
        out = flashgen.attention(q, k, v, mask="causal", starts_q=np.array([0, 5, 12], "i4"),
                                 starts_k=np.array([0, 10, 30], "i4"), pos_q=np.array([7, 3], "i4"), pos_k=np.array([2, 0], "i4"),
                                 whole_q=20, whole_k=20)
        for rows, keys, pos_q, pos_k in ((slice(0, 5), slice(0, 10), 7, 2), (slice(5, 12), slice(10, 30), 3, 0)):
            i, j = np.arange(rows.stop - rows.start)[:, None] + pos_q, np.arange(keys.stop - keys.start) + pos_k
            right = Reference(q[None, rows], k[None, keys], v[None, keys], mask=j <= i)
            self.near(out[rows].swapaxes(0, 1), right.o[0], right.o_size[0])

    def test_slices(self):
        """A pair is of the first slice that shows it, and is counted from that slice's first row and key."""
        q, k, v = random(40, H, D), random(33, HK, D, seed=1), random(33, HK, D, seed=2)
        slope = np.array([0.5, 0.25, 0.125, 0.0625], "f4")
        q_ranges = np.array([(0, 9), (4, 20), (20, 20), (16, 36), (0, 40)], "i4")
        k_ranges = np.array([(0, 12), (8, 30), (0, 33), (3, 9), (30, 33)], "i4")
        shown, distance = np.zeros((40, 33), bool), np.zeros((40, 33))
        kinds = np.array([1, 2, 0, 3, 0], "i4")
        for (q0, q1), (k0, k1), kind in zip(q_ranges, k_ranges, kinds):
            i, j = np.arange(40)[:, None] - q0, np.arange(33) - k0
            shows = (i >= 0) & (i < q1 - q0) & (j >= 0) & (j < k1 - k0) & ~shown
            shows &= (j <= i + (k1 - k0) - (q1 - q0)) | (kind % 2 == 0)
            shows &= (j >= i) | (kind < 2)
            distance[shows] = (j - i - (k1 - k0) + (q1 - q0))[shows]
            shown |= shows
        options = {"q_ranges": q_ranges, "k_ranges": k_ranges, "kinds": kinds, "score": "alibi(slope)", "inputs": {"slope": ("h", slope)}}
        out, lse = flashgen.attention(q, k, v, return_lse=True, **options)
        self.assertEqual((out.shape, lse.shape), (q.shape, (H, 40)))
        dout = random(*q.shape, seed=3)
        grads = flashgen.attention_backward(dout, q, k, v, out, lse, **options)
        right = Reference(q[None], k[None], v[None], mask=shown, bias=slope[:, None, None] * distance).backward(dout[None])
        self.near(out.swapaxes(0, 1), right.o[0], right.o_size[0])
        np.testing.assert_allclose(lse, right.lse[0], atol=1e-4)
        for name in "qkv":
            self.near(getattr(grads, name).swapaxes(0, 1), getattr(right, "d" + name)[0], getattr(right, f"d{name}_size")[0])
        value, size = right.of_input(distance, (0, 2, 3))
        self.near(grads.inputs["slope"], value, size)
        without = {name: x for name, x in options.items() if name != "kinds"}
        all_of = flashgen.attention(q, k, v, **without)
        self.assertTrue((all_of == flashgen.attention(q, k, v, kinds=0 * kinds, **without)).all())

    def test_dense_queries_of_packed_keys(self):
        q, k, v = random(2, 3, H, D), random(20, HK, D, seed=1), random(20, HK, D, seed=2)
        at = np.array([0, 8, 20], "i4")
        out = flashgen.attention(q, k, v, mask="causal", starts_k=at)
        for i in range(2):
            right = Reference(q[i:i + 1], k[None, at[i]:at[i + 1]], v[None, at[i]:at[i + 1]], causal(3, at[i + 1] - at[i]))
            self.near(out[i].swapaxes(0, 1), right.o[0], right.o_size[0])

    def test_cached(self):
        q, k, v = random(3, 2, H, D), random(5, 40, HK, D, seed=1), random(5, 40, HK, D, seed=2)
        used, first, rows = (np.array(x, "i4") for x in ((40, 7, 20), (0, 3, 10), (4, 0, 2)))
        wide = np.zeros((5, 41, HK, D), "f2")
        wide[:, :40] = k
        # caches whose distance is no multiple of a row's size
        size = 40 * HK * D
        apart = np.zeros(5 * (size + 8), "f2")
        odd = np.lib.stride_tricks.as_strided(apart, k.shape, (2 * (size + 8), *k.strides[1:]))
        odd[...] = k
        narrow = np.zeros((5, 40, HK, D + 4), "f2")
        narrow[..., :D] = k
        for keys in (k, wide[:, :40], narrow[..., :D], odd):
            out, lse = flashgen.attention(q, keys, v, mask="causal", used_k=used, first_k=first, rows=rows, return_lse=True)
            for i in range(3):
                seen = rows[i], slice(first[i], used[i])
                right = Reference(q[i:i + 1], k[seen][None], v[seen][None], causal(2, used[i] - first[i]))
                self.near(out[i].swapaxes(0, 1), right.o[0], right.o_size[0])
                np.testing.assert_allclose(lse[i], right.lse[0], atol=1e-4)
            families = dict(list(context("host").ops)[-1]).get("family")
            self.assertEqual(families, "mma,decode,simt" if keys is odd else None)

    def test_paged(self):
        page, used = 8, np.array([40, 7, 20], "i4")
        q, k, v = random(3, 1, H, D), random(12, page, HK, D, seed=1), random(12, page, HK, D, seed=2)
        table = np.array([[3, 1, 11, 0, 7], [2, -1, -1, -1, -1], [4, 5, 6, -1, -1]], "i4")
        for options in ({}, {"longest_k": 40}, {"table": np.repeat(table, 2, 1)[:, ::2]}):
            out = flashgen.attention(q, k, v, **{"table": table, **options}, used_k=used)
            for i in range(3):
                pages = table[i][:-(-used[i] // page)]
                keys, values = (x[pages].reshape(1, -1, HK, D)[:, :used[i]] for x in (k, v))
                right = Reference(q[i:i + 1], keys, values)
                self.near(out[i].swapaxes(0, 1), right.o[0], right.o_size[0])
        packed = flashgen.attention(q[:, 0], k, v, mask="causal", table=table, used_k=used, starts_q=np.arange(4, dtype="i4"))
        self.assertLess(error(packed, out[:, 0], 0), 1e-3)

    def test_cache_of_any_head_dim(self):
        q, k, v = random(2, 1, H, 59), random(2, 9, HK, 59, seed=1), random(2, 9, HK, 43, seed=2)
        used = np.array([9, 4], "i4")
        out = flashgen.attention(q, k, v, mask="causal", used_k=used)
        for i in range(2):
            right = Reference(q[i:i + 1], k[i:i + 1, :used[i]], v[i:i + 1, :used[i]])
            self.near(out[i].swapaxes(0, 1), right.o[0], right.o_size[0])

    def test_latent(self):
        q, k = random(2, 3, H, 32), random(2, 40, 1, 32, seed=1)
        used = np.array([40, 7], "i4")
        for given in ({"mask": "causal"}, {"used_k": used}):
            right = flashgen.attention(q, k, k[..., :24].copy(), **given)
            out = flashgen.attention(q, k, k[..., :24], latent=True, **given)
            np.testing.assert_array_equal(out, right)
        with self.assertRaisesRegex(ValueError, "v: with latent=true it is the first columns of k"):
            flashgen.attention(q, k, k[..., :24].copy(), latent=True)

    def test_batch_invariant(self):
        q, k, v = random(3, 1, H, D), random(3, 40, HK, D, seed=1), random(3, 40, HK, D, seed=2)
        used = np.array([40, 7, 20], "i4")
        out = flashgen.attention(q, k, v, mask="causal", used_k=used, batch_invariant=True)
        alone = flashgen.attention(q[1:2], k[1:2], v[1:2], mask="causal", used_k=used[1:2], batch_invariant=True)
        np.testing.assert_array_equal(out[1:2], alone)


if __name__ == "__main__":
    main()

"""flash_attn_with_kvcache of both versions, and rotary embeddings: new keys in a cache, bit for bit, and attention to it."""
import unittest.mock

from case import main
from flash import D, DEVICE, H, HK, Flash, ints, plain, random, torch

from flashgen import flash_attn, flash_attn_interface as fa3
from flashgen.flash_attn.layers.rotary import apply_rotary_emb


class Cache(Flash):
    ROTARY = 16

    def new(self, n=1, nq=1, d=32, caches=5, nk=40):
        """Queries, a cache, new keys and values, and the lengths before."""
        cache = [random(caches, nk, HK, d, seed=i) for i in (1, 2)]
        return random(3, nq, H, d), cache, [random(3, n, HK, d, seed=i) for i in (3, 4)], ints(7, 0, 31)

    def tables(self, n=48):
        angle = random(n, self.ROTARY // 2, seed=5, dtype=torch.float32)
        return angle.cos().half(), angle.sin().half()

    def turned(self, x, at, interleaved):
        """x [b, n, h, d] by positions [b, n], in float64."""
        x, pairs = x.double(), self.ROTARY // 2
        cos, sin = (t[at.long()].double()[:, :, None] for t in self.tables())
        a, b = (x[..., :2 * pairs:2], x[..., 1:2 * pairs:2]) if interleaved else (x[..., :pairs], x[..., pairs:2 * pairs])
        pair = a * cos - b * sin, a * sin + b * cos
        first = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
        return torch.cat((first, x[..., 2 * pairs:]), -1)

    def expect(self, q, cache, new, seqlens, rows, first=None, is_plain=False, interleaved=True, rotary=True):
        """What the cache becomes, in float64 where keys turn, and o with queries turned."""
        k, v = cache[0].double(), cache[1].clone()
        nq, n, o = q.shape[1], new[0].shape[1], []
        for i, (before, row) in enumerate(zip(seqlens.tolist(), rows)):
            at = torch.arange(before, before + max(n, nq), device=DEVICE)[None]
            k[row, before:before + n] = self.turned(new[0][i:i + 1], at[:, :n], interleaved)[0] if rotary else new[0][i]
            v[row, before:before + n] = new[1][i]
            turned = q[i:i + 1].double()
            if rotary:
                turned = self.turned(turned, torch.full_like(at, before)[:, :nq] if is_plain else at[:, :nq], interleaved)
            seen = slice(0 if first is None else first[i].item(), before + n)
            o.append(plain(turned, k[row][None, seen].half(), v[row][None, seen], right=-1 if is_plain else 0)[0])
        return k, v, torch.cat(o)

    def check(self, found, cache, before, right, limit=2e-3):
        k, v, o = right
        self.near(found, o, limit)
        self.assertTrue(torch.equal(cache[1], v))
        self.near(cache[0], k, 1e-3)
        untouched = k == before.double()
        self.assertTrue(torch.equal(cache[0][untouched], before[untouched]))

    def test_append_and_rotary(self):
        """A cache with rows and padding before it; new rows as many as queries and fewer, all masks, both pairs."""
        rows, first = ints(4, 0, 2), ints(3, 0, 30)
        for n, nq, causal, interleaved in ((1, 1, False, True), (3, 3, True, False), (3, 3, False, True), (2, 3, True, True)):
            q, cache, new, seqlens = self.new(n, nq)
            before = cache[0].clone()
            right = self.expect(q, cache, new, seqlens, rows.tolist(), first, not causal, interleaved)
            options = {"causal": causal, "rotary_interleaved": interleaved, "cache_seqlens": seqlens, "cache_batch_idx": rows,
                       "cache_leftpad": first}
            found = flash_attn.flash_attn_with_kvcache(q, *cache, *new, *self.tables(), **options)
            self.check(found, cache, before, right)
            again = fa3.flash_attn_with_kvcache(q, *cache, *new, None, *self.tables(), **options, rotary_seqlens=seqlens)
            self.assertTrue(torch.equal(again, found))

    def test_one_cache_of_two_sequences(self):
        """Each appends to it, and both see what both did; at one place either may win, which the host device refuses."""
        q, (k, v) = random(2, 1, H, D), (random(3, 24, HK, D, seed=i) for i in (1, 2))
        k_new, v_new = (random(2, 1, HK, D, seed=i) for i in (3, 4))
        one = {"cache_batch_idx": ints(2, 2)}
        right_k, right_v = k.clone(), v.clone()
        for i, at in enumerate((5, 9)):
            right_k[2, at], right_v[2, at] = k_new[i, 0], v_new[i, 0]
        out = flash_attn.flash_attn_with_kvcache(q, k, v, k_new, v_new, cache_seqlens=ints(5, 9), **one)
        self.assertTrue(torch.equal(k, right_k) and torch.equal(v, right_v))
        for i, n in enumerate((6, 10)):
            self.near(out[i:i + 1], plain(q[i:i + 1], k[2:, :n], v[2:, :n])[0])
        call = lambda *used: flash_attn.flash_attn_with_kvcache(  # noqa: E731
            q, k, v, k_new, v_new, cache_seqlens=ints(*used), **one)
        if DEVICE == "cpu":
            self.says(ValueError, "cache_batch_idx has 2 more than once, with new keys for place 7 of the same cache", call, 7,
                      7)
        else:
            out = call(7, 7)
            for x, new in ((k, k_new), (v, v_new)):
                self.assertTrue(((x[2, 7] == new[0, 0]) | (x[2, 7] == new[1, 0])).all())
            self.near(out, plain(q, *(x[2:, :8].expand(2, -1, -1, -1) for x in (k, v)))[0])

    def test_any_head_dim(self):
        q, cache, new, seqlens = self.new(2, 2, d=59)
        before = cache[0].clone()
        right = self.expect(q, cache, new, seqlens, (0, 1, 2))
        found = flash_attn.flash_attn_with_kvcache(q, *cache, *new, *self.tables(), cache_seqlens=seqlens, causal=True)
        self.check(found, cache, before, right)

    def test_pages(self):
        """New keys go to pages; FlashAttention 3 names rows of the table."""
        page, n = 8, 2
        q, _, new, seqlens = self.new(n, n)
        table = torch.randperm(36, generator=torch.Generator().manual_seed(1)).view(6, 6).to(DEVICE, torch.int32)
        first = ints(1, 0, 20)
        for rows in (None, ints(5, 0, 3)):
            mine = table[:3] if rows is None else table[rows.long()]
            pages = [random(36, page, HK, 32, seed=i) for i in (1, 2)]
            flat = [x[mine.long()].flatten(1, 2) for x in pages]
            before = [x.clone() for x in pages]
            right = self.expect(q, flat, new, seqlens, (0, 1, 2), first, rotary=False)
            if rows is None:
                found = flash_attn.flash_attn_with_kvcache(
                    q, *pages, *new, cache_seqlens=seqlens, block_table=mine, cache_leftpad=first, causal=True, num_splits=3)
            else:
                found, lse = fa3.flash_attn_with_kvcache(
                    q, *pages, *new, cache_seqlens=seqlens, page_table=table, cache_batch_idx=rows, cache_leftpad=first,
                    causal=True, num_splits=3, return_softmax_lse=True)
                self.assertEqual(lse.shape, (3, H, n))
            self.check(found, [x[mine.long()].flatten(1, 2) for x in pages], flat[0], right)
            others = torch.ones(36, dtype=torch.bool, device=DEVICE)
            others[mine.long().flatten()] = False
            for x, y in zip(pages, before):
                self.assertTrue(torch.equal(x[others], y[others]))

    def test_packed(self):
        """FlashAttention 3: packed queries, and new rows packed as they are and otherwise."""
        _, cache, _, seqlens = self.new()
        starts_q, q = ints(0, 2, 3, 4), random(4, H, 32)
        new = [random(4, HK, 32, seed=i) for i in (3, 4)]
        for causal, starts_new in ((True, ints(0, 1, 1, 4)), (False, ints(0, 1, 1, 4)), (True, starts_q), (False, starts_q)):
            mine = [x.clone() for x in cache]
            found = fa3.flash_attn_with_kvcache(
                q, *mine, *new, None, *self.tables(), cache_seqlens=seqlens, cu_seqlens_q=starts_q,
                cu_seqlens_k_new=starts_new, max_seqlen_q=2, causal=causal)
            for i in range(3):
                rows, keys = (slice(*x[i:i + 2].tolist()) for x in (starts_q, starts_new))
                one = self.expect(q[None, rows], cache, [x[None, keys] for x in new], seqlens[i:i + 1], (i,),
                                  is_plain=not causal)
                self.near(found[None, rows], one[2], 2e-3)
                self.near(mine[0][i], one[0][i], 1e-3)
                self.assertTrue(torch.equal(mine[1][i], one[1][i]))

    def test_positions(self):
        """FlashAttention 3: positions that do not begin at the lengths."""
        q, cache, new, seqlens = self.new(2, 2)
        before, at = cache[0].clone(), ints(5, 9, 0)
        fa3.flash_attn_with_kvcache(q, *cache, *new, None, *self.tables(), cache_seqlens=seqlens, rotary_seqlens=at,
                                    causal=True)
        turned = self.turned(new[0], at[:, None] + ints(0, 1), True)
        for i, n in enumerate(seqlens.tolist()):
            before[i, n:n + 2] = turned[i].half()
        self.near(cache[0], before.double(), 1e-3)

    def test_lengths(self):
        """A length for all, or none, which is all of the cache; a window, a cap and slopes."""
        q, cache, _, _ = self.new(nq=2, caches=3)
        slopes = torch.rand(3, H, device=DEVICE)
        for n in (11, None):
            found, lse = flash_attn.flash_attn_with_kvcache(
                q, *cache, cache_seqlens=n, window_size=torch.tensor([6, 1]), softcap=2.0, alibi_slopes=slopes,
                return_softmax_lse=True)
            right = plain(q, *(x[:, :n] for x in cache), left=6, right=1, cap=2.0, slopes=slopes)
            self.near(found, right[0])
            self.assertLess((lse - right[1]).abs().max().item(), 1e-4)

    def test_bounds(self):
        """More keys than the table has pages for: an error before the launch; as many are right."""
        pages, table = [random(4, 8, 1, D, seed=i) for i in (1, 2)], ints(2, 0)[None]
        q, new = random(1, 1, 1, D), [random(1, 1, 1, D, seed=i) for i in (3, 4)]
        for keys, n in (((), 17), (new, 16)):
            with self.assertRaisesRegex(RuntimeError, "a sequence has 17 keys and block_table places for 16: 2 pages of 8"):
                flash_attn.flash_attn_with_kvcache(q, *pages, *keys, cache_seqlens=ints(n), block_table=table)
        found = flash_attn.flash_attn_with_kvcache(q, *pages, cache_seqlens=ints(16), block_table=table)
        self.near(found, plain(q, *(x[[2, 0]].view(1, 16, 1, D) for x in pages))[0])
        with unittest.mock.patch("flashgen.flash_attn.cache.is_capturing", return_value=True):  # nothing is read
            found = flash_attn.flash_attn_with_kvcache(q, *pages, cache_seqlens=ints(17), block_table=table)
        self.assertTrue(torch.isfinite(found).all())

    def test_rotary(self):
        """apply_rotary_emb: numbers and tensors of offsets, packed rows, in place, its gradient, rows without a position."""
        x, offsets = random(2, 3, H, 32, grad=True), ints(4, 46)
        at = offsets[:, None] + ints(0, 1, 2)
        for interleaved in (False, True):
            found = apply_rotary_emb(x, *self.tables(), interleaved, seqlen_offsets=offsets)
            right = self.turned(x, at.clamp(max=47), interleaved)
            self.near(found[0], right[0])
            self.near(found[1, :2], right[1, :2])
            self.assertTrue(torch.equal(found[1, 2], x[1, 2]))
            dx, = torch.autograd.grad(found, x, found)
            self.near(dx, x.detach().double(), 2e-3)  # turned back
            packed = apply_rotary_emb(x.flatten(0, 1), *self.tables(), interleaved, seqlen_offsets=offsets,
                                      cu_seqlens=ints(0, 3, 6))
            self.assertTrue(torch.equal(packed, found.flatten(0, 1)))
        mine = x.detach().clone()
        self.assertIs(apply_rotary_emb(mine, *self.tables(), inplace=True, seqlen_offsets=1), mine)
        self.near(mine, self.turned(x.detach(), ints(1, 2, 3).expand(2, 3), False))


if __name__ == "__main__":
    main()

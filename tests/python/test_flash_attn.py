"""flashgen.flash_attn and flashgen.flash_attn_interface on PyTorch's tensors: what FlashAttention's functions promise, beside
float64 of the plain formula and its autograd. test_flash_cache.py has those of a cache."""
import subprocess
import sys

from case import main
from flash import B, D, DEVICE, H, HK, NK, NQ, Flash, ints, plain, random, some, torch

from flashgen import flash_attn, flash_attn_interface as fa3, tensors
from flashgen.flash_attn import flash_attn_interface as fa2
from flashgen.flash_attn.bert_padding import pad_input, unpad_input
from flashgen.flash_attn.dropped import keep_mask
from flashgen.flash_attn.layers.rotary import apply_rotary_emb


class Dense(Flash):
    def test_masks(self):
        """Each window, as numbers and as a tensor on the CPU; causal closes it on the right."""
        leaves = some()
        for window in ((-1, -1), (5, -1), (-1, 3), (5, 3), torch.tensor([4, 0]), (1, 99), [100, 100]):
            for causal in (False, True):
                left, right = int(window[0]), 0 if causal else int(window[1])
                self.compare(leaves, lambda q, k, v: flash_attn.flash_attn_func(q, k, v, causal=causal, window_size=window),
                             lambda q, k, v: plain(q, k, v, left, right)[0])
        self.compare(leaves, lambda q, k, v: flash_attn.flash_attn_func(q, k, v, window_size=(0, 3)),
                     lambda q, k, v: plain(q, k, v, 0, 3)[0])

    def test_plain_masks_stay_plain(self):
        from flashgen.flash_attn import words
        for causal, window, mask in ((False, (-1, -1), None), (True, (-1, -1), "causal"), (True, (-1, 7), "causal"),
                                     (False, (-1, 0), "causal"), (False, (9, 0), "window(left, 0)")):
            self.assertEqual(words.expressions(words.read(causal, window, 0.0))["mask"], mask)

    def test_scores(self):
        """softcap and ALiBi, of one slope a head and one a sequence and head."""
        leaves = some()
        for slopes in (torch.rand(H, device=DEVICE), torch.rand(B, H, device=DEVICE)):
            for causal in (False, True):
                for cap in (0.0, 1.5):
                    self.compare(
                        leaves, lambda q, k, v: flash_attn.flash_attn_func(q, k, v, 0.0, 0.2, causal, (-1, -1), cap, slopes),
                        lambda q, k, v: plain(q, k, v, right=0 if causal else -1, cap=cap, slopes=slopes, scale=0.2)[0])
        self.compare(leaves, lambda q, k, v: flash_attn.flash_attn_func(q, k, v, softcap=1.5),
                     lambda q, k, v: plain(q, k, v, cap=1.5)[0])

    def test_any_head_dim(self):
        self.compare(some(d=59), lambda q, k, v: flash_attn.flash_attn_func(q, k, v, causal=True),
                     lambda q, k, v: plain(q, k, v, right=0)[0])

    def test_side_by_side(self):
        q, k, v = some(nq=NK, hk=H)
        self.compare((torch.stack((q, k, v), 2).detach().requires_grad_(),),
                     lambda qkv: flash_attn.flash_attn_qkvpacked_func(qkv, causal=True),
                     lambda qkv: plain(*qkv.unbind(2), right=0)[0])
        q, k, v = some()
        self.compare((q, torch.stack((k, v), 2).detach().requires_grad_()),
                     lambda q, kv: flash_attn.flash_attn_kvpacked_func(q, kv, window_size=(3, 0)),
                     lambda q, kv: plain(q, *kv.unbind(2), 3, 0)[0])

    def test_side_by_side_3(self):
        q, k, v = some(nq=NK)
        self.compare((torch.cat((q, k, v), 2).detach().requires_grad_(),),
                     lambda qkv: fa3.flash_attn_qkvpacked_func(qkv, causal=True, num_heads_q=H),
                     lambda qkv: plain(*qkv.split((H, HK, HK), 2), right=0)[0])
        qkv = torch.stack((q, q, q), 2)
        self.assertTrue(torch.equal(fa3.flash_attn_qkvpacked_func(qkv), fa3.flash_attn_func(q, q, q)))
        self.says(ValueError, "qkv has the shape (2, 33, 4, 16); expected [b, n, 3 + 2 hk, d]",
                  fa3.flash_attn_qkvpacked_func, q, num_heads_q=3)

    def test_results(self):
        q, k, v = some()
        out, lse, weights = flash_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
        self.assertEqual((lse.shape, lse.dtype, weights.numel()), ((B, H, NQ), torch.float32, 0))
        self.assertLess((lse - plain(q, k, v, right=0)[1]).abs().max().item(), 1e-4)
        out.sum().backward()
        self.assertIsNotNone(q.grad)
        out, lse, _ = flash_attn.flash_attn_func(k.repeat(1, 1, 2, 1), q[:, :, :HK], q[:, :, :HK], causal=True,
                                                 return_attn_probs=True)
        empty = NK - NQ  # the first rows see no key
        self.assertTrue((out[:, :empty] == 0).all() and (lse[:, :, :empty] == float("-inf")).all())

    def test_dropout(self):
        """S_dmask is negative where a weight was dropped: out and gradients are those of what it shows."""
        for options, words in (({"causal": True}, {"right": 0}), ({"window_size": (20, 3)}, {"left": 20, "right": 3}),
                               ({"alibi_slopes": torch.rand(B, H, device=DEVICE)}, None)):
            words = {"slopes": options["alibi_slopes"]} if words is None else words
            torch.manual_seed(5)
            q, k, v = some()
            out, lse, found = flash_attn.flash_attn_func(q, k, v, 0.17, return_attn_probs=True, **options)
            weights = plain(q, k, v, **words)[2]
            kept, quotient = found >= 0, round(65536 * 0.83) / 65536
            self.near(found.abs() / found.abs().double().sum(3, keepdim=True).clamp(min=1e-9), weights)
            share = ((found < 0).sum() / (weights > 0).sum()).item()
            self.assertAlmostEqual(share, 0.17, delta=0.02)
            right = plain(q, k, v, kept=(kept, quotient), **words)
            self.near(out, right[0])
            dout = random(*out.shape, seed=3)
            expected = torch.autograd.grad(right[0], (q, k, v), dout.double())
            for x, y in zip(torch.autograd.grad(out, (q, k, v), dout), expected):
                self.near(x, y.double())
            torch.manual_seed(5)
            again = flash_attn.flash_attn_func(q, k, v, 0.17, **options)
            self.assertTrue(torch.equal(again, out))
            self.assertFalse(torch.equal(flash_attn.flash_attn_func(q, k, v, 0.17, **options), out))

    def test_keep_mask(self):
        """The lanes are those that the kernels draw, whatever the seed."""
        from formula import keep_mask as right
        for seed in ((7, 0), (0xFFFFFFFF12345678, 0x9ABCDEF0FFFFFFFE)):
            found = keep_mask((B, H, NQ, NK), tensors.seed_words(seed, torch.zeros(1)), 0.7)
            self.assertTrue((found.numpy() == right((B, H, NQ, NK), seed, 0.7)[0]).all())

    def test_deterministic(self):
        q, k, v = some()
        out = flash_attn.flash_attn_func(q, k, v, deterministic=True)
        dout = random(*out.shape, seed=3)
        first, second = (torch.autograd.grad(out, (q, k, v), dout, retain_graph=True) for _ in range(2))
        for x, y in zip(first, second):
            self.assertTrue(torch.equal(x, y))

    def test_interface_3(self):
        leaves = some(dv=24)
        for window, causal, chunk in (((-1, -1), True, 0), ((4, 2), False, 0), ((-1, -1), False, 5), ((-1, -1), True, 7),
                                      ((9, 1), False, 11)):
            self.compare(leaves, lambda q, k, v: fa3.flash_attn_func(q, k, v, causal=causal, window_size=window,
                                                                     attention_chunk=chunk, sm_margin=2),
                         lambda q, k, v: plain(q, k, v, window[0], 0 if causal else window[1], chunk)[0])
        q, k, v = some(nq=NK, nk=NQ)  # places before key 0 have chunks too
        self.near(fa3.flash_attn_func(q, k, v, attention_chunk=5), plain(q, k, v, chunk=5)[0])
        out, lse = fa3.flash_attn_func(*some(), softcap=2.0, return_attn_probs=True)
        self.assertEqual((out.shape, lse.shape), ((B, NQ, H, D), (B, H, NQ)))


class Packed(Flash):
    NQ, NK, GAP = (5, 0, 19, 7), (9, 4, 33, 0), 2  # tokens of each sequence, and behind the last one

    def starts(self, lengths):
        return torch.tensor((0, *lengths)).cumsum(0).to(DEVICE, torch.int32)

    def setUp(self):
        self.q = random(sum(self.NQ) + self.GAP, H, D, grad=True)
        self.k, self.v = (random(sum(self.NK) + self.GAP, HK, D, grad=True, seed=i) for i in (1, 2))

    def right(self, q, k, v, nq=None, nk=None, **words):
        """Each sequence alone, 0 elsewhere. nq, nk: how many rows and keys count."""
        made, slopes = torch.zeros_like(q), words.pop("slopes", None)
        for i in range(len(self.NQ)):
            rows, keys = (slice(sum(n[:i]), sum(n[:i]) + (used or n)[i]) for n, used in ((self.NQ, nq), (self.NK, nk)))
            if slopes is not None:
                words["slopes"] = slopes if slopes.dim() == 1 else slopes[i]
            made[rows] = plain(q[None, rows], k[None, keys], v[None, keys], **words)[0][0]
        return made

    def test_sequences(self):
        """Rows and keys of none, of one alone; a bound of the lengths is one, and none is needed."""
        ends = self.starts(self.NQ), self.starts(self.NK)
        for most in ((19, 33), (None, None), (64, 40)):
            for options, words in (({"causal": True}, {"right": 0}), ({"window_size": (6, 2)}, {"left": 6, "right": 2})):
                self.compare((self.q, self.k, self.v),
                             lambda q, k, v: flash_attn.flash_attn_varlen_func(q, k, v, *ends, *most, **options),
                             lambda q, k, v: self.right(q, k, v, **words))
        slopes = torch.rand(4, H, device=DEVICE)
        self.compare((self.q, torch.stack((self.k, self.v), 1).detach().requires_grad_()),
                     lambda q, kv: flash_attn.flash_attn_varlen_kvpacked_func(q, kv, *ends, 19, 33, alibi_slopes=slopes),
                     lambda q, kv: self.right(q, *kv.unbind(1), slopes=slopes))

    def test_what_no_sequence_has(self):
        ends = self.starts(self.NQ), self.starts(self.NK)
        out, lse, _ = flash_attn.flash_attn_varlen_func(self.q, self.k, self.v, *ends, 19, 33, return_attn_probs=True)
        self.assertEqual(lse.shape, (H, len(self.q)))
        grads = torch.autograd.grad(out, (self.q, self.k, self.v), torch.ones_like(out))
        for x in (out, *grads):
            self.assertTrue((x[-self.GAP:] == 0).all() and torch.isfinite(x).all())
        self.assertTrue((lse[:, -self.GAP:] == float("-inf")).all())

    def test_qkv(self):
        qkv = random(12, 3, H, D, grad=True)
        ends = ints(0, 5, 12)
        out = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, ends, 7, causal=True)
        for rows in (slice(0, 5), slice(5, 12)):
            self.near(out[rows], plain(*(x[None, rows] for x in qkv.unbind(1)), right=0)[0][0])

    def test_dropout(self):
        ends = self.starts(self.NQ), self.starts(self.NK)
        out, _, found = flash_attn.flash_attn_varlen_func(self.q, self.k, self.v, *ends, None, None, 0.3, causal=True,
                                                          return_attn_probs=True)
        self.assertEqual(found.shape, (4, H, 19, 33))
        for i in range(4):
            rows, keys = (slice(sum(n[:i]), sum(n[:i + 1])) for n in (self.NQ, self.NK))
            kept = found[i:i + 1, :, :self.NQ[i], :self.NK[i]] >= 0, round(65536 * 0.7) / 65536
            self.near(out[None, rows], plain(self.q[None, rows], self.k[None, keys], self.v[None, keys], right=0, kept=kept)[0])

    def test_used(self):
        nq, nk = (3, 0, 19, 2), (9, 1, 20, 0)
        self.compare((self.q, self.k, self.v), lambda q, k, v: fa3.flash_attn_varlen_func(
            q, k, v, self.starts(self.NQ), self.starts(self.NK), 19, 33, ints(*nq), ints(*nk), causal=True),
            lambda q, k, v: self.right(q, k, v, nq, nk, right=0))

    def test_pages(self):
        """Keys in pages: out is that of the keys one behind the other, and a gradient is refused when it is asked for."""
        page, table = 4, ints(*range(9, -1, -1), *range(10, 20)).view(2, 10)
        pages = [random(20, page, HK, D, seed=i) for i in (1, 2)]
        q, ends_q, nk = random(7, H, D, grad=True), ints(0, 3, 7), (38, 21)
        options = {"max_seqlen_q": 4, "max_seqlen_k": 40, "causal": True}
        out = flash_attn.flash_attn_varlen_func(q, *pages, ends_q, ints(0, 38, 59), block_table=table, **options)
        for i, rows in enumerate((slice(0, 3), slice(3, 7))):
            keys, values = (x[table[i].long()].flatten(0, 1)[None, :nk[i]] for x in pages)
            self.near(out[None, rows], plain(q[None, rows], keys, values, right=0)[0])
        self.says(NotImplementedError, "attention over a cache has no gradient", out.sum().backward)
        forward = {**options, "dropout_p": 0.0, "softmax_scale": D ** -0.5, "block_table": table, "seqused_k": ints(*nk)}
        again = fa2._flash_attn_varlen_forward(q.detach(), *pages, ends_q, ints(0, 38, 59), **forward)
        self.assertTrue(torch.equal(again[0], out))
        with self.assertRaisesRegex(RuntimeError, "num_splits > 1 is not supported"):
            fa2._flash_attn_varlen_forward(q.detach(), *pages, ends_q, ints(0, 38, 59), num_splits=2, **forward)

    def test_padding(self):
        x = random(3, 5, 2, 4, grad=True)
        mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1]], device=DEVICE)
        unused = torch.tensor([[0, 0, 1, 0, 0], [0] * 5, [0] * 5], device=DEVICE)
        tokens, indices, starts, most, used = unpad_input(x, mask, unused)
        self.assertEqual((starts.tolist(), most, used.tolist(), starts.dtype), ([0, 3, 8, 10], 5, [2, 5, 2], torch.int32))
        back = pad_input(tokens, indices, 3, 5)
        self.assertTrue(torch.equal(back, x * (mask + unused)[..., None, None]))
        back.sum().backward()
        self.assertTrue(torch.equal(x.grad, (mask + unused)[..., None, None].expand_as(x).half()))


class Others(Flash):
    def test_combine(self):
        """Parts in any strides, one without keys; each dtype, and more columns than kernels have."""
        for d in (D, 264):
            o = random(6, B, H, 5, d, dtype=torch.float32).transpose(2, 3)[:3]
            lse = random(3, B, 2 * H, 5, dtype=torch.float32).transpose(2, 3)[..., :H]
            lse[1:, 0] = float("-inf")
            lse[:, 1, 2] = float("-inf")
            right_lse = lse.double().logsumexp(0)
            weights = torch.nan_to_num((lse - right_lse).exp())
            for dtype in (None, torch.float32, torch.float16, torch.bfloat16):
                found, found_lse = fa3.flash_attn_combine(o, lse, out_dtype=dtype)
                self.assertEqual(found.dtype, dtype or torch.float32)
                self.near(found, (weights[..., None] * o).sum(0), 4e-3 if dtype == torch.bfloat16 else 7e-4)
                self.assertTrue(torch.allclose(found_lse.double(), right_lse, atol=1e-5))
        out = torch.empty(B, 5, H, 264, dtype=torch.float16, device=DEVICE)
        self.assertIs(fa3.flash_attn_combine(o, lse, out)[0], out)
        packed, packed_lse = fa3.flash_attn_combine(o[:, 0], lse[:, 0], out_dtype=torch.float16)
        self.assertTrue(torch.equal(packed, out[0]))
        self.assertEqual(packed_lse.shape, (5, H))

    def test_metadata(self):
        made = fa3.get_scheduler_metadata(2, 1, 64, H, HK, D, ints(5, 7), max_seqlen_k_new=1, causal=True, page_size=4)
        self.assertEqual((made.dtype, made.device), (torch.int32, ints(0).device))
        q, k, v = some(nq=1, grad=False)
        with_it, without = (fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=ints(5, 7), scheduler_metadata=x)
                            for x in (made, None))
        self.assertTrue(torch.equal(with_it, without))

    def test_names(self):
        """What FlashAttention's tests import besides."""
        self.assertEqual(fa2._get_block_size_n(torch.device(DEVICE), 64, True, False), 2**30)
        self.assertFalse(fa2.USE_TRITON_ROCM)
        for name in ("fwd", "bwd", "varlen_fwd", "varlen_bwd"):
            with self.assertRaisesRegex(RuntimeError, r"generator` argument is no longer supported"):
                getattr(fa2.flash_attn_gpu, name)(*some(), None)

    def test_operators(self):
        """FlashAttention 3's: dense, packed, over a cache, and their gradients."""
        from flashgen.flash_attn import ops
        ops.define()
        fwd, bwd = torch.ops.flash_attn_3.fwd, torch.ops.flash_attn_3.bwd
        q, k, v = some()
        out, lse, *rest = fwd(q, k, v, is_causal=True, window_size_left=7, softcap=9.0)
        right, right_lse = fa3.flash_attn_func(q, k, v, causal=True, window_size=(7, -1), softcap=9.0, return_attn_probs=True)
        self.assertTrue(torch.equal(out, right) and torch.equal(lse, right_lse) and not out.requires_grad)
        self.assertEqual([len(x) for x in rest], [0, 0])
        dout, mine = random(*out.shape, seed=3), torch.empty_like(q)
        found = bwd(dout, q, k, v, out, lse, mine, is_causal=True, window_size_left=7, softcap=9.0)
        self.assertEqual((len(found), found[0].data_ptr()), (8, mine.data_ptr()))
        for x, y in zip(found, torch.autograd.grad(right, (q, k, v), dout)):
            self.near(x, y.double())

        starts_q, starts_k = ints(0, 12, 38), ints(0, 30, 66)
        packed = [x.detach().flatten(0, 1) for x in (q, k, v)]
        out, lse, *_ = fwd(*packed, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k, max_seqlen_q=26, max_seqlen_k=36)
        right = fa3.flash_attn_varlen_func(*packed, starts_q, starts_k, 26, 36, return_attn_probs=True)
        self.assertTrue(torch.equal(out, right[0]) and torch.equal(lse, right[1]))
        found = bwd(out, *packed, out, lse, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k, deterministic=True)
        leaves = [x.clone().requires_grad_() for x in packed]
        again = fa3.flash_attn_varlen_func(*leaves, starts_q, starts_k, 26, 36, deterministic=True)
        for x, y in zip(found, torch.autograd.grad(again, leaves, out)):
            self.near(x, y.double())

        caches = [[x.detach().clone() for x in (k, v)] for _ in range(2)]
        new, used, mine = [random(B, 1, HK, D, seed=i) for i in (5, 6)], ints(20, 3), torch.empty_like(q[:, :1])
        out, lse, *_ = fwd(q[:, :1].detach(), *caches[0], *new, None, mine, seqused_k=used, kv_batch_idx=ints(1, 0))
        right = fa3.flash_attn_with_kvcache(q[:, :1].detach(), *caches[1], *new, cache_seqlens=used, cache_batch_idx=ints(1, 0))
        self.assertEqual(out.data_ptr(), mine.data_ptr())
        self.assertTrue(torch.equal(out, right) and torch.equal(caches[0][0], caches[1][0]))
        parts = random(3, B, NQ, H, D, dtype=torch.float32), random(3, B, NQ, H, dtype=torch.float32, seed=1)
        for x, y in zip(torch.ops.flash_attn_3.fwd_combine(*parts, out_dtype=torch.float16),
                        fa3.flash_attn_combine(*parts, out_dtype=torch.float16)):
            self.assertTrue(torch.equal(x, y))
        self.assertEqual(torch.ops.flash_attn_3.get_scheduler_metadata(2, 1, 33, H, HK, D, D, q.dtype, used).dtype, torch.int32)

    def test_stand_in(self):
        """A program that imports FlashAttention gets these modules, whichever it imports first."""
        for name, own in (("flash_attn.flash_attn_interface", "flash_attn_varlen_func"), ("flash_attn", "flash_attn_func"),
                          ("flash_attn_interface", "flash_attn_combine"), ("flash_attn.bert_padding", "pad_input"),
                          ("flash_attn.layers.rotary", "apply_rotary_emb")):
            text = (f"from flashgen.flash_attn import stand_in; stand_in(); from {name} import {own} as got; "
                    f"from flashgen.{name} import {own}; assert got is {own}")
            subprocess.run([sys.executable, "-B", "-c", text], check=True)

    def test_errors(self):
        q, k, v = some(grad=False)
        wrong = lambda kind, sentence, *arrays, **options: self.says(  # noqa: E731
            kind, sentence, flash_attn.flash_attn_func, *arrays, **options)
        wrong(TypeError, "a tensor is float32: FlashAttention computes float16 and bfloat16", q.float(), k, v)
        wrong(ValueError, "alibi_slopes has the shape (4,) and the dtype torch.float16; expected float32", q, k, v,
              alibi_slopes=torch.ones(H, device=DEVICE).half())
        wrong(ValueError, "window_size is (1,); expected (left, right)", q, k, v, window_size=(1,))
        self.says(TypeError, "cu_seqlens_k is int64; expected int32", flash_attn.flash_attn_varlen_func, q[0], k[0], v[0],
                  ints(0, 19), ints(0, 33).long(), 19, 33)
        self.says(ValueError, "a tensor of the shape (2, 19, 4, 16) is given; expected [..., 3, heads, d]",
                  flash_attn.flash_attn_qkvpacked_func, q)
        cached = flash_attn.flash_attn_with_kvcache
        self.says(ValueError, "one of k and v is given", cached, q, k, v, k)
        self.says(ValueError, "rotary_cos is given without k and v", cached, q, k, v, rotary_cos=q, rotary_sin=q)
        self.says(TypeError, "cache_seqlens is int64; expected int32", cached, q, k, v, cache_seqlens=ints(1, 2).long())
        self.says(ValueError, "cos has 9 columns: rotary_dim is 18", apply_rotary_emb, q, random(5, 9), random(5, 9))
        none = lambda sentence, *arrays, **options: self.says(  # noqa: E731
            NotImplementedError, sentence, fa3.flash_attn_func, *arrays, **options)
        none("qv is given", q, k, v, qv=q)
        none("v has 528 columns: kernels have 512 at most", q, k, v.repeat(1, 1, 1, 33))


if __name__ == "__main__":
    main()

"""FlashAttention 3's functions on tensors of float8_e4m3fn: beside float64, and how a cache of them is filled."""
from case import main, skip
from flash import B, DEVICE, H, HK, Flash, ints, plain, random, torch

from flashgen import flash_attn_interface as fa3
from flashgen.flash_attn import ops

if not hasattr(torch, "float8_e4m3fn"):
    skip("torch", f"PyTorch {torch.__version__} has no float8_e4m3fn")
D, LIMIT = 32, 3.2e-2  # mathematics.md's, of the size of the terms
DESCALES = {name: torch.tensor(scale, device=DEVICE) for name, scale in (
    ("q_descale", [[0.5, 2.0], [1.0, 0.25]]), ("k_descale", [[1.5, 1.0], [0.5, 2.0]]), ("v_descale", [[4.0, 0.125], [3.0, 1.0]]))}


def eight_bits(x):
    return x.to(torch.float8_e4m3fn)


def some(nq=19, nk=70):
    return [eight_bits(random(B, n, heads, D, seed=i)) for i, (n, heads) in enumerate(((nq, H), (nk, HK), (nk, HK)))]


def meant(x, scale):
    """What [b, n, heads, d] stands for, in float64."""
    return x.double() * scale.double().repeat_interleave(x.shape[2] // HK, 1)[:, None, :, None]


class Fp8(Flash):
    def near_terms(self, found, q, k, v, limit=LIMIT, **mask):
        """found beside attention of what the arrays stand for, in the size of its terms."""
        right, _, weights = plain(q, k, v, **mask)
        squares = v.transpose(1, 2).square().repeat_interleave(H // HK, 1)
        size = max((weights.square() @ squares).sum().sqrt().item(), right.norm().item())
        self.assertEqual(found.shape, right.shape)
        self.assertLess((found.double() - right).norm().item(), limit * size)

    def test_all_of_eight_bits(self):
        q, k, v = some()
        exact = [meant(x, scale) for x, scale in zip((q, k, v), DESCALES.values())]
        for causal, right in ((False, -1), (True, 0)):
            found = fa3.flash_attn_func(q, k, v, causal=causal, **DESCALES)
            self.assertEqual(found.dtype, torch.bfloat16)
            self.near_terms(found, *exact, right=right)
        starts = [ints(*range(0, B * n + 1, n)) for n in (q.shape[1], k.shape[1])]
        packed = fa3.flash_attn_varlen_func(*(x.flatten(0, 1) for x in (q, k, v)), *starts, 19, 70, causal=True, **DESCALES)
        self.near_terms(packed.view_as(found), *exact, right=0)

    def test_ops(self):
        q, k, v = some()
        out, lse, *_ = ops.fwd(q, k, v, is_causal=True, **DESCALES)
        right, right_lse = fa3.flash_attn_func(q, k, v, causal=True, return_attn_probs=True, **DESCALES)
        self.assertTrue(torch.equal(out, right) and torch.equal(lse, right_lse))
        for first in (q, q.half()):
            self.says(NotImplementedError, "a tensor is float8_e4m3fn: backward takes float16 and bfloat16", ops.bwd, out, first,
                      k, v, out, lse)
        self.says(TypeError, "a tensor is float32", ops.bwd, out, q.float(), k, v, out, lse)

    def test_cache(self):
        """New rows of 16 bits are divided by the descales, those of 8 are not; q is of either."""
        _, *cache = some()
        scales = {name: DESCALES[name] for name in ("k_descale", "v_descale")}
        new, seqlens = [random(B, 2, HK, D, seed=i) for i in (5, 6)], ints(30, 51)
        q = random(B, 2, H, D, seed=7)
        for rows, given in ((new, scales), ([eight_bits(x) for x in new], scales)):
            filled = [x.clone() for x in cache]
            found = fa3.flash_attn_with_kvcache(q, *filled, *rows, cache_seqlens=seqlens, causal=True, **given)
            self.assertEqual(found.dtype, q.dtype)
            for x, before, row, scale in zip(filled, cache, rows, scales.values()):
                expected = before.clone()
                for i, first in enumerate(seqlens.tolist()):
                    row_of = row[i] if row.dtype == before.dtype else eight_bits(row[i].float() / scale[i, :, None])
                    expected.view(torch.uint8)[i, first:first + 2] = row_of.view(torch.uint8)
                self.assertTrue(torch.equal(x.view(torch.uint8), expected.view(torch.uint8)))
            for i, n in enumerate((seqlens + 2).tolist()):
                k, v = (meant(x, scale)[i:i + 1, :n] for x, scale in zip(filled, scales.values()))
                self.near_terms(found[i:i + 1], q[i:i + 1].double(), k, v, limit=1.5e-3, right=0)
        found = fa3.flash_attn_with_kvcache(eight_bits(q), *filled, cache_seqlens=seqlens + 2, causal=True, **DESCALES)
        for i, n in enumerate((seqlens + 2).tolist()):
            exact = [meant(x, scale)[i:i + 1] for x, scale in zip((eight_bits(q), *filled), DESCALES.values())]
            self.near_terms(found[i:i + 1], exact[0], *(x[:, :n] for x in exact[1:]), right=0)

    def test_what_is_not_looked_at(self):
        """Descales of tensors of 16 bits."""
        q, k, v = (x.half() for x in some())
        self.assertTrue(torch.equal(fa3.flash_attn_func(q, k, v, **DESCALES), fa3.flash_attn_func(q, k, v)))

    def test_refused(self):
        q, k, v = some()
        half = q.half()
        self.says(ValueError, "a tensor requires a gradient, which attention of float8_e4m3fn does not have", fa3.flash_attn_func,
                  half.requires_grad_(), k, v)
        self.says(NotImplementedError, "rotary_cos is given, and q is float8_e4m3fn: what is turned has 16 bits",
                  fa3.flash_attn_with_kvcache, q, k, v, k, v, rotary_cos=half, rotary_sin=half)
        cached = fa3.flash_attn_with_kvcache
        for rows, cache in (((k, v.half()), (k, v)), ((k, v), (k.bfloat16(), v.bfloat16()))):
            self.says(TypeError, "k_new is float8_e4m3fn", cached, q.bfloat16(), *cache, *rows, cache_seqlens=ints(0, 0))
        self.says(ValueError, "k_descale has shape (2, 4); expected (2, 2)", fa3.flash_attn_func, q, k, v,
                  k_descale=torch.ones(B, H, device=DEVICE))


if __name__ == "__main__":
    main()

"""torch.ops.flashgen: PyTorch's own checks of the ops, and flashgen.attention in programs that are compiled or exported."""
import io

from case import Case, flashgen, main
from compiled import OK, CompiledCase, gradients
from test_torch import B, D, DEVICE, HK, H, K, LIMITS, NK, NQ, P, plain, random, some, torch

import flashgen.torch_ops  # noqa: E402
from flashgen import tensors  # noqa: E402

SEED = torch.tensor([7, 0, 3, 0], dtype=torch.int32, device=DEVICE)
STARTS = torch.tensor([0, 15, 40], dtype=torch.int32, device=DEVICE)
RANGES = torch.tensor([[0, 15], [15, 40], [2, 30]], dtype=torch.int32, device=DEVICE)
KINDS = torch.tensor([1, 1, 2], dtype=torch.int32, device=DEVICE)
SCALE = torch.tensor([[0.5, 2.0], [1.0, 0.25]], device=DEVICE)  # [B, HK]


def eight_bits(x):
    return x.to(torch.float8_e4m3fn)


def packed(grad=True, n=40):
    return [random(n, heads, D, grad=grad, seed=i) for i, heads in enumerate((H, HK, HK))]


def arguments(q, k, v, inputs=(), **others):
    """The tensors of the op."""
    return (q, k, v, *[others.get(name) for name in flashgen.torch_ops.BESIDE], list(inputs))


class Ops(Case):
    def check(self, *arrays, inputs=(), others=None, numbers=None, **options):
        given = (*arguments(*arrays, inputs, **others or {}), numbers)
        found = torch.library.opcheck(torch.ops.flashgen.attention, given, options)
        self.assertEqual(found, OK)

    def test_opcheck(self):
        heads = random(H, dtype=torch.float32, grad=True)
        self.check(*some(), mask="causal")  # two query heads a key head
        self.check(random(1, NK, HK, D, grad=True), *(x[:1] for x in some()[1:]))
        self.check(*some(d=59, dv=24))
        self.check(*some(), inputs=[heads], score="s + slope[h] / 8 * (p - k) + n", declared="n=int; slope=[h]", ints=[5])
        self.check(*some(), numbers=torch.tensor([2.5], dtype=torch.float64), score="softcap(s, cap)", declared="cap=float")
        self.check(*some(), others={"bias": random(1, H, NQ, NK, dtype=torch.float32, grad=True)}, max_logit=True)
        self.check(*some(), others={"sink": heads})
        self.check(*some(), others={"seed": SEED}, keep=0.75)
        self.check(*packed(), others={"starts_q": STARTS, "starts_k": STARTS}, longest_q=25, longest_k=25)
        self.check(*packed(), others={"q_ranges": RANGES, "k_ranges": RANGES, "kinds": KINDS}, max_logit=True)
        self.check(*some(), others={"pos_q": KINDS[:B], "whole_k": KINDS[:B] + 70}, mask="causal")
        self.check(*some(), normalizer="logsoftmax")
        self.check(*some(), o_dtype="f32")
        self.check(*some(grad=False), normalizer="retention")

    def test_fake_of_eight_bits(self):
        """PyTorch's other checks compare the arguments, which it cannot do of float8."""
        arrays = [eight_bits(x) for x in some(grad=False)]
        for others, options in (({"q_descale": SCALE, "v_descale": SCALE}, {"o_dtype": "f16"}),
                                ({"k_descale": SCALE[..., None]}, {"descale_block": 64})):
            found = torch.library.opcheck(torch.ops.flashgen.attention, arguments(*arrays, **others), options,
                                          test_utils="test_faketensor")
            self.assertEqual(found, {"test_faketensor": "SUCCESS"})

    def test_opcheck_of_backward(self):
        q, k, v = some(grad=False)
        slope, bias = random(H, dtype=torch.float32), random(1, H, 1, NK)
        o, lse, u, _ = torch.ops.flashgen.attention(*arguments(q, k, v, [slope], bias=bias), score="alibi(slope)",
                                                    declared="slope=[h]")
        found = torch.library.opcheck(
            torch.ops.flashgen.attention_backward, (o, o, lse, u, lse, *arguments(q, k, v, [slope], bias=bias)),
            {"score": "alibi(slope)", "declared": "slope=[h]", "wanted": "input.slope"})
        self.assertEqual(found, OK)
        found = torch.library.opcheck(torch.ops.flashgen.attention_backward, (o, o.float(), lse, u, None, *arguments(q, k, v)),
                                      {"o_dtype": "f32", "grad_dtype": "f32"})
        self.assertEqual(found, OK)

    def test_opcheck_of_caches(self):
        cache, new = ([random(B, n, HK, D, seed=i) for i in range(2)] for n in (NK, 2))
        used = torch.tensor([3, 7], dtype=torch.int32, device=DEVICE)
        angle = random(NK, D // 4, dtype=torch.float32)
        for others, rotary in (({}, "halves"), ({"q": random(B, 2, H, D), "rotary_cos": angle.cos(), "rotary_sin": angle.sin()},
                                                "interleaved")):
            given = (*cache, *new, used, *[others.get(name) for name in flashgen.cache_ops.OTHERS])
            self.assertEqual(torch.library.opcheck(torch.ops.flashgen.append, given, {"rotary": rotary}), OK)
        parts = random(3, B, 5, H, 20, dtype=torch.float32), random(3, B, H, 5, dtype=torch.float32)
        self.assertEqual(torch.library.opcheck(torch.ops.flashgen.combine, parts, {"dtype": "bf16"}), OK)

    def test_results_are_contiguous(self):
        """As the fake ones are, of which PyTorch's checks compare no strides; head dims that are padded would not be."""
        q, k, v = some(grad=False, d=59, dv=20)
        o, lse, u, _ = torch.ops.flashgen.attention(*arguments(q, k, v))
        *made, _ = torch.ops.flashgen.attention_backward(o, o, lse, u, None, *arguments(q, k, v))
        for x in (o, lse, *made):
            self.assertTrue(x.is_contiguous())

    def test_options_come_through(self):
        """What an op reads of its texts is what they were written of."""
        options = (None, "softcap(s, cap)", (("near(n)", "p - k < n"), ("far(n)", "!near(n) && p == k")), (
            flashgen.spec.Number("cap", float, 1.0), flashgen.spec.Axes("edge", "b, q", True),
            flashgen.spec.Axes("slope", "h", False), flashgen.spec.Number("width", int, 1)), "sigmoid", 0.5, 0.9, None, 3,
            None, True, False, 4, (("family", "simt"), ("block_q", "64,128")), "f16", "f32", "f32", 64, True)
        texts = flashgen.torch_ops.written(options)
        self.assertEqual(texts["declared"], "cap=float; edge=[b, q] monotone; slope=[h]; width=int")
        self.assertEqual(texts["plan"], "family=simt; block_q=64,128")
        self.assertEqual(flashgen.torch_ops.read(**texts), options)
        self.assertEqual(flashgen.op_parts.plan_text((64, 128)), "64,128")


class Compiled(CompiledCase):
    def of_lengths(self, *more, widths=False):
        for i, (nq, nk) in enumerate(((19, 33), (33, 33), (64, 80), (65, 200))):
            arrays = [random(B, n, h, D, grad=True) for n, h in ((nq, H), (nk, HK), (nk, HK))]
            yield [*arrays, *more], (i + 9,) if widths else ()

    def test_lengths(self):
        """Neither another length nor another number of an integer input compiles anew."""
        slope = random(H, dtype=torch.float32, grad=True)

        def function(q, k, v, slope, width):
            out, lse = flashgen.attention(q * 2, k, v, mask="k <= p && p - k < width", score="alibi(slope)", return_lse=True,
                                          inputs={"slope": ("h", slope), "width": width}, scale=q.shape[-1] ** -0.5)
            return out.float() + lse.transpose(1, 2)[..., None]

        self.compare(function, self.of_lengths(slope, widths=True))

    def test_floats(self):
        """Nor does another float among inputs, which kernels get as it is."""
        slope = random(H, dtype=torch.float32, grad=True)

        def function(q, k, v, slope, cap, more):
            return flashgen.attention(q, k, v, mask="causal", score="softcap(s, cap) * half + more - slope[h]", inputs={
                "slope": ("h", slope), "cap": cap, "half": 0.5, "more": more})

        calls = [([*some(), slope], (cap, 1 / 3)) for cap in (1.5, 0.1, 30.0, 2.0 ** -30)]
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            self.compare(function, calls, backend)

    def test_constants_stay_in_the_graph(self):
        """A float that the program has written down is no tensor of the CPU, which would keep CUDA graphs away."""
        seen = []

        def backend(module, _):
            seen.extend(node.args for node in module.graph.nodes if "flashgen" in str(node.target))
            return module

        torch.compile(lambda *x: flashgen.attention(*x, score="softcap(s, cap)", inputs={"cap": 1.5}), fullgraph=True,
                      dynamic=True, backend=backend)(*some(grad=False))
        self.assertEqual([args[-1] for args in seen], [None])

    def test_first_of_all(self):
        """Nor do arrays of other kinds that a process meets after its first call, which was compiled."""
        flashgen.attention.__globals__["_adapters"].clear()
        compiled = torch.compile(flashgen.attention, fullgraph=True, backend="eager")
        arrays = some()
        with torch._dynamo.config.patch(error_on_recompile=True):
            out = compiled(*arrays)
            flashgen.attention(*(x.detach().cpu().numpy() for x in arrays))
            self.same([compiled(*arrays)], [flashgen.attention(*arrays)])
        self.assertTrue(torch.equal(out, flashgen.attention(*arrays)))

    def test_packed(self):
        """Other documents, with dropout, a sink and bounds of the lengths."""
        sink = random(H, dtype=torch.float32, grad=True)

        def function(q, k, v, sink, starts, longest, seed):
            return flashgen.attention(q, k, v, mask="causal", starts_q=starts, starts_k=starts, longest_q=longest,
                                      longest_k=longest, sink=sink, dropout=0.25, seed=seed)

        self.compare(function, [
            ([*packed(n=n), sink], (torch.tensor(starts, dtype=torch.int32, device=DEVICE), n, SEED + n))
            for n, starts in ((40, [0, 15, 40]), (60, [0, 15, 40, 60]), (65, [0, 33, 65, 65, 65]))])

    def test_slices(self):
        """Other lists, of as many slices or of others."""
        def function(q, k, v, ranges, kinds):
            return flashgen.attention(q, k, v, q_ranges=ranges, k_ranges=ranges, kinds=kinds)

        self.compare(function, [(packed(n=n), (ranges, kinds)) for n, ranges, kinds in (
            (40, RANGES, KINDS), (50, RANGES + 5, KINDS), (60, RANGES[:2], KINDS[:2]))])

    def test_parts(self):
        """Numbers, or a tensor, of the place of a part."""
        def function(q, k, v, pos):
            return flashgen.attention(q, k, v, mask="causal", pos_q=pos, pos_k=3, whole_q=60, whole_k=70)

        self.compare(function, [(some(), (KINDS[:B] + shift,)) for shift in (0, 20)])

    def test_eight_bits(self):
        """Descales, another number of tokens, and a cache beside queries of 16 bits."""
        def function(q, k, v, scale, used):
            o = flashgen.attention(q, k, v, mask="causal", q_descale=scale, v_descale=scale)
            of_16_bits = flashgen.attention(q.half(), k, v, mask="causal", k_descale=scale, used_k=used)
            blocks = flashgen.attention(q, k, v, k_descale=scale[..., None].expand(-1, -1, -(-k.shape[1] // 64)), descale_block=64,
                                        o_dtype="f32")
            return o, of_16_bits, blocks

        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        for n in (33, 65, 130):
            q, k, v = (eight_bits(random(B, n, heads, D, seed=i)) for i, heads in enumerate((H, HK, HK)))
            given = q, k, v, SCALE * n, torch.full((B,), n - 3, dtype=torch.int32, device=DEVICE)
            found, right = compiled(*given), function(*given)
            self.assertEqual([x.dtype for x in found], [torch.bfloat16, torch.float16, torch.float32])
            self.same(found, right)
        self.says(ValueError, "a tensor requires a gradient, which attention of float8_e4m3fn does not have",
                  flashgen.attention, q.half().requires_grad_(), k, v)

    def test_caches(self):
        """New keys go to the cache in place, and attention sees them; parts are combined. No graph breaks."""
        from flashgen.flash_attn import flash_attn_with_kvcache

        def function(q, k, v, new, used, table):
            out = flash_attn_with_kvcache(q, k, v, new, new, cache_seqlens=used, causal=True, block_table=table)
            parts = torch.stack((out, out)).float(), torch.zeros(2, B, H, q.shape[1], device=DEVICE)
            return out, k * 1, *flashgen.combine(*parts, sink=used.float().repeat(2), dtype="bf16")

        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        table = torch.arange(6, dtype=torch.int32, device=DEVICE).view(B, 3)
        for n in (1, 2):
            q, new, used = random(B, n, H, D), random(B, n, HK, D, seed=1), torch.tensor([3, 9 * n], dtype=torch.int32, device=DEVICE)
            cache = [random(6, 8, HK, D, seed=i) for i in range(2)]
            self.same(compiled(q, *[x.clone() for x in cache], new, used, table), function(q, *cache, new, used, table))

    def test_gradients_are_right(self):
        leaves = (*some(), random(1, H, NQ, NK, grad=True))
        found = gradients(torch.compile(lambda q, k, v, bias: flashgen.attention(q, k, v, mask="causal", bias=bias),
                                        fullgraph=True, backend="aot_eager"), leaves)
        exact = [x.detach().double().requires_grad_() for x in leaves]
        right = gradients(lambda q, k, v, bias: plain(q, k, v, lambda s: s + bias, K <= P)[0], exact)
        for x, y in zip(found, right):
            self.assertLess(((x.double() - y).norm() / y.norm()).item(), LIMITS[torch.float16])

    def test_backward_in_a_graph(self):
        q, k, v = some(grad=False)
        slope = random(H, dtype=torch.float32)
        how = {"mask": "causal", "score": "alibi(slope)", "inputs": {"slope": ("h", slope)}}
        out, lse = flashgen.attention(q, k, v, return_lse=True, **how)

        def function(*arrays):
            return flashgen.attention_backward(*arrays, dlse=lse, **how)

        found = torch.compile(function, fullgraph=True, backend="aot_eager")(out, q, k, v, out, lse)
        right = function(out, q, k, v, out, lse)
        self.same([*found[:3], found.inputs["slope"]], [*right[:3], right.inputs["slope"]])
        self.assertEqual(found[3:5], (None, None))

    def test_seed_and_out(self):
        """PyTorch's generator decides in a graph too; a number is no part of the graph, and out is written to."""
        q, k, v = some(grad=False)
        compiled = torch.compile(lambda *x: flashgen.attention(*x, dropout=0.5), fullgraph=True, backend="aot_eager")
        torch.manual_seed(1)
        first, second = compiled(q, k, v), compiled(q, k, v)
        torch.manual_seed(1)
        self.assertTrue(torch.equal(first, compiled(q, k, v)))
        self.assertFalse(torch.equal(first, second))
        out = torch.empty_like(q)
        compiled = torch.compile(lambda q, k, v, seed, out: flashgen.attention(q, k, v, dropout=0.5, seed=seed, out=out),
                                 fullgraph=True, dynamic=True, backend="aot_eager")
        for seed in (5, 6):
            self.assertIs(compiled(q, k, v, seed, out), out)
            self.assertTrue(torch.equal(out, flashgen.attention(q, k, v, dropout=0.5, seed=seed)))

    def test_export(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = torch.nn.Parameter(torch.ones(H, device=DEVICE))

            def forward(self, q, k, v):
                return flashgen.attention(q, k, v, mask="causal", score="alibi(slope)", inputs={"slope": ("h", self.slope)})

        module, n = Module(), torch.export.Dim("n", min=2, max=1000)
        same = [random(B, 21, heads, D) for heads in (H, HK, HK)]
        for strict in (False, True):
            program = torch.export.export(module, tuple(same), dynamic_shapes=({1: n},) * 3, strict=strict)
            file = io.BytesIO()
            torch.export.save(program, file)
            file.seek(0)
            longer = [random(B, 50, heads, D) for heads in (H, HK, HK)]
            self.same([torch.export.load(file).module()(*longer)], [module(*longer)])
            given = [x for node in program.graph.nodes if "flashgen" in str(node.target) for x in (*node.args, *node.kwargs.values())]
            self.assertTrue(given and [] not in given)  # which AOTInductor's runtime would make None of

    def test_cuda_graphs(self):
        """Of PyTorch's own making: each replay has its arguments' values and drops anew."""
        if DEVICE == "cpu":
            self.skipTest("the CPU has no CUDA graphs")
        compiled = torch.compile(lambda *x: flashgen.attention(*x), fullgraph=True, mode="reduce-overhead")
        drops = torch.compile(lambda *x: flashgen.attention(*x, dropout=0.5), fullgraph=True, mode="reduce-overhead")
        for i in range(4):
            arrays = [random(B, NK, heads, D, grad=True, seed=i) for heads in (H, HK, HK)]
            torch.compiler.cudagraph_mark_step_begin()
            self.same([x.clone() for x in gradients(compiled, arrays)], gradients(flashgen.attention, arrays))
        arrays = [x.detach() for x in arrays]
        results = []
        for _ in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            results.append(drops(*arrays).clone())
        self.assertFalse(torch.equal(results[-1], results[-2]))

    def test_errors(self):
        q, k, v = some()
        used = torch.tensor([9, 3], dtype=torch.int32, device=DEVICE)
        compiled = torch.compile(lambda *x: flashgen.attention(*x, mask="causal", used_k=used), backend="eager")
        self.says(ValueError, "a tensor requires a gradient, which attention over a cache does not have", compiled, q, k, v)
        op = torch.ops.flashgen.attention
        self.says(ValueError, "k has 2 sequences, q 1", op, *arguments(q[:1], k, v))
        out, *_ = op(*arguments(q, k, v, used_k=used))
        self.says(ValueError, "which attention over a cache does not have", out.sum().backward)

    def test_eager_goes_without(self):
        """An eager call does not pass the dispatcher."""
        seen = []

        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **kwargs or {})

        arrays = some()
        with Mode():
            flashgen.attention(*arrays, mask="causal").sum().backward()
        self.assertFalse([name for name in seen if "flashgen" in name])
        self.assertFalse(tensors.is_traced(torch.nn.Parameter))

    def test_fake(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode() as mode:
            q, k, v = (mode.from_tensor(x) for x in some(grad=False))
            out, most = flashgen.attention(q, k, v, mask="causal", return_max_logit=True)
        self.assertEqual((out.shape, most.shape), ((B, NQ, H, D), (B, H)))


if __name__ == "__main__":
    main()

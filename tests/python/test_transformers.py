"""Models of transformers through our kernels: what rows see, a layer, and a small Llama and Mistral in bfloat16."""
import inspect
import types

from case import Case, main, skip
from test_torch import DEVICE, LIMITS, flashgen, plain, random, torch

try:
    import transformers
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, create_causal_mask, create_sliding_window_causal_mask
    from transformers.masking_utils import create_bidirectional_mask, create_chunked_causal_mask
except ImportError:
    skip("torch", "transformers is missing, or older than 5: its models are not tested")

from flashgen import transformers as ours  # noqa: E402

flashgen.register_transformers()
B, H, HK, N, D = 2, 4, 2, 24, 16
SMALL = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=256)
CAUSAL = types.SimpleNamespace(is_causal=True)
WHOLE = types.SimpleNamespace(is_causal=False)


def llama(name, **more):
    """The same weights for each name and dtype."""
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, attn_implementation=name, **more)).eval()


def mistral(name, window=7):
    torch.manual_seed(0)
    return transformers.MistralForCausalLM(transformers.MistralConfig(
        **SMALL, attn_implementation=name, sliding_window=window)).eval()


class Models(Case):
    def setUp(self):
        self.launches, self.launch = 0, flashgen.call.launch
        flashgen.call.launch = self.count
        torch.manual_seed(1)
        self.ids = torch.randint(3, 128, (2, 20), device=DEVICE)

    def tearDown(self):
        flashgen.call.launch = self.launch

    def count(self, *arguments):
        self.launches += 1
        return self.launch(*arguments)

    def compare(self, make, mask=None, new=12):
        """generate() through us; its logits, with the same tokens given, are at most twice as far from float32 as eager's."""
        own, eager, exact = (make(name).to(DEVICE, dtype) for name, dtype in (
            ("fg", torch.bfloat16), ("eager", torch.bfloat16), ("eager", torch.float32)))
        how = dict(do_sample=False, max_new_tokens=new, min_new_tokens=new, pad_token_id=0, attention_mask=mask)
        with torch.no_grad():
            made = own.generate(self.ids, **how, return_dict_in_generate=True, output_logits=True)
            self.assertEqual(self.launches, 2 * new)  # two layers
            tokens = made.sequences
            if mask is not None:
                mask = torch.cat((mask, mask.new_ones(2, new)), 1)
            right = exact(tokens, attention_mask=mask).logits[:, -new - 1:-1]
            far = (eager(tokens, attention_mask=mask).logits[:, -new - 1:-1] - right).norm().item()
            once = own(tokens, attention_mask=mask).logits[:, -new - 1:-1]
            stepwise = torch.stack(made.logits, 1)
        for logits in (once, stepwise):
            self.assertLess((logits - right).norm().item(), 2 * far)
        # where the exact model is certain, it would have taken the same token
        best = right.topk(2).values
        certain = best[..., 0] - best[..., 1] > 2 * (once - right).abs().max()
        self.assertTrue(torch.equal(tokens[:, -new:][certain], right.argmax(-1)[certain]))
        self.assertGreater(far, 0)

    def padded(self):
        mask = torch.ones_like(self.ids)
        mask[0, :6] = 0
        return mask

    def test_llama(self):
        self.compare(llama)

    def test_padding(self):
        self.compare(llama, self.padded())

    def test_window(self):
        self.compare(mistral)
        self.launches = 0
        self.compare(mistral, self.padded())

    def test_static_cache(self):
        """Of a model whose layers all have a window, generate() makes the mask, and the model asks again with it."""
        for make, mask in ((llama, None), (mistral, None), (mistral, self.padded())):
            own, eager = (make(name).to(DEVICE, torch.float32 if name == "eager" else torch.bfloat16) for name in ("fg", "eager"))
            how = dict(do_sample=False, max_new_tokens=3, min_new_tokens=3, pad_token_id=0, cache_implementation="static",
                       disable_compile=True, return_dict_in_generate=True, output_logits=True, attention_mask=mask)
            with torch.no_grad():
                found = torch.stack(own.generate(self.ids, **how).logits, 1)
                right = torch.stack(eager.generate(self.ids, **how).logits, 1)
            self.assertLess(((found[:, 0] - right[:, 0]).norm() / right[:, 0].norm()).item(), 0.02)

    def test_training(self):
        """Gradients of all weights are about as far from float32's as eager's."""
        def gradients(name, dtype):
            model = llama(name).to(DEVICE, dtype).train()
            model(self.ids, labels=self.ids).loss.backward()
            return torch.cat([x.grad.float().flatten() for x in model.parameters()])

        right = gradients("eager", torch.float32)
        far = (gradients("eager", torch.bfloat16) - right).norm().item()
        self.assertLess((gradients("fg", torch.bfloat16) - right).norm().item(), 2 * far)

    def test_compiled(self):
        model = llama("fg").to(DEVICE, torch.bfloat16)
        with torch.no_grad():
            right = model(self.ids, use_cache=False).logits
            torch._dynamo.reset()
            found = torch.compile(model, fullgraph=True, backend="aot_eager")(self.ids, use_cache=False).logits
        self.assertTrue(torch.equal(found, right))


class Masks(Case):
    def mask(self, create, window=None, chunk=None, padding=None, cached=0, n=N, **more):
        """What a model gets of transformers for n rows behind so many cached keys."""
        config = transformers.LlamaConfig(**SMALL, attn_implementation="fg")
        config.sliding_window, config.attention_chunk_size = window, chunk
        cache = transformers.DynamicCache()
        if cached:
            cache.update(*(torch.zeros(B, HK, cached, D, device=DEVICE),) * 2, 0)
        if padding is not None:
            padding = torch.arange(cached + n, device=DEVICE)[None] >= torch.tensor([padding, 0], device=DEVICE)[:, None]
        more["cache" if "cache" in inspect.signature(create).parameters else "past_key_values"] = cache if cached else None
        return create(config=config, inputs_embeds=torch.zeros(B, n, 1, device=DEVICE), attention_mask=padding,
                      position_ids=None, **more)

    def test_no_dense_ones(self):
        self.assertIn("fg", ALL_MASK_ATTENTION_FUNCTIONS.valid_keys())
        for cached in (0, 5):
            n = cached + N
            self.assertIsNone(self.mask(create_causal_mask, cached=cached))
            self.assertIsNone(self.mask(create_causal_mask, padding=0, cached=cached))
            self.assertEqual(self.mask(create_causal_mask, padding=3, cached=cached).shape, (B, n))
            self.assertEqual(self.mask(create_sliding_window_causal_mask, window=7, cached=cached).shape, (1, 7, 1))
            found = self.mask(create_sliding_window_causal_mask, window=7, padding=3, cached=cached)
            self.assertEqual((found.shape, found.stride()[1]), ((B, 7, n), 0))
            self.assertIsNone(self.mask(create_sliding_window_causal_mask, window=99, cached=cached))
        self.assertIsNone(self.mask(create_bidirectional_mask))
        self.assertEqual(self.mask(create_bidirectional_mask, padding=3).shape, (B, N))
        self.assertIsNone(self.mask(create_chunked_causal_mask, chunk=N))

    def test_padding(self):
        """Of the keys that a cache still has; those that the mask of tokens does not reach are padding."""
        tokens = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]], device=DEVICE)
        self.assertEqual(ours.padding(tokens, 1, 4).tolist(), [[False, False, True, True], [True] * 4])
        self.assertEqual(ours.padding(tokens, 3, 3).tolist(), [[True, True, False]] * 2)
        self.assertIsNone(ours.padding(tokens, 3, 2))

    def test_dense_ones(self):
        """Chunks, and what a model adds of its own."""
        for window in (None, 7):
            self.assertEqual(self.mask(create_chunked_causal_mask, chunk=7, window=window).shape, (B, 1, N, N))
        more = dict(or_mask_function=lambda b, h, q, k: k < 2)
        for create, window in ((create_causal_mask, None), (create_sliding_window_causal_mask, 7)):
            found = self.mask(create, window=window, **more)
            self.assertEqual(found.shape, (B, 1, N, N))
            self.assertTrue(found[..., :2].all())
        found = ours.mask_of(B, 3, 10, torch.tensor(4), attention_mask=None, device=DEVICE)
        self.assertEqual(found[0, 0].sum(1).tolist(), [5, 6, 7])  # a static cache, part of which is empty

    def attend(self, right, mask=None, module=CAUSAL, nq=N, dtype=torch.bfloat16, scores=lambda s: s, sink=None, **options):
        """A layer beside the plain formula, where `right` is true."""
        q, k, v = (random(B, h, n, D, seed=i, dtype=dtype) for i, (h, n) in enumerate(((H, nq), (HK, N), (HK, N))))
        found, weights = ours.attend(module, q, k, v, mask, **options)
        self.assertIsNone(weights)
        exact = plain(*(x.transpose(1, 2) for x in (q, k, v)), scores, right, sink)[0]
        exact = torch.where((right.any(-1) if right is not None else torch.ones(1, device=DEVICE).bool()).expand(
            B, 1, nq).transpose(1, 2)[..., None], exact, 0)  # a row that sees nothing
        self.assertEqual(found.shape, exact.shape)
        self.assertLess(((found.double() - exact).norm() / exact.norm()).item(), LIMITS[torch.bfloat16])

    def test_layer(self):
        at = torch.arange(N, device=DEVICE)
        distance = at[:, None] - at
        seen = (at >= torch.tensor([3, 0], device=DEVICE)[:, None])[:, None, None]
        causal, window = distance >= 0, (distance >= 0) & (distance < 7)
        self.attend(causal)
        self.attend(causal[-3:], nq=3)
        self.attend(None, module=WHOLE)
        self.attend(None, is_causal=False)
        self.attend(causal & seen, seen[:, 0, 0])
        self.attend(seen.expand(B, 1, N, N), seen[:, 0, 0], module=WHOLE)
        self.attend(window, sliding_window=7)
        self.attend(window, torch.ones(1, 1, 1, device=DEVICE).bool().expand(1, 7, 1))
        self.attend(window & seen, seen[:, :, 0].expand(B, 7, N))
        dense = random(B, 1, N, N) > -1
        self.attend(dense, dense)
        added = random(1, H, N, N, seed=3, dtype=torch.bfloat16)
        self.attend(None, added, scores=lambda s: s + added.double())
        self.attend(causal, position_bias=added, scores=lambda s: s + added.double())
        self.attend(dense, dense, position_bias=added, scores=lambda s: s + added.double())
        sink = random(H, dtype=torch.bfloat16)
        self.attend(causal, s_aux=sink, sink=sink, softcap=2.0, scores=lambda s: 2 * torch.tanh(s / 2))

    def test_packed_row(self):
        starts = torch.tensor([0, 9, N], device=DEVICE)
        q, k, v = (random(1, h, N, D, seed=i, dtype=torch.bfloat16) for i, h in enumerate((H, HK, HK)))
        found, _ = ours.attend(CAUSAL, q, k, v, None, cu_seq_lens_q=starts, cu_seq_lens_k=starts, max_length_q=15,
                               max_length_k=torch.tensor(15))
        for rows in (slice(0, 9), slice(9, N)):
            alone, _ = ours.attend(CAUSAL, *(x[:, :, rows] for x in (q, k, v)))
            self.assertLess((found[:, rows] - alone).abs().max().item(), 2e-2)

    def test_float32(self):
        """Cast as autocast says, or as the model's weights are; refused where nothing says."""
        q = random(B, H, N, D, dtype=torch.float32)
        with torch.autocast(q.device.type, torch.bfloat16):
            self.assertEqual(ours.attend(CAUSAL, q, q, q)[0].dtype, torch.bfloat16)
        module = torch.nn.Linear(1, 1, dtype=torch.float16)
        self.assertEqual(ours.attend(module, q, q, q)[0].dtype, torch.float16)
        self.says(TypeError, "q is float32", ours.attend, torch.nn.Identity(), q, q, q)
        self.says(NotImplementedError, "output_attentions: kernels of flashgen keep no weights", ours.attend, CAUSAL, q, q, q,
                  output_attentions=True)


if __name__ == "__main__":
    main()

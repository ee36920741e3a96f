"""What PyTorch asks for beside first gradients: gradients of gradients and tangents are refused when they are asked for, and a
trace has the call in it."""
import warnings

from case import Case, flashgen, main
from device import DEVICE, random, torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

import flashgen.torch_ops  # noqa: E402, F401
from flashgen.flash_attn import flash_attn_func  # noqa: E402

B, N, H, D, IN, OUT = 2, 8, 2, 16, 32, 16
STARTS = torch.tensor([0, 7, 16], dtype=torch.int32, device=DEVICE)
TARGET = torch.arange(N, device=DEVICE)


def qkv(*lead):
    return [random(*(lead or (B, N)), H, D, grad=True, seed=i) for i in range(3)]


def rows(*shapes, dtype=torch.float16):
    return [random(*shape, dtype=dtype, grad=True, seed=i) for i, shape in enumerate(shapes)]


def everything(q, k, v, bias, sink, slope):
    out, lse = flashgen.attention(q, k, v, bias=bias, sink=sink, score="alibi(slope)", inputs={"slope": ("h", slope)},
                                  return_lse=True)
    return out.float() + lse.transpose(1, 2)[..., None]


# Function, and the tensors on which its gradients depend; each gets one.
CASES = {
    "attention": (lambda q, k, v: flashgen.attention(q, k, v), qkv()),
    "attention, all inputs": (everything, [*qkv(), random(1, H, 1, N, grad=True),
                                           *rows((H,), (H,), dtype=torch.float32)]),
    "logsoftmax": (lambda q, k, v: flashgen.attention(q, k, v, normalizer="logsoftmax"), qkv()),
    "packed": (lambda q, k, v: flashgen.attention(q, k, v, starts_q=STARTS, starts_k=STARTS), qkv(16)),
    "flash_attn": (flash_attn_func, qkv()),
    "linear": (lambda x, w, b: flashgen.linear(x, w, b, epilogue="gelu"), rows((N, IN), (OUT, IN), (OUT,))),
    "ffn": (lambda x, w1, w2: flashgen.ffn(x, w1, None, w2, None), rows((N, IN), (OUT, IN), (IN, OUT))),
    "layernorm": (lambda x, gamma, more, bias: flashgen.layernorm(x, gamma, residual=more, bias=bias),
                  rows((N, IN), (IN,), (N, IN), (IN,))),
    "rms norm": (lambda x, gamma: flashgen.layernorm(x, gamma, norm="rms"), rows((N, IN), (IN,))),
    "linear_norm": (lambda x, w, gamma, b, more: flashgen.linear_norm(x, w, gamma, bias=b, residual=more),
                    rows((N, IN), (OUT, IN), (OUT,), (OUT,), (N, OUT))),
    "log_softmax": (flashgen.log_softmax, rows((N, IN))),
    "cross_entropy": (lambda x: flashgen.cross_entropy(x, TARGET), rows((N, IN)))}


class Twice(Case):
    def refused(self, function, leaves, compiled=False):
        """A step with a graph of its gradients is made, and no part of it can be differentiated by any leaf."""
        out = (torch.compile(function, backend="eager") if compiled else function)(*leaves)
        made = torch.autograd.grad(out.sum(), leaves, create_graph=True)
        for x in made:
            for leaf in leaves:
                self.says(NotImplementedError, "a gradient of a gradient is asked for", torch.autograd.grad, x.sum(), leaf,
                          retain_graph=True)
        (out.sum() + made[0].detach().sum()).backward()
        self.assertTrue(all(torch.equal(x, leaf.grad) for x, leaf in zip(made, leaves)) or DEVICE != "cpu")
        for leaf in leaves:
            leaf.grad = None

    def test_all(self):
        for name, (function, leaves) in CASES.items():
            with self.subTest(name):
                self.refused(function, leaves)

    def test_traced(self):
        """The operators that a compiled program calls."""
        for name in ("attention, all inputs", "linear", "linear_norm", "log_softmax"):
            with self.subTest(name):
                torch._dynamo.reset()
                self.refused(*CASES[name], compiled=True)

    def test_douts(self):
        """A gradient depends on that of the result, too; that of a residual is the latter, and has all gradients."""
        weight, (x, w, more) = random(N, OUT, grad=True), rows((N, IN), (OUT, IN), (N, OUT))
        y = flashgen.linear(x, w, residual=more) * weight
        dx, dmore = torch.autograd.grad(y.sum(), (x, more), create_graph=True)
        self.says(NotImplementedError, "a gradient of a gradient", torch.autograd.grad, dx.sum(), weight)
        self.assertTrue((torch.autograd.grad(dmore.sum(), weight)[0] == 1).all())

    def test_explicit_backward(self):
        q, k, v = qkv()
        out, lse = flashgen.attention(q.detach(), k.detach(), v.detach(), return_lse=True)
        made = flashgen.attention_backward(out, q, k.detach(), v.detach(), out, lse)
        self.says(NotImplementedError, "a gradient of a gradient", made.v.sum().backward)
        x, w = rows((N, IN), (OUT, IN))
        made = flashgen.linear_backward(random(N, OUT), x, w.detach())
        self.says(NotImplementedError, "a gradient of a gradient", made.weight.sum().backward)
        with torch.no_grad():
            self.assertFalse(flashgen.linear_backward(random(N, OUT), x, w).x.requires_grad)

    def test_tangents(self):
        with forward_ad.dual_level():
            for name, (function, leaves) in CASES.items():
                with self.subTest(name):
                    first, *others = [x.detach() for x in leaves]
                    self.says(NotImplementedError, "a tensor has a tangent of forward-mode AD", function,
                              forward_ad.make_dual(first, first), *others)
            q, k, v = (x.detach() for x in qkv())
            dual = forward_ad.make_dual(q, q)
            op, others = torch.ops.flashgen.attention, [None] * len(flashgen.torch_ops.BESIDE)
            self.says(NotImplementedError, "a tensor has a tangent", op, dual, k, v, *others, [])
            self.says(NotImplementedError, "a tensor has a tangent", flashgen.combine, dual[None].float(),
                      random(1, B, H, N, dtype=torch.float32))
            self.assertEqual(flashgen.attention(q, k, v).shape, q.shape)


class Traces(Case):
    def test_right_at_other_numbers(self):
        warnings.simplefilter("ignore")
        for name in ("attention", "packed", "linear", "layernorm"):
            function, (x, *others) = CASES[name][0], [x.detach() for x in CASES[name][1]]
            for make in (lambda f: torch.jit.trace(f, (x,), check_trace=False), lambda f: make_fx(f)(x),
                         lambda f: make_fx(f, pre_dispatch=True)(x)):
                with self.subTest(name):
                    traced = make(lambda y: function(y, *others) * 1.0)
                    self.assertTrue(torch.equal(traced(x + 1), function(x + 1, *others)))

    def test_cache(self):
        """What is written in place is written by the trace."""
        (k, v), new = (random(2, 9, 1, D, seed=i) for i in range(2)), random(2, 1, 1, D)
        used = torch.zeros(2, dtype=torch.int32, device=DEVICE)

        def function(k, v, new, used):
            flashgen.append(k, v, new, new, used_k=used)
            return k * 1.0

        traced = make_fx(function)(k.clone(), v.clone(), new, used)
        self.assertTrue(torch.equal(traced(k.clone(), v.clone(), new, used + 4), function(k, v, new, used + 4)))


if __name__ == "__main__":
    main()

"""torch.ops.flashgen of rows: PyTorch's own checks of the ops, and linear, ffn, layernorm and losses in programs that are
compiled or exported."""
import io

from case import Case, flashgen, main
from compiled import OK, CompiledCase, gradients
from test_torch_rows import DEVICE, IN, LEAD, OUT, random, some, torch

import flashgen.torch_ops  # noqa: E402

TARGET = torch.arange(15, device=DEVICE).view(LEAD) - 1  # the first one is no column


def block(x, residual, gamma, beta, w1, b1, w2, b2):
    """A feed-forward layer with its norm before it, and what a loss makes of it."""
    out, z = flashgen.layernorm(x, gamma, beta, residual=residual, return_z=True)
    y = flashgen.ffn(out, w1, b1, w2, b2, epilogue="swiglu", residual=z)
    y = flashgen.linear_norm(y, w2.t(), b1[:OUT], norm="rms")[..., :IN]
    loss = flashgen.cross_entropy(y, y.argmax(-1) - 1)
    return flashgen.log_softmax(y) * loss[..., None].to(y.dtype)


def weights():
    """So small that float16 holds what comes of them."""
    shapes = (IN,), (IN,), (2 * OUT, IN), (2 * OUT,), (IN, OUT), (IN,)
    return [(x / 8).requires_grad_() for x in some(*shapes, grad=False)]


class Ops(Case):
    def check(self, op, arrays, wants="", **options):
        found = torch.library.opcheck(getattr(torch.ops.flashgen, op), tuple(arrays), {"wants": wants, **options})
        self.assertEqual(found, OK)

    def test_opcheck(self):
        x, w, b, residual, gamma, beta, bias = some((*LEAD, IN), (OUT, IN), (OUT,), (*LEAD, OUT), (IN,), (IN,), (IN,))
        self.check("linear", (x, w, b, residual), "kept", epilogue="relu")
        self.check("linear", (x, w[:32], None, None), "kept", epilogue="geglu", plan="family=simt; block_q=32")
        self.check("linear", (x[..., :16], w[:, :16], b, None))
        self.check("layernorm", (x, gamma, beta, bias, x.detach()), "mean,z,rstd")
        self.check("layernorm", (x, gamma, None, bias, None), "rstd", norm="rms", eps=0.25)
        self.check("linear_norm", (x, w, b, b, b, residual), "z,mean,rstd")
        self.check("log_softmax", (x,))
        self.check("cross_entropy", (x, TARGET, torch.ones(IN, device=DEVICE)), "lse")

    def test_opcheck_of_backward(self):
        x, w, b, dy, gamma = some((*LEAD, IN), (OUT, IN), (OUT,), (*LEAD, OUT), (IN,), grad=False)
        ops = torch.ops.flashgen
        _, kept = ops.linear(x, w, b, None, epilogue="gelu", wants="kept")
        self.check("linear_backward", (x, w, dy, kept), "dbias", epilogue="gelu")
        _, z, mean, rstd = ops.layernorm(x, gamma, gamma, gamma, None, wants="z,mean,rstd")
        self.check("layernorm_backward", (x, x, gamma, mean, rstd, z, None, None, None), "dbeta,dbias")
        self.check("layernorm_backward", (x, None, gamma, mean, rstd, None, x, gamma, None))
        _, z, _, rstd = ops.linear_norm(x, w, b, None, None, None, norm="rms", wants="z,rstd")
        self.check("linear_norm_backward", (x, w, dy, None, z, b, None, rstd), "dbias", norm="rms")
        self.check("log_softmax_backward", (ops.log_softmax(x), x))
        loss, lse = ops.cross_entropy(x, TARGET, None, wants="lse")
        self.check("cross_entropy_backward", (x, TARGET, None, lse, loss))

    def test_nothing_is_kept(self):
        """Of an op that was asked for nothing a gradient is an error; eager functions ask."""
        x, w = some((*LEAD, IN), (OUT, IN))
        y, kept = torch.ops.flashgen.linear(x, w, None, None, epilogue="relu")
        self.assertEqual(kept.numel(), 0)
        self.says(ValueError, "linear: wants has no kept, which a gradient is made of", y.sum().backward)


class Compiled(CompiledCase):
    def test_rows(self):
        """Other numbers of rows compile nothing anew."""
        self.compare(block, [([random(2, n, IN, grad=True), random(2, n, IN, grad=True, seed=1), *weights()], ())
                             for n in (5, 9, 64)])

    def test_only_what_is_asked_for(self):
        """Where no gradient is wanted the graph keeps nothing for one."""
        seen = []

        def backend(module, _):
            seen.extend(node.kwargs["wants"] for node in module.graph.nodes if "flashgen" in str(node.target))
            return module

        x, w1, w2 = some((*LEAD, IN), (OUT, IN), (IN, OUT))
        ffn = torch.compile(lambda x, w1, w2: flashgen.ffn(x, w1, None, w2, None), fullgraph=True, backend=backend)
        for arrays, wants in (((x, w1, w2), ["kept", ""]), ((x.detach(), w1.detach(), w2.detach()), ["", ""])):
            seen.clear()
            ffn(*arrays)
            self.assertEqual(seen, wants)

    def test_backward_in_a_graph(self):
        x, w, b, dy = some((*LEAD, IN), (OUT, IN), (OUT,), (*LEAD, OUT), grad=False)

        def function(x, w, b, dy):
            y, kept = flashgen.linear(x, w, b, epilogue="silu", return_kept=True)
            return (y, *flashgen.linear_backward(dy, x, w, b, kept=kept, epilogue="silu"))

        self.same(torch.compile(function, fullgraph=True, backend="aot_eager")(x, w, b, dy), function(x, w, b, dy))

    def test_export(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = torch.nn.ParameterList(weights())

            def forward(self, x, residual):
                return block(x, residual, *self.weights)

        module, n = Module(), torch.export.Dim("n", min=2, max=1000)
        program = torch.export.export(module, (random(2, 21, IN), random(2, 21, IN, seed=1)), dynamic_shapes=({1: n},) * 2)
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        longer = random(2, 50, IN), random(2, 50, IN, seed=1)
        self.same([torch.export.load(file).module()(*longer)], [module(*longer)])

    def test_cuda_graphs(self):
        if DEVICE == "cpu":
            self.skipTest("the CPU has no CUDA graphs")
        compiled = torch.compile(block, fullgraph=True, mode="reduce-overhead")
        for i in range(4):
            arrays = [random(*LEAD, IN, grad=True, seed=i), random(*LEAD, IN, grad=True, seed=i + 9), *weights()]
            torch.compiler.cudagraph_mark_step_begin()
            self.same([x.clone() for x in gradients(compiled, arrays)], gradients(block, arrays))

    def test_errors(self):
        x, weight = random(*LEAD, IN, grad=True), torch.ones(IN, device=DEVICE, requires_grad=True)
        narrow = torch.compile(lambda x: flashgen.log_softmax(x, plan={"family": "simt", "block_q": 7}), backend="eager")
        self.says(NotImplementedError, "no plan fits", narrow, x.detach())
        compiled = torch.compile(lambda *x: flashgen.cross_entropy(*x), backend="eager")
        self.says(ValueError, "weight requires a gradient, which cross_entropy does not have", compiled, x, TARGET, weight)
        self.says(ValueError, "weight has shape (23,); expected (24,)", torch.ops.flashgen.cross_entropy, x, TARGET, weight[1:])

    def test_fake(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode() as mode:
            x, w = (mode.from_tensor(one) for one in some((*LEAD, IN), (2 * OUT, IN), grad=False))
            y, kept = flashgen.linear(x, w, epilogue="swiglu", return_kept=True)
            out, mean, rstd = flashgen.layernorm(x, w[0], return_stats=True)
        self.assertEqual((y.shape, kept.shape, y.dtype), ((*LEAD, OUT), (*LEAD, 2 * OUT), torch.float16))
        self.assertEqual((out.shape, mean.shape, rstd.dtype), (x.shape, LEAD, torch.float32))


if __name__ == "__main__":
    main()

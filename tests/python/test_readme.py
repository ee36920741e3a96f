"""The examples of the package's README: each runs, prints what it says that it prints, and its numbers are right."""
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile

from case import SOURCE, Case, main, np
import row_formula as rows
from formula import LIMITS, Reference, error

BLOCKS = re.findall(r"^## (.*?)\n.*?^```python\n(.*?)^```$", (SOURCE / "runtime/python/README.md").read_text(), re.M | re.S)


def example(title):
    """Runs an example; what it printed has to be what the comment behind its print says."""
    text = dict(BLOCKS)[title]
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, title, "exec"), names)
    expected = re.search(r"^print\(.*\)  # (.*)$", text, re.M)[1]
    if printed.getvalue().strip() != expected:
        raise AssertionError(f"{title}: it printed {printed.getvalue()}")
    return names


def causal(nq, nk):
    return np.arange(nk)[None, :] <= np.arange(nq)[:, None] + nk - nq


class Readme(Case):
    def near(self, found, value, size):
        self.assertLess(error(found, value, size), LIMITS["f16"])

    def test_all_are_here(self):
        self.assertEqual([title for title, _ in BLOCKS], [
            "A score of your own, with a gradient", "A mask or a bias that lies in memory", "ALiBi and a sliding window", "Packed documents",
            "A mask that is a list of slices", "Parts of sequences", "Decode with a paged cache",
            "A sequence that no one GPU holds", "The rest of a layer", "A feed-forward layer of PyTorch", "torch.compile"])

    def test_score(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is missing")
        names = example("A score of your own, with a gradient")
        slope = names["slope"].detach().double().requires_grad_()
        q, k, v = (names[x].detach().double().transpose(1, 2) for x in "qkv")
        distance = torch.arange(100)[:, None] - torch.arange(100)[None, :]
        s = 30 * torch.tanh(q @ k.transpose(2, 3) / 8 / 30) - slope.abs()[:, None, None] * distance
        s = s.masked_fill(distance < 0, -1e300)
        ((s.softmax(3) @ v).square().sum() + s.logsumexp(3).sum()).backward()
        self.assertLess(((names["slope"].grad - slope.grad).norm() / slope.grad.norm()).item(), 1e-2)

    def test_memory(self):
        names = example("A mask or a bias that lies in memory")
        right = Reference(*(names[x] for x in "qkv"), mask=causal(100, 100) & names["seen"][:, None, None],
                          bias=names["bias"].astype(float))
        self.near(names["out"].swapaxes(1, 2), right.o, right.o_size)

    def test_window(self):
        names = example("ALiBi and a sliding window")
        distance = np.arange(100)[:, None] - np.arange(100)[None, :]
        right = Reference(*(names[x] for x in "qkv"), mask=(distance >= 0) & (distance <= 30),
                          bias=-names["slope"][:, None, None] * distance).backward(np.ones_like(names["out"]))
        self.near(names["out"].swapaxes(1, 2), right.o, right.o_size)
        self.near(names["grads"].k.swapaxes(1, 2), right.dk, right.dk_size)
        self.near(names["grads"].inputs["slope"], *right.of_input(-distance, (0, 2, 3)))

    def test_packed(self):
        names = example("Packed documents")
        for first, last in zip(names["starts"], names["starts"][1:]):
            q, k, v = (names[x][None, first:last] for x in "qkv")
            right = Reference(q, k, v, causal(last - first, last - first))
            self.near(names["out"][None, first:last].swapaxes(1, 2), right.o, right.o_size)

    def test_slices(self):
        names = example("A mask that is a list of slices")
        at = np.arange(1000)
        seen = (at[:, None] >= 100) & ((at < 100) | (at <= at[:, None]) & ((at >= 400) | (at[:, None] < 400)))
        right = Reference(*(names[x][None] for x in "qkv"), mask=seen)
        self.near(names["out"][None].swapaxes(1, 2), right.o, right.o_size)

    def test_parts(self):
        names = example("Parts of sequences")
        right = Reference(*(names[x] for x in "qkv"), mask=causal(256, 256))
        self.near(names["out"].swapaxes(1, 2), right.o[:, :, 192:], right.o_size[:, :, 192:])

    def test_paged(self):
        names = example("Decode with a paged cache")
        for i, used in enumerate(names["used"]):
            k, v = (names[x][names["table"][i]].reshape(1, -1, 2, 128)[:, :used] for x in ("keys", "values"))
            right = Reference(names["q"][i:i + 1], k, v)
            self.near(names["out"][i:i + 1].swapaxes(1, 2), right.o, right.o_size)

    def test_context_parallel(self):
        """By torchrun's program, in two processes."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is missing")
        if not torch.distributed.is_available() or torch.cuda.is_available():
            self.skipTest("PyTorch has no torch.distributed, or finds GPUs, of which there may be one")
        text = dict(BLOCKS)["A sequence that no one GPU holds"]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "example.py")
            program.write_text(text)
            made = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(made.stdout.strip(), re.search(r"^ +print\(.*\)  # (.*)$", text, re.M)[1], made.stderr)

    def test_ring_model(self):
        made = subprocess.run([sys.executable, SOURCE / "tests/bench/ring_model.py"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(made.stdout, (SOURCE / "runtime/python/README.md").read_text())

    def test_layer(self):
        names = example("The rest of a layer")
        exact = {name: x.astype("f8") for name, x in names.items() if getattr(x, "dtype", None) in ("f2", "f4")}
        norm = rows.layernorm(exact["x"], exact["gamma"], exact["beta"], residual=exact["residual"])
        self.near(names["out"], *norm["out"])
        hidden = rows.linear(exact["out"], exact["w1"], exact["b1"], epilogue="gelu")["y"][0]
        self.near(names["y"], *rows.linear(hidden, exact["w2"], exact["b2"], exact["z"])["y"])
        right = rows.cross_entropy(exact["y"], names["target"], dloss=np.full((2, 100), 1 / 200))
        np.testing.assert_allclose(names["loss"], right["loss"][0], atol=1e-4, rtol=1e-6)
        self.near(names["dy"], *right["x"])
        dhidden = rows.linear(hidden, exact["w2"], exact["b2"], dy=exact["dy"])["x"][0]
        self.near(names["grads"].w1, *rows.linear(exact["out"], exact["w1"], exact["b1"], None, "gelu", dhidden)["weight"])

    def test_feed_forward(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is missing")
        names = example("A feed-forward layer of PyTorch")
        gamma, up, down = (x.detach().double().requires_grad_() for x in names["layer"].parameters())
        z = names["x"].double() + names["residual"].double()
        gate, value = (torch.nn.functional.rms_norm(z, (64,), gamma, 1e-5) @ up.t()).chunk(2, 2)
        logits = z + (torch.nn.functional.silu(gate) * value) @ down.t()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.arange(200) % 64).backward()
        for x, found in zip((gamma, up, down), names["layer"].parameters()):
            self.assertLess(((found.grad - x.grad).norm() / x.grad.norm()).item(), 2e-2)

    def test_compile(self):
        try:
            from torch.library import opcheck  # noqa: F401
        except ImportError:
            self.skipTest("PyTorch is missing, or older than its custom operators")
        import torch
        names = example("torch.compile")
        layer, (x, slope) = names["layer"], (torch.randn(2, 120, 1536).bfloat16(), names["slope"])
        found, right = (torch.autograd.grad(function(x, slope).float().square().sum(), slope)[0]
                        for function in (layer, layer._torchdynamo_orig_callable))
        self.assertLess(((found - right).norm() / right.norm()).item(), 1e-2)


if __name__ == "__main__":
    main()

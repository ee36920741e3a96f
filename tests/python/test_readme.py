"""The Python of the README and of the pages: each block runs and prints what it says that it prints; of some the numbers are judged."""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from case import SOURCE, Case, main, np
import row_formula as rows
from formula import LIMITS, Reference, error

PAGES = ["README.md", "runtime/python/README.md", *(str(page.relative_to(SOURCE)) for page in sorted((SOURCE / "runtime/docs").rglob("*.md")))]
# (page, heading, text); a block without a heading of its own has that of the page.
BLOCKS = []
for page in PAGES:
    heading = ""
    for title, text in re.findall(r"^#+ ([^\n]*)$|^```python\n(.*?)^```$", (SOURCE / page).read_text(), re.M | re.S):
        heading = title or heading
        if text:
            BLOCKS.append((page, heading, text))
try:
    import torch
except ImportError:
    torch = None
HAS_COMPILE = torch is not None and hasattr(torch.library, "opcheck")


def expected(text):
    """What the comment after the block's print says."""
    return re.search(r"^ *print\(.*\)  # (.*)$", text, re.M)


def run(title, text):
    """Runs a block; what it printed has to be what the comment after its print says."""
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, title, "exec"), names)
    if printed.getvalue().strip() != (expected(text)[1] if expected(text) else ""):
        raise AssertionError(f"{title}: it printed {printed.getvalue()}")
    return names


def example(title):
    """Runs the one block under a heading."""
    text, = [text for _, heading, text in BLOCKS if heading == title]
    return run(title, text)


def as_program(text, command=(), **environment):
    """What a block prints as a program of its own, in a folder that has the files of its page."""
    page, = [page for page, _, other in BLOCKS if other == text]
    with tempfile.TemporaryDirectory() as folder:
        for named in re.findall(r"^```\w+\n((?:--|#) (\S+\.(?:lua|py))\n.*?)^```$", (SOURCE / page).read_text(), re.M | re.S):
            path = pathlib.Path(folder, named[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(named[0])
        return subprocess.run([sys.executable, *command, re.match(r"# (\S+)", text)[1]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=folder, env={**os.environ, **environment})


def causal(nq, nk):
    return np.arange(nk)[None, :] <= np.arange(nq)[:, None] + nk - nq


class Readme(Case):
    def near(self, found, value, size):
        self.assertLess(error(found, value, size), LIMITS["f16"])

    def test_others(self):
        """The blocks that no test below names."""
        judged = set(re.findall(r'example\("(.*?)"\)', pathlib.Path(__file__).read_text()))
        self.assertLessEqual(judged, {heading for _, heading, _ in BLOCKS})
        ran = 0
        for page, heading, text in BLOCKS:
            if heading in judged or re.match(r"# \S+\.py\n", text) or (torch is None and "import torch" in text):
                continue
            with self.subTest(page=page, heading=heading):
                run(f"{page}: {heading}", text)
                ran += 1
        self.assertGreater(ran, 0 if torch is None else 8)

    def test_normaliser(self):
        """The page's own normaliser, in a process of its own: templates are read when a context is opened."""
        if torch is None:
            self.skipTest("PyTorch is missing")
        text, = [text for _, _, text in BLOCKS if text.startswith("# relu.py")]
        made = as_program(text)
        self.assertEqual(made.stdout.strip(), expected(text)[1], made.stderr)

    def test_score(self):
        if torch is None:
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
        right = Reference(*(names[x] for x in "qkv"), mask=causal(100, 100) & names["valid"][:, None, None],
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
        names = example("Shards of sequences")
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
        if torch is None:
            self.skipTest("PyTorch is missing")
        if not torch.distributed.is_available() or torch.cuda.is_available():
            self.skipTest("PyTorch has no torch.distributed, or finds GPUs, of which there may be one")
        text, = [text for _, _, text in BLOCKS if text.startswith("# example.py")]
        made = as_program(text, ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"))
        self.assertEqual(made.stdout.strip(), expected(text)[1], made.stderr)

    def test_ring_model(self):
        made = subprocess.run([sys.executable, SOURCE / "tests/bench/ring_model.py"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(made.stdout, (SOURCE / "runtime/docs/speed.md").read_text())

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
        if torch is None:
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
        if not HAS_COMPILE:
            self.skipTest("PyTorch is missing, or older than its custom operators")
        if os.environ.get("FLASHGEN_TENTH", "all") not in ("all", "4"):
            self.skipTest("a rare case")
        names = example("torch.compile")
        layer, (x, slope) = names["layer"], (torch.randn(2, 120, 1536).bfloat16(), names["slope"])
        found, right = (torch.autograd.grad(function(x, slope).float().square().sum(), slope)[0]
                        for function in (layer, layer._torchdynamo_orig_callable))
        self.assertLess(((found - right).norm() / right.norm()).item(), 1e-2)


if __name__ == "__main__":
    main()

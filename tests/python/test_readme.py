"""The examples of the package's README: each runs, prints what it says that it prints, and its numbers are right."""
import contextlib
import io
import re

from case import SOURCE, Case, main, np
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
            "Decode with a paged cache", "torch.compile"])

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

    def test_paged(self):
        names = example("Decode with a paged cache")
        for i, used in enumerate(names["used"]):
            k, v = (names[x][names["table"][i]].reshape(1, -1, 2, 128)[:, :used] for x in ("keys", "values"))
            right = Reference(names["q"][i:i + 1], k, v)
            self.near(names["out"][i:i + 1].swapaxes(1, 2), right.o, right.o_size)

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

"""compiled.py - what tests of operators share: what opcheck finds of a right one, and programs that are compiled beside those
that are not."""
from case import Case, skip
from device import DEVICE, torch

if not hasattr(torch.library, "opcheck"):
    skip("torch", f"PyTorch {torch.__version__} has no torch.library.opcheck: its ops are not tested")

OK = dict.fromkeys(("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), "SUCCESS")
NEAR = 1.5e-3  # of float16, where a GPU adds up in another order


def gradients(function, arrays, others=()):
    """What it gives, and the gradients of its sum."""
    out = function(*arrays, *others)
    return [out, *torch.autograd.grad(out.float().sum(), [x for x in arrays if x.requires_grad])]


class CompiledCase(Case):
    def setUp(self):
        torch._dynamo.reset()

    def same(self, found, right):
        """The same bits; a GPU may add up gradients in another order each time."""
        self.assertEqual(len(found), len(right))
        for x, y in zip(found, right):
            if DEVICE == "cpu":
                self.assertTrue(torch.equal(x, y))
            else:
                self.assertLessEqual((x - y).double().norm().item(), NEAR * y.double().norm().item())

    def compare(self, function, calls, backend="aot_eager"):
        """Compiled once, it gives what it gives without. calls: the arrays and the other arguments of each one."""
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for arrays, others in calls:
                self.same(gradients(compiled, arrays, others), gradients(function, arrays, others))

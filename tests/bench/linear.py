#!/usr/bin/env python3
"""linear.py - linear layers with what follows them beside the plain product of PyTorch, which cuBLASLt makes.

    linear.py --program build/flashgen [--sizes 4096/14336] [--rows 4096] [--epilogues bias+gelu] [--json FILE] [WORD ...]

bf16. `plain` is the time over ours of F.linear(x, w) without bias and epilogue, backward that of dh @ w and dh^T @ x: what ours does
beside these products it does in the time that is left. `compiled`, with --compiled, is that of the whole layer, as torch.compile makes
it of PyTorch's functions. PyTorch is timed before ours and after it, and the lesser counts. TFLOP/s count the products alone.

With --device host ours is timed alone, without PyTorch. WORD is family=wgmma,mma where none is given; all plans are compiled,
--plans 1 compiles the first one alone."""

import typing

import launches
from launches import Table, torch

SIZES = ["1024/1024", "4096/4096", "4096/14336", "14336/4096", "8192/8192", "512/2048"]


def relu(x, w, b):
    return torch.nn.functional.linear(x, w, b).relu()


def gelu(x, w, b):
    return torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b), approximate="tanh")


def plain(x, w):
    return torch.nn.functional.linear(x, w)


def residual(x, w, b, r):
    return torch.nn.functional.linear(x, w, b) + r


def layernorm(x, w, b, r, g, t):
    return torch.nn.functional.layer_norm(residual(x, w, b, r), g.shape, g, t)


def swiglu(x, w):
    g, v = torch.nn.functional.linear(x, w).chunk(2, -1)
    return torch.nn.functional.silu(g) * v


class Epilogue(typing.NamedTuple):
    words: str
    function: typing.Callable  # of x [rows, in], w [n, in], and b [n], r [rows, out], g and t [out] where it has them
    more: str = ""
    halves: int = 1  # rows of w for each column of y
    kept: tuple = ()  # what forward may leave for backward
    others: tuple = ("dx_more",)  # gradients from elsewhere that backward may add, and PyTorch's function has not


EPILOGUES = {
    "none": Epilogue("", plain),
    "bias+relu": Epilogue("epilogue=relu", relu, "b", kept=("keep",)),
    "bias+gelu": Epilogue("epilogue=gelu", gelu, "b", kept=("keep",)),
    "bias+residual": Epilogue("residual=true", residual, "br"),
    "bias+residual+layernorm": Epilogue("residual=true epilogue=layernorm", layernorm, "brgt", kept=("z", "mean", "rstd"), others=("dx_more", "dz")),
    "swiglu": Epilogue("epilogue=swiglu", swiglu, halves=2, kept=("keep",)),
}


class Layer(typing.NamedTuple):
    epilogue: str
    wide: int  # columns that go in
    out: int
    rows: int

    def words(self, direction):
        row = EPILOGUES[self.epilogue]
        bias = ["bias=" + ("grad" if direction == "backward" else "true")] if "b" in row.more else []
        return ["kernel=linear", f"pass={direction}", f"width={self.wide}/{self.out}", f"rows={self.rows}", *bias, *row.words.split()]

    def tensors(self):
        """x, w, and what the function takes besides."""
        row = EPILOGUES[self.epilogue]
        normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        n = row.halves * self.out
        more = {"b": lambda: normal(n), "r": lambda: normal(self.rows, self.out), "g": lambda: normal(n), "t": lambda: normal(n)}
        return [normal(self.rows, self.wide), normal(n, self.wide) * self.wide**-0.5, *(more[one]() for one in row.more)]

    def bytes(self):
        """Of the product's tensors."""
        n = EPILOGUES[self.epilogue].halves * self.out
        return 2 * (self.rows * self.wide + n * self.wide + self.rows * n)


def plain_product(layer, direction):
    """A call gives ms of the products that the pass needs."""
    n, sets = EPILOGUES[layer.epilogue].halves * layer.out, launches.sets_of(layer.bytes())
    made = [layer.tensors()[:2] for _ in range(sets)]
    if direction == "forward":
        return torch.no_grad()(lambda: launches.timed(lambda i: plain(*made[i]), sets))
    dh = [torch.randn(layer.rows, n, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    return lambda: launches.timed(lambda i: (dh[i] @ made[i][1], dh[i].t() @ made[i][0]), sets)


def peers_of(choice, layer, direction):
    peers = {"plain": plain_product(layer, direction)}
    if choice.compiled:
        function = launches.compiled(EPILOGUES[layer.epilogue].function)
        peers["compiled"] = launches.peer(function, direction, layer.tensors, launches.sets_of(layer.bytes()))
    return peers


def measure(choice, table, layer, direction, keeps, peers):
    """keeps: whether a forward leaves what backward needs; None where there is nothing to leave."""
    row = EPILOGUES[layer.epilogue]
    own = launches.beside(choice, peers, layer.words(direction), row.others if direction == "backward" else () if keeps else row.kept)
    title = layer.epilogue + {None: "", True: ", keep", False: ", no keep"}[keeps]
    cells = [f"{title}, {direction}", f"{layer.wide}/{layer.out}", str(layer.rows), f"{1e3 * own['ms']:.1f}", f"{own['tflops']:.0f}",
             launches.ratio_text(own, "plain"), launches.ratio_text(own, "compiled"), own["name"].split(".")[1]]
    table.add(cells, {**layer._asdict(), "pass": direction, "keep": keeps, **own})


def main():
    parser = launches.options(__doc__)
    parser.add_argument("--sizes", default=SIZES, type=launches.some_of(None), help="in/out: " + ",".join(SIZES))
    parser.add_argument("--rows", default=[4096, 16384], type=launches.numbers)
    parser.add_argument("--epilogues", default=list(EPILOGUES), type=launches.some_of(list(EPILOGUES)), help=", ".join(EPILOGUES))
    parser.set_defaults(words=["family=wgmma,mma"])
    parser.add_argument("--compiled", action="store_true", help="the whole layer beside torch.compile's, too")
    choice = parser.parse_args()
    has_peers, about = launches.has_peers(choice), launches.about(choice)
    print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    table = Table(["", "in/out", "rows", "us", "TFLOP/s", "plain", "compiled", "plan"])
    for size in choice.sizes:
        wide, out = (int(x) for x in size.split("/"))
        for rows in choice.rows:
            for name in choice.epilogues:
                for direction in choice.passes:
                    layer, leaves = Layer(name, wide, out, rows), direction == "forward" and EPILOGUES[name].kept
                    peers = peers_of(choice, layer, direction) if has_peers else {}
                    for keeps in (True, False) if leaves else (None,):
                        measure(choice, table, layer, direction, keeps, peers)
                    del peers
                    launches.empty()
    table.keep(choice.json, about)


if __name__ == "__main__":
    main()

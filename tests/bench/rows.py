#!/usr/bin/env python3
"""rows.py - norms of rows, log-softmax and the loss of a target beside a copy and what torch.compile makes of PyTorch's functions.

    rows.py --program build/flashgen [--kinds layernorm,loss] [--passes forward] [--widths 1024,4096] [--json FILE] [WORD ...]

bf16, 16384 rows, fewer where a tensor would exceed 2^30 elements. `TB/s` counts the bytes that must move: each tensor of the launch
once. `of copy as large` is its share of what a copy reaches that reads and writes as many bytes in all, measured right after ours and
in the same way: small ones end before they reach the rate of a copy of 1 GB, which stands above the table. The ratios are PyTorch's
time over ours, the lesser of two times, one before ours and one after it: `compiled` by torch.compile, `eager` by the functions that
PyTorch has.

With --device host ours is timed alone, without PyTorch."""

import typing

import launches
from launches import Table, torch

NORMS, LOSSES = [512, 1024, 2048, 4096, 8192], [1000, 4096, 32000, 50257, 128256, 262144]
ELEMENTS = 1 << 30


def layernorm(x, gamma, beta):
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, 1e-5)


def layernorm_residual(x, gamma, beta, residual):
    z = x + residual
    return layernorm(z, gamma, beta), z


def rmsnorm(x, gamma):
    return torch.nn.functional.rms_norm(x, gamma.shape, gamma, 1e-5)


def rmsnorm_residual(x, gamma, residual):
    z = x + residual
    return rmsnorm(z, gamma), z


def logsoftmax(x):
    return torch.log_softmax(x, 1)


def loss(x, target):
    return torch.nn.functional.cross_entropy(x.float(), target, reduction="none")


class Kind(typing.NamedTuple):
    words: str
    function: typing.Callable
    arguments: str  # of the function: x and residual [rows, width], g and b [width], t targets
    widths: typing.List[int]
    without: typing.Dict[str, typing.List[str]]  # tensors that PyTorch's function has not, by pass


KINDS = {
    "layernorm": Kind("kernel=layernorm", layernorm, "xgb", NORMS, {"backward": ["dz"]}),
    "layernorm+residual": Kind("kernel=layernorm residual=true", layernorm_residual, "xgbx", NORMS, {}),
    "rmsnorm": Kind("kernel=layernorm norm=rms", rmsnorm, "xg", NORMS, {"backward": ["dz"]}),
    "rmsnorm+residual": Kind("kernel=layernorm norm=rms residual=true", rmsnorm_residual, "xgx", NORMS, {}),
    "logsoftmax": Kind("kernel=logsoftmax", logsoftmax, "x", LOSSES, {}),
    "loss": Kind("kernel=logsoftmax target=true", loss, "xt", LOSSES, {"forward": ["weight"], "backward": ["weight"]}),
}


def arguments(kind, rows, width):
    """A set of tensors for the kind's function."""
    normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    make = {"x": lambda: normal(rows, width), "g": lambda: normal(width), "b": lambda: normal(width),
            "t": lambda: torch.randint(width, (rows,), device="cuda")}
    return [make[one]() for one in kind.arguments]


def peers_of(kind, direction, rows, width):
    """The kind's function as torch.compile makes it, and as it is."""
    moved = {"forward": 2, "backward": 3}[direction] * 2 * rows * width  # about
    make = lambda: arguments(kind, rows, width)
    functions = {"compiled": launches.compiled(kind.function), "eager": kind.function}
    return {name: launches.peer(one, direction, make, launches.sets_of(moved)) for name, one in functions.items()}


def measure(choice, table, name, direction, width, has_peers):
    kind = KINDS[name]
    rows = max(1, min(choice.rows, ELEMENTS // width))
    words = [*kind.words.split(), f"pass={direction}", f"width={width}", f"rows={rows}"]
    peers = peers_of(kind, direction, rows, width) if has_peers else {}
    own = launches.beside(choice, peers, words, kind.without.get(direction, []))
    rate = launches.copy_rate(own["bytes"]) if has_peers else None
    share = own["tb_per_s"] / rate if rate else None
    cells = [f"{name}, {direction}", str(width), str(rows), f"{1e3 * own['ms']:.1f}", f"{own['tb_per_s']:.2f}",
             f"{share:.2f}" if share else None, launches.ratio_text(own, "compiled"), launches.ratio_text(own, "eager"),
             own["name"].split(".")[1]]
    table.add(cells, {"kind": name, "pass": direction, "width": width, "rows": rows, **own, "copy_tb_per_s": rate, "of_copy": share})


def main():
    parser = launches.options(__doc__)
    parser.add_argument("--kinds", default=list(KINDS), type=launches.some_of(list(KINDS)), help=", ".join(KINDS))
    parser.add_argument("--widths", type=launches.numbers, help="instead of each kind's own")
    parser.add_argument("--rows", type=int, default=16384)
    choice = parser.parse_args()
    has_peers = launches.has_peers(choice)
    about = {**launches.about(choice), "tb_per_s_of_a_copy_of_1_gb": launches.copy_rate() if has_peers else None}
    print(", ".join(f"{name} {value}" for name, value in about.items() if value), flush=True)
    table = Table(["", "width", "rows", "us", "TB/s", "of copy as large", "compiled", "eager", "plan"])
    for name in choice.kinds:
        for direction in choice.passes:
            for width in choice.widths or KINDS[name].widths:
                measure(choice, table, name, direction, width, has_peers)
                launches.empty()
    table.keep(choice.json, about)


if __name__ == "__main__":
    main()

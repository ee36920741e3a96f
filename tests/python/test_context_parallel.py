"""flashgen.context_parallel in 2, 3 and 4 processes on the CPU, or on so many GPUs as there are: results beside float64 and
beside those of one process, what a ring holds, and how faults end."""

from case import Case, flashgen, main, skip
from device import torch
import ranks
from exact import LIMITS, Exact, Input, error

if not torch.distributed.is_available():
    skip("torch", "PyTorch has no torch.distributed")
if ranks.MOST < 2:
    skip("gpu", "there is one GPU: ranks need one each")
COUNTS = range(2, ranks.MOST + 1)
H, HK, D, DV = 4, 2, 16, 16
NAMES = ("o", "lse", "q", "k", "v", "sink", "slope")

# What is asked for: options of context_parallel, and the shape: b sequences of n * nq rows and n * nk keys, n being 2 * ranks.
CASES = {
    "causal": {},
    "causal, contiguous": {"order": "contiguous"},
    "full, sink": {"mask": None, "sink": True},
    "window": {"mask": "window(9, 0)", "order": "contiguous"},
    "window, zigzag, sink": {"mask": "window(width, 3)", "numbers": {"width": 9}, "sink": True},
    "slope": {"score": "s + slope[h] * (k - p)", "slope": True, "sink": True},
    "more keys": {"nk": 7},
    "more rows": {"nq": 7},
    "a mask without bounds": {"mask": "(k + q) % 3 != 0 && causal"},
    "soft cap": {"score": "softcap(s, cap)", "numbers": {"cap": 5.0}},
    "packed": {"packed": (1, 3, 0, 2), "sink": True},
    "packed, slope": {"packed": (2, 1), "score": "s - slope[h] * abs(p - k)", "slope": True, "mask": "window(11, 0)"},
    "slices": {"slices": [((0, 5), (0, 7), 0), ((3, 17), (1, 19), 1), ((9, 20), (3, 20), 2), ((2, 13), (5, 18), 3)], "sink": True},
    "slices, contiguous": {"slices": [((0, 20), (0, 20), 1), ((7, 20), (0, 4), 0)], "order": "contiguous"},
}
GATHER = ("causal", "window, zigzag, sink", "slope", "packed", "more rows", "slices")
DROPPED = {"mask": "causal", "dropout": 0.25}
ALLTOALL = ("causal", "slope", "packed", "full, sink", "slices")


def methods(name):
    return ("ring",) + ("gather",) * (name in GATHER) + ("alltoall",) * (name in ALLTOALL)


def random(*shape, seed, dtype=torch.float16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def whole(case, n):
    """Tensors by name, on the CPU, and the options of one process."""
    chunks, nq, nk = 2 * n, case.get("nq", 5), case.get("nk", 5)
    rows, keys, starts = (2, chunks * nq), (2, chunks * nk), None
    if "packed" in case:
        starts = torch.tensor([0, *case["packed"]]).cumsum(0).mul(chunks * 3).to(torch.int32)
        rows = keys = (int(starts[-1]),)
    if "slices" in case:
        rows = keys = (chunks * nq,)
    x = {"q": random(*rows, H, D, seed=1), "k": random(*keys, HK, D, seed=2), "v": random(*keys, HK, DV, seed=3),
         "do": random(*rows, H, DV, seed=4)}
    x["dlse"] = random(*rows, H, seed=5, dtype=torch.float32)  # rows before heads, for it is cut like q
    if "sink" in case:
        x["sink"] = random(H, seed=6, dtype=torch.float32)
    if "slope" in case:
        x["slope"] = random(H, seed=7, dtype=torch.float32).abs() / 8
    options = {"mask": case.get("mask", None if "slices" in case else "causal"), "score": case.get("score")}
    if "slices" in case:
        for i, name in enumerate(("q_ranges", "k_ranges", "kinds")):
            options[name] = torch.tensor([one[i] for one in case["slices"]], dtype=torch.int32)
    return x, starts, options, case.get("numbers", {})


def results(function, x, options, numbers, dlse, **more):
    """By name, of a function like attention."""
    leaves = {name: x[name].clone().requires_grad_() for name in NAMES if name in x}
    inputs = {**numbers, **({"slope": ("h", leaves["slope"])} if "slope" in x else {})}
    o, lse, *_ = function(*(leaves[name] for name in "qkv"), **options, inputs=inputs or None, sink=leaves.get("sink"),
                          return_lse=True, **more)
    grads = torch.autograd.grad((o, lse), list(leaves.values()), (x["do"], dlse))
    return {"o": o.detach(), "lse": lse.detach(), **dict(zip(leaves, grads))}


def by_ranks(rank, n, names):
    """(case, method) -> results of all ranks, made whole; of rank 0."""
    made = {}
    for name in names:
        case = CASES[name]
        x, starts, options, numbers = whole(case, n)
        x = {key: value.to(ranks.home(rank)) for key, value in x.items()}
        starts = None if starts is None else starts.to(ranks.home(rank))
        options = {key: value.to(ranks.home(rank)) if torch.is_tensor(value) else value for key, value in options.items()}
        order, dim = case.get("order", "zigzag"), x["q"].dim() - 3
        own = {key: flashgen.shard(value, None, dim, order, starts) if value.dim() > 1 else value for key, value in x.items()}
        for method in methods(name):
            if method == "alltoall" and (H % n or HK % n):
                continue
            found = results(flashgen.context_parallel, own, options, numbers, own["dlse"].transpose(-1, -2).contiguous(),
                            method=method, order=order, starts_q=starts)
            found["lse"] = found["lse"].transpose(-1, -2)
            for key, value in found.items():
                if key in ("sink", "slope"):
                    torch.distributed.all_reduce(value)
                else:
                    found[key] = flashgen.unshard(value, None, dim, order, starts)
            made[name, method] = {key: value.cpu() for key, value in found.items()}
    return made if rank == 0 else None


MASKS = {
    None: lambda q, k, p: k > -1, "causal": lambda q, k, p: k <= p, "window(9, 0)": lambda q, k, p: (k <= p) & (k >= p - 9),
    "window(11, 0)": lambda q, k, p: (k <= p) & (k >= p - 11), "window(width, 3)": lambda q, k, p: (k <= p + 3) & (k >= p - 9),
    "(k + q) % 3 != 0 && causal": lambda q, k, p: ((k + q) % 3 != 0) & (k <= p)}


def exact(x, starts, options):
    """name -> (value, size) in float64, as context_parallel lays them out."""
    if "q_ranges" in options:
        made = exact_dense({name: value if value.dim() == 1 else value[None] for name, value in x.items()}, options)
        return {name: tuple(y if y.dim() == 1 else y[0] for y in pair) for name, pair in made.items()}
    if starts is None:
        return exact_dense(x, options)
    made = []
    for a, b in zip(starts.tolist(), starts.tolist()[1:]):
        if a < b:
            made.append(exact_dense({name: value if value.dim() == 1 else value[None, a:b] for name, value in x.items()}, options))
    return {name: tuple((sum(one[name][i] for one in made) if made[0][name][0].dim() == 1 else
                         torch.cat([one[name][i][0] for one in made])) for i in range(2)) for name in made[0]}


def shown(options, nq, nk):
    """The pairs of a list of slices."""
    mask = torch.zeros(nq, nk, dtype=torch.bool)
    for (a, b), (c, d), kind in zip(*(options[name].tolist() for name in ("q_ranges", "k_ranges", "kinds"))):
        b, d = min(b, nq), min(d, nk)
        i, j = torch.arange(b - a)[:, None], torch.arange(d - c)[None, :]
        mask[a:b, c:d] |= (j <= i + d - c - b + a if kind & 1 else j >= 0) & (j >= i if kind & 2 else i >= 0)
    return mask


def exact_dense(x, options):
    q, k, v, do = (x[name].transpose(1, 2) for name in ("q", "k", "v", "do"))
    nq, nk = q.shape[2], k.shape[2]
    at_q, at_k = torch.arange(nq)[:, None], torch.arange(nk)[None, :]
    distance = at_q + nk - nq - at_k
    score = {None: None, "softcap(s, cap)": lambda s: 5 * torch.tanh(s / 5),
             "s + slope[h] * (k - p)": lambda s, slope: s - slope * distance,
             "s - slope[h] * abs(p - k)": lambda s, slope: s - slope * distance.abs()}[options["score"]]
    inputs = {"slope": Input("h", x["slope"], lambda slope: slope[:, None, None])} if "slope" in x else None
    mask = shown(options, nq, nk) if "q_ranges" in options else MASKS[options["mask"]](at_q, at_k, at_q + nk - nq)
    right = Exact(q, k, v, mask, score, inputs, sink=x.get("sink"))
    made = right.backward(do.double(), x["dlse"].transpose(1, 2).double())
    made.update(o=(right.results["o"].detach(), right.sizes["o"]), lse=(right.results["lse"].detach()[..., None],) * 2)
    return {name: tuple(value.transpose(1, 2) if value.dim() == 4 else value for value in pair) for name, pair in made.items()}


def with_others(rank, n):
    """What dropout gives with a seed, and with rank 0's generator; and the largest logits of all methods."""
    x = {key: value.to(ranks.home(rank)) for key, value in whole({}, n)[0].items()}
    own = {key: flashgen.shard(value) for key, value in x.items()}
    torch.manual_seed(rank)
    made = {}
    for method, seed in (("ring", (3, 1 << 40)), ("gather", (3, 1 << 40)), ("ring", None)):
        found = results(flashgen.context_parallel, own, {**DROPPED, "seed": seed}, {}, own["dlse"].transpose(1, 2), method=method)
        made[method, seed] = {name: flashgen.unshard(found[name]).cpu() for name in ("o", "q", "k", "v")}
    for method in ("ring", "gather", "alltoall"):
        made[method] = flashgen.context_parallel(own["q"], own["k"], own["v"], mask="causal", method=method,
                                                 return_max_logit=True)[1].cpu()
    return made


class ContextParallel(Case):
    def test_dropout_and_the_largest_logit(self):
        """Those of one process with the same seed: a weight is dropped by its place in the whole sequence."""
        x = {key: value.to(ranks.home(0)) for key, value in whole({}, 2)[0].items()}
        torch.manual_seed(0)
        top = flashgen.attention(x["q"], x["k"], x["v"], mask="causal", return_max_logit=True)[1]
        right = {seed: results(flashgen.attention, x, {**DROPPED, "seed": seed}, {}, x["dlse"].transpose(1, 2))
                 for seed in ((3, 1 << 40), None)}
        for found, fault in ranks.run(2, with_others, 2):
            self.assertIsNone(fault, fault and fault[-1])
            for key, value in found.items():
                if isinstance(key, str):
                    self.assertLess((value - top.cpu()).abs().max().item(), 1e-5, key)
                    continue
                for name, y in value.items():
                    distance = ((y.float() - right[key[1]][name].cpu().float()).norm() / y.float().norm()).item()
                    self.assertLess(distance, 2 * LIMITS[y.dtype], (key, name))

    def test_results(self):
        """Twice the error of one process is allowed, beside float64."""
        for n in COUNTS:
            outcome = ranks.run(n, by_ranks, n, list(CASES))
            for found in outcome:
                self.assertIsNone(found[1], found[1] and found[1][-1])
            for (name, method), found in outcome[0][0].items():
                with self.subTest(n=n, case=name, method=method):
                    self.check(name, n, found)

    def check(self, name, n, found):
        x, starts, options, numbers = whole(CASES[name], n)
        right = exact(x, starts, options)
        one = results(flashgen.attention, x, options, numbers, x["dlse"].transpose(-1, -2).contiguous(), starts_q=starts,
                      starts_k=starts)
        one["lse"] = one["lse"].transpose(-1, -2)
        for key, (value, size) in right.items():
            if key == "lse":
                value, sees = value[..., 0], value[..., 0].isfinite()
                self.assertTrue(torch.equal(found[key].isfinite(), sees))
                self.assertLess((found[key] - value)[sees].abs().max().item(), 1e-4)
                continue
            self.assertEqual(found[key].dtype, one[key].dtype)
            ours, theirs = (error(which[key], value, size) for which in (found, one))
            least = LIMITS[x["q"].dtype] if value.dim() == 1 else 1e-6  # of few numbers one process's may be near by chance
            self.assertLessEqual(ours, max(2 * theirs, least), key)


if __name__ == "__main__":
    main()

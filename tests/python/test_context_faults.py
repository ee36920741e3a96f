"""flashgen.context_parallel: which launches ranks make, what a ring holds, what is refused, and how faults end: in one sentence
on every rank."""
import gc
import itertools
import math
import os
import time

from case import Case, flashgen, main, skip
from device import random, torch
import ranks

if not torch.distributed.is_available():
    skip("torch", "PyTorch has no torch.distributed")
if ranks.MOST < 2:
    skip("gpu", "there is one GPU: ranks need one each")

from flashgen.parallel import messages, order, slices, steps  # noqa: E402
from flashgen.parallel.bands import Band, band_of  # noqa: E402

B, N, H, HK, D, DV = 1, 8, 4, 2, 8, 16
SHORT = 4  # seconds that a message may take


def own(rank, **extents):
    """A rank's q, k and v."""
    e = {"n": N, "h": H, "hk": HK, **extents}
    x = random(B, e["n"], e["h"], D), random(B, e["n"], e["hk"], D, seed=1), random(B, e["n"], e["hk"], DV, seed=2)
    return [y.to(ranks.home(rank)) for y in x]


def differing(rank, kind):
    extents = {"hk": 4} if kind == "heads" and rank == 1 else {}
    more = {"mask": "causal"} if kind == "mask" and rank == 1 else {"order": "spiral"} if kind == "order" and rank == 1 else {}
    flashgen.context_parallel(*own(rank, **extents), **more)


def refused(rank, extents, options):
    flashgen.context_parallel(*own(rank, **extents), **options)


def twice(rank, method):
    leaves = [x.requires_grad_() for x in own(rank)]
    out = flashgen.context_parallel(*leaves, method=method)
    dq, *_ = torch.autograd.grad(out.float().sum(), leaves, create_graph=True)
    (dq.float().norm() + out.float().sum()).backward()


def dying(rank, when):
    flashgen.context_parallel(*own(rank), mask="causal")
    torch.distributed.barrier()
    if rank == 1:
        if when == "ends":
            os._exit(1)
        time.sleep(SHORT + 3)
        return None
    begun = time.monotonic()
    try:
        flashgen.context_parallel(*own(rank), mask="causal").sum().item()  # a GPU's messages are waited for where results are read
    finally:
        assert time.monotonic() - begun < SHORT + 3


def holding(rank, n, how):
    """The most tensors like K, and like V, that are there when messages begin."""
    q, k, v = (x.requires_grad_() for x in own(rank))
    most, exchange = {}, messages.exchange

    def counting(*arguments):
        for name, x in (("k", k), ("v", v)):
            there = {y.data_ptr() for y in gc.get_objects() if issubclass(type(y), torch.Tensor) and y.shape == x.shape
                     and y.dtype == x.dtype and y.numel()}
            most[name] = max(most.get(name, 0), len(there))
        return exchange(*arguments)

    messages.exchange = counting
    flashgen.context_parallel(q, k, v, mask="causal", order=how).sum().backward()
    return most["k"], most["v"]


def in_subgroup(rank):
    """Ranks 2 and 1 of three, in this order."""
    group = torch.distributed.new_group([1, 2])
    if rank == 0:
        flashgen.context_parallel(*own(rank), mask="causal", group=group)
    whole = [torch.cat((x, x.flip(1)), 1) for x in own(rank)]
    made = flashgen.context_parallel(*(flashgen.shard(x, group) for x in whole), mask="causal", group=group)
    alone = flashgen.attention(*whole, mask="causal")
    return (flashgen.unshard(made, group).cpu().float() - alone.cpu().float()).abs().max().item()


def visible(band, whole_q, whole_k, rows, keys, places, lengths):
    """(row, key) in the whole sequence of the pairs that a launch shows. places: of the first row and key, or None; lengths: of
    what the mask takes for the whole."""
    pairs = set()
    for (i, row), (j, key) in itertools.product(enumerate(rows), enumerate(keys)):
        p, k = (i + places[0] + whole_k - whole_q, j + places[1]) if places else (i + lengths[1] - lengths[0], j)
        if band is None or band.first <= k - p <= band.last:
            pairs.add((row, key))
    return pairs


def first_slices(q_ranges, k_ranges, kinds, nq, nk):
    """[nq, nk]: which slice shows a pair first, -1: none."""
    made = torch.full((nq, nk), -1)
    for number, ((a, b), (c, d), kind) in enumerate(zip(q_ranges.tolist(), k_ranges.tolist(), kinds.tolist())):
        a, b, c, d = min(a, nq), min(b, nq), min(c, nk), min(d, nk)
        i, j = torch.arange(b - a)[:, None], torch.arange(d - c)[None, :]
        shows = (j <= i + d - c - b + a if kind & 1 else j >= 0) & (j >= i if kind & 2 else i >= 0)
        part = made[a:b, c:d]
        part[shows & (part < 0)] = number
    return made


class Steps(Case):
    def test_launches_show_the_whole_mask(self):
        """Each pair of the whole mask is of one launch, of the rank that has the row."""
        inf = math.inf
        for n, how, (nq, nk), (first, last), is_exact, is_plain in itertools.product(
                (1, 2, 3, 4), order.ORDERS, ((2, 2), (1, 2), (2, 1)), ((-inf, inf), (-inf, 0), (-3, 0), (-9, 2), (-inf, -30)),
                (True, False), (True, False)):
            chunks, band = order.chunk_count(how, n), Band(first, last, is_exact)
            whole_q, whole_k = nq * chunks, nk * chunks
            geometry = steps.Geometry(n, how, band, whole_q, whole_k, nq == nk, is_plain)
            right = visible(band, whole_q, whole_k, range(whole_q), range(whole_k), (0, 0), None)
            found, count = set(), 0
            for rank, source in itertools.product(range(n), range(n)):
                for launch in geometry.launches(rank, source):
                    rows, keys = (self.places(how, n, *of) for of in ((rank, launch.q, nq), (source, launch.k, nk)))
                    shown = visible(band if launch.is_masked else None, whole_q, whole_k, rows, keys,
                                    (rows[0], keys[0]) if launch.is_placed else None, (len(rows), len(keys)))
                    found, count = found | shown, count + len(shown)
            self.assertEqual((found, count), (right, len(right)), geometry)

    @staticmethod
    def places(how, n, rank, run, length):
        chunks = order.chunks_of(how, n, rank)
        return [chunk * length + i for chunk in (chunks if run is None else chunks[run:run + 1]) for i in range(length)]

    def test_a_causal_zigzag_is_one_launch_a_step(self):
        geometry = steps.Geometry(4, "zigzag", band_of("causal", {}), 64, 64, True, True)
        for rank, source in itertools.product(range(4), range(4)):
            launch, = geometry.launches(rank, source)
            self.assertEqual(launch.is_placed, False)
            self.assertEqual(launch.is_masked, rank == source)

    def test_keys_travel_as_far_as_they_are_seen(self):
        """A window of two chunks; a causal mask in contiguous order, which the last rank sees all of; in zigzag all see all."""
        def travels(how, mask):
            return steps.Geometry(4, how, band_of(mask, {"width": 16}), 64, 64, True, True).travels()
        self.assertEqual(travels("contiguous", "window(width, 0) && causal"), [(1, 1), (1, 1), (1, 1), (0, 0)])
        self.assertEqual(travels("contiguous", "causal"), [(1, 3), (1, 2), (1, 1), (0, 0)])
        self.assertEqual(travels("zigzag", "causal"), [(1, 3)] * 4)

    def test_cut_slices_show_the_same(self):
        """A pair is still of the first slice that shows it, beside runs of rows and of keys that do not meet."""
        draw = torch.Generator().manual_seed(0)
        row_runs, key_runs = [(4, 4, 0), (16, 4, 4)], [(0, 4, 0), (12, 8, 4)]
        for _ in range(60):
            ranges = [torch.randint(0, 27, (5, 2), generator=draw).sort(1)[0].int() for _ in "qk"]
            kinds = torch.randint(0, 4, (5,), generator=draw).int()
            whole = first_slices(*ranges, kinds, 24, 24)
            right = torch.cat([torch.cat([whole[a:a + n, b:b + m] for b, m, _ in key_runs], 1) for a, n, _ in row_runs])
            made = slices.cut(*ranges, kinds, 24, 24, row_runs, key_runs)
            found = first_slices(*made, 8, 12)
            pieces = len(made[2]) // 5
            self.assertTrue(torch.equal(torch.where(found < 0, found, found // pieces), right))

    def test_bands(self):
        numbers = {"width": 7}
        for mask, band in {None: (-math.inf, math.inf, True), "window(width, 2)": (-7, 2, True), "causal": (-math.inf, 0, True),
                           "causal && k % 2 == 0": (-math.inf, 0, False), "window(a, 0)": (-math.inf, math.inf, False),
                           "causal || k < 4": (-math.inf, math.inf, False)}.items():
            self.assertEqual(band_of(mask, numbers), Band(*band))


class Faults(Case):
    def all_say(self, outcomes, kind, sentence, but=()):
        for rank, outcome in enumerate(outcomes):
            if rank not in but:
                self.assertIsNotNone(outcome, f"rank {rank} ended without a word")
                self.assertIsNotNone(outcome[1], f"rank {rank} met no fault")
                self.assertEqual(outcome[1][0], kind, outcome[1][2])
                self.assertIn(sentence, outcome[1][1])
                self.assertNotIn("\n", outcome[1][1])

    def test_what_differs_is_found_at_the_first_call(self):
        self.all_say(ranks.run(2, differing, "heads"), "ValueError", "context_parallel: k is torch.float16 [1, 8, 2, 8] on rank 0 "
                     "and torch.float16 [1, 8, 4, 8] on rank 1: it has to be the same on all ranks")
        self.all_say(ranks.run(2, differing, "mask"), "ValueError", "mask is None on rank 0 and 'causal' on rank 1")

    def test_a_mistake_of_one_rank_is_told_all(self):
        outcomes = ranks.run(2, differing, "order")
        sentence = "order is 'spiral'; expected \"zigzag\" or \"contiguous\""
        self.all_say(outcomes, "ValueError", sentence, but=(0,))
        self.all_say(outcomes, "RuntimeError", "context_parallel: rank 1 refused the call: " + sentence, but=(1,))

    def test_refusals(self):
        for kind, sentence, extents, options in (
                ("ValueError", "a rank's q has length 7: zigzag order needs a multiple of 2; pad the sequence", {"n": 7}, {}),
                ("ValueError", "k has 1 heads: alltoall over 2 ranks needs a multiple of 2", {"hk": 1}, {"method": "alltoall"}),
                ("ValueError", 'method is \'star\'; expected "ring", "gather" or "alltoall"', {}, {"method": "star"}),
                ("TypeError", "mask is a int; expected an expression", {}, {"mask": 5}),
                ("TypeError", "inputs: x is", {}, {"inputs": {"x": ()}}),
                ("NotImplementedError", "alltoall has no dropout", {}, {"method": "alltoall", "dropout": 0.5}),
                ("NotImplementedError", "counts them: take ring or gather", {}, {"method": "alltoall", "score": "s * h"}),
                ("NotImplementedError", "inputs: x has axes [k]", {}, {"score": "s + x[k]", "inputs": {"x": ("k", None)}})):
            with self.subTest(sentence=sentence):
                self.all_say(ranks.run(2, refused, extents, options), kind, sentence)

    def test_gradients_of_gradients(self):
        for method in ("ring", "alltoall"):
            self.all_say(ranks.run(2, twice, method), "NotImplementedError", "a gradient of a gradient is asked for")

    def test_no_group(self):
        self.says(RuntimeError, "there is no process group", flashgen.context_parallel, *own(0))

    def test_a_rank_that_ends(self):
        """No hang, whether it is gone or silent. On GPUs NCCL's watchdog may end the others, too."""
        for when in ("ends", "is silent"):
            outcomes = ranks.run(3 if ranks.IS_CPU else 2, dying, when, seconds=SHORT)
            if not ranks.IS_CPU and outcomes[0] is None:
                continue
            self.all_say(outcomes, "RuntimeError", "a rank has ended, or did not answer within the group's timeout", but=(1,))

    def test_what_a_ring_holds(self):
        """Its own K and V and two buffers, forward and backward."""
        for how in order.ORDERS:
            for held, fault in ranks.run(ranks.MOST, holding, ranks.MOST, how):
                self.assertIsNone(fault, fault and fault[-1])
                self.assertEqual(held, (3, 3))

    def test_subgroup(self):
        if ranks.MOST < 3:
            self.skipTest("there are fewer than three GPUs")
        outcomes = ranks.run(3, in_subgroup)
        self.all_say(outcomes, "ValueError", "this rank is not in the group", but=(1, 2))
        for distance, fault in outcomes[1:]:
            self.assertIsNone(fault, fault and fault[-1])
            self.assertLess(distance, 2e-3)


if __name__ == "__main__":
    main()

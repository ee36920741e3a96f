"""Which launches a rank makes over the keys of another one, and how far keys travel: functions of the mask's band, the same on
all ranks.

In step t rank r has the keys of rank r - t. Keys travel no farther than the last rank that sees any of them."""
import math
from typing import NamedTuple, Optional

from .bands import ALL
from .order import chunks_of


class Launch(NamedTuple):
    """Of a run of rows and a run of keys, which are numbers of a rank's chunks; None: all that there are."""
    q: Optional[int]
    k: Optional[int]
    is_masked: bool
    is_placed: bool  # it has to know where rows and keys lie in the whole sequence


class Geometry(NamedTuple):
    n: int
    order: str
    band: object  # bands.Band
    whole_q: Optional[int]  # None: sequences are packed, and their lengths are known on the device only
    whole_k: Optional[int]
    is_even: bool  # each sequence has as many rows as keys
    is_plain: bool  # what a pair gives depends on the mask and not on its place besides

    def distances(self, q, k):
        """The least and the largest k - p of the pairs of a chunk of rows and one of keys."""
        if self.whole_q is not None:
            count = self.n * len(chunks_of(self.order, self.n, 0))
            rows, keys, offset = self.whole_q // count, self.whole_k // count, self.whole_k - self.whole_q
            return k * keys - ((q + 1) * rows - 1 + offset), (k + 1) * keys - 1 - (q * rows + offset)
        if not self.is_even or q == k:
            return -math.inf, math.inf
        return (1, math.inf) if k > q else (-math.inf, -1)

    def launches(self, rank, source):
        """Of the rows of a rank and the keys of another one."""
        rows, keys = chunks_of(self.order, self.n, rank), chunks_of(self.order, self.n, source)
        found = {(i, j): self.distances(q, k) for i, q in enumerate(rows) for j, k in enumerate(keys)}
        found = {pair: of for pair, of in found.items() if not self.band.shows_none(*of)}
        if not self.is_plain:
            return [Launch(i, j, True, True) for i, j in found]
        open_pairs = {pair for pair, of in found.items() if self.band.shows_all(*of)}
        if len(open_pairs) == len(rows) * len(keys):
            return [Launch(None, None, False, False)]
        if rank == source and self.is_even and self.band[:2] == (-math.inf, 0) and self.band.is_exact:
            return [Launch(None, None, True, False)]  # rows and keys have one order here and in the whole
        made = []
        for j in range(len(keys)):  # all rows see these keys
            if len(rows) > 1 and all((i, j) in open_pairs for i in range(len(rows))):
                made.append(Launch(None, j, False, False))
                open_pairs -= {(i, j) for i in range(len(rows))}
                found = {pair: of for pair, of in found.items() if pair[1] != j}
        for i in range(len(rows)):  # these rows see all keys
            if len(keys) > 1 and all((i, j) in open_pairs for j in range(len(keys))):
                made.append(Launch(i, None, False, False))
                found = {pair: of for pair, of in found.items() if pair[0] != i}
        return made + [Launch(i, j, (i, j) not in open_pairs, (i, j) not in open_pairs) for i, j in found]

    def sees(self, rank, source):
        return bool(self.launches(rank, source))

    def travels(self):
        """(first, last) step in which a rank that is not the owner sees keys, by owner; (0, 0): none does."""
        steps = [[t for t in range(1, self.n) if self.sees((source + t) % self.n, source)] for source in range(self.n)]
        return [(own[0], own[-1]) if own else (0, 0) for own in steps]

    def gathered(self, rank):
        """Launches of a rank's rows over all keys."""
        rows = chunks_of(self.order, self.n, rank)
        if self.is_plain and self.band == ALL:
            return [Launch(None, None, False, False)]
        return [Launch(i, None, True, True) for i in range(len(rows))]

"""Results over some of the keys each, made one: float32, in a few places that are merged when all are taken."""
import torch

from ..combine import combine
from ..tensors import WORDS

PLACES = 4  # of results that wait for their sum: so many are as large as 8 results of 16 bits


class Partials:
    """Of rows [b, n, h, dv]; packed ones are one batch."""

    def __init__(self, like, dv, most):
        b, n, h, _ = like.shape
        places = max(min(most, PLACES), 1)
        self.o = torch.empty(places, b, n, h, dv, dtype=torch.float32, device=like.device)
        self.lse = torch.full((places, b, h, n), float("-inf"), device=like.device)
        self.taken = {}  # (first row, rows) -> places

    def place(self, first, rows):
        """(where a result of some rows goes, its o)."""
        place = max([taken for (at, n), taken in self.taken.items() if at < first + rows and first < at + n], default=0)
        if place == len(self.o):
            self.merge()
            place = 1
        return place, self.o[place, :, first:first + rows]

    def add(self, place, first, rows, lse):
        """The o of a place is written. What its lse calls -inf does not count."""
        self.lse[place, :, :, first:first + rows] = lse
        self.taken[first, rows] = place + 1

    def merge(self):
        """All that there is goes to the first place."""
        self.o[0], self.lse[0] = combine(self.o, self.lse, dtype="f32")
        self.lse[1:] = float("-inf")
        self.taken = dict.fromkeys(self.taken, 1)

    def result(self, sink, dtype):
        """(o, lse) over all keys, and the sink."""
        n = max(self.taken.values(), default=1)
        return combine(self.o[:n], self.lse[:n], sink=None if sink is None else sink.float(), dtype=WORDS[dtype])

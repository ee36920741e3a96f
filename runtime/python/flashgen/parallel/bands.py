"""Which keys a mask can show a row: those with first <= k - p <= last, p being the row's place among the keys. It is known
of the masks that have names and of conjunctions with them; any other mask may show any key."""
import math
import re
from typing import NamedTuple


class Band(NamedTuple):
    first: float
    last: float
    is_exact: bool  # the mask shows all of them

    def shows_none(self, least, most):
        """No pair with least <= k - p <= most."""
        return most < self.first or least > self.last

    def shows_all(self, least, most):
        return self.is_exact and self.first <= least and most <= self.last


ALL, ANY = Band(-math.inf, math.inf, True), Band(-math.inf, math.inf, False)
CAUSAL = Band(-math.inf, 0, True)


def band_of(mask, numbers):
    """numbers: name -> value of the inputs that are numbers."""
    if mask is None:
        return ALL
    if any(sign in mask for sign in ("||", "?", "!")):
        return ANY
    bands = [band_of_term(term.strip(), numbers) for term in mask.split("&&")]
    return Band(max(band.first for band in bands), min(band.last for band in bands), all(band.is_exact for band in bands))


def band_of_term(term, numbers):
    if term in ("full", "true"):
        return ALL
    if term in ("causal", "k <= p"):
        return CAUSAL
    sides = re.fullmatch(r"window\(\s*(\w+)\s*,\s*(\w+)\s*\)", term)
    if sides is None:
        return ANY
    left, right = (int(side) if side.isdigit() else numbers.get(side) for side in sides.groups())
    return ANY if left is None or right is None else Band(-left, right, True)

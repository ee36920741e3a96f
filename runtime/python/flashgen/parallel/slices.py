"""A mask that is a list of slices, cut to the rows of one rank and the keys of another one.

A slice of kind 0 to 3 shows row i the keys j of its ranges with j <= i + upper where the kind has bit 0, and j >= i + lower
where it has bit 1: upper aligns the ends of both ranges, lower their starts. What is left of it between two runs is up to
three slices, by which of the two bounds lies within the keys: neither, one or both. They have no pair in common and
stand in its place of the list, so that a pair is still of the first slice that shows it."""
import torch

NONE, UPPER, LOWER, BOTH = 0, 1, 2, 3  # kinds, by the bounds that they have
FAR = 1 << 29  # more than there are tokens


def cut(q_ranges, k_ranges, kinds, whole_q, whole_k, row_runs, key_runs):
    """(q_ranges, k_ranges, kinds) of what is left. A run is (where it begins in the whole, its length, where it begins
    among a rank's own)."""
    q0, q1, k0, k1 = (x.to(torch.int64).clamp(0, n) for ranges, n in ((q_ranges, whole_q), (k_ranges, whole_k))
                      for x in ranges.unbind(1))
    upper = torch.where(kinds & UPPER != 0, k1 - q1, FAR)
    lower = torch.where(kinds & LOWER != 0, k0 - q0, -FAR)
    made = [piece for rows in row_runs for keys in key_runs for piece in cut_to(q0, q1, k0, k1, upper, lower, rows, keys)]
    q_made, k_made, kinds_made = (torch.stack(part, 1) for part in zip(*made))  # a slice's pieces one behind the other
    return (q_made.flatten(0, 1).to(torch.int32), k_made.flatten(0, 1).to(torch.int32), kinds_made.flatten().to(torch.int32))


def cut_to(q0, q1, k0, k1, upper, lower, rows, keys):
    """The pieces between a run of rows and one of keys: (rows [slices, 2], keys [slices, 2], kinds)."""
    (row, n_rows, to_row), (key, n_keys, to_key) = rows, keys
    q0, q1 = q0.clamp(min=row), q1.clamp(max=row + n_rows)
    k0, k1 = k0.clamp(min=key), k1.clamp(max=key + n_keys)
    is_empty = (k0 >= k1) | (lower > upper)
    first, last = torch.maximum(q0, k0 - upper), torch.minimum(q1, k1 - lower)  # rows that see any of these keys
    free, bound = k1 - 1 - upper, k0 - lower + 1  # the first row that upper, and that lower, does (not) keep from any key
    middle, end = torch.minimum(free, bound), torch.maximum(free, bound)
    is_both = bound < free
    for begin, stop, kind in ((first, middle, UPPER), (middle, end, None), (end, last, LOWER)):
        begin, stop = torch.maximum(begin, first), torch.minimum(stop, last)
        stop = torch.where(is_empty, begin, torch.maximum(begin, stop))
        kind = torch.where(is_both, BOTH, NONE) if kind is None else torch.full_like(begin, kind)
        left = torch.where(kind & LOWER != 0, begin + lower, k0)
        right = torch.where(kind & UPPER != 0, stop + upper, k1)
        begin, stop, left, right = (torch.where(begin < stop, x, 0) for x in (begin - row + to_row, stop - row + to_row,
                                                                             left - key + to_key, right - key + to_key))
        yield torch.stack((begin, stop), 1), torch.stack((left, right), 1), kind

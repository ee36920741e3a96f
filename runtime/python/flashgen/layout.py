"""Where sequences lie in memory: the layout that the given arrays tell, and the extents of a launch.

A layout says how the shapes of q, k and v are read (flashgen.h has the whole story):

    dense    q [b, nq, h, d], k [b, nk, hk, d], v [b, nk, hk, dv]
    packed   starts_q: q [tokens_q, h, d]; starts_k: k [tokens_k, hk, d], v [tokens_k, hk, dv]
    cached   used_k, first_k or rows without starts_k: k [caches, nk, hk, d]
    paged    table: k [pages, page, hk, d]
    slices   q_ranges, k_ranges: q [tokens, h, d], k [tokens, hk, d], v [tokens, hk, dv] of one batch, and the mask is a list

With pos_q, pos_k, whole_q or whole_k rows and keys of the others are parts of sequences.
"""
from typing import NamedTuple, Optional

SLICES = ("q_ranges", "k_ranges", "kinds")
PARTS = ("pos_q", "pos_k", "whole_q", "whole_k")
PLACES = ("starts_q", "starts_k", "used_q", "used_k", "first_k", "rows", "table") + SLICES + PARTS
AXES = {
    "dense": "[b, {n}, {h}, {d}]", "packed": "[tokens, {h}, {d}]", "cached": "[caches, {n}, {h}, {d}]",
    "paged": "[pages, page, {h}, {d}]", "slices": "[tokens, {h}, {d}]"}


class Fact(NamedTuple):
    """What an array looks like."""
    shape: tuple
    strides: Optional[tuple]  # in elements; None where they are no whole ones
    dtype: str  # a word of specs where there is one: f16, bf16, f32, i32
    device: str  # host, cuda:N, or one of no use


class Layout(NamedTuple):
    q: str
    kv: str
    extents: dict  # members of fg_shape; h, hk, d and dv besides
    d: int
    dv: int
    has_slices: bool
    has_parts: bool

    def rows(self):
        """The shape of what is kept of each row."""
        e = self.extents
        if self.q == "packed":
            return e["h"], e["tokens_q"]
        return (e["h"], e["nq"]) if self.has_slices else (e["b"], e["h"], e["nq"])


def read(facts, longest_q, longest_k):
    """The layout of a call. facts: name -> Fact of what is given."""
    has_slices = not facts.keys().isdisjoint(SLICES)
    if has_slices:
        check_slices(facts)
    q_layout = "packed" if "starts_q" in facts else "dense"
    kv_layout = kv_layout_of(facts)
    for name, axes in (("starts_q", "[b + 1]"), ("table", "[b, pages]")):
        if name in facts and (len(facts[name].shape) != axes.count(",") + 1 or 0 in facts[name].shape[:1]):
            raise ValueError(f"{name} has shape {facts[name].shape}; expected {axes}")
    shape = {name: rank_checked(name, facts[name].shape, "slices" if has_slices else layout)
             for name, layout in (("q", q_layout), ("k", kv_layout), ("v", kv_layout))}
    if has_slices:  # of one batch
        shape = {name: (1, *of) for name, of in shape.items()}
    q, k, v = shape["q"], shape["k"], shape["v"]
    if k[:-1] != v[:-1]:
        raise ValueError(f"k has shape {k} and v {v}: all but the last extents have to be equal")
    if q[-1] != k[-1]:
        raise ValueError(f"q has {q[-1]} columns and k {k[-1]}: they have to be as many")
    if k[-2] == 0 or q[-2] % k[-2]:
        raise ValueError(f"q has {q[-2]} heads, which is not a multiple of the {k[-2]} of k and v")
    b = facts["starts_q"].shape[0] - 1 if q_layout == "packed" else q[0]
    extents = {"b": b, "h": q[-2], "hk": k[-2]}
    if q_layout == "packed":
        extents.update(tokens_q=q[0], nq=longest_q or 0)
    else:
        extents["nq"] = q[1]
    extents.update(key_extents(kv_layout, k, b, facts, longest_k))
    if has_slices:
        extents["slices"] = facts["q_ranges"].shape[0]
    check_places(facts, extents)
    return Layout(q_layout, kv_layout, extents, q[-1], v[-1], has_slices, not facts.keys().isdisjoint(PARTS))


def check_slices(facts):
    """That there is a list of slices, and nothing else that says where sequences are."""
    for name in ("q_ranges", "k_ranges"):
        if name not in facts:
            raise ValueError(f"{name} is not given: slices have q_ranges and k_ranges")
        if len(facts[name].shape) != 2:
            raise ValueError(f"{name} has shape {facts[name].shape}; expected [slices, 2]")
    for name in PLACES:
        if name in facts and name not in SLICES:
            raise ValueError(f"{name} is given: the tokens of slices are all of one batch"
                             + (", and no parts" if name in PARTS else ""))


def kv_layout_of(facts):
    if "starts_k" in facts:
        if "table" in facts or "first_k" in facts or "rows" in facts:
            raise ValueError("starts_k is for packed keys; table, first_k and rows are for a cache")
        return "packed"
    if "table" in facts:
        return "paged"
    return "cached" if {"used_k", "first_k", "rows"} & set(facts) else "dense"


def rank_checked(name, shape, layout):
    names = {"q": ("nq", "h", "d"), "k": ("nk", "hk", "d"), "v": ("nk", "hk", "dv")}[name]
    if len(shape) != (3 if layout in ("packed", "slices") else 4):
        expected = AXES[layout].format(n=names[0], h=names[1], d=names[2])
        raise ValueError(f"{name} has shape {shape}; expected {expected}")
    return shape


def key_extents(layout, k, b, facts, longest_k):
    if layout == "packed":
        return {"tokens_k": k[0], "nk": longest_k or 0}
    if layout == "paged":
        columns = facts["table"].shape[-1]
        return {"pages": k[0], "page": k[1], "nk": columns * k[1] if longest_k is None else longest_k}
    if layout == "cached":
        return {"pages": k[0], "nk": k[1]}
    if k[0] != b:
        raise ValueError(f"k has {k[0]} sequences, q {b}: they have to be as many")
    return {"nk": k[1]}


def check_places(facts, extents):
    """What says where sequences are: int32, and as many as there are sequences."""
    b = extents["b"]
    for name in PLACES:
        if name not in facts:
            continue
        shape, _, dtype, _ = facts[name]
        if dtype != "i32":
            raise TypeError(f"{name} is {dtype}; expected int32")
        if name == "table":
            columns = -(-extents["nk"] // extents["page"]) if extents["page"] else 0
            if len(shape) != 2 or shape[0] != b or shape[1] < columns:
                raise ValueError(f"table has shape {shape}; expected ({b}, {columns}): a row for each of the sequences, "
                                 f"a column for each page of {extents['nk']} keys")
            continue
        if name in SLICES:
            expected = (extents["slices"],) if name == "kinds" else (extents["slices"], 2)
        else:
            expected = (b + 1,) if name.startswith("starts") else (b,)
        if shape != expected:
            raise ValueError(f"{name} has shape {shape}; expected {expected}")
    if "used_q" in facts and "starts_q" not in facts:
        raise ValueError("used_q is for packed queries, which starts_q tells apart")


def strides(name, shape, stride):
    """Strides as fg_tensor has them, of an array's own strides."""
    if name in ("q", "k", "v", "o", "dout", "dq", "dk", "dv", "u", "k_new", "v_new", "q_out"):
        if len(shape) == 3:
            return 0, stride[1], stride[0], stride[2]
        return stride[0], stride[2], stride[1], stride[3]
    if name == "table":  # a page's column is where a head dim's is
        return stride[0], 0, 0, stride[1]
    if name in ("rotary_cos", "rotary_sin"):
        return 0, 0, stride[0], stride[1]
    if name == "o_parts":  # its last stride is 1 and left out
        return stride[0], stride[1], stride[3], stride[2]
    return tuple(stride) + (0,) * (4 - len(stride))


def flat(shape, strides):
    """The shape and strides of [..., width] as rows of columns; no strides where rows are not equally far apart."""
    rows, row, expected = 1, None, None
    for n, stride in reversed(tuple(zip(shape[:-1], strides))):
        rows *= n
        if n == 1:
            continue
        if row is None:
            row = expected = stride
        if stride != expected:
            return (rows, shape[-1]), None
        expected = stride * n
    return (rows, shape[-1]), (shape[-1] if row is None else row, strides[-1])


def row_strides(name, shape, stride):
    """Strides as fg_tensor has them of rows."""
    return (0, 0, *flat(shape, stride)[1]) if shape else (0,) * 4

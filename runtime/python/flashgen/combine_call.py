"""The launch of combine: from its arrays to a call."""
from .beside import check, fixed, look, make
from .call import fixed as copies
from .call import perform, prepared
from .prepare import Output

MOST_PARTS = 256


def run(adapter, dtype, given):
    """(o, lse). given: name -> array."""
    call = prepared(prepare, adapter, "combine", dtype, tuple(given), adapter.describe(given.values()))
    taken = copies(adapter, call, given)
    return tuple(perform(adapter, call, adapter.addresses(taken.values()), given["o_parts"]))


def prepare(adapter, _, dtype, names, descriptions):
    facts = look(adapter, names, descriptions)
    o = facts["o_parts"]
    check("o_parts", o, (None,) * 5, ("f32",) if dtype == "f32" else ("f32", dtype))
    parts, b, n, h, dv = o.shape
    if not 1 <= parts <= MOST_PARTS:
        raise ValueError(f"o_parts has {parts} parts; expected 1 to {MOST_PARTS}")
    check("lse_parts", facts["lse_parts"], (parts, b, h, n), ("f32",))
    texts = {"kernel": "combine", "dtype": dtype, "parts_dtype": "f32" if o.dtype == "f32" else "spec"}
    if "sink" in facts:
        check("sink", facts["sink"], (h,), ("f32",))
        texts["sink"] = "true"
    width = -(-dv // 8) * 8
    texts["head_dim"] = str(width)
    outputs = (Output("o", (b, n, h, width), dtype, dtype, dv), Output("lse", (b, h, n), "f32"))
    taken, fixes = fixed(facts, {"o_parts": width}, {"sink"})
    return make(adapter, texts, {"parts": parts, "b": b, "h": h, "nq": n}, taken, outputs, fixes)

"""combine: attention over all keys, from its results over some of them each."""
from .attention import adapter_of, check_kinds
from .beside import check, fixed, look, make
from .call import fixed as copies
from .call import perform, prepared
from .prepare import Output

MOST_PARTS = 256


def combine(o_parts, lse_parts, *, sink=None, dtype="f16"):
    """(o, lse) of parts that have some of the keys each: o [b, n, h, dv] in dtype, "f16", "bf16" or "f32", and lse [b, h, n].

    o_parts    [parts, b, n, h, dv], float32 or the dtype, in any strides: 1 to 256 parts, each divided by its own sum
    lse_parts  [parts, b, h, n], float32. -inf: the part has no keys, and its o does not count
    sink       [h], float32: a logit of each head that takes weight and adds nothing; the parts have none

    A row without keys gets o = 0 and lse = -inf. The sum goes over the parts in their order."""
    given = {"o_parts": o_parts, "lse_parts": lse_parts}
    if sink is not None:
        given["sink"] = sink
    if dtype not in ("f16", "bf16", "f32"):
        raise ValueError(f'dtype is {dtype!r}; expected "f16", "bf16" or "f32"')
    adapter = adapter_of(o_parts)
    try:
        if adapter.needs_gradient(given):
            raise ValueError("a tensor requires a gradient, which combine does not have: call it under torch.no_grad()")
        call = prepared(prepare, adapter, "combine", dtype, tuple(given), adapter.describe(given.values()))
        taken = copies(adapter, call, given)
        return tuple(perform(adapter, call, adapter.addresses(taken.values()), o_parts))
    except AttributeError:
        check_kinds(adapter, given, "o_parts")
        raise


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

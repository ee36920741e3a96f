"""combine: attention over all keys, from its results over some of them each."""
from .attention import adapter_of, check_kinds
from .combine_call import run


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
        return adapter.combine(dtype, given) if adapter.IS_TRACED else run(adapter, dtype, given)
    except AttributeError:
        check_kinds(adapter, given, "o_parts")
        raise

"""What torch.ops.flashgen.* share: options as texts, which a graph can hold, and results that are not there."""
import torch


def joined(texts):
    return "; ".join(texts)


def separate(text):
    return text.split("; ") if text else []


def pairs(text):
    """"family=simt; block_q=64,128" as (("family", "simt"), ("block_q", "64,128")); None of nothing."""
    return tuple([tuple(one.split("=", 1)) for one in separate(text)]) or None


def pairs_text(plan):
    return joined([field + "=" + plan_text(value) for field, value in plan or ()])


def plan_text(value):
    return ",".join([str(x) for x in value]) if isinstance(value, tuple) else str(value)


def names_in(text):
    """Splits "mean,rstd" into names: not every tracer of PyTorch takes lists of texts."""
    return tuple(text.split(",")) if text else ()


def defaults(op):
    """name -> default of an operator's options."""
    return {argument.name: argument.default_value for argument in op.default._schema.arguments
            if argument.kwarg_only and argument.has_default_value()}


def nothing(like):
    """What stands for a result that is not there: an operator always has as many."""
    return like.new_empty((0,), dtype=torch.float32)

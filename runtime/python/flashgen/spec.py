"""What a call computes, as the texts of an fg_spec."""
import numbers
import re
from typing import NamedTuple, Optional

from .options import check_size

PLAN_FIELDS = ("family", "block_q", "block_kv", "stages", "warps", "warps_per_key", "key_parts")
AXES = "bhqk"  # of a bias
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
EXTENTS = re.compile(r"[A-Za-z0-9_+\-*/%(), ]*")  # signs that stay within a declaration; the library reads them


class Options(NamedTuple):
    """What is asked for beside the arrays; hashable, and of the same value for the same call."""
    mask: Optional[str]
    score: Optional[str]
    define: Optional[tuple]  # (head, text) of each definition
    inputs: tuple  # Axes or Number of each input, in the order of their names
    normalizer: str
    sigmoid_bias: Optional[float]
    keep: Optional[float]  # None: no dropout; the probability of a weight to be kept
    scale: Optional[float]
    longest_q: Optional[int]
    longest_k: Optional[int]
    deterministic: bool
    batch_invariant: bool
    sm_margin: int
    plan: Optional[tuple]  # (field, value) of each restriction
    dtype: Optional[str]
    o_dtype: Optional[str] = None  # "f32", of e4m3 "f16" too, or None: dtype
    grad_dtype: Optional[str] = None  # the same of the gradients of q, k and v
    descale_block: int = 0  # tokens that share a descale; 0: all
    latent: bool = False  # v is a view of k's first columns


class Axes(NamedTuple):
    """An input that is an array: its axes as a spec has them, "h, nq + nk - 1", and whether it grows along the last."""
    name: str
    axes: str
    monotone: bool


class Number(NamedTuple):
    name: str
    kind: type  # int or float: 1 and 1.0 are equal and not the same
    value: object


def read_inputs(inputs):
    """The declarations of inputs={"slope": ("h", array), "width": 128}, and the arrays by name."""
    declared, arrays = [], {}
    if not hasattr(inputs, "items"):
        raise TypeError(f'inputs is a {type(inputs).__name__}; expected a dict: {{"slope": ("h", array), "width": 128}}')
    for name in inputs:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"inputs: {name!r:.60} is no name; expected letters, digits and _")
    for name in sorted(inputs):
        value = inputs[name]
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            kind = int if isinstance(value, numbers.Integral) else float
            check_size(f"inputs: {name}", value)
            declared.append(Number(name, kind, kind(value)))
        elif type(value) is tuple and len(value) in (2, 3) and type(value[0]) is str and value[2:] in ((), ("monotone",)):
            if not EXTENTS.fullmatch(value[0]):
                raise ValueError(f"inputs: {name}: {value[0]!r:.60} are no axes; expected b, h, hk, q, k, numbers, and "
                                 "expressions in nq and nk, with commas between them")
            declared.append(Axes(name, value[0], len(value) == 3))
            arrays["input." + name] = value[1]
        else:
            raise TypeError(f"inputs: {name} is {value!r:.60}; expected an int, a float or a pair of axes and array, "
                            f'("h", array)')
    return tuple(declared), arrays


def texts(options, layout, dtype, facts, wants, backward):
    """field -> text. wants: names of bias, sink and inputs whose gradients are wanted, and max_logit."""
    d, dv = rounded_up(layout.d), rounded_up(layout.dv)
    made = {"pass": "backward" if backward else "forward", "dtype": dtype,
            "head_dim": f"{d}/{dv}" if d != dv else f"{d}", "mask": options.mask or "full",
            "normalizer": options.normalizer, "q_layout": layout.q, "kv_layout": layout.kv}
    if layout.has_slices:
        made["slices"] = "true"
    if layout.has_parts:
        made["shard"] = "true"
    if options.score:
        made["score"] = options.score
    if options.define:
        made["define"] = ", ".join(f"{head}={text}" for head, text in options.define)
    if options.inputs:
        made["inputs"] = inputs_text(options.inputs, facts, wants)
    if "bias" in facts:
        shape, _, kind, _ = facts["bias"]
        made["bias"] = "grad" if "bias" in wants else "true"
        made["bias_dims"] = "[" + ",".join(a for a, n in zip(AXES, shape) if n != 1) + "]"
        made["bias_dtype"] = kind
    if "sink" in facts:
        made["sink"] = "grad" if "sink" in wants else "true"
    if options.keep is not None:
        made["dropout"] = "true"
    if "max_logit" in wants:
        made["max_logit"] = "true"
    if options.deterministic and backward:
        made["deterministic"] = "true"
    if facts["k"].dtype == "e4m3" != dtype:
        made["kv_dtype"] = "e4m3"
    if options.descale_block:
        made["descale_block"] = str(options.descale_block)
    if options.o_dtype:
        made["o_dtype"] = options.o_dtype
    if options.grad_dtype and backward:
        made["dqkv_dtype"] = options.grad_dtype
    if options.batch_invariant and not backward:
        made["batch_invariant"] = "true"
    if options.latent and not backward:
        made["latent"] = "true"
    made.update(plan_texts(options.plan))
    return made


def plan_texts(plan):
    """field -> text of restrictions: pairs of a field and a value, or several in a tuple; None: no restriction."""
    made = {}
    for field, value in plan or ():
        if field not in PLAN_FIELDS:
            raise ValueError(f"plan: there is no {field}; expected {', '.join(PLAN_FIELDS)}")
        made[field] = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return made


def rounded_up(d):
    """The kernel's head dim: the next multiple of 8."""
    return -(-d // 8) * 8


def inputs_text(inputs, facts, wants):
    """The declarations."""
    return ", ".join(declaration(x, facts, wants) for x in inputs)


def input_names(text):
    """The names in declarations: of "cap=float, slope=f32[h, nq + 1] grad" cap and slope."""
    return re.findall(r"(\w+)=", text)


def declaration(x, facts, wants):
    """"slope=f32[h] grad" or "width=int"."""
    if isinstance(x, Number):
        return f"{x.name}={x.kind.__name__}"
    word = facts["input." + x.name].dtype
    more = " grad" if "input." + x.name in wants else " monotone" if x.monotone else ""
    return f"{x.name}={word}[{x.axes}]{more}"

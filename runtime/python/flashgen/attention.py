"""attention and attention_backward, on arrays of NumPy and tensors of PyTorch."""
import numbers
import sys
from typing import NamedTuple

from .call import run
from .options import LONGEST, check_expressions, check_numbers, check_words, definitions, frozen, settled_dropout, shown
from .prepare import KEPT, title
from .spec import read_inputs

_adapters = {}  # by the type of an array


def adapter_of(x):
    """The module that knows arrays like this one: arrays, tensors or traced."""
    if is_traced():
        return found_adapter(type(x), True)  # a table that changes would have PyTorch compile anew
    found = _adapters.get(type(x))
    if found is None:
        found = _adapters[type(x)] = found_adapter(type(x), False)
    return found


def is_traced():
    """Whether PyTorch runs the program to record its operators: its compiler, its export, torch.jit.trace or make_fx."""
    compiler = sys.modules.get("torch.compiler")
    return compiler is not None and (compiler.is_compiling() or is_recorded(sys.modules["torch"]))


def is_recorded(torch):
    """The same, but for the compiler. Of modes that see operators PyTorch's own ones have a key: they record, or have tensors
    without values. Modes of programs see no operators of ours, which an eager call goes without."""
    if torch.jit.is_tracing() or torch._ops._len_torch_dispatch_stack_pre_dispatch() > 0:
        return True
    return torch._C._len_torch_dispatch_stack() > 0 and any(
        getattr(mode, "_mode_key", None) is not None
        for mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack())


def found_adapter(kind, is_traced):
    """The adapter of a type. A tensor of a class of its own, such as one without values, is for the op."""
    for base in kind.__mro__:
        if (base.__module__, base.__name__) == ("numpy", "ndarray"):
            from . import arrays
            return arrays
        if (base.__module__, base.__name__) == ("torch", "Tensor"):
            from . import tensors
            if not is_traced and not tensors.is_traced(kind):
                return tensors
            from . import traced
            return traced
    raise TypeError(f"a {kind.__name__} is given; expected an array of NumPy or a tensor of PyTorch")


def check_kinds(adapter, given, first="q"):
    """One adapter's arrays; asked when something went wrong."""
    for name, x in given.items():
        try:
            same = adapter_of(x) is adapter
        except TypeError:
            same = False
        if not same:
            raise TypeError(f"{title(name)} is a {type(x).__name__}, {title(first)} a {type(given[first]).__name__}: they have "
                            "to be alike")


def attention(q, k, v, *, mask=None, score=None, define=None, inputs=None, bias=None, sink=None, dropout=0.0,
              seed=None, normalizer="softmax", sigmoid_bias=None, scale=None, starts_q=None, starts_k=None, used_q=None,
              used_k=None, longest_q=None, longest_k=None, first_k=None, rows=None, table=None, q_ranges=None,
              k_ranges=None, kinds=None, pos_q=None, pos_k=None, whole_q=None, whole_k=None, deterministic=False,
              batch_invariant=False, latent=False, sm_margin=0, plan=None, dtype=None, o_dtype=None, out=None,
              return_lse=False, return_max_logit=False, q_descale=None, k_descale=None, v_descale=None, descale_block=0):
    """softmax(scale q k^T) v, or what the options make of it: float16 and bfloat16 tensors of PyTorch, on a GPU or the
    CPU, which is the host device, or arrays of NumPy, on the host device. Differentiable in tensors of PyTorch.

    q [b, nq, h, d], k [b, nk, hk, d], v [b, nk, hk, dv], in any strides; h is a multiple of hk. The result is
    [b, nq, h, dv], in q's dtype, or with o_dtype="f32" in float32, as it was summed: results over parts of the keys, which
    are to be combined, are not rounded then. float32 arrays of NumPy are rounded to bfloat16, or with dtype="f16" to float16.

    q, k and v, or k and v alone, may be float8_e4m3fn, of NumPy that of ml_dtypes or uint8, its bits: the result is bfloat16
    then, or what o_dtype says ("f16", "f32"), or in q's dtype. There is no gradient of such a call.

    q_descale, k_descale, v_descale
                float32 [b, hk], what q, k and v of float8_e4m3fn are multiplied with; None: 1. With descale_block=n
                [b, hk, n-th parts of the longest sequence, rounded up]: each n tokens of a sequence have their own
    mask        which keys a row sees, an expression: "causal", "window(1023, 0)", "k <= p && p - k < width"; None: all
    score       what becomes of s, the scaled product: "softcap(30.0)", "s + slope[h] * (k - p)"
    inputs      what mask and score name: {"slope": ("h", array), "width": 128}, axes beside each array; a third member
                "monotone" promises that an int32 array grows along its last axis. Arrays that score uses have gradients
    define      definitions that mask and score use: {"near(n)": "p - k < n"}
    bias        [b, h, nq, nk], or 1 for any of these, is added to the scores
    sink        [h], a logit of each head that takes weight and adds nothing
    dropout     the probability of a weight to be dropped. seed: a number, (seed, offset), or int32[4] with both, low
                words first. PyTorch's generator is asked where there is none
    normalizer  softmax, logsoftmax, retention, sigmoid (with sigmoid_bias), none
    scale       of q k; 1 / sqrt(d)
    starts_q, starts_k, used_q, used_k, first_k, rows, table
                int32 arrays that say where sequences lie: packed, cached or paged (flashgen.h). Packed q is
                [tokens, h, d]. longest_q, longest_k: bounds of the lengths, by which a kernel is chosen
    q_ranges, k_ranges, kinds
                a mask that is a list, int32 [slices, 2] and [slices], None: all 0. Tokens are q [tokens, h, d], k and v likewise.
                The rows from q_ranges[i, 0] to q_ranges[i, 1] see the keys of k_ranges[i]: all of them (kind 0), as far as
                both ends align (1), from the diagonal of both starts on (2), or both (3). In a slice `mask` is tested, and
                expressions count rows and keys from its first ones; a pair is of the first slice that shows it
    pos_q, pos_k, whole_q, whole_k
                q and k are parts of sequences, as the ranks of context parallelism have them: rows from pos_q on and keys
                from pos_k on of whole_q rows and whole_k keys. int32 [b], or a number for all; None: 0, and what is given
                is all. Mask, score and dropout are those of the whole sequence; inputs and bias lie as the parts do.
                Results of parts of the keys are joined by combine. A backward takes the whole's out and lse, and
                gradients of parts are added up
    deterministic, batch_invariant
                equal calls give equal gradients; a sequence's result does not depend on the others
    latent      v is k[..., :dv], a view of k's first columns, as in latent attention (MLA): kernels may load both as one. Backward
                takes v as any other
    sm_margin   multiprocessors that are left to other work, by kernels that would fill the GPU
    plan        restricts the plans: {"family": "mma", "block_q": (64, 128)}
    out         where the result goes
    return_lse  returns (result, lse) and lse is [b, h, nq], float32; of logsoftmax (result, lse, u), of retention
                (result, r). return_max_logit: one more, [b, h], the largest scale q k of those that the mask shows

    Raises ValueError, TypeError, NotImplementedError (no kernel computes it) or RuntimeError (the machine).
    """
    given = {"q": q, "k": k, "v": v}
    if out is not None:
        given["o"] = out
        adapter_of(out).check_writable(out)
    adapter, options = read(
        given, mask, score, define, inputs, bias, sink, dropout, seed, normalizer, sigmoid_bias, scale, starts_q, starts_k,
        used_q, used_k, longest_q, longest_k, first_k, rows, table, q_ranges, k_ranges, kinds, pos_q, pos_k, whole_q, whole_k,
        deterministic, batch_invariant, sm_margin, plan, dtype, o_dtype, None, descale_block, latent)
    descales = {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
    given.update((name, x) for name, x in descales.items() if x is not None)
    wants = wanted_results(normalizer, return_lse, return_max_logit) if return_lse or return_max_logit else ()
    try:
        if adapter.IS_TRACED:
            results = adapter.forward(options, wants, given)
        elif adapter.needs_gradient(given):
            results = adapter.differentiable(adapter, options, wants, KEPT.get(normalizer, ()), given)
        else:
            results = run(adapter, False, options, wants, given)
    except AttributeError:
        check_kinds(adapter, given)
        raise
    return tuple(results) if wants else results[0]


def wanted_results(normalizer, return_lse, return_max_logit):
    kept = KEPT.get(normalizer, ())
    if return_lse and not kept:
        raise ValueError(f"return_lse: normalizer {normalizer} has no lse")
    return (kept if return_lse else ()) + (("max_logit",) if return_max_logit else ())


class Gradients(NamedTuple):
    """Of attention_backward: like what they belong to, q, k and v perhaps in float32; None where there is none. inputs: by
    name."""
    q: object
    k: object
    v: object
    bias: object
    sink: object
    inputs: dict


def attention_backward(dout, q, k, v, out, lse, *, u=None, dlse=None, wanted=None, mask=None, score=None, define=None,
                       inputs=None, bias=None, sink=None, dropout=0.0, seed=None, normalizer="softmax",
                       sigmoid_bias=None, scale=None, starts_q=None, starts_k=None, used_q=None, used_k=None,
                       longest_q=None, longest_k=None, q_ranges=None, k_ranges=None, kinds=None, pos_q=None, pos_k=None,
                       whole_q=None, whole_k=None, deterministic=False, sm_margin=0, plan=None, dtype=None, o_dtype=None,
                       grad_dtype=None):
    """The gradients of attention, which got the same arguments: Gradients(q, k, v, bias, sink, inputs).

    dout        the gradient of the result, like it; out, lse: what attention(..., return_lse=True) returned. lse is r
                of retention, and None of sigmoid and none; u: logsoftmax's
    dlse        the gradient of lse, or None
    o_dtype     "f32": out is float32, which follows from a tensor of PyTorch, and dout may be: it is rounded to q's dtype
    grad_dtype  "f32": gradients of q, k and v are float32, as they were summed; None: they are in the dtype of q, k and v
    wanted      whose gradients are wanted beside q, k and v: names of bias, sink and inputs; None: of all that are not
                integers
    """
    given = {"q": q, "k": k, "v": v, "dout": dout, "o": out}
    kept = KEPT.get(normalizer, ())
    given.update((name, x) for name, x in zip(kept, (lse, u)))
    if dlse is not None:
        if "lse" not in kept:
            raise ValueError(f"dlse is given, and normalizer {normalizer} has no lse that is differentiable")
        given["dlse"] = dlse
    adapter, options = read(
        given, mask, score, define, inputs, bias, sink, dropout, seed, normalizer, sigmoid_bias, scale, starts_q, starts_k,
        used_q, used_k, longest_q, longest_k, None, None, None, q_ranges, k_ranges, kinds, pos_q, pos_k, whole_q, whole_k,
        deterministic, False, sm_margin, plan, dtype, o_dtype, grad_dtype)
    try:
        wants = wanted_names(adapter, given, wanted)
        if adapter.IS_TRACED:
            results = adapter.backward(options, wants, given)
        else:
            results = run(adapter, True, options, wants, given)
            if adapter.needs_gradient(given):
                results = adapter.tied(results, given.values())
    except AttributeError:
        check_kinds(adapter, given)
        raise
    of_others = dict(zip(wants, results[3:]))
    return Gradients(*results[:3], of_others.pop("bias", None), of_others.pop("sink", None),
                     {name.partition(".")[2]: x for name, x in of_others.items()})


def wanted_names(adapter, given, wanted):
    words = dict(zip(given, (fact.dtype for fact in adapter.facts(adapter.describe(given.values())))))
    able = [name for name in given if name in ("bias", "sink") or name.startswith("input.") and words[name] != "i32"]
    if wanted is None:
        return tuple(able)
    if isinstance(wanted, str) or not hasattr(wanted, "__iter__"):
        raise TypeError(f'wanted is {wanted!r:.40}; expected names: ("bias", "slope")')
    names = tuple(name if name in ("bias", "sink") else "input." + name for name in wanted)
    for short, name in zip(wanted, names):
        if name not in able:
            raise ValueError(f"wanted: {short} is not given, or has no gradient")
    return names


def read(given, mask, score, define, inputs, bias, sink, dropout, seed, normalizer, sigmoid_bias, scale, starts_q, starts_k,
         used_q, used_k, longest_q, longest_k, first_k, rows, table, q_ranges, k_ranges, kinds, pos_q, pos_k, whole_q, whole_k,
         deterministic, batch_invariant, sm_margin, plan, dtype, o_dtype, grad_dtype=None,
         descale_block=0, latent=False):
    """The adapter and the values of an Options; adds the arrays that are not None to `given`."""
    adapter = adapter_of(given["q"])
    declared = ()
    if type(mask) is not str and mask is not None or type(score) is not str and score is not None:
        check_expressions(mask, score)
    if type(normalizer) is not str or not (dtype is None and o_dtype is None and grad_dtype is None):
        check_words(normalizer=normalizer, dtype=dtype, o_dtype=o_dtype, grad_dtype=grad_dtype)
    if not (bias is None and sink is None and starts_q is None and starts_k is None and used_q is None and used_k is None
            and first_k is None and rows is None and table is None and q_ranges is None and k_ranges is None
            and kinds is None):
        others = {"bias": bias, "sink": sink, "starts_q": starts_q, "starts_k": starts_k, "used_q": used_q,
                  "used_k": used_k, "first_k": first_k, "rows": rows, "table": table, "q_ranges": q_ranges, "k_ranges": k_ranges,
                  "kinds": kinds}
        given.update((name, x) for name, x in others.items() if x is not None)
    if not (pos_q is None and pos_k is None and whole_q is None and whole_k is None):
        parts = {"pos_q": pos_q, "pos_k": pos_k, "whole_q": whole_q, "whole_k": whole_k}
        given.update((name, of_sequences(adapter, name, x, given)) for name, x in parts.items() if x is not None)
    if inputs:
        declared, arrays = read_inputs(inputs)
        given.update(arrays)
    keep = None if type(dropout) is float and dropout == 0.0 else settled_dropout(dropout)
    if keep is not None:
        given["seed"] = seed_words(adapter, seed, given["q"])
    elif seed is not None:
        raise ValueError("seed is given, and dropout is 0")
    if not (scale is None and sigmoid_bias is None and longest_q is None and longest_k is None and sm_margin == 0
            and descale_block == 0):
        check_numbers(scale=scale, sigmoid_bias=sigmoid_bias, longest_q=longest_q, longest_k=longest_k, sm_margin=sm_margin,
                      descale_block=descale_block)
    if o_dtype not in (None, "f32", "f16", "bf16") or grad_dtype not in (None, "f32"):
        name, word = ("grad_dtype", grad_dtype) if grad_dtype not in (None, "f32") else ("o_dtype", o_dtype)
        raise ValueError(f'{name} is {word!r}; expected "f32", or None for the dtype of q')
    return adapter, (
        mask, score, definitions(define), declared, normalizer, sigmoid_bias, keep, scale, longest_q, longest_k,
        bool(deterministic), bool(batch_invariant), sm_margin, frozen(plan), dtype, o_dtype, grad_dtype, descale_block,
        bool(latent))


def of_sequences(adapter, name, x, given):
    """int32 [b] on the device: a number is that of all sequences."""
    if not isinstance(x, numbers.Integral):
        return x
    if not 0 <= x < LONGEST:
        raise ValueError(f"{name} is {shown(x)}; expected a number from 0 to 2^30 - 1")
    starts = given.get("starts_q")
    b = given["q"].shape[0] if starts is None else starts.shape[0] - 1
    return adapter.filled(b, int(x), given["q"])


def seed_words(adapter, seed, like):
    """int32[4] on the device: a seed and an offset."""
    if seed is None:
        return adapter.fresh_seed(like)
    if isinstance(seed, numbers.Integral):
        seed = (seed, 0)
    if isinstance(seed, tuple):
        if len(seed) != 2 or not all(isinstance(x, numbers.Integral) and 0 <= x < 1 << 64 for x in seed):
            raise ValueError(f"seed is {seed}; expected a number from 0 to 2^64 - 1, or two: seed and offset")
        return adapter.seed_words(seed, like)
    return seed

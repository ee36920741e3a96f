"""torch.ops.flashgen.attention and attention_backward: what PyTorch's compiler, its export and fake tensors see of a call;
row_ops.py has those of rows, cache_ops.py append and combine.

Both are functions of tensors that return fresh tensors: always as many, one of no elements where there is nothing to
return. Options are texts and numbers, which a graph can hold; all that depends on values happens inside. traced.py calls
them; an eager call goes without them, because they cost some 60 us. Importing this module defines them, which is all that
a program needs before it loads a graph that was exported."""
import torch

from . import cache_ops, row_ops, tensors  # noqa: F401
from .autograd import MAIN, check_has_gradient, refuse_twice
from .call import run
from .op_parts import defaults, joined, names_in, nothing, pairs, pairs_text, separate
from .prepare import KEPT, o_word
from .spec import Axes, Number

BESIDE = ("bias", "sink", "seed", "starts_q", "starts_k", "used_q", "used_k", "first_k", "rows", "table", "q_ranges", "k_ranges", "kinds",
          "pos_q", "pos_k", "whole_q", "whole_k", "q_descale", "k_descale", "v_descale")
ARRAYS = ("Tensor q, Tensor k, Tensor v, " + "".join(f"Tensor? {name}, " for name in BESIDE)
          + "Tensor[]? inputs, Tensor? numbers=None")
OPTIONS = """str? mask=None, str? score=None, str define="", str declared="", SymInt[]? ints=None, float[]? floats=None,
    str normalizer="softmax", float? sigmoid_bias=None, float? keep=None, float? scale=None, SymInt? longest_q=None,
    SymInt? longest_k=None, bool deterministic=False, bool batch_invariant=False, int sm_margin=0, str plan="", str? dtype=None,
    str? o_dtype=None, str? grad_dtype=None, int descale_block=0, bool latent=False"""
FORWARD = f"({ARRAYS}, *, {OPTIONS}, bool max_logit=False) -> (Tensor, Tensor, Tensor, Tensor)"
BACKWARD = (f"(Tensor dout, Tensor o, Tensor lse, Tensor u, Tensor? dlse, {ARRAYS}, *, {OPTIONS}, str wanted=\"\") -> "
            "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor[])")


# ---- options as a graph holds them ----


def written(options):
    """The options of an op, of the values of an Options. Lists are texts, "near(n)=p - k < n; far(n)=k < p - n". Inputs are
    declared by "cap=float; edge=[q] monotone; slope=[h]; width=int"; ints and floats are the numbers, in their order. Where a
    graph is for any floats, they are a float64 tensor of the CPU instead, the op's `numbers`. An empty list is None, which the
    runtime of AOTInductor makes of it."""
    (mask, score, define, inputs, normalizer, sigmoid_bias, keep, scale, longest_q, longest_k, deterministic,
     batch_invariant, sm_margin, plan, dtype, o_dtype, grad_dtype, descale_block, latent) = options
    declared, ints, floats = [], [], []
    for x in inputs:
        if isinstance(x, Number):
            declared.append(x.name + ("=int" if x.kind is int else "=float"))
            (ints if x.kind is int else floats).append(x.value)
        else:
            declared.append(f"{x.name}=[{x.axes}]" + (" monotone" if x.monotone else ""))
    return {"mask": mask, "score": score, "define": joined([head + "=" + text for head, text in define or ()]),
            "declared": joined(declared), "ints": ints or None, "floats": floats or None, "normalizer": normalizer,
            "sigmoid_bias": sigmoid_bias, "keep": keep, "scale": scale, "longest_q": longest_q, "longest_k": longest_k,
            "deterministic": deterministic, "batch_invariant": batch_invariant, "sm_margin": sm_margin, "dtype": dtype,
            "o_dtype": o_dtype, "grad_dtype": grad_dtype, "descale_block": descale_block, "latent": latent,
            "plan": pairs_text(plan)}


def read(mask, score, define, declared, ints, floats, normalizer, sigmoid_bias, keep, scale, longest_q, longest_k,
         deterministic, batch_invariant, sm_margin, plan, dtype, o_dtype, grad_dtype, descale_block, latent):
    """The values of an Options again."""
    ints, floats = iter(ints or ()), iter(floats or ())
    inputs = []
    for text in separate(declared):
        name, _, kind = text.partition("=")
        if kind == "int":
            inputs.append(Number(name, int, next(ints)))
        elif kind == "float":
            inputs.append(Number(name, float, next(floats)))
        else:
            axes, _, more = kind[1:].rpartition("]")
            inputs.append(Axes(name, axes, more == " monotone"))
    return (mask, score, pairs(define), tuple(inputs), normalizer, sigmoid_bias, keep, scale, longest_q, longest_k,
            deterministic, batch_invariant, sm_margin, pairs(plan), dtype, o_dtype, grad_dtype, descale_block, latent)


def by_name(declared, arrays, inputs):
    """name -> tensor of what is given: q, k, v and BESIDE, and the inputs that are declared."""
    given = {name: x for name, x in zip(MAIN + BESIDE, arrays) if x is not None}
    given.update(zip(input_names(declared), inputs or ()))
    return given


def input_names(declared):
    """Of the inputs that are arrays: "input.slope" of "slope=[h]"."""
    return ["input." + text.partition("=")[0] for text in separate(declared) if "=[" in text]


# ---- the ops ----


@torch.library.custom_op("flashgen::attention", mutates_args=(), schema=FORWARD)
def attention(*arrays, max_logit=False, **options):
    """o, lse (retention: r), u, max_logit; the last three are empty where there is none."""
    arrays, inputs, numbers = separated(arrays)
    options = filled(options, numbers)
    kept = KEPT.get(options["normalizer"], ())
    wants = kept + ("max_logit",) * max_logit
    results = run(tensors, False, read(**options), wants, by_name(options["declared"], arrays, inputs))
    made = dict(zip(("o", *wants), results))
    first = kept[0] if kept else None
    return tuple([made[name].contiguous() if name in made else nothing(arrays[0])
                  for name in ("o", first, "u", "max_logit")])


@torch.library.custom_op("flashgen::attention_backward", mutates_args=(), schema=BACKWARD)
def attention_backward(dout, o, lse, u, dlse, *arrays, wanted="", **options):
    """dq, dk, dv, dbias, dsink and a list, that of inputs; the last ones are empty where none is wanted."""
    arrays, inputs, numbers = separated(arrays)
    options = filled(options, numbers)
    given = by_name(options["declared"], arrays, inputs)
    main = {name: given.pop(name) for name in MAIN}
    main.update(dout=dout, o=o)
    main.update(zip(KEPT.get(options["normalizer"], ()), (lse, u)))
    if dlse is not None:
        main["dlse"] = dlse
    wanted = names_in(wanted)
    results = run(tensors, True, read(**options), wanted, {**main, **given})
    made = dict(zip((*MAIN, *wanted), [x.contiguous() for x in results]))
    others = [made[name] if name in made else nothing(dout)
              for name in ("bias", "sink", *input_names(options["declared"]))]
    return (*[made[name] for name in MAIN], *others[:2], others[2:])


DEFAULTS = {name: x for name, x in defaults(torch.ops.flashgen.attention).items() if name != "max_logit"}


def filled(options, numbers):
    """All options: a graph has only those that differ from the defaults."""
    return {**DEFAULTS, **options, **({} if numbers is None else {"floats": numbers.tolist()})}


def separated(arrays):
    """What an op gets of q, k, v and BESIDE, of inputs and of numbers, which a caller may leave out."""
    n = len(MAIN + BESIDE)
    return arrays[:n], arrays[n], (*arrays[n + 1:], None)[0]


# ---- shapes without values ----


@attention.register_fake
def _(*arrays, max_logit=False, **options):
    q, v = arrays[0], arrays[2]
    starts_q, q_ranges = [arrays[(MAIN + BESIDE).index(name)] for name in ("starts_q", "q_ranges")]
    kept = KEPT.get(options.get("normalizer", "softmax"), ())
    out = (*q.shape[:-1], v.shape[-1])
    is_of_tokens = starts_q is not None or q_ranges is not None
    rows = (q.shape[1], q.shape[0]) if is_of_tokens else (q.shape[0], q.shape[2], q.shape[1])
    b = starts_q.shape[0] - 1 if starts_q is not None else 1 if q_ranges is not None else q.shape[0]
    o = q.new_empty(out, dtype=tensors.DTYPES.get(o_word(tensors.WORDS.get(q.dtype), options.get("o_dtype")), q.dtype))
    return (o, floats(q, rows, bool(kept)), floats(q, out, "u" in kept),
            floats(q, (b, q.shape[-2]), max_logit))


def floats(like, shape, is_there):
    return like.new_empty(shape, dtype=torch.float32) if is_there else nothing(like)


@attention_backward.register_fake
def _(dout, o, lse, u, dlse, *arrays, wanted="", **options):
    arrays, inputs, _ = separated(arrays)
    given = by_name(options.get("declared", ""), arrays, inputs)
    wanted, word = names_in(wanted), torch.float32 if options.get("grad_dtype") else None
    made = [x.new_empty(x.shape, dtype=word if name in MAIN else None) if name in wanted or name in MAIN else nothing(dout)
            for name in (*MAIN, "bias", "sink", *input_names(options.get("declared", "")))
            for x in (given.get(name, dout),)]
    return (*made[:5], made[5:])


# ---- autograd ----


def keep(ctx, inputs, keyword_only_inputs, output):
    """Forward is done: what backward needs."""
    arrays, of_inputs, numbers = separated(inputs)
    o, lse, u, max_logit = output
    options = {name: x for name, x in keyword_only_inputs.items() if name != "max_logit"}
    ctx.set_materialize_grads(False)
    is_differentiable = KEPT.get(options["normalizer"], ("",))[0] == "lse"
    ctx.mark_non_differentiable(*(() if is_differentiable else (lse,)), u, max_logit)
    ctx.save_for_backward(o, lse, u, numbers, *arrays, *(of_inputs or ()))
    ctx.options = options


def differentiate(ctx, dout, dlse, *_):
    (o, lse, u, numbers, *arrays), options = ctx.saved_tensors, ctx.options
    n = len(MAIN + BESIDE)
    arrays, inputs = arrays[:n], arrays[n:]
    names = input_names(options["declared"])
    check_has_gradient(by_name(options["declared"], arrays, inputs))
    needed, of_inputs, _ = separated(ctx.needs_input_grad)
    is_needed = dict(zip((*MAIN, *BESIDE, *names), (*needed, *(of_inputs or ()))))
    wanted = ",".join([name for name in ("bias", "sink", *names) if is_needed[name]])
    if dout is None:
        dout = torch.zeros_like(o)
    *made, grads_of_inputs = torch.ops.flashgen.attention_backward(
        dout, o, lse, u, dlse, *arrays, inputs or None, numbers, **options, wanted=wanted)
    made = dict(zip((*MAIN, "bias", "sink", *names), (*made, *grads_of_inputs)))
    grads = {name: made[name] if needed else None for name, needed in is_needed.items()}
    numbers_too = len(ctx.needs_input_grad) > n + 1  # PyTorch leaves out what is the default
    lists = None if of_inputs is False else [grads[name] for name in names]  # as the caller's is: None or a list
    return (*[grads[name] for name in MAIN + BESIDE], lists, *[None] * numbers_too)


attention.register_autograd(differentiate, setup_context=keep)
attention_backward.register_autograd(refuse_twice)

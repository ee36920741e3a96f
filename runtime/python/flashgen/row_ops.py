"""torch.ops.flashgen.linear, layernorm, log_softmax, cross_entropy and their backwards, as torch_ops.py has those of attention.

Each is a pass of a kind (rows.py): it takes the pass's arrays, None where one is missing, the kind's options, and `wants`, the
names of results that it makes beside those that it always makes, "mean,rstd"; it returns all results, empty where one is not
made."""
import sys

import torch

from . import rows, tensors
from .autograd import gradients_of_rows, keep_rows, once, refuse_twice
from .op_parts import defaults, names_in, nothing, pairs, pairs_text
from .row_kinds import KINDS

IS_TRACED = True  # launched() is what an adapter needs for gradients


def name_of(one):
    return one.kind.op + ("" if one is one.kind.forward else "_backward")


def launched(one, options, wants, given):
    """rows.run() by the operator of a pass."""
    made = getattr(torch.ops.flashgen, name_of(one))(*[given.get(name) for name in one.arrays], wants=",".join(wants),
                                                     **written(one.kind, options))
    made = made if len(one.results) > 1 else (made,)
    return {name: x for name, x in zip(one.results, made) if name in one.always or name in wants}


def differentiable_rows(_, kind, options, wants, given):
    """launched(), with what a gradient is made of."""
    return launched(kind.forward, options, rows.all_wants(kind, options, wants, given), given)


def written(kind, options):
    """The options as a graph holds them, of a tuple of values."""
    made = dict(zip(kind.options, options))
    made["plan"] = pairs_text(made["plan"])
    return made


def read(kind, options):
    """The values again."""
    return tuple([pairs(options[name]) if name == "plan" else options[name] for name in kind.options])


def by_name(one, arrays):
    return {name: x for name, x in zip(one.arrays, arrays) if x is not None}


def as_results(one, made, like):
    """All results, of those that there are."""
    made = tuple([made[name] if name in made else nothing(like) for name in one.results])
    return made if len(made) > 1 else made[0]


def define(one):
    """Defines the operator of a pass, and what it gives of tensors without values."""
    kind = one.kind
    arrays = ", ".join([f"Tensor{'?' * (name in one.optional)} {name}" for name in one.arrays])
    schema = f"({arrays}, *, {kind.declared}, str wants=\"\") -> ({', '.join(['Tensor' for _ in one.results])})"

    def op(*arrays, wants="", **options):
        options = read(kind, {**usual, **options})
        return as_results(one, rows.run(tensors, one, options, names_in(wants), by_name(one, arrays)), arrays[0])

    def fake(*arrays, wants="", **options):
        options, wants = {**usual, **options}, names_in(wants)
        shapes = kind.shapes({name: x.shape for name, x in by_name(one, arrays).items()}, options)
        words = {name: kind.word_of(name, None, options) for name in one.results}
        made = {name: arrays[0].new_empty(shapes[name], dtype=tensors.DTYPES.get(words[name]))
                for name in one.results if name in one.always or name in wants}
        return as_results(one, made, arrays[0])

    made = torch.library.custom_op("flashgen::" + name_of(one), op, mutates_args=(), schema=schema)
    usual = defaults(getattr(torch.ops.flashgen, name_of(one)))
    made.register_fake(fake)
    return made


def define_kind(kind):
    """Defines the operators of forward and backward, and makes the first one differentiable by the second one."""
    def keep(ctx, inputs, keyword_only_inputs, output):
        one, wants = kind.forward, names_in(keyword_only_inputs["wants"])
        results = dict(zip(one.results, output if len(one.results) > 1 else (output,)))
        known = {**by_name(one, inputs),
                 **{name: x for name, x in results.items() if name in one.always or name in wants}}
        keep_rows(ctx, sys.modules[__name__], kind, read(kind, keyword_only_inputs), wants, known, one.arrays, results)

    def differentiate(ctx, saved, *douts):
        return tuple(gradients_of_rows(ctx, saved, ctx.needs_input_grad, douts))

    define(kind.backward).register_autograd(refuse_twice)
    define(kind.forward).register_autograd(once(differentiate), setup_context=keep)


for kind in KINDS:
    define_kind(kind)

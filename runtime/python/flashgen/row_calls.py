"""The calls of functions of rows: by what arrays they get, and whether gradients are wanted."""
from . import rows
from .attention import adapter_of, check_kinds
from .prepare import title


def forward(kind, options, wants, **given):
    """The results of forward: what it always makes, and what is wanted. Differentiable in tensors of PyTorch."""
    one = kind.forward
    given = without_missing(one, given)
    adapter = adapter_of(given[one.arrays[0]])
    try:
        if not adapter.needs_gradient(given):
            made = rows.launched(adapter, one, options, wants, given)
        else:
            check_has_gradient(kind, given)
            made = adapter.differentiable_rows(adapter, kind, options, wants, given)
    except AttributeError:
        check_kinds(adapter, given, one.arrays[0])
        raise
    return [made[name] for name in one.always + wants]


def backward(kind, options, wanted, **given):
    """The gradients of the arrays that are wanted, by name."""
    one = kind.backward
    given = without_missing(one, given)
    adapter = adapter_of(given[one.arrays[0]])
    try:
        made = rows.gradients(adapter, kind, options, wanted, given)
        if not adapter.IS_TRACED and adapter.needs_gradient(given):
            made = dict(zip(made, adapter.tied(tuple(made.values()), given.values())))
        return made
    except AttributeError:
        check_kinds(adapter, given, one.arrays[0])
        raise


def without_missing(one, given):
    """What is given, less what may be None."""
    return {name: x for name, x in given.items() if x is not None or name not in one.optional}


def check_has_gradient(kind, given):
    for name, x in given.items():
        if x.requires_grad and name not in kind.gradients:
            raise ValueError(f"{title(name)} requires a gradient, which {kind.op} does not have")

"""What the kernels beside attention share: from the looks of their arrays to a call."""
from . import layout as layouts
from .context import context
from .library import Shape, sized
from .prepare import SIZES, Call, check_devices, contiguous, fill, lies_well, settle, title, wrong_dtype


def make(adapter, texts, extents, facts, outputs, fixes, aligned=0, **launch):
    """The call of a spec. facts: of what is given, as kernels take it; fixes: what is copied for that; aligned: so many arrays
    have addresses that are multiples of ALIGN; launch: what else prepare.fill takes."""
    call = Call()
    call.outputs, call.fixes, call.aligned, call.copies_o = outputs, fixes, aligned, False
    call.changes = not all(output.is_final for output in outputs)
    fill(call, facts, **launch)
    device = context(next(iter(facts.values())).device)
    settle(call, adapter, device, device.op(texts), sized(Shape, **extents))
    return call


def look(adapter, names, descriptions):
    """The facts by name, of arrays on one device."""
    facts = dict(zip(names, adapter.facts(descriptions)))
    check_devices(facts, names[0])
    return facts


def check(name, fact, shape, words):
    """An array's shape, where None is any extent, and its dtype, which is one of some words."""
    if len(fact.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, fact.shape)):
        expected = str(shape).replace("None", "any")
        raise ValueError(f"{title(name)} has shape {fact.shape}; expected {expected}")
    if fact.dtype not in words:
        raise wrong_dtype(name, fact.dtype, words)


def fixed(facts, widths, dense):
    """The facts as kernels take them, and the copies for it. widths: name -> columns, where they are other ones; dense:
    names of what has to be contiguous."""
    made, fixes = {}, []
    for name, fact in facts.items():
        width = widths.get(name, fact.shape[-1])
        size = SIZES[fact.dtype]
        if width != fact.shape[-1] or not lies_well(fact.shape, fact.strides, size, size, name in dense):
            made[name] = copied(fixes, name, fact, fact.dtype, width if name in widths else None)
        else:
            made[name] = fact
    return made, tuple(fixes)


def copied(fixes, name, fact, word, width=None):
    """The fact of a contiguous copy, which is added to the fixes."""
    fixes.append((name, word, width))
    shape = fact.shape if width is None else fact.shape[:-1] + (width,)
    return layouts.Fact(shape, contiguous(shape), word, fact.device)

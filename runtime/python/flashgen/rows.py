"""What functions of rows, [..., width], share: from the arrays of a call to its launch and its gradients."""
import math

from . import layout as layouts
from .beside import check, copied, look, make
from .call import aligned, first_odd, fixed, perform, prepared
from .prepare import ALIGN, SIZES, Output, dtype_of, lies_well, title
from .spec import plan_texts

# Arrays that have the same dtype in every call, and are contiguous; and the dtypes that are converted to it.
WORDS = {"mean": "f32", "rstd": "f32", "lse": "f32", "loss": "f32", "dloss": "f32", "weight": "f32", "target": "i32"}
TAKEN = {"weight": ("f32", "f16", "bf16"), "target": ("i32", "int64")}
OWN = {"kept", *WORDS}  # what is not in the dtype of the caller's rows


class Pass:
    """What launches of a kind take and make, by the names of fg_args; a name that ends in "?" may be missing. The first array
    is [..., width]."""

    def __init__(self, kind, arrays, results):
        self.kind = kind
        self.arrays = tuple([name.rstrip("?") for name in arrays.split()])
        self.optional = tuple([name.rstrip("?") for name in arrays.split() if name[-1] == "?"])
        self.results = tuple([name.rstrip("?") for name in results.split()])
        self.wanted = tuple([name.rstrip("?") for name in results.split() if name[-1] == "?"])  # made where asked for
        self.always = tuple([name for name in self.results if name not in self.wanted])


class Kind:
    """A kernel of rows. A kind's options are a tuple of values, in the order of their names."""
    kernel = ""  # of specs
    op = ""  # torch.ops.flashgen has it by this name
    options = ("plan",)  # names
    declared = 'str plan=""'  # the same, as an operator declares them
    words = ("f16", "bf16", "f32")  # the dtypes that it computes
    is_aligned = False  # addresses and rows of its dtype are multiples of ALIGN
    ranks = {}  # name -> how many axes, where shapes follow from them
    forward = backward = None  # a Pass each
    gradients = {}  # name of an array -> of its gradient: a result of backward, or what backward takes
    ends = {}  # name of a result -> of its gradient, where there is one

    def shapes(self, given, options):
        """name -> shape of all arrays and results, from those that are given."""

    def texts(self, shapes, given, options, wants):
        """field -> text of the spec, but for kernel, pass, dtype and plan."""

    def takes(self, given, options, wants):
        """What backward takes of a forward's arrays and results, by names."""

    def word_of(self, name, word, options):
        """The dtype of an array or result as a kernel has it, which computes in `word`."""
        return WORDS.get(name, word)

    def numbers(self, options):
        """name -> number of the launch."""
        return {}


def prepare(adapter, one, values, wants, names, descriptions):
    """The call of a pass, of arrays that look like this."""
    kind, options = one.kind, dict(zip(one.kind.options, values))
    facts = look(adapter, names, descriptions)
    main = [name for name in names if name not in OWN]
    word = dtype_of(adapter, facts, main, options.get("dtype"), kind.words)
    shapes = check_shapes(one, facts, word, options)
    texts = {"kernel": kind.kernel, "pass": "forward" if one is kind.forward else "backward", "dtype": word,
             **kind.texts(shapes, names, options, wants), **plan_texts(options["plan"])}
    raw, words = facts[main[0]].dtype, {name: kind.word_of(name, word, options) for name in one.arrays + one.results}
    outputs = tuple([Output(name, shapes[name], words[name], words[name] if name in OWN else raw)
                     for name in one.always + wants])
    taken, fixes = as_rows(kind, facts, words)
    return make(adapter, texts, {"rows": math.prod(shapes[one.arrays[0]][:-1])}, taken, outputs, fixes,
                len(names) if kind.is_aligned else 0, numbers=kind.numbers(options), sm_margin=options.get("sm_margin", 0),
                strides=layouts.row_strides)


def check_shapes(one, facts, word, options):
    """That arrays have the shapes and dtypes that belong together; the shapes of all there is."""
    kind, first = one.kind, one.arrays[0]
    if not facts[first].shape:
        raise ValueError(f"{title(first)} has shape (); expected [..., width]")
    for name, rank in kind.ranks.items():
        if name in facts:
            check(name, facts[name], (None,) * rank, (facts[name].dtype,))
    shapes = kind.shapes({name: fact.shape for name, fact in facts.items()}, options)
    for name, fact in facts.items():
        check(name, fact, shapes[name],
              TAKEN.get(name, (kind.word_of(name, word, options),)) if name in OWN else (fact.dtype,))
    return shapes


def as_rows(kind, facts, words):
    """The facts as kernels take them, and the copies for it."""
    made, fixes = {}, []
    for name, fact in facts.items():
        is_dense = name in WORDS
        shape, strides = (fact.shape, fact.strides) if is_dense or fact.strides is None else \
            layouts.flat(fact.shape, fact.strides)
        size = SIZES[words[name]]
        align = ALIGN if kind.is_aligned and name not in OWN else size
        if fact.dtype == words[name] and lies_well(shape, strides, size, align, is_dense):
            made[name] = fact
        else:
            made[name] = copied(fixes, name, fact, words[name])
    return made, tuple(fixes)


def run(adapter, one, options, wants, given):
    """Launches a pass: name -> result, of those that it always makes and those that are wanted. given: name -> array."""
    call = prepared(prepare, adapter, one, options, wants, tuple(given), adapter.describe(given.values()))
    taken = fixed(adapter, call, given)
    addresses = adapter.addresses(taken.values())
    odd = first_odd(call, addresses, given)
    if odd is not None:
        return run(adapter, one, options, wants, aligned(adapter, given, odd))
    return dict(zip(one.always + wants, perform(adapter, call, addresses, given[one.arrays[0]])))


def launched(adapter, one, options, wants, given):
    """run(), or the pass's operator where PyTorch's compiler traces the program."""
    return adapter.launched(one, options, wants, given) if adapter.IS_TRACED else run(adapter, one, options, wants, given)


def gradients(adapter, kind, options, wanted, given):
    """name -> gradient of the arrays that are wanted; given: what backward takes."""
    needed = [kind.gradients[name] for name in wanted]
    made = dict(given)
    if not all([name in given for name in needed]):
        wants = tuple([name for name in kind.backward.wanted if name in needed])
        made.update(launched(adapter, kind.backward, options, wants, given))
    return {name: made[gradient] for name, gradient in zip(wanted, needed)}


def takes(kind, options, wants, given):
    """What backward takes of a forward's arrays and results, by names."""
    return kind.takes(given, dict(zip(kind.options, options)), wants)


def all_wants(kind, options, wants, given):
    """What a forward that backward will follow is asked for."""
    needed = takes(kind, options, wants, given)
    return wants + tuple([name for name in kind.forward.wanted if name in needed and name not in wants])

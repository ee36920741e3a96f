"""What follows from a call's options and the looks of its arrays: checks, the spec, the kernel and a filled fg_args."""
import ctypes as c

from . import layout as layouts
from . import spec
from .context import check, context, select
from .library import GIVEN, Args, InputValue, Shape, library, sized

ALIGN = 16  # bytes, of addresses and strides that the fast kernels take
KEPT = {"softmax": ("lse",), "logsoftmax": ("lse", "u"), "retention": ("r",)}  # by forward, for backward
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "e4m3": 1}
NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i32": "int32", "e4m3": "float8_e4m3fn"}
TITLES = {"o": "out", "w": "weight"}
DESCALES = {"q_descale": "q", "k_descale": "k", "v_descale": "v"}  # of which array
MAIN = ("q", "k", "v", "o", "dout")  # in the spec's dtype, o perhaps in float32, with head dims for columns
WORD = 8  # bytes
ARGS_WORDS = c.sizeof(Args) // WORD
INPUT_WORDS = c.sizeof(InputValue) // WORD
INPUTS_AT = Args.inputs.offset // WORD


class Output:
    """An array that the kernel writes: as the kernel has it, and in which dtype and width the caller gets it."""
    __slots__ = ("name", "shape", "word", "final_word", "final_width", "is_final", "is_like_q")

    def __init__(self, name, shape, word, final_word=None, final_width=None):
        self.name, self.shape, self.word = name, shape, word
        self.final_word = final_word or word
        self.final_width = None if shape[-1:] == (final_width,) else final_width
        self.is_final = self.final_word == word and self.final_width is None
        self.is_like_q = False


class Call:
    """A kernel at a shape, with all that a launch needs but addresses."""
    __slots__ = ("kernel", "shape", "shape_at",  # fg_kernel, fg_shape
                 "template", "words",  # an fg_args with its inputs behind it, and its type as an array of words
                 "places",  # the words that addresses go to: of what is given, then of outputs
                 "has_inputs", "outputs",
                 "fixes",  # (name, dtype, width) of what is copied before the launch
                 "changes",  # an output is not final
                 "aligned",  # so many arrays, the first ones, have addresses that are multiples of ALIGN
                 "copies_o",  # the caller's o is no place for the kernel to write to
                 "workspace",
                 "stream")  # a function that gives the current one


def prepare(adapter, backward, options, wants, names, descriptions):
    """The call of arrays that look like this; options: the values of an Options."""
    options, facts, dtype, layout = look(adapter, spec.Options(*options), names, descriptions)
    if options.scale is None and layout.d != spec.rounded_up(layout.d):
        options = options._replace(scale=layout.d ** -0.5)
    call = Call()
    call.outputs = gradients(facts, layout, dtype, options, wants) if backward else results(facts, layout, dtype, options, wants)
    call.copies_o = not backward and "o" in facts and not takes_o(facts, call.outputs[0])
    if not backward and "o" in facts:
        call.outputs = call.outputs[1:]
    facts, call.fixes = fixed_facts(facts, layout, dtype, options)
    call.changes = not all(output.is_final for output in call.outputs)
    for output in call.outputs:
        output.is_like_q = facts["q"][:3] == (output.shape, contiguous(output.shape), output.word)
    call.aligned = 1 if layout.kv in ("cached", "paged") else sum(name in MAIN for name in names)
    texts, device = spec.texts(options, layout, dtype, facts, wants, backward), context(facts["q"].device)
    if is_uneven(facts, layout):
        texts.setdefault("family", "mma,decode,simt")
    op, shape = device.op(texts), sized(Shape, align=alignment(facts, layout), **layout.extents)
    check_inputs(op, shape, facts, options)
    fill(call, facts, options.inputs, {name: getattr(options, name) for name in ("scale", "keep", "sigmoid_bias")},
         options.sm_margin)
    settle(call, adapter, device, op, shape)
    return call


def check_backward(adapter, options, wants, given):
    """That the spec of backward is one, before forward is launched: an input of a mask has no gradient, for example."""
    options, facts, dtype, layout = look(adapter, spec.Options(*options), given, adapter.describe(given.values()))
    context(facts["q"].device).op(spec.texts(options, layout, dtype, facts, wants, True))


def look(adapter, options, names, descriptions):
    """The options, the facts by name, the dtype that is computed in, and the layout; all that arrays tell is checked."""
    facts = dict(zip(names, adapter.facts(descriptions)))
    if "dout" in facts and facts["o"].dtype == "f32" != facts["q"].dtype:
        options = options._replace(o_dtype="f32")  # as it was made
    is_e4m3 = facts["q"].dtype == "e4m3"
    apart = ("o", "dout") * bool(options.o_dtype or is_e4m3) + ("k", "v") * (facts["k"].dtype == "e4m3" == facts["v"].dtype)
    alike = [name for name in MAIN if name in facts and (name not in apart or is_e4m3 and name in ("k", "v"))]
    dtype = dtype_of(adapter, facts, alike, options.dtype, ("f16", "bf16", "e4m3") if is_e4m3 else ("f16", "bf16"))
    if options.o_dtype not in (None, "f32") and not is_e4m3:
        raise ValueError(f'o_dtype is {options.o_dtype!r}; expected "f32", or None for the dtype of q')
    layout = layouts.read(facts, options.longest_q, options.longest_k)
    check_arrays(facts, options, layout, dtype)
    return options, facts, dtype, layout


def fill(call, facts, inputs=(), numbers=None, sm_margin=0, strides=layouts.strides):
    """The fg_args and the places of addresses in it. inputs: the declared ones; numbers: name -> one of GIVEN, or None;
    strides: a function that gives those of an fg_tensor."""
    args, values = arguments(facts, call.outputs, inputs, strides)
    args.sm_margin = sm_margin
    for name, value in (numbers or {}).items():
        if value is not None:
            setattr(args, name, value)
            args.given |= GIVEN[name]
    call.template = bytes(args) + bytes(values)
    call.words = c.c_uint64 * (len(call.template) // WORD)
    call.has_inputs = len(values) > 0
    call.places = tuple(place(name, inputs) for name in [*facts, *(output.name for output in call.outputs)])


def settle(call, adapter, device, op, shape):
    """What is left of a call: the kernel of an op, and what it needs beside arrays."""
    call.stream = adapter.stream_of(device.device)
    call.shape, call.shape_at = shape, c.addressof(shape)
    call.kernel = select(op, shape, call.stream())
    call.workspace = library().fg_workspace_bytes(call.kernel, call.shape_at)


# ---- checks ----


def dtype_of(adapter, facts, names, dtype, words=("f16", "bf16")):
    """The dtype that is computed in, one of words: that of some arrays, which is the same, or where kernels do not compute
    float32 what it is rounded to."""
    first = title(names[0])
    found = facts[names[0]].dtype
    for name in names:
        if facts[name].dtype != found:
            raise TypeError(f"{title(name)} is {long_name(facts[name].dtype)} and {first} {long_name(found)}: they have to be "
                            "equal")
    if dtype not in (None, "bf16", "f16"):
        raise ValueError(f'dtype is {dtype!r}; expected "bf16" or "f16"')
    if found == "f32" and found not in words and adapter.ROUNDED:
        return dtype or adapter.ROUNDED
    if found not in words:
        raise TypeError(f"{first} is {long_name(found)}: kernels compute {listed(long_name(word) for word in words)}, so cast "
                        f"{listed(title(name) for name in names)} first")
    if dtype not in (None, found):
        raise TypeError(f"{first} is {long_name(found)}, which is computed as it is: dtype={dtype!r} is for float32")
    return found


def listed(texts):
    """"q, k and v"."""
    *texts, last = texts
    return ", ".join(texts) + " and " + last if texts else last


def long_name(word):
    return NAMES.get(word, word)


def title(name):
    """What callers know an array as."""
    return TITLES.get(name) or name.replace("input.", "inputs: ")


def check_devices(facts, first):
    """All arrays are where the first one is, and kernels run there."""
    home = facts[first].device
    for name, (_, _, _, device) in facts.items():
        if device != home:
            raise ValueError(f"{title(name)} is on {device}, {title(first)} on {home}: all have to be on one device")
    if not home.startswith(("host", "cuda")):
        raise ValueError(f"{title(first)} is on {home}: kernels run on the CPU, which is the host device, and on CUDA's GPUs")


def check_arrays(facts, options, layout, dtype):
    e = layout.extents
    check_devices(facts, "q")
    rows = layout.rows()
    out = facts["q"].shape[:-1] + (layout.dv,)
    expected = {"o": (out, o_word(dtype, options.o_dtype) if dtype == "e4m3" else options.o_dtype), "dout": (out, None), "lse": (rows, "f32"), "dlse": (rows, "f32"), "r": (rows, "f32"),
                "u": (out, "f32"), "sink": ((e["h"],), None), "seed": ((4,), "i32")}
    expected.update({name: (fact.shape, None) for name, fact in facts.items() if name.startswith("input.")})  # check_inputs knows
    for name, (shape, word) in expected.items():
        if name in facts:
            check_array(name, facts[name], shape, word)
    check_descales(facts, options, e)
    if "dout" in facts and options.o_dtype and facts["dout"].dtype not in (dtype, options.o_dtype):
        raise wrong_dtype("dout", facts["dout"].dtype, (dtype, options.o_dtype))
    if "bias" in facts:
        full = (e["b"], e["h"], e["nq"], e["nk"])
        found = facts["bias"].shape
        check_array("bias", facts["bias"], found, None)
        if len(found) != 4 or any(n not in (1, whole) for n, whole in zip(found, full)):
            raise ValueError(f"bias has shape {found}; expected {full}, or 1 for any of its extents")


def check_descales(facts, options, extents):
    """float32 of each sequence and key/value head, or of its blocks of tokens, of arrays of e4m3 alone."""
    if options.descale_block and facts["k"].dtype != "e4m3":
        raise ValueError(f"descale_block is {options.descale_block}, and k is {long_name(facts['k'].dtype)}")
    for name, of in DESCALES.items():
        if name not in facts:
            continue
        if facts[of].dtype != "e4m3":
            raise ValueError(f"{name} is given, and {of} is {long_name(facts[of].dtype)}")
        shape = extents["b"], extents["hk"]
        if options.descale_block:
            shape += (-(-extents["nq" if of == "q" else "nk"] // options.descale_block),)
        check_array(name, facts[name], shape, "f32")


def check_array(name, fact, shape, word):
    if fact.shape != shape:
        raise ValueError(f"{title(name)} has shape {fact.shape}; expected {shape}")
    words = (word,) if word else tuple(NAMES) if name.startswith("input.") else ("f16", "bf16", "f32")
    if fact.dtype not in words:
        raise wrong_dtype(name, fact.dtype, words)


def wrong_dtype(name, found, words):
    return TypeError(f"{title(name)} is {long_name(found)}; expected {' or '.join(long_name(word) for word in words)}")


def check_inputs(op, shape, facts, options):
    """An input on which nothing depends has no place in fg_args.inputs; the library knows the extents of the others."""
    used = spec.input_names(library().fg_op_inputs(op).decode()) if options.inputs else ()
    for x in options.inputs:
        if x.name not in used:
            raise ValueError(f"inputs: mask and score do not depend on {x.name}: leave it out")
    for i, x in enumerate(options.inputs):
        if isinstance(x, spec.Axes):
            extents = (c.c_int64 * 4)()
            check("fg_input_extents", op, i, c.byref(shape), extents)
            check_array("input." + x.name, facts["input." + x.name], tuple(n for n in extents if n >= 0), None)


# ---- copies ----


def fixed_facts(facts, layout, dtype, options):
    """The facts as kernels take them, and the arrays that have to be copied for it: (name, dtype, width or None)."""
    fixes, fixed = [], dict(facts)
    for name, (shape, strides, word, device) in facts.items():
        want_word, want_width, align = word, None, SIZES[word]
        if name in MAIN:
            width = layout.dv if name in ("v", "o", "dout") else layout.d
            want_word = o_word(dtype, options.o_dtype) if name == "o" else "e4m3" if word == "e4m3" else dtype
            want_width, align = spec.rounded_up(width), ALIGN
        if name in ("k", "v") and layout.kv in ("cached", "paged"):
            align = SIZES[word]
        if name == "sink":
            want_word = "f32"
        is_dense = name in ("lse", "dlse", "r", "sink", "seed") or name in layouts.PLACES and name != "table"
        if word == want_word and want_width in (None, shape[-1]) and lies_well(shape, strides, SIZES[word], align, is_dense):
            continue
        fixes.append((name, want_word, want_width))
        shape = shape[:-1] + (shape[-1] if want_width is None else want_width,)
        fixed[name] = layouts.Fact(shape, contiguous(shape), want_word, device)
    return fixed, tuple(fixes)


def lies_well(shape, strides, size, align, is_dense):
    """Whether a kernel takes the strides."""
    if strides is None:
        return False
    if is_dense:
        return all(s == t for n, s, t in zip(shape, strides, contiguous(shape)) if n != 1) or 0 in shape
    return all(n <= 1 or s >= 0 and s * size % align == 0 for n, s in zip(shape[:-1], strides)) and \
        (shape[-1] <= 1 or strides[-1] == 1)


def contiguous(shape):
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return tuple(strides)


def takes_o(facts, output):
    """Whether the kernel can write where the caller wants o."""
    shape, strides, word, _ = facts["o"]
    return output.is_final and word == output.word and lies_well(shape, strides, SIZES[word], ALIGN, False)


def alignment(facts, layout):
    """fg_shape.align: less than 16 bytes for a cache whose strides ask for it; it is not copied."""
    align = ALIGN
    if layout.kv in ("cached", "paged"):
        for name in ("k", "v"):
            shape, strides, word, _ = facts[name]
            while any(n > 1 and s * SIZES[word] % align for n, s in zip(shape[:-1], strides)):
                align //= 2
    return align


def is_uneven(facts, layout):
    """Whether a cache's sequences or pages are no whole number of rows apart: wgmma's tensor maps have no such axis."""
    if layout.kv not in ("cached", "paged"):
        return False
    return any(shape[0] > 1 and strides[1] and strides[0] % strides[1]
               for shape, strides, _, _ in (facts["k"], facts["v"]))


# ---- outputs ----


def results(facts, layout, dtype, options, wants):
    e, raw = layout.extents, facts["q"].dtype
    out = facts["q"].shape[:-1] + (spec.rounded_up(layout.dv),)
    rows = layout.rows()
    made = {"lse": Output("lse", rows, "f32"), "r": Output("r", rows, "f32"),
            "u": Output("u", out, "f32", None, layout.dv), "max_logit": Output("max_logit", (e["b"], e["h"]), "f32")}
    word, final = o_word(dtype, options.o_dtype), o_word(raw, options.o_dtype)
    return (Output("o", out, word, final, layout.dv), *(made[name] for name in wants))


def o_word(dtype, o_dtype):
    """What o is computed in, from q in dtype."""
    return o_dtype or ("bf16" if dtype == "e4m3" else dtype)


def gradients(facts, layout, dtype, options, wants):
    made, wide = [], options.grad_dtype
    for name, width in (("q", layout.d), ("k", layout.d), ("v", layout.dv)):
        shape, _, raw, _ = facts[name]
        made.append(Output("d" + name, shape[:-1] + (spec.rounded_up(width),), wide or dtype, wide or raw, width))
    for name in wants:
        shape, _, raw, _ = facts[name]
        made.append(Output("d" + name, shape, "f32" if name == "sink" else raw, raw))
    return tuple(made)


# ---- fg_args ----


def arguments(facts, outputs, inputs, strides_of):
    """An fg_args and its inputs, without addresses and numbers."""
    args, values = sized(Args), (InputValue * len(inputs))()
    for value, x in zip(values, inputs):
        value.size = c.sizeof(InputValue)
        value.number = x.value if isinstance(x, spec.Number) else 0.0
    shapes = {name: (shape, strides) for name, (shape, strides, _, _) in facts.items()}
    shapes.update({output.name: (output.shape, contiguous(output.shape)) for output in outputs})
    for name, (shape, strides) in shapes.items():
        tensor = find(args, values, name, inputs)
        tensor.stride[:] = strides_of(name, shape, strides)
    args.n_inputs = len(values)
    return args, values


def find(args, values, name, inputs):
    """The fg_tensor of a name in an fg_args and its inputs."""
    base, is_gradient = split(name)
    if base is None:
        return getattr(args, name)
    value = values[[x.name for x in inputs].index(base)]
    return value.grad if is_gradient else value.value


def place(name, inputs):
    """Which word of the template is the address of a name."""
    base, is_gradient = split(name)
    if base is None:
        return getattr(Args, name).offset // WORD
    at = [x.name for x in inputs].index(base)
    member = InputValue.grad if is_gradient else InputValue.value
    return ARGS_WORDS + at * INPUT_WORDS + member.offset // WORD


def split(name):
    """("slope", False) of input.slope, ("slope", True) of dinput.slope, (None, False) of other names."""
    first, dot, base = name.partition(".")
    return (base, first == "dinput") if dot else (None, False)

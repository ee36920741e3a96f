"""Checks the options of a call, and makes the key of its prepared call. Each mistake is one sentence."""
import numbers

LONGEST = 1 << 30  # more than a length may be
RANGES = {"longest_q": LONGEST, "longest_k": LONGEST, "sm_margin": 1 << 31, "descale_block": LONGEST}  # from 0, below
FLOATS = ("scale", "sigmoid_bias", "eps")
DTYPES = ("dtype", "o_dtype", "grad_dtype")
LARGEST = 1 << 64  # of an int that becomes a float


def check_numbers(**given):
    """A tensor is none: its value may change, and calls are kept by what they are given."""
    for name, x in given.items():
        if x is None:
            continue
        if not isinstance(x, numbers.Real if name in FLOATS else numbers.Integral):
            raise TypeError(f"{name} is a {type(x).__name__}; expected a number")
        if name in RANGES and not 0 <= x < RANGES[name]:
            raise ValueError(f"{name} is {shown(x)}; expected a number from 0 to {RANGES[name] - 1}")
        check_size(name, x)


def check_size(name, x):
    if isinstance(x, numbers.Integral) and not -LARGEST <= x <= LARGEST:
        raise ValueError(f"{name} is {shown(x)}; expected a number of at most 2^64 in size")


def shown(x):
    """A number, of which nobody reads hundreds of digits."""
    return f"{x}" if -LARGEST <= x <= LARGEST else f"an int of {int(x).bit_length()} bits"


def check_words(**given):
    """Texts; a dtype may be None."""
    for name, x in given.items():
        if not isinstance(x, str) and not (x is None and name in DTYPES):
            raise TypeError(f"{name} is a {type(x).__name__}; expected a word, a text")


def check_expressions(mask, score):
    for name, x in (("mask", mask), ("score", score)):
        if x is None or type(x) is str:
            continue
        raise TypeError(f"{name} is a {type(x).__name__}; expected an expression, a text. An array is an input that it reads: " + (
            'mask="seen[b, k] != 0", inputs={"seen": ("b, k", x)} with x in int32; or a bias with -inf' if name == "mask" else
            'score="s + x[h, q, k]", inputs={"x": ("h, q, k", x)}; or a bias'))


def settled_dropout(dropout):
    """The probability of a weight to be kept; None: there is no dropout."""
    if not isinstance(dropout, numbers.Real):
        raise TypeError(f"dropout is a {type(dropout).__name__}; expected a number from 0 to 1")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout is {dropout}; expected a number from 0 to 1")
    return 1.0 - dropout if dropout else None


def definitions(define):
    """(head, text) of each definition, or None."""
    if not define:
        return None
    if not hasattr(define, "items") or not all([isinstance(x, str) for pair in define.items() for x in pair]):
        raise TypeError(f'define is {define!r:.60}; expected a dict of texts: {{"near(n)": "p - k < n"}}')
    return tuple(define.items())


def frozen(plan):
    """The restrictions, (field, value) each, or None."""
    if not plan:
        return None
    if not hasattr(plan, "items"):
        raise TypeError(f"plan is a {type(plan).__name__}; expected a dict: {{'family': 'simt'}}")
    made = tuple([(field, tuple(value) if isinstance(value, list) else value) for field, value in plan.items()])
    for field, value in made:
        for x in value if isinstance(value, tuple) else (value,):
            if not isinstance(x, (str, numbers.Integral)):
                raise TypeError(f"plan: {field} is {value!r:.60}; expected a word or a number, or a list of some")
    return made

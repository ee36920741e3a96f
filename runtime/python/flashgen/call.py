"""A launch, from arrays. What it needs beside addresses follows from options and the looks of the arrays, which are the
key of a prepared call: a hot call looks it up, puts addresses into a copy of its fg_args and launches."""
import ctypes as c

from .context import calls
from .errors import raise_for
from .library import library
from .prepare import ALIGN, ARGS_WORDS, INPUTS_AT, WORD, prepare

MOST_CALLS = 4096  # prepared calls that are kept; all are dropped when there are so many


def run(adapter, backward, options, wants, given):
    """Launches, and returns a list of outputs: o, or dq, dk and dv, then those of wants.

    given: name -> array, first of all q, k, v, then o where it is the caller's; of backward dout and o. options: the
    values of an Options. wants: what forward writes beside o; of which of the others backward writes the gradient."""
    call = prepared(prepare, adapter, backward, options, wants, tuple(given), adapter.describe(given.values()))
    if call.copies_o:
        return run_into(adapter, options, wants, given)
    taken = fixed(adapter, call, given)
    addresses = adapter.addresses(taken.values())
    odd = first_odd(call, addresses, given)
    if odd is not None:
        if odd == "o" and not backward:
            return run_into(adapter, options, wants, given)
        return run(adapter, backward, options, wants, aligned(adapter, given, odd))
    made = perform(adapter, call, addresses, taken["q"])
    return made if backward or "o" not in given else [given["o"], *made]


def prepared(make, adapter, *key):
    """make(adapter, *key), the call that a key describes; made once."""
    call = calls.get(key)
    if call is None:
        call = make(adapter, *key)
        if len(calls) >= MOST_CALLS:
            calls.clear()
        calls[key] = call
    return call


def fixed(adapter, call, given):
    """The arrays as the kernel takes them."""
    if not call.fixes:
        return given
    return {**given, **{name: adapter.fixed(given[name], *how) for name, *how in call.fixes}}


def perform(adapter, call, addresses, like):
    """Makes the outputs, on the device of `like`, and launches; addresses: of what is given."""
    made = [adapter.empty_like(like) if output.is_like_q else adapter.empty(output.shape, output.word, like)
            for output in call.outputs]
    addresses += adapter.addresses(made)
    workspace = None
    if call.workspace:
        scratch = adapter.empty((call.workspace,), "u8", like)
        workspace, = adapter.addresses((scratch,))
    launch(call, addresses, workspace, call.stream())
    if call.changes:
        made = [x if output.is_final else adapter.unfixed(x, output.final_word, output.final_width)
                for output, x in zip(call.outputs, made)]
    return made


def launch(call, addresses, workspace, stream):
    words = call.words.from_buffer_copy(call.template)
    for place, address in zip(call.places, addresses):
        words[place] = address
    if call.has_inputs:
        words[INPUTS_AT] = c.addressof(words) + ARGS_WORDS * WORD
    lib = library()
    status = lib.fg_launch(call.kernel, call.shape_at, words, workspace, stream)
    if status:
        raise_for(status, lib.fg_error().decode())


def run_into(adapter, options, wants, given):
    """Forward, into an o of the caller's that the kernel cannot write to."""
    o, *results = run(adapter, False, options, wants, {name: x for name, x in given.items() if name != "o"})
    adapter.copy_into(given["o"], o)
    return [given["o"], *results]


def first_odd(call, addresses, given):
    """The name of the first array whose address the kernel does not take, or None."""
    for i in range(call.aligned):
        if addresses[i] % ALIGN:
            return list(given)[i]
    return None


def aligned(adapter, given, name):
    """What is given, with a copy of an array whose address is odd."""
    x = given[name]
    fact, = adapter.facts(adapter.describe((x,)))
    return {**given, name: adapter.fixed(x, fact.dtype, None)}

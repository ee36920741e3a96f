"""A launch, from arrays. What it needs beside addresses follows from options and the looks of the arrays, which are the
key of a prepared call: a hot call looks it up, puts addresses into a copy of its fg_args and launches."""
import ctypes as c

from .context import calls
from .errors import raise_for
from .library import library
from .prepare import ALIGN, ARGS_WORDS, INPUTS_AT, WORD, prepare

MOST_CALLS = 4096  # prepared calls that are kept; all are dropped when there are so many


def run(adapter, backward, options, wants, given):
    """Launches, and returns the outputs by name. given: name -> array, first of all q, k, v, of backward dout and o
    too; wants: what forward writes beside o, of which of the others backward writes the gradient."""
    describe = adapter.describe
    names, descriptions = tuple(given), tuple([describe(x) for x in given.values()])
    key = backward, options, wants, names, descriptions
    call = calls.get(key)
    if call is None:
        call = prepare(adapter, *key)
        if len(calls) >= MOST_CALLS:
            calls.clear()
        calls[key] = call
    if call.copies_o:
        return run_into(adapter, options, wants, given)
    if call.fixes:
        given = {**given, **{name: adapter.fixed(given[name], *how) for name, *how in call.fixes}}
    pointer, empty, like = adapter.pointer, adapter.empty, given["q"]
    addresses = [pointer(x) for x in given.values()]
    for name, address in zip(call.aligned, addresses):
        if address % ALIGN:
            return run_aligned(adapter, *key[:3], given, name)
    made = [empty(output.shape, output.word, like) for output in call.outputs]
    addresses += [pointer(x) for x in made]
    workspace = empty((call.workspace,), "u8", like) if call.workspace else None
    launch(call, addresses, workspace is not None and pointer(workspace), adapter.stream(call.device))
    results = {output.name: x if output.is_final else adapter.unfixed(x, output.final_word, output.final_width)
               for output, x in zip(call.outputs, made)}
    if not backward and "o" in given:
        results["o"] = given["o"]
    return results


def launch(call, addresses, workspace, stream):
    words = call.words.from_buffer_copy(call.template)
    for place, address in zip(call.places, addresses):
        words[place] = address
    if call.has_inputs:
        words[INPUTS_AT] = c.addressof(words) + ARGS_WORDS * WORD
    lib = library()
    status = lib.fg_launch(call.kernel, c.byref(call.shape), words, workspace or None, stream)
    if status:
        raise_for(status, lib.fg_error().decode())


def run_into(adapter, options, wants, given):
    """Forward, into an o of the caller's that the kernel cannot write to."""
    others = {name: x for name, x in given.items() if name != "o"}
    results = run(adapter, False, options, wants, others)
    adapter.copy_into(given["o"], results["o"])
    return {**results, "o": given["o"]}


def run_aligned(adapter, backward, options, wants, given, name):
    """The same with a copy of an array whose address is odd."""
    if name == "o" and not backward:
        return run_into(adapter, options, wants, given)
    word = adapter.facts(adapter.describe(given[name]))[2]
    return run(adapter, backward, options, wants, {**given, name: adapter.fixed(given[name], word, None)})

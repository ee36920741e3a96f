"""What a call raises: an exception of Python by who must act, with the library's own sentence.

    ValueError            an argument, a tensor or an expression is not what it should be
    TypeError             the same of a dtype, a device or a kind of array
    NotImplementedError   no family of kernels computes it
    RuntimeError          the device, the compiler, a file or memory; FlashgenMissing: the library itself is not there
"""


class FlashgenMissing(RuntimeError):
    """The shared library is not there, or it is one of another version."""


ARGUMENT, SPEC = 1, 2  # fg_status: FG_EARGUMENT, FG_ESPEC


def raise_for(status, sentence, selecting=False):
    """Raises for a status that is not FG_OK. selecting: of fg_select, to which a spec is right in itself."""
    if status == SPEC and selecting:
        raise NotImplementedError(sentence)
    if status in (ARGUMENT, SPEC):
        raise ValueError(sentence)
    raise RuntimeError(sentence)

"""append: new rows of a cache, and their rotary embedding."""
from .append_call import CACHE, run
from .attention import adapter_of, check_kinds


def append(k, v, k_new, v_new, *, used_k, starts_q=None, used_q=None, rows=None, table=None, q=None, rotary_cos=None,
           rotary_sin=None, rotary="halves", row_positions=None, k_descale=None, v_descale=None):
    """Writes new keys and values to a cache, in place: row i of sequence b goes to place used_k[b] + i. What gets no row
    keeps its bits; a row whose place the cache does not have is not written. attention() takes used_k with the new rows.

    k, v          the cache [caches, nk, hk, d], or pages [pages, page, hk, d] with table; v may have another d
    k_new, v_new  [b, n, hk, d], or packed [tokens, hk, d] with starts_q
    used_k        int32 [b]: the lengths before
    starts_q, used_q, rows, table
                  int32, where sequences lie, as of attention()
    rotary_cos, rotary_sin
                  [positions, rotary_dim / 2], in the dtype of k_new or float32: keys are turned by their positions, which are
                  their places or row_positions, int32 [b, n] or [tokens]. A key whose position they lack is not written
    rotary        which columns are a pair: "halves", i and i + rotary_dim / 2, or "interleaved", 2i and 2i + 1
    k_descale, v_descale
                  float32 [b, hk], of a cache of float8_e4m3fn (of NumPy that of ml_dtypes, or uint8): new keys, once they are
                  turned, and values are divided by that of their sequence and head and rounded, to 448 at most; None: 1
    q             queries [b, n, h, d] or [tokens, h, d], which are turned as the new keys are; 0 without a position

    Returns the turned queries, or None. A cache whose head dim is no multiple of 8, or whose columns are apart, is copied
    there and back."""
    given = {"k": k, "v": v, "k_new": k_new, "v_new": v_new, "used_k": used_k}
    others = {"starts_q": starts_q, "used_q": used_q, "rows": rows, "table": table, "q": q, "rotary_cos": rotary_cos,
              "rotary_sin": rotary_sin, "row_positions": row_positions, "k_descale": k_descale, "v_descale": v_descale}
    given.update((name, x) for name, x in others.items() if x is not None)
    if rotary not in ("halves", "interleaved"):
        raise ValueError(f'rotary is {rotary!r}; expected "halves" or "interleaved"')
    adapter = adapter_of(k)
    try:
        check_alterable(adapter, given)
        return adapter.append(rotary, given) if adapter.IS_TRACED else run(adapter, rotary, given)
    except AttributeError:
        check_kinds(adapter, given, "k")
        raise


def check_alterable(adapter, given):
    if adapter.needs_gradient(given):
        raise ValueError("a tensor requires a gradient, which append does not have: call it under torch.no_grad()")
    for name in CACHE:
        adapter.check_writable(given[name], name)

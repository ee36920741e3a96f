"""The launch of append: from its arrays to a call."""
from .beside import check, fixed, look, make
from .call import fixed as copies
from .call import perform, prepared
from .layout import PLACES
from .prepare import Output, long_name
from .spec import rounded_up

CACHE = ("k", "v")
ROWS = ("k_new", "v_new", "q")
TABLES = ("rotary_cos", "rotary_sin")
DESCALES = ("k_descale", "v_descale")


def run(adapter, rotary, given):
    """Writes to the cache, and returns the queries that were turned, or None. given: name -> array."""
    call = prepared(prepare, adapter, "append", rotary, tuple(given), adapter.describe(given.values()))
    taken = copies(adapter, call, given)
    made = perform(adapter, call, adapter.addresses(taken.values()), given["k"])
    for name in CACHE:
        if taken[name] is not given[name]:
            adapter.copy_into(given[name], taken[name][..., :given[name].shape[-1]])
    return made[0] if made else None


def prepare(adapter, _, rotary, names, descriptions):
    facts = look(adapter, names, descriptions)
    extents = extents_of(facts)
    d, dv, of_cache, word = facts["k"].shape[-1], facts["v"].shape[-1], facts["k"].dtype, facts["k_new"].dtype
    check_all(facts, extents, of_cache, word)
    texts = {"kernel": "append", "dtype": word, "head_dim": f"{rounded_up(d)}/{rounded_up(dv)}",
             "kv_dtype": "e4m3" if of_cache == "e4m3" else "spec", "q_layout": "packed" if "starts_q" in facts else "dense", "kv_layout": "paged" if "table" in facts else "cached"}
    if "rotary_cos" in facts:
        table = facts["rotary_cos"]
        extents["positions"] = table.shape[0]
        texts.update(rotary=rotary, rotary_dim=str(2 * table.shape[1]),
                     rotary_dtype="f32" if table.dtype == "f32" else "spec")
    outputs = ()
    if "q" in facts:
        shape = facts["q"].shape[:-1] + (rounded_up(d),)
        outputs = (Output("q_out", shape, word, word, d),)
    widths = {name: rounded_up(dv if name in ("v", "v_new") else d) for name in CACHE + ROWS if name in facts}
    taken, fixes = fixed(facts, widths, {"row_positions", *PLACES} - {"table"})
    return make(adapter, texts, extents, taken, outputs, fixes)


def extents_of(facts):
    """Members of fg_shape, but for positions."""
    k, k_new = facts["k"].shape, facts["k_new"].shape
    is_packed = "starts_q" in facts
    for name, rank in (("k", 4), ("v", 4), ("k_new", 3 if is_packed else 4), ("used_k", 1), ("starts_q", 1), ("table", 2)):
        if name in facts:
            check(name, facts[name], (None,) * rank, (facts[name].dtype,))
    heads = facts["q"].shape[-2] if "q" in facts and len(facts["q"].shape) == len(k_new) else k[2]
    extents = {"b": facts["used_k"].shape[0], "h": heads, "hk": k[2], "nq": 0 if is_packed else k_new[1], "pages": k[0]}
    if is_packed:
        extents["tokens_q"] = k_new[0]
    if "table" in facts:
        extents.update(page=k[1], nk=k[1] * facts["table"].shape[1])
    else:
        extents["nk"] = k[1]
    return extents


def check_all(facts, e, of_cache, word):
    k, v = facts["k"].shape, facts["v"].shape
    rows = (e["tokens_q"],) if "starts_q" in facts else (e["b"], e["nq"])
    words_of_k_new = ("f16", "bf16") if of_cache == "e4m3" else (of_cache,)
    expected = {"v": k[:-1] + (None,), "k_new": (*rows, *k[2:]), "v_new": (*rows, *v[2:]), "q": (*rows, None, k[3]),
                "row_positions": rows, "starts_q": (e["b"] + 1,), "table": (e["b"], None)}
    for name, fact in facts.items():
        shape = expected.get(name, (e["b"],))
        if name in CACHE:
            check(name, fact, expected.get(name, fact.shape), ("f16", "bf16", "e4m3") if name == "k" else (of_cache,))
        elif name in ROWS:
            check(name, fact, expected.get(name, fact.shape), words_of_k_new if name == "k_new" else (word,))
        elif name in DESCALES:
            check(name, fact, (e["b"], e["hk"]), ("f32",))
        elif name not in TABLES:
            check(name, fact, shape, ("i32",))
    if e["h"] % e["hk"] if e["hk"] else e["h"]:
        raise ValueError(f"q has {e['h']} heads, which is not a multiple of the {e['hk']} of k and v")
    for given, missing in (("used_q", "starts_q"), ("q", "rotary_cos"), ("row_positions", "rotary_cos"),
                           ("rotary_cos", "rotary_sin"), ("rotary_sin", "rotary_cos")):
        if given in facts and missing not in facts:
            raise ValueError(f"{given} is given without {missing}")
    if "rows" in facts and "table" in facts:
        raise ValueError("rows is for a cache without pages: a table says where each sequence is")
    for name in DESCALES:
        if name in facts and of_cache != "e4m3":
            raise ValueError(f"{name} is given, and the cache is {long_name(of_cache)}")
    if "rotary_cos" in facts:
        check_tables(facts, k[3], word)


def check_tables(facts, d, word):
    cos, sin = (facts[name] for name in TABLES)
    check("rotary_cos", cos, (None, None), (word, "f32"))
    check("rotary_sin", sin, cos.shape, (cos.dtype,))
    if not 0 < 2 * cos.shape[1] <= d:
        raise ValueError(f"rotary_cos has {cos.shape[1]} columns; expected from 1 to {d // 2}, half the head dim")

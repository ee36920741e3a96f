#!/usr/bin/env python3
"""Random specs in which features meet, and what `flashgen check` says of each.

combos.py words N SEED [WORD ...]                   the specs, a line each
combos.py list TOOL N SEED [WORD ...]               the family of each spec's first plan, by pass; needs no GPU
combos.py check TOOL N SEED DEVICE [WORD ...]       checks each; prints every finding, and fails if there is one

TOOL is the program flashgen. Further words are added to each spec: family=mma restricts its plans, pass=forward
replaces the pass. Equal arguments give equal specs. A finding is a spec that is refused without one of the reasons
in `REFUSALS`, that does not compile, or whose results are wrong. One whose first plan spills is right with another
plan. A spec that has the words of a line of tests/design/known.txt has a known fault: it is counted, and is no finding.
As many processes run as there are cores, so that on a GPU all cores compile.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

KNOWN = pathlib.Path(__file__).parent / "design" / "known.txt"
DOCUMENTS = "mask=k<=p&&doc[b,q]==own[b,k] inputs.doc=i32[b,q] inputs.own=i32[b,k]"
AXES = {
    "pass": ["pass=forward", "pass=backward"],
    "dtype": ["", "dtype=f16"],
    "head_dim": ["head_dim=" + d for d in ("40", "64", "96", "128", "192", "256", "192/128", "512")],
    "mask": ["", "mask=causal", "mask=window(1023,0)", DOCUMENTS, "mask=k<=p&&k>=first[b] inputs.first=i32[b]"],
    "score": ["", "score=softcap(30.0)", "score=alibi(slope) inputs.slope=f32[h]GRAD",
              "score=s+near[h,min(max(p-k,0),31)] inputs.near=f32[h,32]GRAD", "score=s/(1.0+abs(s))"],
    "normalizer": [""] * 3 + ["normalizer=" + n for n in ("sigmoid", "retention", "logsoftmax", "none")],
    "bias": ["", "", "bias=true bias_dims=h,q,k", "bias=grad bias_dims=h,q,k"],
    "dropout": ["", "", "dropout=true"],
    "sink": ["", "", "sink=true", "sink=grad"],
    "max_logit": [""] * 3 + ["max_logit=true"],
    "layout": ["", "", "q_layout=packed kv_layout=packed", "kv_layout=cached", "kv_layout=paged", "slices=true", "shard=true"],
    "deterministic": ["", "deterministic=true"],
    "batch_invariant": [""] * 3 + ["batch_invariant=true"],
    "o_dtype": ["", "", "o_dtype=f32"],
    "kv_dtype": [""] * 4 + ["kv_dtype=e4m3"],
}
FORWARD = ("max_logit", "batch_invariant", "kv_dtype")

# Parts of the library's reasons for what it does not have.
REFUSALS = ("no plan fits", "takes multiples of 16", "backward takes dense or packed keys", "has no fixed order",
            "runs over slices of any places", "of pairs of")


def without_the_impossible(choice):
    """The choice without what the documentation rules out, in a fixed order."""
    if "backward" in choice["pass"]:
        choice.update({name: "" for name in FORWARD})
        if choice["layout"] in ("kv_layout=cached", "kv_layout=paged"):
            choice["layout"] = "q_layout=packed kv_layout=packed"
    else:
        choice["deterministic"] = ""
    if choice["normalizer"]:
        choice.update(dropout="", sink="")
    if choice["head_dim"] == "head_dim=40":
        choice["kv_dtype"] = ""
    if choice["layout"]:
        choice["bias"] = ""
    return choice


def words_of(choice, more):
    grad = "grad" if "backward" in choice["pass"] else ""
    words = " ".join(choice[name] for name in AXES if choice[name]).replace("GRAD", grad).split()
    given = {word.split("=")[0] for word in more}
    return [word for word in words if word.split("=")[0] not in given] + list(more)


def specs(n, seed, more):
    draw = random.Random(int(seed))
    for _ in range(int(n)):
        choice = {name: draw.choice(levels) for name, levels in AXES.items()}
        for word in more:
            if word.startswith("pass="):
                choice["pass"] = word
        yield words_of(without_the_impossible(choice), more)


def known_faults():
    lines = [line.split() for line in KNOWN.read_text().splitlines() if line and line[0] != "#"]
    return [(line[0], set(line[1:])) for line in lines]


def fault_of(words, faults):
    return next((name for name, needed in faults if needed <= set(words)), None)


def print_words(n, seed, *more):
    for words in specs(n, seed, more):
        print(" ".join(words))


def print_list(tool, n, seed, *more):
    count = collections.Counter()
    for words in specs(n, seed, more):
        done = subprocess.run([tool, "list", "--json", *words], capture_output=True, text=True)
        variants = json.loads(done.stdout)["variants"] if not done.returncode else []
        count[words[0], variants[0]["plan"].split("-")[0] if variants else "refused"] += 1
    for key in sorted(count):
        print(*key, count[key], sep="\t")


def check_one(job):
    tool, device, number, words = job
    command = [tool, "check", "--device", device, "-q", "-j", "1", "--seed", str(1000 + number), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return number, words, "timeout", ""
    return number, words, done.returncode, done.stdout + done.stderr


def verdict_of(words, code, text, faults):
    """"right", "right with another plan", "refused", "known N", or what is found."""
    refusal = text.partition("instead of another plan: ")[2]
    if code == 0 and " error: " not in refusal:
        return "right with another plan" if refusal else "right"
    if code == 2 and any(reason in text for reason in REFUSALS):
        return "refused"
    families = [f"family={family}" for family in ("simt", "mma", "wgmma", "decode") if f".{family}-" in text]
    fault = fault_of(words + families, faults)
    if fault:
        return f"known {fault}"
    return f"exit {code}" if code else "does not compile"


def check_all(tool, n, seed, device, *more):
    faults, count, found = known_faults(), collections.Counter(), 0
    jobs = [(tool, device, number, words) for number, words in enumerate(specs(n, seed, more))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, words, code, text in pool.map(check_one, jobs):
            if code == 3:  # the machine lacks the device
                pool.shutdown(cancel_futures=True)
                print(text)
                return 77
            verdict = verdict_of(words, code, text, faults)
            count[verdict] += 1
            if verdict.split()[0] in ("exit", "timeout", "does"):
                found += 1
                print(f"{number}\t{verdict}\t{' '.join(words)}\n{text[-900:]}", flush=True)
    print(", ".join(f"{count[verdict]} {verdict}" for verdict in sorted(count)))
    return 1 if found else 0


if __name__ == "__main__":
    commands = {"words": (print_words, 2), "list": (print_list, 3), "check": (check_all, 4)}
    command, least = commands.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if not command or len(sys.argv) < 2 + least:
        sys.exit(__doc__)
    sys.exit(command(*sys.argv[2:]))

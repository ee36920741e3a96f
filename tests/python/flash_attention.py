#!/usr/bin/env python3
"""flash_attention.py - FlashAttention's own tests, run on flashgen's functions: a sample of them, and how it went as a table.

    git clone https://github.com/Dao-AILab/flash-attention
    FLASHGEN_LIBRARY=build/libflashgen.so PYTHONPATH=runtime/python \\
      python3 tests/python/flash_attention.py --repository flash-attention --version 2 --cases 4000 --jobs 16

It needs a GPU, PyTorch, pytest and einops. Functions of a few cases are run whole; of all others together as many cases as
--cases says, the same ones for the same --seed. Workers take case after case from one list, and share the cache of kernels. A
worker has its share of the GPU's memory; what does not fit into it is run again at the end, alone, and told. A case that ends
its process has failed, and another worker goes on. Exit: 0 no case failed, 1 some did or were not run, 2 nothing was run."""
import argparse
import collections
import json
import pathlib
import sys
import tempfile

import workers

def main():
    options = arguments()
    if options.worker:
        from flash_worker import work
        return work(options)
    with tempfile.TemporaryDirectory() as folder:
        record, not_run = workers.Pool(pathlib.Path(folder), [__file__, *sys.argv[1:]], options.jobs, options.seconds).run()
    if options.record:
        pathlib.Path(options.record).write_text(json.dumps(record))
    tell(record, not_run)
    outcomes = {case["outcome"] for case in record}
    sys.exit(1 if "failed" in outcomes or not_run else 0 if "passed" in outcomes else 2)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--repository", required=True, type=pathlib.Path, help="a checkout of flash-attention")
    parser.add_argument("--version", type=int, choices=(2, 3), default=2, help="of FlashAttention")
    parser.add_argument("--cases", type=int, default=4000, help="how many of the functions that have many; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--match", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--jobs", type=int, default=1, help="workers, a process each")
    parser.add_argument("--memory", type=float, help="the part of the GPU's memory that each worker may take; 0.9 / jobs")
    parser.add_argument("--seconds", type=float, help="after so many no case is begun; what is left is told")
    parser.add_argument("--record", help="a file that gets the outcomes as JSON")
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)  # the folder of a worker's pool
    return parser.parse_args()


# ---- telling ----


def tell(record, not_run):
    """A row of each function, why cases were skipped, and which failed; and how many were not run."""
    counts = collections.defaultdict(collections.Counter)
    for case in record:
        counts[case["function"]][case["outcome"]] += 1
        counts[case["function"]]["no launch"] += case["outcome"] == "passed" and not case["launches"]
        counts[case["function"]]["alone"] += "alone" in case
    columns = ("passed", "failed", "skipped", "no launch", "alone")
    row("function", columns)
    for function, counted in sorted(counts.items()):
        row(function, [counted[column] for column in columns])
    row("all", [sum(counted[column] for counted in counts.values()) for column in columns])
    print("no launch: passed, and no kernel of flashgen was launched\nalone: run again, because the memory of a worker's share "
          "was not enough")
    if not_run:
        print(f"\n{not_run} cases were not run")
    print("\nskipped, why")
    for why, count in collections.Counter(case["why"] for case in record if case["outcome"] == "skipped").most_common():
        print(f"{count:>7}  {why}")
    failed = [case for case in record if case["outcome"] == "failed"]
    if failed:
        print("\nfailed")
    for case in failed:
        print(f"  {case['name']}: {(case['why'].splitlines() or [''])[0][:150]}")


def row(first, cells):
    print(f"{first:<44}" + "".join(f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()

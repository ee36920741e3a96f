"""readme.py - runs the commands of the README, then of its pages, in their order, in a fresh copy of what is in the
repository.

    readme.py SOURCE WORK

A command is an indented line that begins with one of STARTS, with the lines that a backslash or a
here-document adds. Those that ELSEWHERE names want what need not be there, or are run by another test,
and are said; all others must end well."""
import os, pathlib, re, shutil, subprocess, sys

STARTS = ("./", "build/", "flashgen ", "python3 ", "cc ", "cmake ", "export ")
PAGES = ("README.md", "runtime/cli/guide.md", "specs/expressions.md", "runtime/cli/tuning.md",
         "runtime/package/zoo.md", "runtime/embedding.md", "runtime/environment.md", "tests/bench/speed.md", "specs/numerics.md", "specs/head_dims.md", "templates/family.md",
         "tests/consumer/README.md", "tests/README.md")
ELSEWHERE = {
    r"cmake --workflow --preset (test|nightly)": "this test is part of it",
    r"^python3 tests/bench/(peers|groups|hooks|layouts|decode|costs|templates|rows|linear|slices|latent)": "needs PyTorch and a GPU",
    r"^flashgen tune (specs/|.*shapes/serving)": "needs a GPU",
    r"^build/tests/fit ": "needs a GPU's measurements and the tests' programs",
    r"^flashgen build kernels\.lua|^cc embedded\.c": "the test package_zoo",
    r"^cc jit\.c|^\./jit ": "the test package_jit",
    r"^cc serving\.c|^\./serving": "the test package_serving",
    r"^cc block\.c|^python3 block\.py": "the test package_block",
    r"^cc ring\.c|^\./ring ": "the test package_ring",
    r"^flashgen check head_dim=64 pass=forward,backward '": "the test t_variants",
}
MOST_LINES = 300
COUNTED = { # a file's lines less so many are a number that the README has
    r"`tests/golden/texts\.txt` has hashes of the texts of (\d+)": ("tests/golden/texts.txt", 0),
    r"`tests/golden/cubins\.txt` has hashes of the machine code of (\d+)": ("tests/golden/cubins.txt", 1),
}
LEAST = 12  # that are run: fewer is a README, or a reader of it, that has lost some


def commands(text):
    """The commands, each with its number of line."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start, line = at, lines[at]
        at += 1
        if not (line.startswith("    ") and line[4:].startswith(STARTS)):
            continue
        parts = [line[4:]]
        until = re.search(r"<<'(\w+)'", line)
        while parts[-1].endswith("\\") or (until and parts[-1] != until.group(1)):
            parts.append(lines[at][4:])
            at += 1
        yield start + 1, "\n".join(parts)


def copy_tree(source, work):
    """What a clone would have: the files that git knows, as they are, and new ones that it does not ignore."""
    shutil.rmtree(work, ignore_errors=True)
    listed = subprocess.run(["git", "-C", source, "ls-files", "-coz", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = pathlib.Path(source, name)
        if path.is_file():
            to = pathlib.Path(work, name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)


def path_with_numpy():
    """The path, first of all where a python3 that has NumPy is: setup.sh says so where the user's has none."""
    for python in (shutil.which("python3"), "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            print(f"python3 is {python}", flush=True)
            return os.path.dirname(python) + ":" + os.environ["PATH"]
    sys.exit("no python3 has NumPy: ./setup.sh says what to install")


def check_links(work):
    """Every link to a file of the repository leads to one, and each page is linked from the README or from another."""
    linked = set()
    for page in PAGES:
        path = pathlib.Path(work, page)
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            to = (path.parent / target).resolve()
            if not to.exists():
                sys.exit(f"{page}: it links to {target}, which is not there")
            linked.add(to)
    for page in PAGES[1:]:
        if pathlib.Path(work, page).resolve() not in linked:
            sys.exit(f"{page}: nothing links to it")
    lines = pathlib.Path(work, "README.md").read_text().count("\n")
    if lines > MOST_LINES:
        sys.exit(f"README.md: {lines} lines; a stranger reads {MOST_LINES} at most")


def check_numbers(work):
    """The README's numbers of hashes are those of the files."""
    text = " ".join(pathlib.Path(work, "README.md").read_text().split())
    for pattern, (name, others) in COUNTED.items():
        lines = pathlib.Path(work, name).read_text().count("\n") - others
        found = re.search(pattern, text)
        if not found or int(found.group(1)) != lines:
            sys.exit(f"README.md: {name} has {lines} hashes, the README says {found.group(1) if found else 'nothing'}")


def main(source, work):
    copy_tree(source, work)
    check_links(work)
    check_numbers(work)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FLASHGEN_") or k.startswith("FLASHGEN_TEST_")}
    environment["FLASHGEN_CC"] = shutil.which("cc")  # under ctest the one that keeps kernels
    environment["PATH"] = path_with_numpy()
    environment["FLASHGEN_CACHE"] = os.path.join(work, "cache")
    environment["CMAKE_BUILD_PARALLEL_LEVEL"] = "2"
    run = 0
    listed = [(page, line, command) for page in PAGES for line, command in commands(pathlib.Path(work, page).read_text())]
    for page, line, command in listed:
        reason = next((why for what, why in ELSEWHERE.items() if re.search(what, command)), None)
        first = command.splitlines()[0]
        if reason:
            print(f"{page}:{line}: not here ({reason}): {first}", flush=True)
            continue
        if command.startswith("export "):  # holds for all that follow
            name, value = command[len("export "):].split("#")[0].strip().split("=", 1)
            environment[name] = value.replace("$PWD", work).replace("$PATH", environment["PATH"])
            continue
        command = command.replace("./setup.sh && ", "")  # installs packages
        done = subprocess.run(["bash", "-ec", command], cwd=work, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode:
            print(done.stdout[-4000:], done.stderr[-4000:])
            sys.exit(f"{page}:{line}: exit {done.returncode}: {first}")
        print(f"{page}:{line}: {first}", flush=True)
        run += 1
    if run < LEAST:
        sys.exit(f"{run} commands were run, expected {LEAST} at least")
    shutil.rmtree(work)


main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))

"""readme.py - runs every command and block of code of the README and of the pages, in a fresh copy of the repository.

    readme.py SOURCE BUILD WORK [PAGE ...]

The blocks of a page are fenced. Their language says what happens:

    sh       each command runs, in the order of the page; those that ELSEWHERE names are run by another test, or need a GPU
    c        a program is a file; other lines are lines of a program of tests/consumer, or a compiler takes them in a function
    lua      a file that a command uses
    cmake    a file
    python   run by tests/python/test_readme.py
    text     output, or a formula: nothing happens

A block whose first line is a comment with a file name is written to that file before any command of its page runs. Each
page runs in a folder of its own, in which the folders of the repository are; the README runs in the copy itself. The copy is
built anew in one tenth of the rare cases; else it has the build of SOURCE."""
import os, pathlib, re, shutil, subprocess, sys, time

FIRST = "README.md"
OTHERS = ("templates/family.md", "tests/README.md", "tests/consumer/README.md")
LANGUAGES = ("sh", "c", "lua", "cmake", "python", "text")
FOLDERS = ("specs", "templates", "tests", "runtime", "gen", "build")
ELSEWHERE = {
    r"^pip install|^python3 -m (flashgen|pip|venv|build)": "the test python_wheel, or task_install",
    r"^torchrun ": "the test python_readme",
    r"cmake --workflow --preset (test|nightly)": "this test is part of it",
    r"^cmake --preset release$": "the README's first command does it",
    r"^ctest |^build/tests/|^ninja -C build$|^tests/combos\.py|^\.ci/": "it runs other tests, or builds them",
    r"^python3 tests/bench/(peers|groups|hooks|layouts|decode|costs|templates|rows|linear|slices|latent|plain|block|context_parallel)":
        "it needs PyTorch and a GPU",
    r"^tests/bench/gpu\.sh": "it needs a GPU",
    r"^flashgen (tune|bench) .*(specs/(training|inference|hooks|linear|rows)|shapes/serving|cuda:)|^flashgen bench ": "it needs a GPU",
    r"^flashgen build kernels\.lua|^cc embedded\.c": "the test package_zoo",
    r"^flashgen check head_dim=64 pass=forward,backward (?!.*--device)": "the test t_variants",
    r"^cc jit\.c|^\./jit ": "the test package_jit",
    r"^cc serving\.c|^\./serving": "the test package_serving",
    r"^cc block\.c|^python3 block\.py": "the test package_block",
    r"^cc ring\.c|^\./ring ": "the test package_ring",
}
MOST_LINES = {FIRST: 120}
MOST_LINES_OF_A_PAGE = 400
COUNTED = { # a file's lines less so many are a number that the page has
    r"`tests/golden/texts\.txt` has hashes of the texts of (\d+)": ("tests/golden/texts.txt", 0),
    r"`tests/golden/cubins\.txt` has hashes of the machine code of (\d+)": ("tests/golden/cubins.txt", 1),
}
COUNTED_IN = "runtime/docs/contributing.md"
BUILDS_ANEW = ("all", "7")
FRESH_BUILD = {r"cmake --workflow --preset demo": "a build of a fresh copy is a rare case"}
LEAST = 55  # commands that are run: fewer is a reader of pages that has lost some
BLOCK = re.compile(r"^```(\w*|\{[\w-]+\}[^\n]*)\n(.*?)^```$", re.M | re.S)  # {toctree} and its like are the site's
NAMED = re.compile(r"(?:/\*|//|--|#) (\w[\w./]*\.\w+)\b")  # a first line that names a file
# What a fragment of C may name.
AROUND = """#include <flashgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static fg_context *ctx; static fg_op *op; static fg_kernel *kernel; static fg_stream stream; static void *workspace;
static fg_config config; static fg_shape shape; static fg_args args; static const char *text; static size_t bytes;
static void *data, *starts, *used, *table, *q_ranges, *k_ranges, *kinds, *pos_q, *pos_k, *whole, *seed, *x, *w, *y, *keep, *dy, *dx, *dw;
static int64_t n, h, d;
static int fail(const char *sentence) { return puts(sentence); }
"""


def pages_of(root):
    """The README, then the pages by name."""
    found = sorted(str(path.relative_to(root)) for path in pathlib.Path(root, "runtime/docs").rglob("*.md"))
    return [FIRST, *found, *OTHERS]


def blocks(text):
    """(language, content, number of its first line)."""
    for found in BLOCK.finditer(text):
        yield found.group(1), found.group(2), text.count("\n", 0, found.start()) + 2


def commands(text, first):
    """The commands of a block, each with its number of line: a line, with those that a backslash or a here-document adds."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start, parts = at, [lines[at]]
        until = re.search(r"<<'(\w+)'", lines[at])
        at += 1
        while at < len(lines) and (parts[-1].endswith("\\") or (until and parts[-1] != until.group(1))):
            parts.append(lines[at])
            at += 1
        if parts[0].strip() and not parts[0].startswith("#"):
            yield first + start, "\n".join(parts)


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
            return os.path.dirname(python) + ":" + os.environ["PATH"]
    sys.exit("no python3 has NumPy: ./setup.sh says what to install")


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-") for heading in headings}


def is_of_site(page):
    """Pages whose links, and links to which, the build of the site checks: some of them lead to pages that it makes."""
    return page == "runtime/docs/index.md" or page.startswith("runtime/docs/reference/")


def check_text(work, pages):
    """Links, headings, files and suites that pages name exist; each page is linked; no page is too long; tables are even."""
    linked = set()
    for page in pages:
        path = pathlib.Path(work, page)
        text = path.read_text()
        most = MOST_LINES.get(page, MOST_LINES_OF_A_PAGE)
        if text.count("\n") > most:
            sys.exit(f"{page}: {text.count(chr(10))} lines; it may have {most}")
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", BLOCK.sub("", text)):
            to = (path.parent / target).resolve() if target else path.resolve()
            if not to.exists() and is_of_site(page):
                continue
            if not to.exists():
                sys.exit(f"{page}: it links to {target}, which does not exist")
            if anchor and anchor not in anchors(to.read_text()):
                sys.exit(f"{page}: it links to {target}#{anchor}, and {to.name} has no such heading")
            linked.add(to)
        for language, _, line in blocks(text):
            if language not in LANGUAGES and not language.startswith("{"):
                sys.exit(f"{page}:{line}: a block of \"{language}\"; expected one of {', '.join(LANGUAGES)}")
        if text.count("\n```") % 2 and not text.startswith("```"):
            sys.exit(f"{page}: a block has no end")
        if re.search(r"(?:\A|\n\n)    \S", BLOCK.sub("", text)):
            sys.exit(f"{page}: an indented block; blocks are fenced, so that a test can run them")
        check_tables(page, BLOCK.sub("", text))
        for name in re.findall(r"`((?:gen|runtime|templates|tests|specs)/[\w./-]+\.\w+|t_\w+)`", text):
            path = re.sub(r"FAMILY|PASS|KIND|NAME|SECTION", "*", name) if "/" in name else f"tests/*/{name}.c"
            if not any(pathlib.Path(work).glob(path)):
                sys.exit(f"{page}: it names {name}, which does not exist")
    for page in pages[1:]:
        if pathlib.Path(work, page).resolve() not in linked and not is_of_site(page):
            sys.exit(f"{page}: no page links to it")


def check_tables(page, text):
    """Each row of a table has as many cells as its head."""
    columns = None
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if columns is not None and cells != columns:
            sys.exit(f"{page}: a table of {columns} columns has a row of {cells}: {line}")
        columns = cells


def check_numbers(work):
    """The page's numbers of hashes are those of the files."""
    text = " ".join(pathlib.Path(work, COUNTED_IN).read_text().split())
    for pattern, (name, others) in COUNTED.items():
        lines = pathlib.Path(work, name).read_text().count("\n") - others
        found = re.search(pattern, text)
        if not found or int(found.group(1)) != lines:
            sys.exit(f"{COUNTED_IN}: {name} has {lines} hashes, the page says {found.group(1) if found else 'nothing'}")


MAKE_PAGES = ("runtime/cli/help", "runtime/cli/page", "runtime/cli/support", "runtime/docs/", "tests/cli/t_draw.c",
              "tests/consumer/package.sh")  # they name pages that are made
CITED = re.compile(r"\b([\w/]+\.md)\b(?:,? sections? ([\d, to]*\d(?: and \d+)?))?")


def check_citations(work):
    """Every page that a comment or a text of the code names exists, and so does each section of a page with numbers."""
    root = pathlib.Path(work)
    names = {path.name for path in root.rglob("*.md")}
    numbers = {path.name: set(re.findall(r"^## (\d+)\. ", path.read_text(), re.M)) for path in root.rglob("*.md")}
    for folder in ("gen", "runtime", "templates", "specs", "tests"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if name == "tests/readme.py" or name.startswith(MAKE_PAGES):
                continue
            if path.suffix not in (".c", ".h", ".cpp", ".lua", ".cut", ".py", ".sh", ".cmake") or path.is_symlink():
                continue
            text = re.sub(r"\s*\n[ \t]*(?:\*|//|--|#|@ --)?\s*", " ", path.read_text())
            for cited, sections in CITED.findall(text):
                places = (root / cited, path.parent / cited) if "/" in cited else ()
                if pathlib.Path(cited).name not in names or places and not any(place.exists() for place in places):
                    sys.exit(f"{path.relative_to(root)}: it names {cited}, which does not exist")
                for section in re.findall(r"\d+", sections):
                    if section not in numbers[pathlib.Path(cited).name]:
                        sys.exit(f"{path.relative_to(root)}: {cited} has no section {section}")


def check_c(page, line, text, folder, environment):
    """A compiler takes the lines inside a function."""
    unused = "-Wno-unused -Wno-unused-value -Wno-shadow -Wno-comment"
    made = subprocess.run(f"cc -std=c11 -Wall -Werror {unused} -fsyntax-only -I runtime -x c -", shell=True, cwd=folder, text=True,
                          input=f"{AROUND}int main(void) {{\n{text}return 0;\n}}\n", env=environment, capture_output=True)
    if made.returncode:
        sys.exit(f"{page}:{line}: the compiler says: {made.stderr.strip()}")


def is_of_a_program(work, text):
    """Every line is one of a program that the tests run."""
    for program in pathlib.Path(work, "tests/consumer").glob("*.c"):
        lines = program.read_text()
        if all(line.strip() in lines for line in text.splitlines()):
            return True
    return False


def run(command, folder, environment):
    return subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True)


def run_page(page, work, environment, elsewhere, counts):
    """Runs the page's blocks; `export` holds for the rest of the page, and of the README for all pages."""
    folder = pathlib.Path(work)
    if page != FIRST:
        folder = folder / "pages" / page.removesuffix(".md")
        folder.mkdir(parents=True)
        for name in FOLDERS:
            (folder / name).symlink_to(pathlib.Path(work, name))
        environment = dict(environment)
    found = list(blocks(pathlib.Path(work, page).read_text()))
    for language, text, line in found:
        named = NAMED.match(text)
        if named and language != "sh":
            path = folder / named.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if language == "c":
            if not re.search(r"\bmain\(", text) and not is_of_a_program(work, text):
                check_c(page, line, text, folder, environment)
            counts["c"] += 1
        if language == "lua" and not named:
            sys.exit(f"{page}:{line}: a block of Lua without a name that a command uses")
    for language, text, line in found:
        for at, command in commands(text, line) if language == "sh" else ():
            first = command.splitlines()[0]
            reason = next((why for what, why in elsewhere.items() if re.search(what, command)), None)
            if reason:
                print(f"{page}:{at}: not here ({reason}): {first}", flush=True)
                continue
            if command.startswith("export "):
                name, value = command[len("export "):].split("#")[0].strip().split("=", 1)
                environment[name] = run(f"echo {value}", folder, environment).stdout.strip()
                continue
            began = time.monotonic()
            done = run(command.replace("./setup.sh && ", ""), folder, environment)  # which installs packages
            if done.returncode:
                print(done.stdout[-4000:], done.stderr[-4000:])
                sys.exit(f"{page}:{at}: exit {done.returncode}: {first}")
            program = re.search(r"\./(\w+)$", command)
            if program and (folder / (program.group(1) + ".c")).is_file():
                said = re.search(r"printf\(.*\); /\* (.*) \*/", (folder / (program.group(1) + ".c")).read_text())
                if said and done.stdout.strip() != said.group(1):
                    sys.exit(f"{page}:{at}: it prints {done.stdout.strip()}, the page says {said.group(1)}")
            print(f"{page}:{at}: {time.monotonic() - began:.1f} s: {first}", flush=True)
            counts["sh"] += 1


def main(source, build, work, *only):
    copy_tree(source, work)
    elsewhere = dict(ELSEWHERE)
    if os.environ.get("FLASHGEN_TENTH") not in BUILDS_ANEW:
        elsewhere.update(FRESH_BUILD)
        pathlib.Path(work, "build").symlink_to(build)
    pages = pages_of(work)
    check_text(work, pages)
    check_numbers(work)
    check_citations(work)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FLASHGEN_") or k.startswith("FLASHGEN_TEST_")}
    environment["FLASHGEN_CC"] = shutil.which("cc")  # under ctest the one that keeps kernels
    environment["PATH"] = path_with_numpy()
    environment["HOME"] = work
    environment["FLASHGEN_CACHE"] = os.path.join(work, "cache")
    environment["CMAKE_BUILD_PARALLEL_LEVEL"] = "2"
    counts = dict(sh=0, c=0)
    for page in pages:
        if page == FIRST or not only or page in only:
            run_page(page, work, environment, elsewhere, counts)
    print(f"{counts['sh']} commands, {counts['c']} blocks of C")
    if not only and counts["sh"] < LEAST:
        sys.exit(f"{counts['sh']} commands were run, expected {LEAST} at least")
    shutil.rmtree(work)


main(*map(os.path.abspath, sys.argv[1:4]), *sys.argv[4:])

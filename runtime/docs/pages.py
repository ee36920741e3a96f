"""pages.py - the site's sources, its plain pages and those that are generated, and then the site.

    pages.py FLASHGEN BUILD

FLASHGEN is the program, which prints the reference from its own tables. In BUILD: source, what Sphinx reads; html, the
site. Links of pages are checked: those that leave runtime/docs are to files of the repository, which come along."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parents[1]
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
BLOCK = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.S | re.M)
CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$|^    .*$|``.*?``|`[^`\n]*`", re.S | re.M)
MOST = 400  # lines of a page

PYTHON = {
    "attention": ("Attention", ("attention", "attention_backward", "Gradients", "append", "combine")),
    "layers": ("Linear layers", ("linear", "linear_backward", "LinearGradients", "ffn", "ffn_backward", "FfnGradients",
                                 "linear_norm", "linear_norm_backward", "LinearNormGradients")),
    "rows": ("Norms and losses", ("layernorm", "layernorm_backward", "LayernormGradients", "log_softmax", "log_softmax_backward",
                                  "cross_entropy", "cross_entropy_backward")),
    "parallel": ("Context parallelism", ("context_parallel", "shard", "unshard")),
    "register": ("PyTorch and transformers", ("register_sdpa", "register_transformers", "FlashgenMissing")),
}
STAND_INS = {"flash_attn": "FlashAttention 2", "flash_attn_interface": "FlashAttention 3"}


def fail(sentence):
    sys.exit(f"pages.py: {sentence}")


# ---- plain pages ----

class Pages:
    """The pages of runtime/docs, and the files of the repository that they link to."""

    def __init__(self, to):
        self.to, self.taken = to, set()

    def take_all(self):
        for path in sorted(DOCS.rglob("*.md")):
            self.take(path, self.to / path.relative_to(DOCS))

    def take(self, path, to, head=""):
        if path in self.taken:
            return
        self.taken.add(path)
        text = path.read_text()
        if len(text.splitlines()) > MOST and path.is_relative_to(DOCS):
            fail(f"{path}: more than {MOST} lines")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(head + self.with_links(text, path, to))

    def with_links(self, text, path, to):
        """The text, whose links to files outside runtime/docs lead to copies below `files`."""
        def link(match):
            target = (path.parent / match[2]).resolve()
            if re.match(r"[a-z]+:", match[2]) or target.is_relative_to(DOCS):
                return match[0]
            if not target.is_relative_to(ROOT) or not target.exists():
                fail(f"{path}: there is no {match[2]}")
            copy = self.to / "files" / target.relative_to(ROOT)
            if target.is_dir():
                fail(f"{path}: {match[2]} is a folder; name a file")
            if target.suffix == ".md":
                self.take(target, copy, "---\norphan: true\n---\n\n")
            else:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, copy)
            return match[1] + os.path.relpath(copy, to.parent) + match[3]

        parts, at = [], 0
        for code in CODE.finditer(text):
            parts += [LINK.sub(link, text[at:code.start()]), code[0]]
            at = code.end()
        return "".join(parts) + LINK.sub(link, text[at:])


# ---- the C interface ----

def comment_text(comment):
    """A comment's lines without its frame."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in re.sub(r"^/\*|\*/$", "", comment.strip()).split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def prose(text):
    """A comment as Markdown: paragraphs, whose lists with columns of their own stay as they are."""
    made = []
    for part in re.split(r"\n\n", text):
        if re.search(r"^  +\S", part, re.M) or re.search(r"\S {3,}\S", part):
            made.append("```text\n" + part + "\n```")
        else:
            made.append(re.sub(r"([\\*<\[`])", r"\\\1", part))
    return "\n\n".join(made)


def declarations(header):
    """The names that each declaration of the header declares, its comment, and its text."""
    body = header[header.index("#define FG_VERSION"):header.rindex("#ifdef __cplusplus")]
    unit = re.compile(r"(?P<comment>/\*(?:[^*]|\*(?!/))*\*/)\n(?P<code>#ifdef __cplusplus\n.*?^#endif\n|(?:typedef (?:enum|struct) \w+ \{.*?^\} \w+;\n|(?!/\*|#)[^\n]+\n)+)",
                      re.S | re.M)
    for match in unit.finditer(body):
        code = match["code"]
        names = re.findall(r"^\} (\w+);|^typedef .*?(\w+);|^[\w ]+?\**(fg_\w+)\(|^enum \{ (FG_\w+)|^#define (\w+)\(type", code, re.M)
        yield [next(filter(None, name)) for name in names], comment_text(match["comment"]), code


def write_c(to):
    """Pages of the functions, of fg_args, and of the other types."""
    pages = {"functions": ["# Functions of flashgen.h"], "args": ["# What a launch takes: fg_args"], "types": ["# Types of flashgen.h"]}
    header = (ROOT / "runtime/flashgen.h").read_text()
    declared = set(re.findall(r"^[\w ]+?\**(fg_\w+)\(", header, re.M))
    for names, comment, code in declarations(header):
        page = "args" if "fg_args" in names or "fg_tensor" in names or "fg_input_value" in names else \
            "functions" if declared.intersection(names) else "types"
        title = ", ".join(f"`{name}`" for name in names)
        pages[page].append(f"## {title}\n\n{prose(comment)}\n\n```c\n{code.rstrip()}\n```")
    for name in declared:
        if f"`{name}`" not in "".join(pages["functions"]):
            fail(f"flashgen.h: {name} has no comment above it")
    for name, parts in pages.items():
        write(to / f"{name}.md", "\n\n".join(parts))


# ---- Python, specs, llms.txt ----

def write_python(to):
    exported = {name for name in ast.literal_eval(re.search(r"__all__ = (\[.*?\])", (ROOT / "runtime/python/flashgen/__init__.py")
                                                             .read_text(), re.S)[1]) if name != "__version__"}
    grouped = {name for _, names in PYTHON.values() for name in names}
    if exported != grouped:
        fail(f"PYTHON lacks {sorted(exported - grouped)} and has {sorted(grouped - exported)} more than flashgen.__all__")
    for page, (title, names) in PYTHON.items():
        parts = [f"# {title}"]
        for name in names:
            kind = "autoclass" if name[0].isupper() else "autofunction"
            parts.append(f"## `{name}`\n\n```{{eval-rst}}\n.. {kind}:: flashgen.{name}\n```")
        write(to / f"{page}.md", "\n\n".join(parts))
    for module, title in STAND_INS.items():
        write(to / f"{module}.md", f"# {title}'s functions\n\n```{{eval-rst}}\n.. automodule:: flashgen.{module}\n   :members:\n```")


def write_specs(to):
    """The spec files that come with flashgen, whole."""
    parts = ["# Spec files that come with flashgen",
             "A spec file is a Lua chunk that returns a table of fields, or a list of such tables: "
             "[the fields](fields/problem.md). Each of these is installed to `share/flashgen/specs`."]
    for path in sorted((ROOT / "specs").glob("*.lua")):
        text = path.read_text()
        head = " ".join(line[2:].strip() for line in text.split("\n\n")[0].splitlines() if line.startswith("--"))
        head = re.sub(r"([*<\[])", r"\\\1", head.split(": ", 1)[-1])
        shown = text if len(text.splitlines()) <= 60 else "\n".join(text.splitlines()[:40]) + "\n-- ..."
        parts.append(f"## specs/{path.name}\n\n{head}\n\n```lua\n{shown.rstrip()}\n```")
    write(to / "spec_files.md", "\n\n".join(parts))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(text.splitlines()) > MOST:
        fail(f"{path}: {len(text.splitlines())} lines, more than {MOST}")
    path.write_text(text.rstrip() + "\n")


def title_and_summary(path):
    """The page's title, and its first sentence of prose."""
    text = BLOCK.sub("", re.sub(r"^---\n.*?\n---\n", "", path.read_text(), flags=re.S))
    title = re.search(r"^# (.+)$", path.read_text(), re.M)
    first = re.search(r"^(?![#|!\-:<{\s])(.+?\.)(?:\s|$)", text.split("\n", 1)[1], re.M | re.S)
    clean = re.sub(r"[`\\*]", "", " ".join(first[1].split())) if first else ""
    return re.sub(r"[`\\]", "", title[1]) if title else path.stem, clean if len(clean) < 250 else ""


def write_llms(source, to):
    """https://llmstxt.org: each page with its first sentence, in the folders' order."""
    lines = ["# flashgen", "", "> Attention kernels from specs: forward and backward, in CUDA C, compiled at run time or built ahead.", ""]
    folder = None
    for path in sorted(source.rglob("*.md"), key=lambda path: (len(path.relative_to(source).parts) > 1, str(path))):
        name = path.relative_to(source)
        if name.parts[0] == "files" or str(name) == "index.md":
            continue
        if name.parent != folder:
            folder = name.parent
            lines += ["", f"## {'pages' if str(folder) == '.' else folder}", ""]
        title, summary = title_and_summary(path)
        lines.append(f"- [{title}]({name.with_suffix('.html')}){': ' + summary if summary else ''}")
    to.mkdir(parents=True, exist_ok=True)
    (to / "llms.txt").write_text("\n".join(lines) + "\n")


def main(program, build):
    source, extra = build / "source", build / "extra"
    for folder in (source, extra):
        shutil.rmtree(folder, ignore_errors=True)
    pages = Pages(source)
    pages.take_all()
    reference = source / "reference"
    subprocess.run([program, "help", "--markdown", "-o", reference], check=True)
    for page in reference.rglob("*.md"):
        if len(page.read_text().splitlines()) > MOST:
            fail(f"{page}: more than {MOST} lines")
    write_c(reference / "c")
    write_python(reference / "python")
    write_specs(reference)
    write_llms(source, extra)
    environment = dict(os.environ, FLASHGEN_DOCS_EXTRA=str(extra), PYTHONPYCACHEPREFIX=str(build / "pycache"))
    if subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-j", "auto", "-c", DOCS, source, build / "html"],
                      env=environment).returncode:
        fail("Sphinx has warnings")
    print(f"docs: {len(list((build / 'html').rglob('*.html')))} pages in {build / 'html'}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())

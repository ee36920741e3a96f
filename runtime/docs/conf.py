"""conf.py - the site, by Sphinx: `cmake --build build --target docs` (pages.py makes what is generated, and runs it)."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime/python"))

project = "flashgen"
release = re.search(r"VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text().split("project(", 1)[1]).group(1)
copyright = "the authors of flashgen, MIT licence"
html_title = f"flashgen {release}"
html_theme = "furo"
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
html_static_path = [str(pathlib.Path(__file__).with_name("site"))]
html_css_files = ["site.css"]
html_extra_path = [os.environ["FLASHGEN_DOCS_EXTRA"]]  # llms.txt
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
templates_path = []
exclude_patterns = []
highlight_language = "text"
pygments_style, pygments_dark_style = "friendly", "github-dark"

# The package needs NumPy or PyTorch only where arrays are given.
autodoc_mock_imports = ["numpy", "torch", "transformers"]
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "count, index"}
smartquotes = False  # "--json" is no dash

TERM = re.compile(r"(?P<name>\S(?:\S| (?! ))*)(?: {2,}(?P<text>\S.*))?$")


def escape(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def as_rst(lines):
    """A docstring of the package as reStructuredText: prose, and names with what they mean at a column of their own."""
    made, is_open = [], False
    for at, line in enumerate(lines):
        body = line.strip()
        is_deeper = line.startswith("  ")
        follows = at + 1 < len(lines) and lines[at + 1].startswith("        ")
        term = not is_deeper and body and TERM.match(body)
        if term and (term["text"] or follows) and (re.search(r" {2,}", body) or follows):
            made += [] if is_open else [""]
            made.append(f":{escape(term['name'])}: {escape(term['text'] or '')}".rstrip())
            is_open = True
        elif is_open and is_deeper:
            made.append("    " + escape(body))
        else:
            made += [""] if is_open and body else []
            made.append(escape(body))
            is_open = False
    return made


def setup(app):
    app.connect("autodoc-process-docstring", lambda app, what, name, obj, options, lines: lines.__setitem__(slice(None), as_rst(lines)))

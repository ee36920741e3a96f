"""The package's mirror of flashgen.h: structs, functions, numbers and the version."""
import ctypes
import os
import re
import subprocess

from case import SOURCE, Case, flashgen, main
from flashgen import library

HEADER = SOURCE / "runtime" / "flashgen.h"


class Library(Case):
    def test_structs_are_the_headers(self):
        """A C compiler knows each member, where it lies and how large it is, and no other member."""
        claims = []
        for kind in library.STRUCTS:
            name = kind.__name__
            claims.append((f"sizeof({name})", ctypes.sizeof(kind)))
            for member, _ in kind._fields_:
                field = getattr(kind, member)
                claims.append((f"offsetof({name}, {member})", field.offset))
                claims.append((f"sizeof((({name} *)0)->{member})", field.size))
        claims += [("FG_GIVEN_" + name.upper(), bit) for name, bit in library.GIVEN.items()]
        claims += [("FG_EARGUMENT", flashgen.errors.ARGUMENT), ("FG_ESPEC", flashgen.errors.SPEC)]
        text = f'#include "{HEADER}"\n' + "".join(
            f'_Static_assert({what} == {value}, "{what} is not {value}");\n' for what, value in claims)
        made = subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only", "-x", "c", "-"], input=text,
                              text=True, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertGreater(len(claims), 250)

    def test_structs_are_whole(self):
        """Each member of the header's structs is in the mirror: all bytes but padding are someone's."""
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
        for kind in library.STRUCTS:
            body = re.search(r"typedef struct %s \{(.*?)\} %s;" % ((kind.__name__,) * 2), text, re.S)[1]
            declared = re.findall(r"(\w+)(?:\[\d\])?\s*[,;]", re.sub(r"\(\*(\w+)\)\(.*?\);", r"\1;", body, flags=re.S))
            self.assertEqual(declared, [member for member, _ in kind._fields_])

    def test_functions_are_the_headers(self):
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
        for name, (_, *arguments) in library.FUNCTIONS.items():
            found = re.search(r"\b%s\(([^)]*)\)" % name, text)
            self.assertTrue(found, name)
            count = 0 if found[1] == "void" else found[1].count(",") + 1
            self.assertEqual(count, len(arguments), name)

    def test_modules_stand_above_each_other(self):
        """No module imports one of a later line, or of its own."""
        lines = ("errors", "library nvrtc", "context", "layout options", "spec", "prepare", "call beside", "append_call combine_call rows",
                 "row_kinds", "arrays autograd op_parts", "tensors", "cache_ops row_ops", "torch_ops", "traced", "attention", "row_calls",
                 "append combine layernorm linear logsoftmax sdpa transformers", "linear_norm",
                 "parallel.__init__ parallel.bands parallel.messages parallel.order parallel.partials parallel.slices",
                 "parallel.steps", "parallel.problem", "parallel.heads parallel.ring", "parallel.call", "context_parallel",
                 "flash_attn.words flash_attn.dropped flash_attn.layers.rotary", "flash_attn.attend", "flash_attn.cache",
                 "flash_attn.flash_attn_interface flash_attn.bert_padding flash_attn.stand_in",
                 "flash_attn.__init__ flash_attn.layers.__init__ flash_attn_interface", "flash_attn.ops", "__init__ doctor", "__main__")
        floor = {name: i for i, line in enumerate(lines) for name in line.split()}
        folder = SOURCE / "runtime" / "python" / "flashgen"
        names = [".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")]
        self.assertEqual(sorted(floor), sorted(names))
        for name, i in floor.items():
            for other in self.imported(name, (folder / (name.replace(".", "/") + ".py")).read_text()):
                self.assertLess(floor[other], i, f"{name} imports {other}")

    def imported(self, name, text):
        """What a module imports from the package, by names that begin there."""
        for dots, base, names in re.findall(r"^ *from (\.+)([\w.]*) import \(?(.*)", text, re.M):
            above = name.split(".")[:-len(dots)]
            for one in [base] if base else [part.split()[0] for part in names.split(",")]:
                yield ".".join((*above, one))

    def test_version(self):
        self.assertIn(f'#define FG_VERSION "{flashgen.__version__}"', HEADER.read_text())
        project = (SOURCE / "runtime" / "python" / "pyproject.toml").read_text()
        self.assertIn(f'\nversion = "{flashgen.__version__}"\n', project)
        self.assertTrue(library.SONAME.endswith(".so." + ".".join(flashgen.__version__.split(".")[:2])))
        self.assertEqual(library.library().fg_version().decode(), flashgen.__version__)

    def test_missing(self):
        self.says(flashgen.FlashgenMissing, "flashgen's library cannot be loaded: /nowhere.so: cannot open",
                  library.load, "/nowhere.so")


if __name__ == "__main__":
    main()

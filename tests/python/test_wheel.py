"""The wheel: it is the same when it is built again, be it of the source distribution, and works where it is installed. It needs
pip, venv and the network: scikit-build-core is PyPI's."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from case import SOURCE, Case, flashgen, main, skip

FOLDER = tempfile.TemporaryDirectory()
WORK = pathlib.Path(FOLDER.name)
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
FILES = {"flashgen/libflashgen.so.0.1", "flashgen/libflashgen-gen.so.0.1", "flashgen/liblua5.4.so.0"}


def run(*command, **environment):
    """Exit status and all that is printed, with nothing of the build's own environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FLASHGEN_LIBRARY", "PYTHONPATH")}
    made = subprocess.run(list(map(str, command)), env={**kept, **environment}, cwd=WORK, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return made.returncode, made.stdout


def need(status, printed, what):
    if status:
        skip("wheel", f"the wheel is not tested: {what}: {printed.strip()[-300:]}")


need(*run(sys.executable, "-m", "venv", "--system-site-packages", WORK / "venv"), "no venv")
need(*run(*PIP, "install", "--target", WORK / "backend", "scikit-build-core>=1.1"), "no scikit-build-core")


PACKAGE = SOURCE / "runtime" / "python"


def wheel(name, source=PACKAGE):
    status, printed = run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", WORK / name, source,
                          PYTHONPATH=str(WORK / "backend"))
    if status:
        raise RuntimeError(printed)
    found, = (WORK / name).iterdir()
    return found


def sdist():
    """The source distribution, made as pip and build make it: by the hook, in the package's folder."""
    (WORK / "sdist").mkdir()
    status, printed = run(sys.executable, "-B", "-c", f"import os, backend; os.chdir({str(PACKAGE)!r}); "
                          f"backend.build_sdist({str(WORK / 'sdist')!r})", PYTHONPATH=f"{PACKAGE}:{WORK / 'backend'}")
    if status:
        raise RuntimeError(printed)
    found, = (WORK / "sdist").iterdir()
    return found


class Wheel(Case):
    def test_wheel(self):
        first, second = wheel("first"), wheel("second", sdist())
        self.assertRegex(first.name, r"^flashgen-%s-py3-none-linux_\w+\.whl$" % re.escape(flashgen.__version__))
        self.assertEqual(first.read_bytes(), second.read_bytes(), "built twice it is not the same")
        names = {name for name in zipfile.ZipFile(first).namelist() if ".dist-info/" not in name}
        ours = {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "flashgen").rglob("*.py")}
        self.assertEqual(names, ours | FILES)
        licences = {name.split("/")[-1] for name in zipfile.ZipFile(first).namelist() if ".dist-info/licenses/" in name}
        self.assertEqual(licences, {"LICENSE", "lua.txt", "xxhash.txt"})

        python = WORK / "venv" / "bin" / "python"
        self.assertEqual(run(python, *PIP[1:], "install", "--no-deps", "--no-index", first), (0, ""))
        status, printed = run(python, "-m", "flashgen", "doctor", FLASHGEN_CACHE=str(WORK / "cache"))
        self.assertEqual(status, 0, printed)
        self.assertIn(str(WORK / "venv"), printed)
        self.assertIn("host      ok     a kernel was made and its numbers are right", printed)


if __name__ == "__main__":
    main()

"""backend.py - what builds the package: scikit-build-core, with the C sources in the source distribution.

They lie above this folder, where scikit-build-core does not look: a source distribution has them as `source`."""
import gzip
import io
import pathlib
import tarfile

from scikit_build_core.build import *  # noqa: F401, F403
from scikit_build_core.build import build_sdist as build_sdist_without_sources

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE = FOLDER / "source" if (FOLDER / "source").exists() else FOLDER.parents[1]
PARTS = ("CMakeLists.txt", "LICENSE", "setup.sh", "gen", "runtime", "specs", "templates", "tests/consumer")


def build_sdist(sdist_directory, config_settings=None):
    name = build_sdist_without_sources(sdist_directory, config_settings)
    path = pathlib.Path(sdist_directory) / name
    made = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as new:
        members = old.getmembers()
        for member in members:
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
        for file in files():
            new.addfile(*entry(file, name.removesuffix(".tar.gz"), members[0].mtime))
    path.write_bytes(gzip.compress(made.getvalue(), mtime=0))
    return name


def files():
    """All that the libraries are made of, but for this folder."""
    for part in PARTS:
        path = SOURCE / part
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            below = file.relative_to(SOURCE).parts
            if file.is_file() and below[:2] != ("runtime", "python") and "__pycache__" not in below:
                yield file


def entry(file, top, time):
    """A member and its content: of nobody's, at one time, so that the same sources are the same file."""
    content = file.read_bytes()
    member = tarfile.TarInfo(f"{top}/source/{file.relative_to(SOURCE)}")
    member.size, member.mtime, member.mode = len(content), time, 0o755 if file.stat().st_mode & 0o100 else 0o644
    return member, io.BytesIO(content)

#!/usr/bin/env bash
# setup.sh: installs what flashgen needs to build and run from the packages of Debian or Ubuntu.
# Does nothing, and needs no rights, where nothing is missing. Safe to run again.
set -euo pipefail

missing=()
need() { # need PACKAGE WHAT TEST...: the package is missing unless the test succeeds
  local package=$1 what=$2
  shift 2
  if "$@" >/dev/null 2>&1; then return; fi
  echo "setup: $what is missing: package $package"
  missing+=("$package")
}
recent_cmake() { [ "$(printf '%s\n' 3.25 "$(cmake --version | sed -n '1s/[^0-9.]//gp')" | sort -V | head -n 1)" = 3.25 ]; }
has_libc() { echo '#include <stdio.h>' | cc -E -; }
library() { pkg-config --exists "$1"; }
has_numpy() { python3 -c 'import numpy' || /usr/bin/python3 -c 'import numpy'; }
own_python() { [ "$(command -v python3)" != /usr/bin/python3 ] && command -v python3 >/dev/null; }

need gcc            "a C compiler"             cc --version
need libc6-dev      "the C library's headers"  has_libc
need binutils       "addr2line"                addr2line --version
need cmake          "CMake 3.25"               recent_cmake
need ninja-build    "Ninja"                    ninja --version
need pkg-config     "pkg-config"               pkg-config --version
need liblua5.4-dev  "Lua 5.4"                  library lua5.4
need libxxhash-dev  "xxHash"                   library libxxhash
need git            "git (for the tests)"      git --version
need python3        "Python 3 (for a test)"    python3 -c "import ctypes, json"
need check          "Check (for the tests)"    library check
need g++            "a C++ compiler (for the tests)" c++ --version
need python3-numpy  "NumPy (for the tests)" has_numpy
if ! python3 -c 'import numpy' 2>/dev/null && own_python; then # it does not see Debian's packages
  echo "setup: $(command -v python3) has no NumPy; the tests use /usr/bin/python3's. For the README's example: python3 -m pip install numpy"
fi

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: nothing is missing"
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
command -v apt-get >/dev/null || { echo "setup: no apt-get here; install: ${missing[*]}" >&2; exit 1; }
echo "setup: installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
recent_cmake || { echo "setup: $(cmake --version | head -n 1) is too old; flashgen needs 3.25" >&2; exit 1; }
echo "setup: done"

#!/usr/bin/env bash
# run.sh - does a task of a new user, each step of which has to end well.
#
#   run.sh TASK SOURCE PREFIX WORK
#
# SOURCE is flashgen's, PREFIX where it is installed, WORK a folder of the task's own. A task is made from the text of the pages
# that its first line names, and from nothing else.
set -euo pipefail
task=$1
export SOURCE=$2 PREFIX=$3 TASKS=$2/tests/tasks FLASHGEN_CACHE=$4/cache
unset FLASHGEN_TEMPLATES FLASHGEN_JIT FLASHGEN_PLAN FLASHGEN_VERBOSE FLASHGEN_CACHE_RO FLASHGEN_WISDOM
libdir=$(dirname "$(find "$PREFIX" -name libflashgen.so)")
for python in python3 /usr/bin/python3; do # the first that has NumPy
  ! command "$python" -c 'import numpy' 2>/dev/null || break
done
export PYTHON=${PYTHON:-$python} PATH="$PREFIX/bin:$PATH" PKG_CONFIG_PATH=$libdir/pkgconfig
python3() { command "$python" -B "$@"; }
cc() { command "${CC:-cc}" ${CFLAGS:-} "$@"; }
rm -rf "$4" && mkdir -p "$4" && cd "$4"
source "$TASKS/$task.sh"

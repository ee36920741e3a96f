#!/bin/sh
# rare.sh N COMMAND...: runs the command in tenth N of the rare cases (begin.cmake); in another one the test is skipped.
case ${FLASHGEN_TENTH:-all} in
"$1" | all) shift && exec "$@" ;;
*) echo "a rare case, which tenth $1 runs" && exit 77 ;;
esac

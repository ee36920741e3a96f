# begin.cmake - ctest reads it before it runs tests: which tenth of the rare cases runs, and where compiled
# kernels are kept. SOURCE and BINARY are set by the line in front of it.
#
# The tenth is the number of commits mod 10, so that ten merges in a row run every case. Without git, or in a
# shallow clone, it is the first digit of HEAD's hash, or 0. FLASHGEN_TENTH=n, or all, chooses another one.
if("$ENV{FLASHGEN_TENTH}" STREQUAL "")
  set(tenth "")
  execute_process(COMMAND git -C ${SOURCE} rev-parse --is-shallow-repository
    OUTPUT_VARIABLE shallow ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(shallow STREQUAL "false")
    execute_process(COMMAND git -C ${SOURCE} rev-list --first-parent --count HEAD
      OUTPUT_VARIABLE count ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(count MATCHES "([0-9])$")
      set(tenth ${CMAKE_MATCH_1})
    endif()
  else()
    execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE head ERROR_QUIET)
    if(head MATCHES "^[a-f]*([0-9])")
      set(tenth ${CMAKE_MATCH_1})
    endif()
  endif()
  if(tenth STREQUAL "")
    set(tenth 0)
  endif()
  set(ENV{FLASHGEN_TENTH} ${tenth})
endif()
message("Rare cases: tenth $ENV{FLASHGEN_TENTH} (FLASHGEN_TENTH=0 to 9, or all, chooses)")

# One folder for all suites and runs; tests/support/kept_cc.c has the rule. Libraries that no run made or used for
# a week are removed.
if("$ENV{FLASHGEN_TEST_KERNELS}" STREQUAL "")
  set(ENV{FLASHGEN_TEST_KERNELS} ${BINARY}/kernels)
endif()
file(MAKE_DIRECTORY $ENV{FLASHGEN_TEST_KERNELS})
execute_process(COMMAND find $ENV{FLASHGEN_TEST_KERNELS} -type f -mtime +7 -delete)
set(ENV{PATH} "${BINARY}/cc:$ENV{PATH}")

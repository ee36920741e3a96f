# check.cmake - minimal.c as a host application builds it: from flashgen.h and libflashgen.so alone,
# as C11 and as C++17 without a warning; it runs, the second time from the cache; and the library
# exports the functions of the header and no other name.
#   cmake -D CC= -D NM= -D FLAGS= -D SOURCE= -D LIBRARY= -D WORK= -P check.cmake
file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/runtime/flashgen.h DESTINATION ${WORK}/include)
file(COPY ${SOURCE}/tests/consumer/minimal.c DESTINATION ${WORK})
get_filename_component(library_dir ${LIBRARY} DIRECTORY)
separate_arguments(flags UNIX_COMMAND "${FLAGS}")

function(run out)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE code
    OUTPUT_VARIABLE output ERROR_VARIABLE error)
  if(code)
    message(FATAL_ERROR "${ARGN}: ${code}\n${output}${error}")
  endif()
  if(error)
    message(FATAL_ERROR "${ARGN} says: ${error}")
  endif()
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

function(expect what given expected)
  if(NOT "${given}" STREQUAL "${expected}")
    message(FATAL_ERROR "${what}:\n${given}\nexpected:\n${expected}")
  endif()
endfunction()

# A compiler that notes each compile.
file(WRITE ${WORK}/cc "#!/bin/sh\n[ \"$1\" = --version ] || echo . >>${WORK}/compiles\nexec ${CC} \"$@\"\n")
file(CHMOD ${WORK}/cc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(environment ${CMAKE_COMMAND} -E env FLASHGEN_CC=${WORK}/cc FLASHGEN_CACHE=${WORK}/cache)
function(expect_compiles n)
  file(STRINGS ${WORK}/compiles lines)
  list(LENGTH lines count)
  expect("compiles" ${count} ${n})
endfunction()

set(warnings -Wall -Wextra -Werror -pedantic)
set(link -Iinclude ${flags} -L${library_dir} -lflashgen -Wl,-rpath,${library_dir})
run(ignored ${CC} -std=c11 ${warnings} minimal.c -o minimal ${link})
run(ignored ${CC} -x c++ -std=c++17 ${warnings} minimal.c -x none -o minimal++ ${link})

run(first ${environment} ./minimal)
expect_compiles(2) # forward and backward
if(NOT first MATCHES "^o  [0-9.]+ [0-9.]+\ndq -?[0-9.e-]+ -?[0-9.e-]+\n$" OR first MATCHES "dq 0 0")
  message(FATAL_ERROR "minimal printed:\n${first}")
endif()
run(second ${environment} ./minimal)
expect("the second run" "${second}" "${first}")
run(third ${environment} ./minimal++)
expect("the C++ program" "${third}" "${first}")
expect_compiles(2)

# The header's functions: what stands before a parenthesis outside comments and macros.
file(READ ${SOURCE}/runtime/flashgen.h header)
string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" header "${header}")
string(REPLACE "\\\n" "" header "${header}")
string(REGEX REPLACE "\n#[^\n]*" "\n" header "${header}")
string(REGEX MATCHALL "fg_[a-z_]+\\(" declared "${header}")
list(TRANSFORM declared REPLACE "\\(" "")
list(SORT declared)
run(symbols ${NM} -D --defined-only ${LIBRARY})
string(REGEX MATCHALL "[^ \n]+ [A-Za-z] [^\n]+" lines "${symbols}")
list(FILTER lines EXCLUDE REGEX " A FLASHGEN_[0-9]+$")
list(TRANSFORM lines REPLACE "^[^ ]+ [A-Za-z] ([^@]+).*$" "\\1" OUTPUT_VARIABLE exported)
list(SORT exported)
expect("exported" "${exported}" "${declared}")
list(LENGTH declared count)
if(count LESS 10)
  message(FATAL_ERROR "only these functions are declared: ${declared}")
endif()

# embed.cmake: writes the C text of embedded files. Run by the build:
#   cmake -D OUT=embedded.c -D GEN=<gen's directory> -D LISTS="fg_embedded_x=<dir>:<file>;<file>|..." -P embed.cmake
# Each list becomes an array of { name, text, size }, sorted by name, as gen/expand/embedded.h declares; files of gen have no folder in their names.
set(text "/* Made by gen/expand/embed.cmake; do not edit. */\n#include \"expand/embedded.h\"\n\n#include <string.h>\n")
string(REPLACE "|" ";" lists "${LISTS}")
foreach(list IN LISTS lists)
  string(REGEX MATCH "^([^=]+)=([^:]+):(.*)$" _ "${list}")
  set(array ${CMAKE_MATCH_1})
  set(dir ${CMAKE_MATCH_2})
  string(REPLACE "," ";" files "${CMAKE_MATCH_3}")
  list(SORT files)
  set(rows "")
  set(i 0)
  foreach(file IN LISTS files)
    file(READ ${dir}/${file} hex HEX)
    file(SIZE ${dir}/${file} size)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND text "static const unsigned char ${array}_${i}[] = {${bytes}0};\n")
    set(name ${file})
    if(dir STREQUAL GEN)
      get_filename_component(name ${file} NAME)
    endif()
    string(APPEND rows "    {\"${name}\", (const char *)${array}_${i}, ${size}},\n")
    math(EXPR i "${i} + 1")
  endforeach()
  string(APPEND text "const fg_embedded ${array}[] = {\n${rows}    {NULL, NULL, 0},\n};\n\n")
endforeach()
# What gen's C code is: kernels that another gen made are not taken from a cache.
set(hashes "")
file(GLOB_RECURSE code ${GEN}/*.c ${GEN}/*.h)
list(SORT code)
foreach(file IN LISTS code)
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(APPEND text "const char fg_embedded_code[] = \"${hash}\";\n\n")
string(APPEND text "const fg_embedded *fg_embedded_find(const fg_embedded *list, const char *name) {
  for (; list->name; list++)
    if (!strcmp(list->name, name)) return list;
  return NULL;
}
")
file(WRITE ${OUT} "${text}")

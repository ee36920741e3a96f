# embed_text.cmake: writes the C text of files, one after the other: NAME, its bytes and a zero, and
# NAME_size, without the zero. Run by the build:
#   cmake -D OUT=definitions.c -D NAME=fg_definitions_text -D FILES=<gen/formula/definitions.lua,...>
#     -P embed_text.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(hex "")
foreach(file ${FILES})
  file(READ ${file} more HEX)
  string(APPEND hex "${more}")
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* Made by gen/expand/embed_text.cmake; do not edit. */
#include <stddef.h>
extern const char ${NAME}[];
extern const size_t ${NAME}_size;
const char ${NAME}[] = {${bytes}0};
const size_t ${NAME}_size = sizeof ${NAME} - 1;
")

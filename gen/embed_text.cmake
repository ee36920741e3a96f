# embed_text.cmake: writes the C text of gen/definitions.lua. Run by the build:
#   cmake -D OUT=definitions.c -D FILE=<gen/definitions.lua> -P embed_text.cmake
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* Made by gen/embed_text.cmake; do not edit. */
extern const char fg_definitions_text[];
const char fg_definitions_text[] = {${bytes}0};
")

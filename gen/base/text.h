/* text.h - a text that grows in room of a fixed size: what does not fit is counted and cut. */
#ifndef FG_TEXT_H
#define FG_TEXT_H

#include <stddef.h>

/* Prints behind the n characters of a text; returns how many there are then, as snprintf does: more
 * than size - 1 where the text is cut. */
__attribute__((format(printf, 4, 5))) int fg_append(size_t size, char *text, int n,
                                                    const char *format, ...);

/* The room behind n characters, and where it begins: at the end of the text where there is none. */
size_t fg_room(size_t size, int n);
char *fg_room_at(size_t size, char *text, int n);

#endif

/* spot.h - names for places in templates, by which tests say where they plant a bug.
 *
 * A spot is a line of its own, `@ spot "tile.rows.load"` in a .cut and `-- spot "expr.masks.keys"`
 * in a .lua. It marks the lines below it, to the next spot, an empty line or the end of the file.
 * It changes nothing of what is emitted. */
#ifndef FG_SPOT_H
#define FG_SPOT_H

#include <stdbool.h>
#include <stddef.h>

/* Is the line of n bytes, without its end, a spot? Then *name of *name_n bytes lies in it. */
bool fg_template_spot(const char *line, size_t n, const char **name, size_t *name_n);

#endif

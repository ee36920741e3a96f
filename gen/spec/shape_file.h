/* shape_file.h - a file of shapes: a Lua chunk that returns a list of them, as a spec file returns
 * specs.
 *
 *   return {
 *     { b = 4, h = 32, hk = 8, nq = 4096 }, -- hk = h, nk = nq, b = 1 if not given
 *     { h = 16, nq = 1, nk = 8192, when = function(s) return s.head_dim == 128 end },
 *     { rows = 4096 }, -- of kernel=logsoftmax
 *     { b = 64, h = 32, hk = 8, nq = 1, nk = 8192, page = 16 }, -- of kv_layout=paged
 *   }
 */
#ifndef FG_SHAPE_FILE_H
#define FG_SHAPE_FILE_H

#include "spec.h"

typedef struct fg_shape_file fg_shape_file;

/* Reads and runs the file. FG_ESPEC with all mistakes, each with the number of its shape. Extents
 * are 0 to 2^30 - 1, as the launcher has it; align is 16. */
fg_status fg_shape_file_open(const char *path, fg_shape_file **file);
void fg_shape_file_free(fg_shape_file *file);

int fg_shape_file_count(const fg_shape_file *file);
const fg_shape *fg_shape_file_at(const fg_shape_file *file, int i);

/* Is shape i for the point? It has the extents of the point's kind and of no other layout, and its
 * `when`, which sees what that of a spec does, says yes. *shape: with the extents of the layout
 * that the file leaves out (fg_layout_fill). */
fg_status fg_shape_file_for(fg_shape_file *file, int i, const fg_point *point, fg_shape *shape,
                            bool *keep);

#endif

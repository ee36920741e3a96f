/* device_host.h - the host device: compiles a source with the system's C compiler and runs its
 * steps on the engine (runtime/host/). One launch at a time a process. */
#ifndef FG_DEVICE_HOST_H
#define FG_DEVICE_HOST_H

#include "expand.h"
#include "launch.h"

typedef struct fg_host_module fg_host_module;

/* Compiles and loads; *module keeps the source's lines for its messages, so the source must outlive
 * it. FG_EENVIRONMENT: no compiler; FG_ECOMPILER: it refused the text, with template places. */
fg_status fg_host_module_new(const fg_source *source, const char *name, fg_host_module **module);
void fg_host_module_free(fg_host_module *module);

/* Runs every step of the recipe. `workspace` has fg_workspace_size bytes; tensors lie in memory
 * that the process may touch. The seed orders blocks, warps and lanes. A fault of the kernel is
 * FG_ETEMPLATE: what it did, and the template lines where. */
fg_status fg_host_module_run(fg_host_module *module, const fg_shape *shape, const fg_args *args,
                             void *workspace, uint64_t seed);

/* "gcc (Debian ...) 12.2.0": the compiler's first line of --version. */
fg_status fg_host_compiler(size_t size, char *text);

#endif

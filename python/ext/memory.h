/* Allocations of the program, as Python sees them.
 *
 *   memory_hooks.c   hooks in Python's own allocators: objects and small buffers, which malloc does not see one by one
 *   memory_frames.c  the calling thread's Python stack, and what its functions are called
 *   memory_rows.c    what was sampled, as rows of the trace
 *   memory.c         stepwatch.memory, the Python face */
#ifndef STEPWATCH_EXT_MEMORY_H
#define STEPWATCH_EXT_MEMORY_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/heap.h>

/* --- memory_hooks.c: with the GIL --- */

/* Counts one more who wants them. */
void memory_hooks_install(void);
void memory_hooks_remove(void);

/* --- memory_frames.c --- */

typedef struct memory_function {
    const char *file, *qualname, *name; /* UTF-8, for ever */
    uint32_t first_line;
} memory_function;

/* For sw_heap_set_walk: any thread, with the GIL or without; one at a time. */
size_t memory_walk(sw_heap_frame *out, size_t most);
/* A function by its number; false: there is none. Also functions of native code: file is the library. */
bool memory_function_get(uint32_t number, memory_function *out);

/* --- memory_snapshot.c: with the GIL --- */

/* What was sampled until now, as a Python object; NULL with an exception. */
PyObject *memory_snapshot_new(PyTypeObject *type, const sw_heap_stats *stats,
                              const sw_heap_window *window);
int memory_snapshot_add(PyObject *module);
/* Difference of two snapshots, or NULL with an exception. */
PyObject *memory_snapshot_since(PyObject *later, PyObject *earlier);
PyObject *memory_snapshot_top(PyObject *snapshot, Py_ssize_t limit, const char *by);

/* --- memory_rows.c: with the GIL, while something is recorded --- */
/* `last`: also how sites grew, which is told once. */
void memory_rows_write(const sw_heap_snapshot *snapshot, bool last);

#endif

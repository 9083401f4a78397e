/* Work of ours between that of the program: profilers, debuggers and coverage are not told of it. */
#ifndef STEPWATCH_EXT_UNSEEN_H
#define STEPWATCH_EXT_UNSEEN_H

#include "core.h"

/* Between these two, calls and lines on this thread are told to nobody, ourselves included. They may nest. With the GIL, and no
 * code of the program's in between. */
void core_unseen_begin(void);
void core_unseen_end(void);

/* Imports a module of the package, or one that it needs: unseen, and with this thread's signals held back. Importing makes
 * weak references with callbacks, in which Python drops every exception, a KeyboardInterrupt among them. */
PyObject *core_import(const char *name);

int core_unseen_add(PyObject *module);

#endif

/* The user's own code, told from the standard library, installed packages and this one. */
#ifndef STEPWATCH_EXT_USER_CODE_H
#define STEPWATCH_EXT_USER_CODE_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct core_user_site {
    PyCodeObject *code; /* a reference that the caller gives back */
    int line;
} core_user_site;

/* The innermost frame of the calling thread that runs the user's code; false: there is none. Leaves no exception. */
bool core_user_site_find(core_user_site *out);
/* One number for where the calling thread is in the user's code: the lines of its innermost frames there. The same line in a
 * helper that is called from two places is two of them. */
uint64_t core_user_place(void);
/* Whether the user's code is in a for loop that is getting its next item here, through its own generators and iterators or not. */
bool core_user_at_for(void);
/* Whether this code is the user's: its file lies neither below the Python installation, nor in a folder of installed
 * packages, nor in this package. */
bool core_is_user_code(PyCodeObject *code);
/* The same for the name of a file (str). */
bool core_is_user_file(PyObject *file);

int core_user_code_add(PyObject *module);

#endif

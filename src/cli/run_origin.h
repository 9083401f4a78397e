/* Where a run comes from: what was started, in which state of its source, with which options. It is what finds the same program
 * again in the history, and is left in run.json. */
#ifndef SW_CLI_RUN_ORIGIN_H
#define SW_CLI_RUN_ORIGIN_H

#include <limits.h>
#include <stepwatch/config.h>
#include <stepwatch/history.h>
#include <stepwatch/write.h>

struct run_origin {
    char program[PATH_MAX]; /* path of the script or program, or name of the module */
    size_t word;            /* of the command, that names it */
    char folder[PATH_MAX];  /* in which the command was given */
    bool in_git;
    sw_git_state git;
    const sw_given *given;
};

/* Looks before the program starts, for it may take days, and its source may change meanwhile. `operand` is what of the command is
 * the program: a script, the module after -m, or its first word. */
void run_origin_find(struct run_origin *origin, char *const *command, const char *operand,
                     const sw_given *given);
/* Writes the members "program", "folder", "git" and "config". */
void run_origin_write(sw_writer *writer, const struct run_origin *origin);

#endif

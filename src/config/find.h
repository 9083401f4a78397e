/* Which configuration file counts, and its text. */
#ifndef SW_CONFIG_FIND_H
#define SW_CONFIG_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>

#include "config/reader.h"

/* Longer files are no configuration. */
#define SW__CONFIG_FILE_MOST (1u << 20)

enum sw__config_form {
    SW__CONFIG_TOML,      /* options at the top */
    SW__CONFIG_PYPROJECT, /* options in [tool.stepwatch] */
    SW__CONFIG_YAML       /* options below profiling: */
};

struct sw__config_file {
    char path[PATH_MAX]; /* as it is shown: short in the working directory, else whole */
    enum sw__config_form form;
    char *text; /* valid UTF-8 without NUL; ends with one */
    size_t length;
};

/* Reads a file that was named. A sentence says why not: there is none, it is no regular file, too long, no text, or its
 * name does not tell what it is. Does not wait for pipes. */
int sw__config_open(struct sw__config_file *file, const char *path, sw_error_info *info);
/* Looks in the working directory, then in those above it, for stepwatch.toml, pyproject.toml with [tool.stepwatch],
 * stepwatch.yaml and stepwatch.yml. SW_OK, SW_ENOTFOUND, or what is wrong with the one that was found. */
int sw__config_find(struct sw__config_file *file, sw_error_info *info);
/* Reads the options of a file; whether it has the part that holds them. */
bool sw__config_read(const struct sw__config_file *file,
                     const struct sw__config_sink *sink);
/* The part of such a file that holds options, in words. */
const char *sw__config_part(enum sw__config_form form);
void sw__config_close(struct sw__config_file *file);

#endif

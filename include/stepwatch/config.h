/* What has been said about the options outside of the program: on a command line, in the environment, in a
 * configuration file. The recorder listens to the same, in the same order; this is for commands that have to know
 * before there is a recording, and that show where a value comes from. */
#ifndef STEPWATCH_CONFIG_H
#define STEPWATCH_CONFIG_H

#include <stddef.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a value comes from; a later one wins. */
enum sw_source {
    SW_SOURCE_DEFAULT,
    SW_SOURCE_FILE,
    SW_SOURCE_ENVIRONMENT,
    SW_SOURCE_COMMAND
};

typedef struct sw_given_value {
    const char *text; /* as it was written; the default where nothing was said */
    enum sw_source source;
    const char
        *where; /* "stepwatch.toml:3", "STEPWATCH_MAX_MB", "--set"; "" for a default */
    const char
        *problem; /* why something that was said does not count; NULL if all does */
} sw_given_value;

typedef struct sw_given sw_given;

/* Gathers what was said. `file` names a configuration file ("none": none); NULL means STEPWATCH_CONFIG, else the one that
 * is found in the working directory or above it. `set` are "key=value" of a command line, ends with NULL; may be NULL.
 * A `file` that cannot be read, and a mistake in `set`, are errors with a sentence; any other mistake becomes a problem. */
SW_API int sw_given_read(sw_given **out, const char *file, const char *const *set,
                         sw_error_info *info);
SW_API void sw_given_free(sw_given *given);
/* The value of an option; its texts live as long as `given`. SW_ENOTFOUND: there is no such option. */
SW_API int sw_given_get(const sw_given *given, const char *name, sw_given_value *out);
/* The configuration file that was read, or "". */
SW_API const char *sw_given_file(const sw_given *given);
/* Sentences about what does not count, one after the other; NULL after the last. */
SW_API const char *sw_given_problem(const sw_given *given, size_t index);
/* The folder in which the runs of this place lie: that in which `out` lies, else `runs_dir`. Cut to `size`. */
SW_API void sw_given_place(const sw_given *given, char *out, size_t size);
/* What the file said, as the value of STEPWATCH_FROM_FILE: a recorder that finds it there looks for no file, and leaves
 * warnings to whoever put it there. Returned length as snprintf. */
SW_API size_t sw_given_hand_over(const sw_given *given, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* The history of a place: what is known of each run that lies in a folder, kept in a small database beside the run
 * directories (history.db, SQLite), so that earlier runs of a program are found again.
 *
 * The run directories are what counts, and the database is made from them: one that is lost or damaged is made anew, and a
 * run that is missing in it is added when somebody looks. A damaged file is moved aside, never deleted. Rows of run
 * directories that are gone stay.
 *
 * Values that are not known are NULL, NaN, SW_UNKNOWN or -1, never 0. */
#ifndef STEPWATCH_HISTORY_H
#define STEPWATCH_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/export.h>
#include <stepwatch/records.h>
#include <stepwatch/write.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_HISTORY_FILE "history.db"

/* Whether there is a SQLite here to keep a history with; if not, a sentence says what is missing. */
SW_API int sw_history_check(sw_error_info *info);

/* --- adding --- */

/* Adds the run in `directory`, or takes its place if it is there already, in the history of the folder that the directory lies
 * in. Everything comes from the files of the run: run.json, report.json and, where there is no report, the traces. Waits a few
 * seconds at most for others who write. An error comes with one sentence, and leaves the run as it was; SW_OK comes with one when
 * the database was damaged and had to be made anew. */
SW_API int sw_history_add(const char *directory, sw_error_info *info);
/* Reads every run directory of a folder again; rows of those that are gone stay. `*runs` (may be NULL) is how many were read. */
SW_API int sw_history_rebuild(const char *folder, size_t *runs, sw_error_info *info);

/* The newest complete run of the same program that began before the one in `directory`, and is still there: the same script or
 * module with the same arguments or, where there is none, with others. A run that failed before its first step does not
 * count. The run in `directory` need not be in the history. SW_ENOTFOUND: there is none. */
typedef struct sw_history_earlier {
    char directory[4096]; /* absolute */
    char id[64];
    bool same_arguments;
} sw_history_earlier;
SW_API int sw_history_previous(const char *directory, sw_history_earlier *out,
                               sw_error_info *info);

/* --- reading --- */

/* A named value: `text`, or `number` where text is NULL. */
typedef struct sw_history_pair {
    const char *key;
    const char *text;
    double number;
} sw_history_pair;
typedef struct sw_history_pairs {
    const sw_history_pair *pair;
    size_t count;
} sw_history_pairs;

typedef struct sw_history_run {
    const char *id, *name;
    const char *directory; /* relative to the folder */
    const char *program;   /* path of the script or program, or name of the module */
    const char *arguments; /* a hash of the others, 16 hex digits; secrets are left out */
    const char *command;   /* as a shell would take it, secrets hidden */
    const char *host, *python;
    const char *commit; /* of the work tree in which the program lies */
    int dirty;          /* it held changes; -1: not known */
    double started_s;   /* since 1970 */
    double duration_s;
    int exit_code;   /* -1: unknown, or killed by a signal */
    int exit_signal; /* 0: none; -1: unknown */
    int complete;
    int64_t batch_size, workers; /* of the loader that fed the steps */
    uint64_t steps;              /* SW_UNKNOWN: none were recorded */
    double step_mean_ms, step_p50_ms, step_p99_ms, steps_per_s, samples_per_s;
    double overhead_percent;
    const char *finding; /* kind of the first one; NULL: none */
    double speedup;      /* that it predicts */
    const char *report;  /* report.json, relative to the folder; NULL: there is none */
    sw_history_pairs frameworks; /* name, version */
    sw_history_pairs config;     /* options that differ from the defaults */
    sw_history_pairs shares;     /* phase, share of the steps' time */
    /* What follows from the other runs. */
    bool gone; /* the run directory is not there any more */
    bool
        best; /* fewest ms a step (p50) of at least two runs of the same program, same arguments */
    const char *previous; /* directory of the earlier run of the same program, or NULL */
    const char *previous_id;
    bool previous_same_arguments; /* … had the same arguments */
    double
        change; /* steps_per_s against that one: 1.31 is 31 % more. A plain ratio, no test */
} sw_history_run;

/* The runs of one program with the same arguments, oldest first: how the step changed. */
typedef struct sw_history_trend {
    const char *program, *arguments, *name;
    size_t runs;           /* with steps */
    const double *step_ms; /* p50 of the newest of them, oldest first */
    size_t count;          /* how many */
    double first_ms, last_ms, best_ms;
} sw_history_trend;
#define SW_HISTORY_TREND 40 /* values of a trend */

typedef struct sw_history sw_history;

/* Reads the history of a folder, after adding the runs that are missing in it. Where nothing can be written, what is
 * missing is read all the same. `program` chooses runs whose program or name contains the text; NULL: all. An error has one sentence: SW_EOPEN
 * there is no such folder, SW_EFORMAT it holds something else, SW_EUNSUPPORTED there is no SQLite here. The caller frees
 * the history. */
SW_API int sw_history_read(sw_history **out, const char *folder, const char *program,
                           sw_error_info *info);
SW_API void sw_history_free(sw_history *history); /* NULL is fine */
/* For these and the writers below NULL is a place without runs. */
SW_API const char *sw_history_folder(const sw_history *history);
/* Newest first. */
SW_API size_t sw_history_count(const sw_history *history);
SW_API const sw_history_run *sw_history_get(const sw_history *history, size_t index);
/* Programs with at least three runs that have steps, that of the newest run first. */
SW_API size_t sw_history_trend_count(const sw_history *history);
SW_API const sw_history_trend *sw_history_get_trend(const sw_history *history,
                                                    size_t index);
/* What could not be read or written, one sentence each; NULL past the last. */
SW_API const char *sw_history_note(const sw_history *history, size_t index);

/* One JSON document, schema stepwatch.history/1, and a newline: the newest `limit` runs (0: all). Errors stick to the writer, here
 * and below. */
SW_API void sw_history_write_json(sw_writer *writer, const sw_history *history,
                                  size_t limit);
/* The same as a table, with trends; `top` is the limit (0: 20). */
SW_API void sw_history_write_text(sw_writer *writer, const sw_history *history,
                                  const sw_text_options *options);

/* --- the state of a git work tree, read from its files --- */

typedef struct sw_git_state {
    char commit[65];  /* hex; "": there is none yet */
    char branch[256]; /* "": detached */
    int dirty;        /* 1: changed since; -1: not known */
} sw_git_state;
/* Of the work tree that `path` (a file or folder) lies in. SW_ENOTFOUND: in none, or none that can be read. */
SW_API int sw_git_read(const char *path, sw_git_state *out);

#ifdef __cplusplus
}
#endif
#endif

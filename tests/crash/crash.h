/* What the drivers of the crash tests share: cases in processes of their own, victims with limits and an
 * environment of their own, and what can be read of the traces they leave. */
#ifndef CRASH_CRASH_H
#define CRASH_CRASH_H

#include "page.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/store.h>
#include <stepwatch/trace.h>
#include <sys/types.h>

#if defined(__SANITIZE_ADDRESS__)
#define CRASH_ASAN 1
#else
#define CRASH_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define CRASH_TSAN 1
#else
#define CRASH_TSAN 0
#endif
#define CRASH_SANITIZED (CRASH_ASAN || CRASH_TSAN)

/* A named case. It runs in a process of its own, which may change its limits, namespaces and signals. */
struct crash_case {
    const char *name;
    void (*run)(void);
};
#define CASE(function)                                                                   \
    {                                                                                    \
#function, function                                                              \
    }

/* main() of a driver: arguments are the victim, the command, the plugin, its host, then names of cases to run alone.
 * Writes TAP. */
int crash_main(int argc, char **argv, const struct crash_case *cases, size_t count);

/* A check that fails is reported with its place, and the case goes on. */
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            crash_fail(__FILE__, __LINE__, "%s", #condition);                            \
        }                                                                                \
    } while (0)
#define CHECK_EQ(left, right)                                                            \
    crash_equal(__FILE__, __LINE__, #left " == " #right, (long long)(left),              \
                (long long)(right))
#define CHECK_BETWEEN(low, value, high)                                                  \
    crash_between(__FILE__, __LINE__, #value, (long long)(low), (long long)(value),      \
                  (long long)(high))
void crash_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void crash_equal(const char *file, int line, const char *what, long long left,
                 long long right);
void crash_between(const char *file, int line, const char *what, long long low,
                   long long value, long long high);
/* Number of failed checks so far: a loop over many victims may stop early. */
unsigned crash_failures(void);
/* Ends the case as skipped, visibly. */
void crash_skip(const char *why) __attribute__((noreturn));

/* Random numbers from a seed that is printed; STEPWATCH_TEST_SEED sets it. */
uint64_t crash_random(void);
uint64_t crash_below(uint64_t limit);
void crash_sleep_us(uint64_t microseconds);

extern const char *crash_victim;  /* path of the victim */
extern const char *crash_command; /* path of stepwatch */
extern const char *crash_plugin;  /* path of the plugin */
extern const char *
    crash_host; /* path of the program that loads it and is not linked with the library */
extern char crash_dir[200]; /* a fresh folder of the case, removed afterwards */
extern char
    crash_hot[200]; /* a fresh folder in memory, where victims put their hot files */

/* A process under test. */
struct run {
    const char *out; /* run directory; default: crash_dir/run */
    const char *const
        *env; /* more variables, NULL-terminated; one without '=' takes a variable away */
    void (*prepare)(void *arg); /* in the child, before exec */
    void *arg;
    bool off;          /* STEPWATCH_ENABLED=0 */
    unsigned sessions; /* one after the other, each of which may say a line; 0: one */
    pid_t pid;
    int output, complaint; /* pipes */
    struct page *page;
    /* After run_finish: */
    int status; /* as waitpid gives it */
    char *out_text, *err_text;
    size_t out_length, err_length;
};
/* Starts the victim with these arguments (up to NULL). */
void run_start(struct run *run, ...) __attribute__((sentinel));
void run_start_argv(struct run *run, const char *const *argv);
/* Runs the victim without recording, to its end: what it prints and how it exits is what every recorded run
 * must give too. */
void run_plain(struct run *run, ...) __attribute__((sentinel));
/* Runs it recorded, to its end, without waiting for it anywhere. */
void run_whole(struct run *run, ...) __attribute__((sentinel));
/* Waits until the victim's page says that it is ready; false when it died before. */
bool run_ready(struct run *run);
void run_go(struct run *run);
void run_kill(struct run *run, int signal_number);
/* Waits for its end and collects what it wrote. */
void run_finish(struct run *run);
void run_free(struct run *run);
/* Sections ended, over all threads. */
uint64_t run_done(const struct run *run);
uint64_t run_steps(const struct run *run);

/* The victim ended as it did without recording. */
#define check_same(run, plain) crash_check_same(__FILE__, __LINE__, run, plain)
void crash_check_same(const char *file, int line, const struct run *run,
                      const struct run *plain);
/* stderr is empty, or one line that begins with "stepwatch: " when something was lost. */
#define check_said(run, lost) crash_check_said(__FILE__, __LINE__, run, lost)
void crash_check_said(const char *file, int line, const struct run *run, bool lost);

/* What a run directory holds. */
struct tally {
    int result;   /* of sw_run_open */
    size_t files; /* that could be opened */
    size_t unreadable;
    size_t closed, killed, running, damaged, hot_used, hot_missing;
    size_t losers; /* with dropped records */
    uint64_t present, dropped, overwritten, reentrant, unmatched, too_deep, bus_errors;
    uint64_t steps, steps_dropped, threads, incarnations;
    uint64_t counted;       /* records that a cursor met; equals present */
    uint64_t spans, cut;    /* of those, SPANs, and SPANs that are flagged as cut */
    uint64_t calls;         /* of sections, by the statistics */
    uint64_t steps_counted; /* by the statistics */
    uint64_t open;          /* sections that are open */
    uint64_t open_lanes;    /* lanes with open sections */
    uint64_t nameless;      /* spans whose name is unknown */
    uint64_t backward; /* spans that end before they begin, or outside the recording */
    uint64_t digest;   /* of the statistics and of every record, their times too */
    uint64_t digest_lanes; /* of the statistics alone */
    uint32_t first_error;
};
/* Reads everything. `path`: a run directory or a file; NULL: crash_dir/run. */
void tally_read(struct tally *tally, const char *path);
#define ATTEMPTED(tally) ((tally)->present + (tally)->dropped + (tally)->overwritten)
/* One file, opened, closed, undamaged; counts exact. */
#define check_whole(tally, attempted)                                                    \
    crash_check_whole(__FILE__, __LINE__, tally, attempted)
void crash_check_whole(const char *file, int line, const struct tally *tally,
                       uint64_t attempted);
/* Calls of the section of that name in all files of the run directory. */
uint64_t tally_calls_of(const char *path, const char *section);

/* Folds every file of the run directory; returns how many were folded. Fails the case on errors. */
unsigned fold_all(const char *path);
/* Paths of the files of a folder that end so; returns their number. The caller frees them. */
size_t list_files(const char *folder, const char *suffix, char ***paths);
void free_files(char **paths, size_t count);
/* Hot files in crash_hot. */
size_t hot_files(void);
/* Runs `stepwatch report --json` on the run directory and checks that it ends well. The text is the
 * caller's to free. */
char *report_json(const char *path);

/* A private mount namespace; skips the case when that is not permitted. */
void need_mounts(void);
/* Mounts a tmpfs of `kib` KiB on a fresh folder below crash_dir, whose path it writes to `path`. */
void mount_tmpfs(const char *name, unsigned kib, char *path, size_t size);
/* Fills the file system of `folder` to the last byte. */
void fill_up(const char *folder);

#endif

/* Recording: sections, steps, counters and marks of the running program.
 *
 * Nothing here ever stops or fails the program: what cannot be recorded is counted and stated once
 * at the end. Every function may be called from any thread; sections and steps belong to the
 * thread that opened them. Before sw_init, after sw_shutdown, and when recording is off, a section
 * costs two loads and two predicted branches, and any other call a function call. */
#ifndef STEPWATCH_RECORD_H
#define STEPWATCH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sw_policy {
    SW_POLICY_AUTO = 0,   /* first, last and worst steps whole, statistics of all */
    SW_POLICY_STREAM = 1, /* everything goes to the file until it reaches the cap */
    SW_POLICY_RING = 2,   /* the newest events, as many as the cap allows */
    SW_POLICY_DROP =
        3 /* the oldest events, as many as the cap allows, held in memory till the end */
};

/* Three-valued switches: 0 follows environment and defaults. */
enum sw_switch { SW_DEFAULT = 0, SW_ON = 1, SW_OFF = 2 };

/* Configuration. All zero means environment (STEPWATCH_*), configuration file and defaults; a field that is set
 * wins over these, except that STEPWATCH_ENABLED=0 always switches off. Strings are copied. */
typedef struct sw_config {
    const char *name;   /* of the run; default: the program's name */
    const char *out;    /* run directory; default runs/profiling/<UTC time>-<name> */
    const char *policy; /* "auto", "stream", "ring", "drop" */
    const char
        *schedule; /* see sw_schedule_parse; steps outside it have statistics only */
    const char
        *hot_dir; /* folder for the hot file; default: /dev/shm, else the best there is */
    double max_mb;  /* cap on this process's trace in MiB, default 256; negative: none */
    int enabled;    /* enum sw_switch, like those below */
    int events;     /* record events, not only statistics (default on) */
    int step_usage; /* read CPU time, switches and faults at steps (default on) */
    int quiet;      /* do not say on stderr what was lost (default off) */
    unsigned keep_first; /* policy auto: steps at the beginning kept whole (default 50) */
    unsigned keep_last;  /* … and at the end (default 50) */
    unsigned keep_worst; /* … and the slowest ones (default 20) */
    double sampler_hz;   /* looks at the stacks of Python threads a second, at most 1000
                            (default 0); negative: none. C programs have no such stacks. */
    const char *
        runs_dir; /* folder of run directories, where `out` is not given; default runs/profiling */
    const char
        *config; /* configuration file, in place of the one that is found; "none": none */
    const char *const
        *set; /* "key=value" for any option, ends with NULL; wins over the fields above */
    const char *const
        *presets; /* the same in place of a configuration file, below the environment */
    double
        monitor_interval_s; /* seconds between looks of the monitor, 0.01 to 3600 (default 0:
                               none); negative: none */
    double monitor_pss_s; /* the same for its looks at PSS (default 0: none) */
} sw_config;

/* Starts recording. 0, or a negative sw_error: then the program runs on unrecorded. Starting twice
 * is fine (the second configuration is ignored, SW_ESTATE). NULL: environment and defaults.
 * When the library is under `stepwatch run` and sw_init is never called, the first section starts it. */
#define sw_init(...) sw_init_sized((__VA_ARGS__), sizeof(sw_config))
SW_API int sw_init_sized(const sw_config *config, size_t size);
/* As sw_init, and says what went wrong. */
SW_API int sw_init_info(const sw_config *config, size_t size, sw_error_info *info);
/* As sw_init_info, for a recording that this process itself reads and then forgets: it lies in memory alone, which
 * dies with the process; there is no folder and no thread of ours, and the policy is "drop". Of the machine it has the
 * name alone. Children of a fork record only if the run directory is there by then. */
SW_API int sw_init_brief(const sw_config *config, size_t size, sw_error_info *info);
/* A descriptor of such a recording's trace, which sw_run_open reads as /proc/self/fd/N, now and after its end; the caller
 * closes it. Negative: none. */
SW_API int sw_brief_fd(void);
/* Ends recording, writes everything out. Also called at exit. Recording may start again later. */
SW_API void sw_shutdown(void);
SW_API bool sw_is_recording(void);
/* Path of this process's trace file and of the run directory; empty when not recording. Returned length
 * as snprintf. */
SW_API size_t sw_trace_path(char *out, size_t size);
SW_API size_t sw_run_dir(char *out, size_t size);

/* A section: a named stretch of code in a domain. The handle lives for ever; get it once, keep it. Its first
 * word is public so that a disabled section costs nothing: 0 off, else the number of the recording. */
typedef struct sw_section sw_section;
struct sw_section_gate {
    uint32_t generation;
};
/* The section of that name in the default domain. Names map to phases by a table of usual names
 * ("forward", "data", "optimizer_step" …; see sw_phase_of_name). Never NULL. */
SW_API sw_section *sw_section_get(const char *name);
/* As above with the length of the name and an explicit phase (enum sw_phase, SW_PHASE_INHERIT for none). */
SW_API sw_section *sw_section_get_n(const char *name, size_t length, int phase);
/* The phase that a name maps to, or SW_PHASE_INHERIT. */
SW_API int sw_phase_of_name(const char *name, size_t length);
/* The family of a name that a program builds from counters: "epoch_*" of "epoch_17". `out` has room for `length` bytes;
 * how many were written, 0: there is no number in it. */
SW_API size_t sw_name_family(const char *name, size_t length, char *out);

/* What sw_begin and sw_end call when the section's gate is open; use those. */
SW_API SW_NOPLT void sw_section_enter(sw_section *section);
SW_API SW_NOPLT void sw_section_leave(sw_section *section);
/* For sections whose begin and end may interleave on one thread (generators, tasks): `key` names the activation
 * (0: the thread itself), and an end closes the newest open section of the same key. `flags`: SW_RECORD_ERROR. */
SW_API void sw_section_begin(sw_section *section, uint64_t key);
SW_API void sw_section_end(sw_section *section, uint64_t key, unsigned flags);

/* How many sections are open on this thread in the default domain. */
SW_API unsigned sw_section_depth(void);

/* For a call that runs in stretches (a generator): each stretch is a begin and a suspend, the last one a begin and a
 * finish. `*spent`, which the caller keeps and sets to 0 before the first begin, adds up the ticks: the call counts once,
 * with the sum of its stretches. */
SW_API void sw_section_suspend(sw_section *section, uint64_t key, uint64_t *spent);
SW_API void sw_section_finish(sw_section *section, uint64_t key, unsigned flags,
                              uint64_t *spent);

#if defined(__GNUC__)
#define SW_GATE(section)                                                                 \
    (__builtin_expect(                                                                   \
         __atomic_load_n(&((struct sw_section_gate *)(void *)(section))->generation,     \
                         __ATOMIC_RELAXED),                                              \
         0) != 0)
#else
#define SW_GATE(section) (((volatile struct sw_section_gate *)(section))->generation != 0)
#endif

/* Opens and closes a section on this thread. Sections nest and recurse; an end that does not match the
 * newest open section closes the newest of its own and is flagged. */
static inline void sw_begin(sw_section *section)
{
    if (SW_GATE(section)) {
        sw_section_enter(section);
    }
}
static inline void sw_end(sw_section *section)
{
    if (SW_GATE(section)) {
        sw_section_leave(section);
    }
}
/* As sw_end, and counts an error. */
static inline void sw_end_error(sw_section *section)
{
    if (SW_GATE(section)) {
        sw_section_end(section, 0, SW_RECORD_ERROR);
    }
}

#if defined(__GNUC__)
#define SW_CONCAT2(a, b) a##b
#define SW_CONCAT(a, b) SW_CONCAT2(a, b)
static inline void sw_scope_leave(sw_section **section)
{
    if (*section) {
        sw_end(*section);
    }
}
/* Looks a name up once and keeps the handle where the macro stands. */
static inline sw_section *sw_section_cached(sw_section **cache, const char *name)
{
    sw_section *section = __atomic_load_n(cache, __ATOMIC_ACQUIRE);
    if (__builtin_expect(section == 0, 0)) {
        section = sw_section_get(name);
        __atomic_store_n(cache, section, __ATOMIC_RELEASE);
    }
    return section;
}
static inline sw_section *sw_scope_enter(sw_section **cache, const char *name)
{
    sw_section *section = sw_section_cached(cache, name);
    sw_begin(section);
    return section;
}
#define SW_ENTER(name)                                                                   \
    (__extension__({                                                                     \
        static sw_section *sw_cache_;                                                    \
        sw_scope_enter(&sw_cache_, (name));                                              \
    }))
#define SW_GUARD(id)                                                                     \
    __attribute__((cleanup(sw_scope_leave), unused)) sw_section *SW_CONCAT(sw_scope_, id)
/* A section from here to the end of the enclosing block, on every way out of it. */
#define SW_SCOPE(name) SW_GUARD(__COUNTER__) = SW_ENTER(name)
/* A section around the block that follows. `break` and `continue` leave the section only. */
#define SW_SECTION(name) SW_SECTION_ID(name, __COUNTER__)
#define SW_SECTION_ID(name, id)                                                          \
    for (int SW_CONCAT(sw_once_, id) = 1; SW_CONCAT(sw_once_, id);                       \
         SW_CONCAT(sw_once_, id) = 0)                                                    \
        for (SW_GUARD(id) = SW_ENTER(name); SW_CONCAT(sw_once_, id);                     \
             SW_CONCAT(sw_once_, id) = 0)
#endif

/* Steps of the calling thread in the default domain. A step that is still open when the next begins is
 * closed as incomplete. */
SW_API void sw_step_begin(void);
SW_API void sw_step_end(void);
/* As above, saying what a step is (enum sw_step_unit), and closing as incomplete (left by break). */
SW_API void sw_step_begin_unit(int unit);
SW_API void sw_step_abandon(void);
/* Ends the open step, if there is one, and begins the next at the same moment: what a loop does that asks for a
 * batch. SW_STEP_BRIEF may be added to the unit: as if sw_step_brief() followed. */
SW_API void sw_step_next(int unit);
/* The open step is watched in brief (SW_STEP_BRIEF): whoever calls this leaves out sections of phases that are not in
 * SW_PHASES_ALWAYS until it ends. */
SW_API void sw_step_brief(void);
/* A step of this thread that is over, from the tick `begin` to `end`, of which `wait` ticks at its beginning were waiting for
 * data: one that was known to be a step only later. Not while a step is open. */
SW_API void sw_step_past(int unit, uint64_t begin, uint64_t end, uint64_t wait);
/* The same, with the ticks of each phase but that of waiting (SW_PHASE_COUNT of them; NULL: unknown). What they leave is
 * `other`. SW_STEP_BRIEF may be added to the unit. */
SW_API void sw_step_past_phases(int unit, uint64_t begin, uint64_t end, uint64_t wait,
                                const uint64_t *phase_ticks);
/* Ticks of each phase of this thread's open step so far (SW_PHASE_COUNT of them). Returns the tick at which it began; 0: none
 * is open. */
SW_API uint64_t sw_step_phases(uint64_t *phase_ticks);
/* Outside of steps: phases are counted on this thread from now on until a step begins, as if one had, for who asks by
 * sw_step_phases. For work that is known to have been steps only when it is over, see sw_step_past_phases. */
SW_API void sw_phases_watch(void);
/* Forgets the open step, as if it had not begun: there was no batch. */
SW_API void sw_step_cancel(void);
/* Within a step: what this thread did since the tick `since` under the phase that is running counts as `phase` instead. For
 * work that is known only when it is over, such as a compilation. Never more than the running phase has. */
SW_API void sw_phase_charge(int phase, uint64_t since);
/* Within a step: what no phase is known for from the mark on counts as `phase` instead, once for a mark. For work that is
 * recognised by what follows it. */
SW_API void sw_phase_mark(void);
SW_API void sw_phase_claim(int phase);
/* The steps that follow belong to this epoch: those of this thread, and of threads that never say one. */
SW_API void sw_epoch(uint32_t epoch);
/* An optimizer step happened (report.json, "updates"). */
SW_API void sw_update(void);
/* Number of the step that is open on this thread, or of the next one; -1 when not recording. */
SW_API int64_t sw_step_number(void);

/* A value of a series, and a remark in the timeline. */
SW_API void sw_counter(const char *name, double value);
SW_API void sw_mark(const char *text);
SW_API void sw_mark_n(const char *text, size_t length);

/* Domains: independent profilers in one recorder, each with sections, call trees, steps and a switch
 * of its own. Domain NULL is the default one. A domain lives until the process ends. */
typedef struct sw_domain sw_domain;
SW_API sw_domain *sw_domain_get(
    const char *
        name); /* the same name gives the same domain; NULL when there are too many (64) */
SW_API void sw_domain_enable(sw_domain *domain, bool on);
SW_API sw_section *sw_domain_section(sw_domain *domain, const char *name, size_t length,
                                     int phase);
SW_API void sw_domain_step_begin(sw_domain *domain, int unit);
SW_API void sw_domain_step_end(sw_domain *domain);
SW_API void sw_domain_step_abandon(sw_domain *domain);
SW_API void sw_domain_counter(sw_domain *domain, const char *name, size_t length,
                              double value);

/* Appends a record of any kind of <stepwatch/records.h> to the calling thread's trace. `record->units` × 32
 * bytes are copied. Names it refers to come from sw_name. For watchers and adapters. */
SW_API void sw_record_put(const sw_record *record);
/* The same for what happened a while ago and was asked for, such as what another profiler saw: it is written whatever the schedule
 * says of the present step, and policy auto keeps it, up to an eighth of the cap. For a thread that does nothing else. */
SW_API void sw_record_put_past(const sw_record *record);
/* Number of a plain name (a file, a function, a reason) in this trace; 0 when not recording. */
SW_API uint32_t sw_name(const char *text, size_t length);
/* The clock records are stamped with. */
SW_API uint64_t sw_now(void);
/* Gives the calling thread a name in the trace (default: the kernel's). */
SW_API void sw_thread_name(const char *name);
/* Lets the calling thread, which must not have recorded anything yet, stand in the trace for something that is no thread, such as
 * a stream of a device: it goes on where one that ended and stood for the same has left off, so that there is one of each
 * name however often it is told of. The trace has no kernel's number for it. */
SW_API void sw_thread_stand_for(const char *name);

/* Keeps a row of a table (<stepwatch/records.h>, sw_row) in the trace. `handle` 0 makes a new row; what comes back is the
 * handle to change its flags and values later with. 0 comes back when nothing is recorded or there is no room, and the
 * row is lost. A handle of an earlier recording makes a new row. The row's index is filled in. Any thread. */
SW_API uint64_t sw_row_put(uint64_t handle, sw_row *row);
/* Number of this recording, 0 when there is none: rows and names made under another number are gone. */
SW_API uint32_t sw_recording_number(void);

/* Says something about this process, such as "python": "3.11.7"; the newest value of a key counts. It goes into the
 * trace that is being recorded and into every later one of this process and its forks. At most 128 keys. */
SW_API void sw_fact(const char *key, const char *value);

/* Where this process stands among those that a launcher started with it, as the environment has it (torchrun, MPI, Slurm
 * and their like); -1: not known. False: no launcher says anything. A trace has it as the facts "rank", "local_rank" and
 * "world_size". */
typedef struct sw_rank {
    long rank, local_rank, world_size;
    const char *variable; /* that says the rank */
} sw_rank;
SW_API bool sw_rank_get(sw_rank *out);

/* What another thread is doing at this moment, in the default domain. For samplers. */
typedef struct sw_peek {
    uint32_t thread;  /* its index in the trace */
    uint32_t node;    /* innermost open section's node; 0: none */
    uint32_t section; /* its name id; 0: none */
    uint16_t domain;
    uint8_t
        phase; /* enum sw_phase within a step, SW_PHASE_BRIEF too; else SW_PHASE_INHERIT */
    int64_t step; /* number of the open step, -1 none */
} sw_peek;
/* Gives a thread of this process (kernel id) that has recorded nothing yet a place in the trace, under its name, so that
 * samples can speak of it. 0, also when it has one; SW_ENOTFOUND when nothing is recorded or there are too many. */
SW_API int sw_thread_adopt(uint32_t tid);
/* 0, or SW_ENOTFOUND: that thread (kernel id) has recorded nothing, `*out` says so (thread UINT32_MAX). With `sampled`
 * its open step counts a sample. */
SW_API int sw_peek_thread(uint32_t tid, bool sampled, sw_peek *out);
/* The text of a name by its number, cut to `size`; empty when there is none. Returned length as snprintf. */
SW_API size_t sw_name_text(uint32_t id, char *out, size_t size);

/* Whom an option concerns, where it is not every recording. */
enum {
    SW_OPTION_PYTHON = 1,     /* Python programs */
    SW_OPTION_RUN = 2,        /* `stepwatch run` only */
    SW_OPTION_ENVIRONMENT = 4 /* can be given by its variable only */
};
/* One option of the configuration, for help texts and checks. */
typedef struct sw_option {
    const char *name;          /* "max_mb"; the variable is STEPWATCH_MAX_MB */
    const char *type;          /* "bool", "number", "count", "text", "choice", "list" */
    const char *default_value; /* as text */
    const char *help;          /* one sentence */
    unsigned flags;            /* SW_OPTION_… */
} sw_option;
/* The table of options, `*count` entries, static. */
SW_API const sw_option *sw_options(size_t *count);
/* The known option nearest to a misspelt one, however far; NULL when it is empty or longer than any name. */
SW_API const char *sw_option_nearest(const char *name);
/* The value in force in this recording, as text; empty when nothing is recorded or there is no such option. Returned
 * length as snprintf. */
SW_API size_t sw_option_value(const char *name, char *out, size_t size);
/* Checks a value against an option. 0, SW_ENOTFOUND (no such option) or SW_EINVAL, with a sentence. */
SW_API int sw_option_check(const char *name, const char *value, sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif

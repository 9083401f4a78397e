/* Schedules: which steps are recorded in detail. A schedule is a pure function step → action.
 *
 * Steps count from 0. Three forms exist, each may skip its first steps:
 *   cycle   wait/warmup/active, `repeat` times (0: for ever), one cycle every `every` steps; when
 *           wait + warmup + active > every the period is that sum.
 *   every   a single step is recorded whenever step % n == 0.
 *   steps   an explicit set of steps. */
#ifndef STEPWATCH_SCHEDULE_H
#define STEPWATCH_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sw_action {
    SW_ACTION_NONE = 0,   /* not recorded */
    SW_ACTION_WARMUP = 1, /* recorded and discarded */
    SW_ACTION_RECORD = 2, /* recorded */
    SW_ACTION_SAVE = 3    /* recorded, the last of its cycle */
};

enum sw_schedule_form {
    SW_SCHEDULE_ALWAYS = 0, /* every step is recorded */
    SW_SCHEDULE_CYCLE = 1,
    SW_SCHEDULE_EVERY = 2,
    SW_SCHEDULE_STEPS = 3
};

#define SW_SCHEDULE_STEPS_MAX 256

/* A schedule is a plain value: copy it, compare it, keep it anywhere. All zero means "always". */
typedef struct sw_schedule {
    uint32_t form; /* enum sw_schedule_form */
    uint32_t repeat;
    uint64_t skip_first;
    uint64_t every;
    uint64_t wait;
    uint64_t warmup;
    uint64_t active;
    uint32_t step_count;
    uint32_t reserved;
    uint64_t steps[SW_SCHEDULE_STEPS_MAX]; /* ascending */
} sw_schedule;

/* The action at `step`. Pure: depends on its arguments alone. NULL means "always". */
SW_API enum sw_action sw_schedule_action(const sw_schedule *schedule, uint64_t step);

/* Reads a schedule from text, for example
 *   "always", "wait=1,warmup=1,active=3,repeat=2,every=50,skip_first=10", "every=100", "steps=1,10,50,100".
 * On failure `info` says what is wrong and where, and `*out` is "always". */
SW_API int sw_schedule_parse(sw_schedule *out, const char *text, sw_error_info *info);
/* Writes that form back; returns the length that the whole text has, as snprintf does. */
SW_API size_t sw_schedule_format(const sw_schedule *schedule, char *out, size_t size);
/* Makes a schedule sane: sorts and dedups steps, checks the form. `*warning` (may be NULL) becomes a
 * static sentence when something was adjusted, such as a cycle longer than `every`, else NULL. */
SW_API int sw_schedule_check(sw_schedule *schedule, const char **warning,
                             sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif

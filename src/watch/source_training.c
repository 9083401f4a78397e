/* The thread that trains: its CPU time, and how long it was ready to run and had to wait for a CPU. */
#include <math.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <time.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

struct training {
    const char *root;
    struct sw__proc_file schedstat;
    uint32_t tid; /* 0: none yet */
    uint32_t hint[2];
};

static void training_close(void *state)
{
    struct training *training = state;
    sw__proc_close(&training->schedstat);
    sw__free(training);
}

static int training_open(const struct sw__source_setting *setting, void **state,
                         char *why, size_t size)
{
    (void)why;
    (void)size;
    struct training *training = sw__alloc_zero(1, sizeof *training);
    if (!training) {
        return SW_ENOMEM;
    }
    training->root = setting->root;
    training->schedstat.fd = -1;
    *state = training;
    return SW_OK;
}

/* The kernel's number of the CPU clock of any thread of this process. */
static clockid_t clock_of(uint32_t tid)
{
    return (clockid_t)(~tid << 3 | 6u);
}

static int training_sample(void *state, struct sw__look *look)
{
    struct training *training = state;
    const uint32_t tid = sw__look_training_tid(look);
    char text[128];
    double cpu = NAN, delay = NAN;
    if (!tid && !training->tid) {
        return SW_OK;
    }
    if (tid != training->tid) {
        /* Another thread, other sums: nothing is said at this look, so that nobody takes a difference. */
        snprintf(text, sizeof text, "/proc/self/task/%u/schedstat", tid);
        sw__proc_close(&training->schedstat);
        (void)sw__proc_open(&training->schedstat, training->root, text, NULL, 0);
        const bool first = training->tid == 0;
        training->tid = tid;
        if (!first) {
            goto put;
        }
    }
    struct timespec used;
    if (sw__proc_read(&training->schedstat, text, sizeof text) > 0) {
        cpu = sw__proc_value(sw__proc_nth(text, 0), 1e-9);
        delay = sw__proc_value(sw__proc_nth(text, 1), 1e-9);
    }
    if (isnan(cpu) && clock_gettime(clock_of(tid), &used) == 0) {
        cpu = (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
    }
put:
    sw__look_hint(look, &training->hint[0], "training.cpu", "s", SW_SERIES_TOTAL, cpu);
    sw__look_hint(look, &training->hint[1], "training.run_delay", "s", SW_SERIES_TOTAL,
                  delay);
    return SW_OK;
}

const struct sw__source sw__source_training = {
    .name = "training",
    .open = training_open,
    .sample = training_sample,
    .close = training_close,
};

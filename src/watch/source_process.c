/* The process itself: CPU time, memory, page faults, context switches. Two calls and one file. */
#include <math.h>
#include <stepwatch/error.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

struct process {
    struct sw__proc_file statm;
    double page;
    uint32_t hint[16];
};

static void process_close(void *state)
{
    struct process *process = state;
    sw__proc_close(&process->statm);
    sw__free(process);
}

/* CPU time and switches come from a call that cannot fail; without /proc the memory alone is unknown. */
static int process_open(const struct sw__source_setting *setting, void **state, char *why,
                        size_t size)
{
    struct process *process = sw__alloc_zero(1, sizeof *process);
    if (!process) {
        return SW_ENOMEM;
    }
    process->page = (double)sysconf(_SC_PAGESIZE);
    (void)sw__proc_open(&process->statm, setting->root, "/proc/self/statm", why, size);
    *state = process;
    return SW_OK;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static int process_sample(void *state, struct sw__look *look)
{
    struct process *process = state;
    uint32_t *hint = process->hint;
    struct rusage used;
    char text[256];
    if (getrusage(RUSAGE_SELF, &used)) {
        return SW_ESYS;
    }
    sw__look_hint(look, hint++, "process.cpu_user", "s", SW_SERIES_TOTAL,
                  seconds(used.ru_utime));
    sw__look_hint(look, hint++, "process.cpu_system", "s", SW_SERIES_TOTAL,
                  seconds(used.ru_stime));
    sw__look_hint(look, hint++, "process.faults_minor", "1", SW_SERIES_TOTAL,
                  (double)used.ru_minflt);
    sw__look_hint(look, hint++, "process.faults_major", "1", SW_SERIES_TOTAL,
                  (double)used.ru_majflt);
    sw__look_hint(look, hint++, "process.switches_voluntary", "1", SW_SERIES_TOTAL,
                  (double)used.ru_nvcsw);
    sw__look_hint(look, hint++, "process.switches_involuntary", "1", SW_SERIES_TOTAL,
                  (double)used.ru_nivcsw);
    if (process->statm.fd < 0) {
        return SW_OK;
    }
    uint64_t all = SW__UNKNOWN, shared = SW__UNKNOWN;
    if (sw__proc_read(&process->statm, text, sizeof text) > 0) {
        all = sw__proc_nth(text, 1);
        shared = sw__proc_nth(text, 2);
    }
    const bool both = all != SW__UNKNOWN && shared != SW__UNKNOWN && shared <= all;
    sw__look_hint(look, hint++, "process.rss", "B", SW_SERIES_GAUGE,
                  sw__proc_value(all, process->page));
    sw__look_hint(look, hint++, "process.rss_shared", "B", SW_SERIES_GAUGE,
                  sw__proc_value(shared, process->page));
    sw__look_hint(look, hint++, "process.rss_anon", "B", SW_SERIES_GAUGE,
                  both ? (double)(all - shared) * process->page : NAN);
    return SW_OK;
}

const struct sw__source sw__source_process = {
    .name = "process",
    .open = process_open,
    .sample = process_sample,
    .close = process_close,
};

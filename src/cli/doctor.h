/* The checks of `stepwatch doctor`. */
#ifndef SW_CLI_DOCTOR_H
#define SW_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>

enum check_status { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check {
    const char *name;
    enum check_status status;
    char text[400];
};

#define CHECKS_MOST 48

struct checks {
    struct check list[CHECKS_MOST];
    size_t count;
};

void check_add(struct checks *checks, const char *name, enum check_status status,
               const char *format, ...) SW_PRINTF(4, 5);

void check_clock(struct checks *checks);
void check_memory_folder(struct checks *checks); /* /dev/shm */
void check_run_folder(struct checks *checks,
                      const char *folder); /* where runs are to go */
void check_limits(struct checks *checks);
void check_cpus(struct checks *checks);
void check_kernel(struct checks *checks);
void check_monitor(struct checks *checks); /* what there is to see */
void check_history(struct checks *checks);
void check_python(struct checks *checks); /* for `run SCRIPT` */
/* Hot files of processes that are gone; removed when `clean`. */
void check_orphans(struct checks *checks, bool clean);

#endif

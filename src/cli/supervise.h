/* Running a program as its parent: signals, job control, its end. */
#ifndef SW_CLI_SUPERVISE_H
#define SW_CLI_SUPERVISE_H

#include <stdint.h>

struct outcome {
    int start_error; /* errno with which it could not be started; 0: it ran */
    int code;        /* its exit code, -1: a signal killed it */
    int signal;      /* 0: none */
    long process;    /* its number, while it ran */
    uint64_t started_real_ns, started_mono_ns, duration_ns;
};

struct progress;

/* Runs argv[0] (found by PATH) with the environment as it is, and the same standard streams, and waits for
 * its end. Afterwards a signal that would end this process ends it with the program's own code. `progress` is shown meanwhile,
 * if it is not NULL. */
void supervise(char **argv, struct progress *progress, struct outcome *outcome);

/* What a shell would call the outcome: the code, or 128 + signal; 126 and 127 for not started. */
int outcome_code(const struct outcome *outcome);

#endif

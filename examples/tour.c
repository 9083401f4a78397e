/* A tour of the interface, one function a stop; docs/c-api.md shows them one by one. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stepwatch/stepwatch.h>
#include <stepwatch/trace.h>

static volatile double sink;

static void work(int rounds)
{
    for (int i = 1; i <= rounds; i++) {
        sink += 1.0 / i;
    }
}

/* Recording that cannot start never stops the program; the message says why. */
static void start(void)
{
    sw_config config = {
        .name = "tour",
        .policy = "stream",
        .max_mb = 64,
    };
    sw_error_info why;
    if (sw_init_info(&config, sizeof(config), &why) < 0) {
        fprintf(stderr, "tour: not recorded: %s\n", why.message);
    }
}

/* A scope lasts to the end of its block and is closed on every way out of it. */
static int scope(int n)
{
    SW_SCOPE("parse");
    if (n < 0) {
        return -1;
    }
    work(n);
    return 0;
}

/* A section around a block; break leaves the block and the section. */
static void section(int n)
{
    SW_SECTION("augment") {
        if (n == 0) {
            break;
        }
        work(n);
    }
}

/* Handles, for code where begin and end stand in different functions. */
static void handle(void)
{
    static sw_section *reading;
    if (!reading) {
        reading = sw_section_get("read_file");
    }
    sw_begin(reading);
    if (scope(-1) < 0) {
        sw_end_error(reading);
        return;
    }
    sw_end(reading);
}

/* Steps, epochs, values and remarks. */
static void training(void)
{
    double loss = 1.0;
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        sw_epoch(epoch);
        for (int i = 0; i < 50; i++) {
            sw_step_begin();
            SW_SECTION("data") {
                work(2000);
            }
            SW_SECTION("forward") {
                work(10000);
            }
            loss *= 0.99;
            sw_counter("loss", loss);
            sw_step_end();
        }
        sw_mark("learning rate halved");
    }
}

/* A library keeps its sections apart from the program's in a domain of its own, with a switch. */
static void library_call(void)
{
    static sw_domain *domain;
    static sw_section *solve;
    if (!domain) {
        domain = sw_domain_get("solver");
        solve = sw_domain_section(domain, "solve", 5, SW_PHASE_INHERIT);
    }
    sw_begin(solve);
    work(5000);
    sw_end(solve);
}

/* A forked child is recorded into a file of its own, in the same run directory. */
static void child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        SW_SECTION("in_child") {
            work(1000);
        }
        exit(EXIT_SUCCESS);
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
}

/* Prints how often and how long every section of the run was open. */
static int read_back(const char *path)
{
    sw_error_info why;
    sw_run *run;
    if (sw_run_open(&run, path, &why) < 0) {
        fprintf(stderr, "tour: %s\n", why.message);
        return -1;
    }
    for (size_t i = 0; i < sw_run_count(run); i++) {
        const sw_trace *trace = sw_run_trace(run, i);
        for (size_t j = 0; j < sw_trace_lane_count(trace); j++) {
            const sw_trace_lane *lane = sw_trace_get_lane(trace, j);
            for (size_t k = 1; k < lane->node_count; k++) {
                const sw_trace_node *node = &lane->nodes[k];
                const sw_trace_name *name = sw_trace_get_name(trace, node->section);
                if (node->calls > 0 && name) {
                    printf("%-12s %4" PRIu64 " times\n", name->text, node->calls);
                }
            }
        }
    }
    sw_run_free(run);
    return 0;
}

int main(void)
{
    start();
    section(1000);
    handle();
    training();
    library_call();
    child();

    char path[4096];
    sw_run_dir(path, sizeof(path));
    sw_shutdown();
    if (path[0] == '\0') {
        return EXIT_SUCCESS; /* not recorded */
    }
    return read_back(path) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

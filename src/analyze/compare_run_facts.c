/* What is known of a run beside its times: the program, the machine, the settings. */
#include <stdio.h>
#include <string.h>

#include "analyze/compare.h"
#include "analyze/summary.h"

static int facts_of_loader(sw_compare_input *input, const sw_training_loader *loader)
{
    char number[32];
    int error = SW_OK;
    if (loader && loader->worker_setting != SW_UNKNOWN) {
        snprintf(number, sizeof number, "%llu",
                 (unsigned long long)loader->worker_setting);
        error = sw__compare_fact(input, "loader workers", number);
    }
    if (loader && loader->batch_size != SW_UNKNOWN) {
        input->side.batch_size = (double)loader->batch_size;
    }
    return error;
}

/* Variables that say how many threads compute. */
static int facts_of_trace(sw_compare_input *input, const sw_trace *trace)
{
    static const char *const names[] = {"cpu_model", "cpus_online", "cpus_usable"};
    const char *key;
    const char *value;
    int error = SW_OK;
    for (size_t i = 0; i < 3 && !error; i++) {
        error = sw__compare_fact(input, names[i], sw_trace_fact(trace, names[i]));
    }
    for (size_t i = 0; !error && sw_trace_fact_at(trace, i, &key, &value); i++) {
        const size_t length = strlen(key);
        const char *end = "_NUM_THREADS";
        if (strncmp(key, "env.", 4) == 0 && length > strlen(end) &&
            strcmp(key + length - strlen(end), end) == 0) {
            error = sw__compare_fact(input, key + 4, value);
        }
    }
    return error;
}

int sw__compare_run_facts(sw_compare_input *input, const sw_summary *summary)
{
    const sw_summary_run *run = sw_summary_get_run(summary);
    sw_compared_side *side = &input->side;
    char number[32];
    const char *name;
    const char *version;
    side->name = sw__compare_copy(input, run->name);
    side->command = sw__compare_copy(input, run->command);
    side->host = sw__compare_copy(input, run->host);
    side->python = sw__compare_copy(input, run->python);
    side->duration_s = (double)run->duration_ns / 1e9;
    int error = SW_OK;
    for (size_t i = 0; !error && sw_summary_framework(summary, i, &name, &version); i++) {
        error = sw__compare_fact(input, name, version);
    }
    snprintf(number, sizeof number, "%zu", run->ranks);
    error = error ? error : sw__compare_fact(input, "ranks", number);
    error = error ? error
                  : sw__compare_fact(input, "function profile",
                                     sw_summary_functions(summary) ? "on" : "off");
    error = error ? error
                  : sw__compare_fact(input, "line profile",
                                     sw_summary_lines(summary) ? "on" : "off");
    if (!error && summary->traces > 0) {
        error = facts_of_trace(input, sw__summary_trace(summary, summary->step_trace));
    }
    if (!error && !run->complete) {
        error = sw__compare_note(input->arena, &input->notes,
                                 "The files of %s are not complete.", side->path);
    }
    if (!error && run->exit_signal > 0) {
        error =
            sw__compare_note(input->arena, &input->notes, "%s was ended by signal %d.",
                             side->path, run->exit_signal);
    } else if (!error && run->exit_code > 0) {
        error =
            sw__compare_note(input->arena, &input->notes, "%s ended with exit code %d.",
                             side->path, run->exit_code);
    }
    return error ? error : facts_of_loader(input, sw_summary_main_loader(summary));
}

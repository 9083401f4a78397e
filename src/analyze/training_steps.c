/* Where training meets the steps: the loader that feeds them, and samples a second. */
#include <math.h>
#include <string.h>

#include "analyze/summary.h"
#include "analyze/training.h"

/* Samples of a step on average: the batch size, unless the last batch of every pass is known to be smaller. */
static double samples_a_step(const sw_summary *summary, const sw_training_loader *loader)
{
    const uint64_t size = loader->batch_size;
    const uint64_t samples = loader->samples;
    const sw_summary_epoch *epoch = sw_summary_get_epoch(summary, 0);
    if (epoch && samples != SW_UNKNOWN && samples > 0 &&
        !(loader->bits & SW_LOADER_DROP_LAST) &&
        epoch->steps == samples / size + (samples % size != 0)) {
        return (double)samples / (double)epoch->steps;
    }
    return (double)size;
}

/* Whether the steps are batches of this loader, and not of the program's own loop beside it, such as where it serves to
 * validate only. */
static bool feeds_steps(const sw_summary *summary, const sw_training_loader *loader)
{
    size_t count;
    const sw_training_site *sites = sw_training_sites(summary->training, &count);
    bool looped = false;
    for (size_t i = 0; i < count; i++) {
        looped = looped || sites[i].what == SW_SITE_LOOP;
    }
    return !looped || 2 * loader->waits >= summary->steps.count;
}

int sw__summary_training(sw_summary *summary)
{
    const int error = sw_training_of_run(&summary->training, summary->source, NULL);
    if (error) {
        return error;
    }
    sw_summary_steps *steps = &summary->steps;
    const bool batches = summary->has_steps && steps->unit == SW_STEP_BATCH;
    summary->main_loader = sw_training_main_loader(summary->training, summary->step_trace,
                                                   batches ? steps->count : 0);
    const sw_training_loader *loader = summary->main_loader;
    steps->samples_per_s = batches && loader && loader->batch_size != SW_UNKNOWN &&
                                   feeds_steps(summary, loader)
                               ? steps->steps_per_s * samples_a_step(summary, loader)
                               : NAN;
    return SW_OK;
}

const sw_training *sw_summary_training(const sw_summary *summary)
{
    return summary->training;
}

const sw_training_loader *sw_summary_main_loader(const sw_summary *summary)
{
    return summary->main_loader;
}

double sw_summary_wait_share(const sw_summary *summary)
{
    static const enum sw_phase inside[] = {SW_PHASE_PREPROCESS, SW_PHASE_AUGMENT,
                                           SW_PHASE_COLLATE};
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    const sw_training_loader *loader = summary->main_loader;
    if (!steps || !loader || steps->counted == 0 ||
        !steps->phase[SW_PHASE_DATA_WAIT].measured) {
        return NAN;
    }
    double share = steps->phase[SW_PHASE_DATA_WAIT].share;
    for (size_t i = 0; i < 3 && loader->known && loader->worker_setting == 0; i++) {
        share += steps->phase[inside[i]].share;
    }
    return share;
}

/* Whether the steps of a thread are among those of all processes: another domain of the same thread counts the same time again. */
static bool is_counted(const sw_summary *summary, const sw_summary_step_thread *thread)
{
    return strcmp(thread->domain, summary->step_threads[0].domain) == 0;
}

void sw_summary_all_steps(const sw_summary *summary, uint64_t *count, uint64_t *total_ns)
{
    *count = 0;
    *total_ns = 0;
    for (size_t i = 0; i < summary->step_thread_count; i++) {
        const sw_summary_step_thread *thread = &summary->step_threads[i];
        if (is_counted(summary, thread)) {
            *count = sw__add(*count, sw__sub(thread->count, thread->incomplete));
            *total_ns = sw__add(*total_ns, thread->total_ns);
        }
    }
}

void sw_summary_looked_steps(const sw_summary *summary, uint64_t *count,
                             uint64_t *total_ns)
{
    sw_summary_all_steps(summary, count, total_ns);
    for (size_t i = 0; i < summary->step_thread_count; i++) {
        const sw_summary_step_thread *thread = &summary->step_threads[i];
        if (is_counted(summary, thread)) {
            *count = sw__sub(*count, thread->brief);
            *total_ns = sw__sub(*total_ns, thread->brief_ns);
        }
    }
}

/* The steps of the step thread, one by one, for those who look at single steps. */
#include "analyze/steps.h"

/* Steps of the summary and their records are in the same order; only the newest `most` are kept. */
int sw_summary_read_steps(const sw_summary *summary, size_t most, sw_summary_step **out,
                          size_t *count)
{
    const struct sw__step_list *list = summary->step_list;
    *out = NULL;
    *count = 0;
    sw_cursor *cursor = list && list->count && most ? sw__steps_open(list) : NULL;
    if (!cursor) {
        return SW_OK;
    }
    const size_t skipped = list->count > most ? list->count - most : 0;
    sw_summary_step *steps = sw__alloc_zero(list->count - skipped, sizeof *steps);
    int error = steps ? SW_OK : SW_ENOMEM;
    sw_event event;
    for (size_t i = 0; !error && i < list->count; i++) {
        const sw_record_step *record = sw__steps_next(cursor, list, &event);
        if (!record) {
            break;
        }
        if (i < skipped) {
            continue;
        }
        const struct sw__step *step = &list->steps[i];
        sw_summary_step *into = &steps[(*count)++];
        const bool used = record->usage_steps != 0;
        *into = (sw_summary_step){
            .number = step->number,
            .begin_ns = step->begin_ns,
            .end_ns = step->end_ns,
            .epoch = step->epoch,
            .complete = step->complete,
            .warmup = step->warmup,
            .usage_steps = record->usage_steps,
            .involuntary = record->involuntary,
            .cpu_ns = used ? record->cpu_ns : SW_UNKNOWN,
            .run_delay_ns = used ? record->run_delay_ns : SW_UNKNOWN,
        };
        sw__step_phases(record, step->end_ns - step->begin_ns, into->phase_ns);
    }
    sw_cursor_free(cursor);
    *out = steps;
    return error;
}

void sw_summary_steps_free(sw_summary_step *steps)
{
    sw__free(steps);
}

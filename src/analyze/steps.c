/* Steps: how long they take, where the time goes, which were slow and why.
 *
 * Step records are read twice, so that a step costs 40 bytes of memory and not 256: once for
 * durations, from which warm-up follows, and once for phases of the steps that count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/write.h>

#include "analyze/aside.h"
#include "analyze/quantiles.h"
#include "analyze/shares.h"
#include "analyze/steps.h"

/* --- the thread whose steps these are --- */

static int by_step_time(const void *left, const void *right)
{
    const sw_summary_step_thread *a = left;
    const sw_summary_step_thread *b = right;
    if (a->total_ns != b->total_ns) {
        return a->total_ns < b->total_ns ? 1 : -1;
    }
    if (a->count != b->count) {
        return a->count < b->count ? 1 : -1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* The steps of this thread that were watched in brief. Those of the step thread are counted where its records are read. */
static void count_brief(sw_summary *summary, const struct sw__step_list *list)
{
    size_t k = 0;
    for (size_t t = 0; t < summary->traces; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        for (size_t l = 0; l < sw_trace_lane_count(trace); l++) {
            const sw_trace_lane *lane = sw_trace_get_lane(trace, l);
            if (lane->steps == 0 && !lane->step_open) {
                continue;
            }
            sw_summary_step_thread *thread = &summary->step_threads[k++];
            if (lane != list->lane && lane->steps > 0) {
                sw__steps_brief(trace, lane, &thread->brief, &thread->brief_ns);
            }
        }
    }
}

/* Lists all lanes with steps, and finds the one with the most step time. */
static int find_step_lane(sw_summary *summary, struct sw__step_list *list)
{
    size_t room = 0;
    for (size_t t = 0; t < summary->traces; t++) {
        room += sw_trace_lane_count(sw__summary_trace(summary, t));
    }
    summary->step_threads =
        sw__summary_take(summary, room, sizeof *summary->step_threads);
    if (!summary->step_threads) {
        return SW_ENOMEM;
    }
    sw_summary_step_thread best = {0};
    for (size_t t = 0; t < summary->traces; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        for (size_t l = 0; l < sw_trace_lane_count(trace); l++) {
            const sw_trace_lane *lane = sw_trace_get_lane(trace, l);
            if (lane->steps == 0 && !lane->step_open) {
                continue;
            }
            sw_summary_step_thread *found =
                &summary->step_threads[summary->step_thread_count++];
            *found = (sw_summary_step_thread){
                .pid = sw_trace_get_info(trace)->pid,
                .thread = sw__thread_name(trace, lane->thread),
                .domain = sw__domain_name(trace, lane->domain),
                .count = sw__add(lane->steps, lane->step_open),
                .incomplete = sw__add(lane->steps_incomplete, lane->step_open),
                .updates = lane->updates,
                .total_ns = lane->step_total_ns,
            };
            if (!list->lane || by_step_time(found, &best) < 0) {
                best = *found;
                list->trace = trace;
                list->lane = lane;
                list->lane_index = l;
                list->trace_index = t;
            }
        }
    }
    if (summary->step_thread_count > 1) {
        count_brief(summary, list);
        qsort(summary->step_threads, summary->step_thread_count,
              sizeof *summary->step_threads, by_step_time);
    }
    return SW_OK;
}

/* --- durations --- */

static uint64_t duration(const struct sw__step *step)
{
    return step->end_ns - step->begin_ns;
}

/* Records that were given up are taken to be like those that are there. */
static uint64_t of_all(const struct sw__step_list *list, uint64_t present)
{
    const uint64_t all = sw__sub(list->lane->steps, list->skipped);
    return list->count == 0 || list->count >= all
               ? present
               : (uint64_t)((double)present * (double)all / (double)list->count);
}

uint64_t sw__steps_part(uint64_t all, uint64_t part, uint64_t present)
{
    if (present == 0 || part >= present) {
        return present == 0 ? 0 : all;
    }
    return (uint64_t)((double)all * ((double)part / (double)present));
}

/* After the thread's own figures are without what are no steps. */
static void add_brief(const struct sw__step_list *list, sw_summary_step_thread *thread)
{
    uint64_t present = 0, present_ns = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__step *step = &list->steps[i];
        if (!step->complete) {
            continue;
        }
        present_ns = sw__add(present_ns, duration(step));
        present++;
        if (step->brief) {
            thread->brief_ns = sw__add(thread->brief_ns, duration(step));
            thread->brief++;
        }
    }
    const uint64_t all = sw__sub(thread->count, thread->incomplete);
    if (present < all) {
        thread->brief = sw__steps_part(all, thread->brief, present);
        thread->brief_ns = sw__steps_part(thread->total_ns, thread->brief_ns, present_ns);
    }
}

static int read_steps(sw_summary *summary, struct sw__step_list *list)
{
    list->unit = -1;
    struct sw__step_reader reader;
    sw__steps_open(&reader, list->trace, list->lane);
    if (!reader.cursor) {
        return SW_OK; /* as if no record were there; totals remain */
    }
    sw_event event;
    const sw_record_step *record;
    int error = SW_OK;
    while (!error && (record = sw__steps_next(&reader, &event)) != NULL) {
        if (list->count == list->room) {
            size_t room = list->room ? list->room * 2 : 1024;
            struct sw__step *grown = sw__realloc(list->steps, room, sizeof *grown);
            if (!grown) {
                error = SW_ENOMEM;
                break;
            }
            list->steps = grown;
            list->room = room;
        }
        list->unit = list->unit < 0 ? record->unit : list->unit;
        list->steps[list->count++] = (struct sw__step){
            .number = record->number,
            .begin_ns = event.begin_ns,
            .end_ns = event.end_ns > event.begin_ns ? event.end_ns : event.begin_ns,
            .epoch = record->epoch,
            .complete = !(record->head.flags & (SW_STEP_INCOMPLETE | SW_RECORD_CUT)),
            .warmup = (record->head.flags & SW_STEP_WARMUP) != 0,
            .compiles = record->phase_ticks[SW_PHASE_COMPILE] > 0,
            .brief = (record->head.flags & SW_STEP_BRIEF) != 0,
        };
    }
    list->skipped = reader.skipped;
    sw_summary_step_thread *thread = &summary->step_threads[0];
    thread->count = sw__sub(thread->count, reader.skipped);
    thread->incomplete = sw__sub(thread->incomplete, reader.skipped_incomplete);
    thread->total_ns = sw__sub(thread->total_ns, reader.skipped_ns);
    add_brief(list, thread);
    sw__steps_close(&reader);
    return error;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

/* Sorted durations of the steps that count. */
static size_t sorted_durations(const struct sw__step_list *list, uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->steps[i].complete && !list->steps[i].warmup) {
            out[count++] = duration(&list->steps[i]);
        }
    }
    if (count > 1) {
        qsort(out, count, sizeof *out, by_value);
    }
    return count;
}

/* --- phases --- */

struct phase_tables {
    sw_histogram *durations[SW_PHASE_COUNT]; /* ns of one step */
    /* data_wait of steps that were watched in brief [1], and of the others [0]. */
    sw_histogram *wait[2];
    uint64_t *waits; /* data_wait by position in the list */
};

static int tables_create(struct phase_tables *tables, size_t steps)
{
    bool whole = true;
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        tables->durations[p] = sw_histogram_create();
        whole = whole && tables->durations[p];
    }
    for (size_t i = 0; i < 2; i++) {
        tables->wait[i] = sw_histogram_create();
        whole = whole && tables->wait[i];
    }
    tables->waits = sw__alloc_zero(steps + 1, sizeof *tables->waits);
    return whole && tables->waits ? SW_OK : SW_ENOMEM;
}

static void tables_free(struct phase_tables *tables)
{
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        sw_histogram_free(tables->durations[p]);
    }
    sw_histogram_free(tables->wait[0]);
    sw_histogram_free(tables->wait[1]);
    sw__free(tables->waits);
}

static bool is_always(unsigned phase)
{
    return SW_PHASES_ALWAYS >> phase & 1;
}

/* A step that counts. */
static int add_phases(sw_summary *summary, struct phase_tables *tables,
                      const struct sw__step *step, const uint64_t phases[SW_PHASE_COUNT])
{
    sw_summary_steps *steps = &summary->steps;
    int error = SW_OK;
    for (unsigned p = 0; p < SW_PHASE_COUNT && !error; p++) {
        steps->phase[p].total_ns = sw__add(steps->phase[p].total_ns, phases[p]);
        if (!step->brief) {
            summary->brief.looked[p] = sw__add(summary->brief.looked[p], phases[p]);
        }
        if (!step->brief || is_always(p)) {
            error = sw_histogram_add(tables->durations[p], phases[p], 1);
        }
    }
    steps->looked += !step->brief;
    return error ? error
                 : sw_histogram_add(tables->wait[step->brief], phases[SW_PHASE_DATA_WAIT],
                                    1);
}

/* The slowest steps, with what explains them. */
struct kept_step {
    uint64_t phases[SW_PHASE_COUNT];
    bool brief;
};

/* Keeps the slowest steps, slowest first. */
static void offer_worst(sw_summary_steps *steps, const struct sw__step *step,
                        const uint64_t phases[SW_PHASE_COUNT],
                        struct kept_step kept[SW_SUMMARY_WORST])
{
    uint64_t ns = duration(step);
    size_t place = steps->worst_count;
    while (place > 0 && steps->worst[place - 1].ns < ns) {
        place--;
    }
    if (place >= SW_SUMMARY_WORST) {
        return;
    }
    if (steps->worst_count < SW_SUMMARY_WORST) {
        steps->worst_count++;
    }
    size_t behind = steps->worst_count - 1 - place;
    memmove(&steps->worst[place + 1], &steps->worst[place],
            behind * sizeof *steps->worst);
    memmove(&kept[place + 1], &kept[place], behind * sizeof *kept);
    steps->worst[place] = (sw_summary_worst){.step = step->number, .ns = ns};
    memcpy(kept[place].phases, phases, sizeof kept->phases);
    kept[place].brief = step->brief;
}

static int read_phases(sw_summary *summary, struct sw__step_list *list,
                       struct phase_tables *tables,
                       struct kept_step kept[SW_SUMMARY_WORST])
{
    struct sw__step_reader reader;
    sw__steps_open(&reader, list->trace, list->lane);
    sw_event event;
    const sw_record_step *record;
    int error = SW_OK;
    for (size_t i = 0; reader.cursor && i < list->count && !error; i++) {
        record = sw__steps_next(&reader, &event);
        if (!record) {
            break;
        }
        const struct sw__step *step = &list->steps[i];
        uint64_t phases[SW_PHASE_COUNT];
        sw__step_phases(record, duration(step), phases);
        tables->waits[i] = phases[SW_PHASE_DATA_WAIT];
        uint64_t *validation = &list->aside_ns[SW__ASIDE_VALIDATION][step->warmup];
        uint64_t *checkpoint = &list->aside_ns[SW__ASIDE_CHECKPOINT][step->warmup];
        *validation = sw__add(*validation, phases[SW_PHASE_VALIDATION]);
        *checkpoint = sw__add(*checkpoint, phases[SW_PHASE_CHECKPOINT]);
        if (!step->complete || step->warmup) {
            continue;
        }
        error = add_phases(summary, tables, step, phases);
        offer_worst(&summary->steps, step, phases, kept);
    }
    sw__steps_close(&reader);
    return error;
}

/* A phase is measured when some section of that domain has it. */
static void find_measured(const struct sw__step_list *list, sw_summary_steps *steps)
{
    uint32_t limit = sw_trace_name_limit(list->trace);
    steps->phase[SW_PHASE_OTHER].measured = true;
    for (uint32_t id = 1; id < limit; id++) {
        const sw_trace_name *name = sw_trace_get_name(list->trace, id);
        if (name && name->use == 1 && name->domain == list->lane->domain &&
            name->phase < SW_PHASE_COUNT) {
            steps->phase[name->phase].measured = true;
        }
    }
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        if (steps->phase[p].total_ns > 0) {
            steps->phase[p].measured = true;
        }
    }
}

/* Divides what steps have of a set of phases (bits) as those do that were looked at in full. */
static void divide(sw_summary *summary, unsigned phases)
{
    uint64_t amounts[SW_PHASE_COUNT] = {0};
    uint64_t parts[SW_PHASE_COUNT];
    uint64_t whole = 0, known = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        if (phases >> p & 1) {
            amounts[p] = summary->brief.looked[p];
            known = sw__add(known, amounts[p]);
            whole = sw__add(whole, summary->brief.measured[p]);
        }
    }
    sw__shares(amounts, SW_PHASE_COUNT, whole, parts);
    for (unsigned p = 0; p < SW_PHASE_COUNT && known > 0; p++) {
        if (phases >> p & 1) {
            summary->steps.phase[p].total_ns = parts[p];
        }
    }
}

/* Whichever loader it is: the one that feeds the steps may have workers, and another beside it none. */
unsigned sw__phases_inside(const sw_summary *summary)
{
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        if (SW__PHASES_INSIDE >> p & 1 && summary->brief.looked[p] > 0) {
            return SW__PHASES_INSIDE;
        }
    }
    return 0;
}

/* What a step that is watched in brief has in a phase that is measured there is its own; the rest is any of the others. */
static void divide_phases(sw_summary *summary)
{
    const unsigned all = (1u << SW_PHASE_COUNT) - 1;
    const unsigned inside = sw__phases_inside(summary);
    if (summary->steps.looked < summary->steps.counted) {
        divide(summary, all & ~SW_PHASES_ALWAYS & ~inside);
        divide(summary, inside ? inside | 1u << SW_PHASE_DATA_WAIT : 0);
    }
}

static void share_phases(sw_summary_steps *steps)
{
    uint64_t amounts[SW_PHASE_COUNT];
    uint64_t parts[SW_PHASE_COUNT];
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        amounts[p] = steps->phase[p].total_ns;
    }
    sw__shares(amounts, SW_PHASE_COUNT, (uint64_t)1 << 32, parts);
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        steps->phase[p].share = (double)parts[p] / 4294967296.0;
    }
    if (steps->counted > 0 && steps->total_ns == 0) {
        steps->phase[SW_PHASE_OTHER].share = 1; /* steps too short for the clock */
    }
}

static uint64_t quantile_of(const sw_histogram *durations, double place)
{
    return sw_histogram_count(durations) > 0 ? sw_histogram_quantile(durations, place)
                                             : SW_UNKNOWN;
}

static void finish_phases(sw_summary *summary, const struct phase_tables *tables)
{
    sw_summary_steps *steps = &summary->steps;
    share_phases(steps);
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        sw_summary_phase *phase = &steps->phase[p];
        const sw_histogram *durations = tables->durations[p];
        phase->p99_ns = phase->measured ? quantile_of(durations, 0.99) : SW_UNKNOWN;
        phase->median_ns = phase->measured ? quantile_of(durations, 0.5) : SW_UNKNOWN;
    }
    sw_summary_phase *wait = &steps->phase[SW_PHASE_DATA_WAIT];
    if (steps->looked < steps->counted && sw__phases_inside(summary) && wait->measured) {
        /* In the others it is also making batches. */
        wait->p99_ns = quantile_of(tables->wait[0], 0.99);
        wait->median_ns = quantile_of(tables->wait[0], 0.5);
    }
}

/* What a phase usually takes in steps like this one; SW_UNKNOWN. */
static uint64_t usual_of(const sw_summary_steps *steps, const struct phase_tables *tables,
                         const struct kept_step *kept, unsigned phase)
{
    if (kept->brief && !is_always(phase)) {
        return SW_UNKNOWN;
    }
    /* Steps that are watched in brief may wait for more: what the others know as making batches. */
    return phase == SW_PHASE_DATA_WAIT && steps->phase[phase].measured
               ? quantile_of(tables->wait[kept->brief], 0.5)
               : steps->phase[phase].median_ns;
}

/* Part of what a step that was watched in brief takes beyond the usual, from which on a phase explains it. */
#define EXPLAINS 0.5

static int explain_worst(sw_summary *summary, const struct phase_tables *tables,
                         const struct kept_step kept[SW_SUMMARY_WORST])
{
    sw_summary_steps *steps = &summary->steps;
    for (size_t i = 0; i < steps->worst_count; i++) {
        sw_summary_worst *worst = &steps->worst[i];
        uint64_t grown = 0;
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            uint64_t usual = usual_of(steps, tables, &kept[i], p);
            uint64_t more = usual == SW_UNKNOWN ? 0 : sw__sub(kept[i].phases[p], usual);
            if (more > grown) {
                grown = more;
                worst->phase = p;
            }
        }
        const double excess =
            steps->p50_ns == SW_UNKNOWN ? 0 : (double)sw__sub(worst->ns, steps->p50_ns);
        if (kept[i].brief && !((double)grown > EXPLAINS * excess)) {
            worst->phase = SW_PHASE_COUNT;
            worst->phase_ns = worst->usual_ns = SW_UNKNOWN;
            worst->why = "watched in brief: which phase took long is not known";
            continue;
        }
        worst->phase_ns = kept[i].phases[worst->phase];
        worst->usual_ns = usual_of(steps, tables, &kept[i], worst->phase);
        char taken[24];
        char usual[24];
        sw_text_duration(taken, (double)worst->phase_ns, false);
        sw_text_duration(usual, (double)worst->usual_ns, false);
        worst->why = grown == 0
                         ? "no longer than usual in any phase"
                         : sw__summary_format(summary, "%s %s against %s usually",
                                              sw_phase_name(worst->phase), taken, usual);
        if (!worst->why) {
            return SW_ENOMEM;
        }
    }
    return SW_OK;
}

/* --- figures --- */

static void exact_figures(const struct sw__step_list *list, sw_summary_steps *steps,
                          uint64_t *sorted)
{
    size_t count = sorted_durations(list, sorted);
    steps->counted = count;
    if (count == 0) {
        return;
    }
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        steps->total_ns = sw__add(steps->total_ns, sorted[i]);
    }
    steps->mean_ns = (double)steps->total_ns / (double)count;
    for (size_t i = 0; i < count; i++) {
        double distance = (double)sorted[i] - steps->mean_ns;
        squares += distance * distance;
    }
    steps->std_ns = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
    steps->min_ns = sorted[0];
    steps->max_ns = sorted[count - 1];
    steps->p50_ns = sorted[sw__rank(count, 0.50)];
    steps->p90_ns = sorted[sw__rank(count, 0.90)];
    steps->p99_ns = sorted[sw__rank(count, 0.99)];
}

/* Records were given up: the lane's totals know of every complete step. */
static int lane_figures(const struct sw__step_list *list, sw_summary_steps *steps)
{
    const sw_trace_lane *lane = list->lane;
    steps->counted = sw__sub(lane->steps, lane->steps_incomplete);
    steps->warmup = 0;
    if (steps->counted == 0) {
        return SW_OK;
    }
    steps->total_ns = lane->step_total_ns;
    steps->mean_ns = (double)lane->step_total_ns / (double)steps->counted;
    steps->min_ns = lane->step_min_ns;
    steps->max_ns = lane->step_max_ns;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        sw_summary_phase *phase = &steps->phase[i < SW_PHASE_COUNT ? i : SW_PHASE_OTHER];
        phase->total_ns = i < SW_PHASE_COUNT
                              ? lane->phase_ns[i]
                              : sw__add(phase->total_ns, lane->phase_ns[i]);
    }
    struct sw__quantiles set = {0};
    sw_histogram *histogram = sw_histogram_create();
    int error = histogram ? SW_OK : SW_ENOMEM;
    if (!error &&
        sw_trace_step_histogram(list->trace, list->lane_index, histogram) == SW_OK) {
        error = sw__quantiles_add(&set, histogram, sw_trace_ns_per_tick(list->trace));
    }
    sw__quantiles_sort(&set);
    steps->p50_ns = sw__quantiles_at(&set, 0.50, steps->min_ns, steps->max_ns);
    steps->p90_ns = sw__quantiles_at(&set, 0.90, steps->min_ns, steps->max_ns);
    steps->p99_ns = sw__quantiles_at(&set, 0.99, steps->min_ns, steps->max_ns);
    steps->std_ns = sw__quantiles_std(&set, steps->mean_ns);
    sw__quantiles_free(&set);
    sw_histogram_free(histogram);
    return error;
}

static int note_steps(sw_summary *summary, const sw_summary_steps *steps)
{
    char present[32];
    char all[32];
    int error = SW_OK;
    if (steps->thinned) {
        sw_text_count(present, steps->records);
        sw_text_count(all, steps->count);
        error = sw__summary_note(summary,
                                 "Records of %s of %s steps were kept; the figures of "
                                 "steps are over all complete "
                                 "steps, warm-up included, and epochs and worst steps "
                                 "are those of the kept ones.",
                                 present, all);
    }
    if (!error && summary->step_thread_count > 1) {
        uint64_t others = 0;
        for (size_t i = 1; i < summary->step_thread_count; i++) {
            others = sw__add(others, summary->step_threads[i].count);
        }
        sw_text_count(all, summary->step_thread_count - 1);
        sw_text_count(present, others);
        error = sw__summary_note(
            summary,
            "Figures of steps are those of thread %s of process %u; "
            "%s other thread%s with %s steps of %s own.",
            steps->thread, steps->pid, all,
            summary->step_thread_count > 2 ? "s were recorded" : " was recorded", present,
            summary->step_thread_count > 2 ? "their" : "its");
    }
    return error;
}

/* Where records were given up, the steps that count are others than those that are there; `present` of these. Without any it is not
 * known how many were looked at. */
static uint64_t of_counted(const sw_summary_steps *steps, uint64_t present)
{
    return present == 0 && steps->counted > 0
               ? SW_UNKNOWN
               : sw__steps_part(steps->counted, steps->looked, present);
}

static int fill_steps(sw_summary *summary, struct sw__step_list *list)
{
    sw_summary_steps *steps = &summary->steps;
    const sw_trace_lane *lane = list->lane;
    const sw_summary_step_thread *thread = &summary->step_threads[0];
    *steps = (sw_summary_steps){.count = thread->count,
                                .incomplete = thread->incomplete,
                                .updates = thread->updates,
                                .pid = thread->pid,
                                .thread = thread->thread,
                                .domain = thread->domain,
                                .unit = list->unit,
                                .records = list->count,
                                .thinned = list->count + list->skipped < lane->steps,
                                .min_ns = SW_UNKNOWN,
                                .max_ns = SW_UNKNOWN,
                                .p50_ns = SW_UNKNOWN,
                                .p90_ns = SW_UNKNOWN,
                                .p99_ns = SW_UNKNOWN,
                                .mean_ns = NAN,
                                .std_ns = NAN,
                                .steps_per_s = NAN,
                                .samples_per_s = NAN};
    summary->has_steps = true;
    summary->step_trace = list->trace_index;
    summary->step_lane = lane;

    struct kept_step kept[SW_SUMMARY_WORST + 1] = {0};
    struct phase_tables tables = {0};
    uint64_t *scratch = sw__alloc_zero(list->count + 1, sizeof *scratch);
    int error = tables_create(&tables, list->count);
    error = scratch ? error : SW_ENOMEM;
    if (!error) {
        summary->warmup_end = sw__find_warmup(list, scratch);
        exact_figures(list, steps, scratch);
        for (size_t i = 0; i < list->count; i++) {
            steps->warmup += list->steps[i].warmup;
            steps->brief += list->steps[i].brief;
        }
        steps->brief = of_all(list, steps->brief);
        error = read_phases(summary, list, &tables, kept);
    }
    if (!error && steps->thinned) {
        const uint64_t present = steps->counted;
        error = lane_figures(list, steps);
        steps->looked = of_counted(steps, present);
    }
    if (!error) {
        steps->steps_per_s = steps->total_ns ? 1e9 / steps->mean_ns : NAN;
        for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
            summary->brief.measured[p] = steps->phase[p].total_ns;
        }
        divide_phases(summary);
        find_measured(list, steps);
        finish_phases(summary, &tables);
        error = explain_worst(summary, &tables, kept);
    }
    if (!error) {
        bool waits = steps->phase[SW_PHASE_DATA_WAIT].measured;
        error = sw__summary_epochs(summary, list, waits ? tables.waits : NULL);
    }
    if (!error) {
        error = note_steps(summary, steps);
    }
    tables_free(&tables);
    sw__free(scratch);
    return error;
}

int sw__summary_steps(sw_summary *summary)
{
    struct sw__step_list list = {.unit = -1};
    int error = find_step_lane(summary, &list);
    if (!error && list.lane) {
        error = read_steps(summary, &list);
        if (!error) {
            error = fill_steps(summary, &list);
        }
        if (!error) {
            error = sw__summary_step_io(summary);
        }
    }
    if (!error) {
        error = sw__summary_timeline(summary, &list);
    }
    sw__free(list.steps);
    return error;
}

/* Rules: memory that grows with the steps, and memory that runs short. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/write.h>

#include "analyze/frame_source.h"
#include "analyze/growth.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_keeps.h"
#include "analyze/summary.h"

/* Growth below this over all steps that were seen is of no interest: allocators keep what they have in pieces. */
#define GROWTH_LEAST ((double)(8 << 20))
#define GROWTH_LEAST_SHARE 0.01 /* of what the process has */
/* … and less than this, of which nothing shows that it is kept, may be those pieces: they get fewer as a run goes on. */
#define GROWTH_SLIGHT_SHARE 0.05
/* … and so may what comes in a few jumps, at less than one in so many readings: blocks of one size, of which an allocator has no room
 * for one more. What a program keeps comes more often, or goes on for longer. */
#define JUMPS_MOST 20
#define JUMPS_APART 4
/* What the process has, of all that it can have. */
#define PRESSURE_LEAST 0.8
#define BACKWARD_LEAST 0.3
#define PRESSURE_HIGH 0.95
#define SWAPPED_LEAST ((double)(16 << 20))
/* Of the time some program waited for memory, and this one has so much of what it can have. */
#define STALLED_LEAST 0.1
#define STALLED_SHARE 0.3
/* A spike is this many times what is usual around it, and by so much more. */
#define SPIKE_LEAST 1.5
#define SPIKE_LEAST_BYTES ((double)(32 << 20))
enum { SPIKE_NEIGHBOURS = 7 }; /* on either side */

/* Inputs differ in size where the forward takes so many times as long in one step of ten as in another, the backward as well,
 * and both in the same steps. */
#define SIZES_FORWARD 1.8
#define SIZES_BACKWARD 1.5
#define SIZES_TOGETHER 0.4

#define MB 1e6
/* Additions of a sum are counted up to here. */
#define CHAIN_MOST 512

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* --- growth --- */

/* Readings of a short run lie closer together at its beginning. Of those that are closer than a 64th part of the run, or than the
 * usual distance, only the first counts, so that equally many stand for equal times. */
#define READING_PARTS 64
#define READING_NS 9.5e6

/* Memory of the process at the steps where it was read, without files: pages of files come and go as the kernel likes. */
static size_t read_series(sw_findings *all, double **x, double **y, double *last)
{
    const struct sw__case *it = &all->it;
    size_t count = 0;
    *x = sw__arena_take(all->arena, (it->count + 1) * sizeof **x, _Alignof(double));
    *y = sw__arena_take(all->arena, (it->count + 1) * sizeof **y, _Alignof(double));
    if (!*x || !*y) {
        all->failed = true;
        return 0;
    }
    const double part =
        it->count ? (double)(it->step[it->count - 1].end_ns - it->step[0].end_ns) /
                        READING_PARTS
                  : 0;
    const uint64_t apart = (uint64_t)(part < READING_NS ? part : READING_NS);
    uint64_t seen_ns = 0;
    for (size_t i = 0; i < it->count; i++) {
        if (it->step[i].anonymous_bytes != SW_UNKNOWN &&
            (count == 0 || it->step[i].end_ns - seen_ns >= apart)) {
            seen_ns = it->step[i].end_ns;
            (*x)[count] = (double)it->step[i].number;
            (*y)[count++] = (double)it->step[i].anonymous_bytes;
            *last = (double)it->step[i].resident_bytes;
        }
    }
    return count;
}

/* Whether memory rises at few of the readings, by what counts beside the `total`. */
static bool in_jumps(const double *y, size_t count, double total)
{
    size_t jumps = 0;
    for (size_t i = 1; i < count; i++) {
        jumps += y[i] - y[i - 1] > total / (double)count / 8;
    }
    return jumps <= JUMPS_MOST && JUMPS_APART * jumps < count;
}

/* Where the loop of the training keeps something, as its source reads. True: told. */
static bool guess_place(sw_findings *all, struct sw__draft *draft)
{
    const struct sw__hot *hot = sw__hot_code(all);
    for (size_t i = hot->caller_count; i-- > 0;) {
        const sw_stack_frame *caller = hot->callers[i];
        struct sw__frame_source source = sw__frame_source(caller);
        const struct sw__source_keep keep =
            source.text ? sw__source_keeps(source.text, source.length, source.loop)
                        : (struct sw__source_keep){0};
        if (keep.line) {
            const int shown = keep.length < 80 ? (int)keep.length : 80;
            sw__draft_where(all, draft, caller->file, keep.line, caller->name);
            sw__draft_advise(
                all, draft,
                keep.sums
                    ? "Look at \"%.*s\" in line %u: a sum of tensors keeps the graph of "
                      "every step; add the number, loss.item()."
                    : "Look at \"%.*s\" in line %u: what is kept there in every step "
                      "stays; a tensor with a gradient keeps its whole graph. Keep "
                      "numbers (.item()) or detached values.",
                shown, keep.text, keep.line);
        }
        sw__frame_source_free(&source);
        if (keep.line) {
            return true;
        }
    }
    sw__hot_where_loop(all, draft);
    return false;
}

/* What was seen to hold the graphs. True: told, with a place. */
static bool tell_holder(sw_findings *all, struct sw__draft *draft)
{
    size_t count;
    const sw_memory_holder *it =
        sw_memory_holders(sw_summary_memory(all->it.summary), &count);
    if (count == 0 || !it->name) {
        return false;
    }
    char tensors[32];
    char place[160] = "";
    sw_text_count(tensors, it->chain ? it->chain : it->tensors);
    if (it->file && it->line) {
        snprintf(place, sizeof place, " in %.100s:%u", sw__file_name(it->file), it->line);
        sw__draft_where(all, draft, it->file, it->line, it->function);
    } else if (it->file) {
        snprintf(place, sizeof place, " in %.100s", sw__file_name(it->file));
    }
    sw__draft_number(draft, "graph_tensors", (double)it->tensors);
    if (it->chain) {
        sw__draft_number(draft, "graph_additions", (double)it->chain);
        sw__draft_advise(
            all, draft,
            "%.80s%s is a sum of %s%s tensors with their graphs; add %.60s%s instead.",
            it->name, place, it->chain >= CHAIN_MOST ? "at least " : "", tensors,
            it->value ? it->value : "the number, loss", ".item()");
    } else {
        sw__draft_advise(
            all, draft,
            "%.80s, a %.40s%s, holds %s tensors with their graphs; keep %.60s%s instead.",
            it->name, it->kind ? it->kind : "container", place, tensors,
            it->value ? it->value : "numbers, loss", ".item()");
    }
    draft->finding.confidence = 0.95;
    return it->file && it->line;
}

/* The line whose allocations grow most, where they were sampled; NULL: none does. */
static const sw_memory_site *growing_site(const sw_findings *all)
{
    size_t count;
    const sw_memory_site *sites =
        sw_memory_sites(sw_summary_memory(all->it.summary), &count);
    const sw_memory_site *most = NULL;
    for (size_t i = 0; i < count; i++) {
        if (sites[i].growth.grows && sites[i].own &&
            (!most || sites[i].growth.slope > most->growth.slope)) {
            most = &sites[i];
        }
    }
    return most;
}

/* Names the place: the line that keeps things, if the source shows one (`*kept`), else the line that allocates them. False:
 * nothing shows that anything is kept. */
static bool tell_place(sw_findings *all, struct sw__draft *draft, enum sw__kept *kept)
{
    const sw_memory_site *site = growing_site(all);
    *kept = tell_holder(all, draft)   ? SW__KEPT_SEEN
            : guess_place(all, draft) ? SW__KEPT_GUESSED
                                      : SW__KEPT_UNKNOWN;
    if (site) {
        if (*kept == SW__KEPT_UNKNOWN) {
            sw__draft_where(all, draft, site->file, site->line, site->function);
        }
        sw__draft_number(draft, "site_mb_per_step", site->growth.slope / MB);
        sw__draft_number(draft, "site_mb_per_step_low", site->growth.low / MB);
        sw__draft_number(draft, "site_mb_per_step_high", site->growth.high / MB);
        sw__draft_advise(all, draft,
                         "What stays was allocated in %s:%u, %s: %.2g to %.2g MB a step, "
                         "as samples tell.",
                         sw__file_name(site->file), site->line, site->function,
                         fmax(site->growth.low, 0) / MB, site->growth.high / MB);
    }
    return *kept != SW__KEPT_UNKNOWN || site;
}

/* --- sizes that differ --- */

/* How many times as long a phase takes in a step that is slower than nine of ten as in one that is faster. */
static double spread(const struct sw__case *it, unsigned phase, double *scratch)
{
    const size_t count = it->looked_count;
    for (size_t i = 0; i < count; i++) {
        scratch[i] = (double)it->looked[i].phase_ns[phase];
    }
    qsort(scratch, count, sizeof *scratch, by_value);
    const double low = count ? scratch[(count - 1) / 10] : 0;
    return low > 0 ? scratch[(count - 1) * 9 / 10] / low : 0;
}

/* Of all pairs of steps, those in which both phases are longer in the same one, less those in which they are not (Kendall). */
static double together(const struct sw__case *it, unsigned one, unsigned other)
{
    enum { PAIRED_MOST = 400 };
    const size_t apart = it->looked_count / PAIRED_MOST + 1;
    double sum = 0;
    double pairs = 0;
    for (size_t i = 0; i < it->looked_count; i += apart) {
        for (size_t k = i + apart; k < it->looked_count; k += apart) {
            const uint64_t *a = it->looked[i].phase_ns;
            const uint64_t *b = it->looked[k].phase_ns;
            const int first = (a[one] > b[one]) - (a[one] < b[one]);
            const int second = (a[other] > b[other]) - (a[other] < b[other]);
            sum += first * second;
            pairs++;
        }
    }
    return pairs > 0 ? sum / pairs : 0;
}

static bool sizes_differ(sw_findings *all)
{
    const struct sw__case *it = &all->it;
    double *scratch = sw__alloc_zero(it->count + 1, sizeof *scratch);
    if (!scratch) {
        all->failed = true;
        return false;
    }
    const bool differ =
        spread(it, SW_PHASE_FORWARD, scratch) > SIZES_FORWARD &&
        spread(it, SW_PHASE_BACKWARD, scratch) > SIZES_BACKWARD &&
        together(it, SW_PHASE_FORWARD, SW_PHASE_BACKWARD) > SIZES_TOGETHER;
    sw__free(scratch);
    return differ;
}

static double fact_number(const sw_findings *all, const char *key)
{
    const char *text = sw__fact(all, key);
    double number = 0;
    for (const char *at = text; at && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
    }
    return number > 0 ? number : NAN;
}

static void growth_severity(struct sw__draft *draft, const struct sw__growth *growth,
                            double room)
{
    /* How many times as long as this run it can go on. */
    const double left = room / growth->total;
    draft->finding.severity = left < 2    ? SW_SEVERITY_CRITICAL
                              : left < 20 ? SW_SEVERITY_HIGH
                                          : SW_SEVERITY_MEDIUM;
}

static void growth(sw_findings *all)
{
    double *x;
    double *y;
    double resident = NAN;
    const size_t count = read_series(all, &x, &y, &resident);
    if (count < SW__GROWTH_LEAST) {
        sw__findings_unchecked(all, SW_FINDING_MEMORY_GROWTH,
                               count == 0 ? "memory was not read at the steps"
                                          : "memory was read at too few steps");
        sw__rules_piles(all, NULL, SW__KEPT_UNKNOWN);
        return;
    }
    const struct sw__growth found = sw__growth_of(x, y, count);
    if (!found.grows || found.total < GROWTH_LEAST ||
        found.total < GROWTH_LEAST_SHARE * resident) {
        sw__rules_piles(all, NULL, SW__KEPT_UNKNOWN);
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_MEMORY_GROWTH, "RULE-31");
    sw__draft_rule(draft, "RULE-26");
    draft->group = SW__GROUP_MEMORY;
    sw__draft_title(all, draft, "Memory grows by %.3g MB a step", found.slope / MB);
    sw__draft_number(draft, "mb_per_step", found.slope / MB);
    sw__draft_number(draft, "mb_per_step_low", found.low / MB);
    sw__draft_number(draft, "mb_per_step_high", found.high / MB);
    sw__draft_number(draft, "grown_mb", found.total / MB);
    sw__draft_number(draft, "resident_mb", resident / MB);
    sw__draft_number(draft, "p_value", found.p);
    sw__draft_number(draft, "from_step", found.from);
    sw__draft_number(draft, "to_step", found.to);
    draft->finding.confidence = found.p < 1e-4 ? 0.9 : 0.75;
    const double memory = fact_number(all, "memory_bytes");
    growth_severity(draft, &found, memory > resident ? memory - resident : INFINITY);
    enum sw__kept kept;
    const bool shown = tell_place(all, draft, &kept);
    sw__rules_piles(all, draft, kept);
    if (!growing_site(all) && !sw_memory_is_counted(sw_summary_memory(all->it.summary))) {
        sw__draft_advise(all, draft,
                         "stepwatch run --memory names the allocations that stay.");
    }
    const bool unexplained = !shown && !draft->finding.predicted;
    if (unexplained && sizes_differ(all)) {
        /* Libraries keep something for each new size, and allocators what the largest needed. */
        draft->finding.severity = SW_SEVERITY_LOW;
        draft->finding.confidence = 0.5;
        sw__draft_advise(all, draft,
                         "Batches differ in size: what libraries keep for each new size "
                         "levels off once all have come; see whether a longer run does.");
    } else if (unexplained && draft->finding.severity == SW_SEVERITY_MEDIUM &&
               (found.total < GROWTH_SLIGHT_SHARE * resident ||
                in_jumps(y, count, found.total))) {
        draft->finding.severity = SW_SEVERITY_LOW;
        draft->finding.confidence = 0.5;
        sw__draft_advise(all, draft,
                         "That is %.1f %% of what the process has, and no line of the "
                         "training loop was seen to keep anything: allocators that have "
                         "memory in pieces grow so at first; see whether a longer run "
                         "levels off.",
                         100 * found.total / resident);
    }
}

/* --- spikes --- */

/* The median of the values around one, itself among them. */
static double usual(const double *y, size_t count, size_t at)
{
    double around[2 * SPIKE_NEIGHBOURS + 1];
    const size_t first = at > SPIKE_NEIGHBOURS ? at - SPIKE_NEIGHBOURS : 0;
    size_t end = at + SPIKE_NEIGHBOURS + 1;
    end = end < count ? end : count;
    memcpy(around, y + first, (end - first) * sizeof *y);
    qsort(around, end - first, sizeof *around, by_value);
    return around[(end - first) / 2];
}

/* Memory that is far above its surroundings at the end of a step: no fault of itself, but it sets what the program needs. */
static void spikes(sw_findings *all)
{
    double *x;
    double *y;
    double resident = NAN;
    const size_t count = read_series(all, &x, &y, &resident);
    size_t found = 0;
    size_t worst = 0;
    double worst_usual = 0;
    bool inside = false;
    for (size_t i = 0; count >= SW__GROWTH_LEAST && i < count; i++) {
        const double level = usual(y, count, i);
        const bool spike = y[i] > SPIKE_LEAST * level && y[i] - level > SPIKE_LEAST_BYTES;
        found += spike && !inside;
        inside = spike;
        if (spike && (worst_usual == 0 || y[i] - level > y[worst] - worst_usual)) {
            worst = i;
            worst_usual = level;
        }
    }
    if (found) {
        sw__findings_note(
            all,
            "Memory has a spike at step %.0f: %.3g MB, beside %.3g MB around "
            "it%s.",
            x[worst], y[worst] / MB, worst_usual / MB,
            found > 1 ? sw__findings_format(all, "; there are %zu of them", found) : "");
    }
}

/* --- pressure --- */

/* Share of the time in which some program of the machine waited for memory, as the monitor saw; NaN: not known. */
static double stalled_share(const sw_findings *all)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *series =
        monitor ? sw_monitor_find(monitor, "pressure.memory") : NULL;
    return series && series->watched_s > 0 ? series->growth / series->watched_s : NAN;
}

static void pressure(sw_findings *all)
{
    size_t count;
    const sw_memory_process *process =
        sw_memory_processes(sw_summary_memory(all->it.summary), &count);
    if (count == 0 || process->least_room == SW_UNKNOWN) {
        sw__findings_unchecked(all, SW_FINDING_MEMORY_PRESSURE,
                               "how much memory there was is not recorded");
        return;
    }
    const double peak = (double)process->resident_peak;
    const double room = (double)process->least_room;
    const double swapped = (double)process->swapped;
    const double share = peak / (peak + room);
    /* That others wait is no fault of a program that has little. */
    const double stalled = stalled_share(all);
    const bool waits = stalled >= STALLED_LEAST && share >= STALLED_SHARE;
    if (share < PRESSURE_LEAST && swapped < SWAPPED_LEAST && !waits) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_MEMORY_PRESSURE, "RULE-26");
    sw__draft_rule(draft, "RULE-11");
    sw__draft_rule(draft, "RULE-24");
    draft->group = SW__GROUP_MEMORY;
    if (swapped >= SWAPPED_LEAST) {
        sw__draft_title(all, draft, "%.3g MB of the program were swapped out",
                        swapped / MB);
    } else if (share >= PRESSURE_LEAST) {
        sw__draft_title(all, draft, "%.0f %% of the memory that it can have is in use",
                        share * 100);
    } else {
        sw__draft_title(all, draft,
                        "Programs of the machine waited for memory %.0f %% of the time",
                        stalled * 100);
    }
    if (stalled >= 0) {
        sw__draft_number(draft, "stalled_share", stalled);
    }
    sw__draft_number(draft, "resident_peak_mb", peak / MB);
    sw__draft_number(draft, "least_room_mb", room / MB);
    sw__draft_number(draft, "memory_share", share);
    sw__draft_number(draft, "swapped_mb", swapped / MB);
    draft->finding.confidence = 0.8;
    draft->finding.severity = share >= PRESSURE_HIGH || swapped >= SWAPPED_LEAST
                                  ? SW_SEVERITY_HIGH
                                  : SW_SEVERITY_MEDIUM;
    sw__draft_advise(all, draft,
                     "Use smaller batches with gradient accumulation, narrower types, or "
                     "fewer loader workers; or give the program more memory.");
    if (!sw_memory_is_counted(sw_summary_memory(all->it.summary))) {
        sw__draft_advise(all, draft,
                         "stepwatch run --memory shows which allocations make the peak.");
    }
    const struct sw__estimate backward =
        sw__case_share(&all->it, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    if (backward.low > BACKWARD_LEAST) {
        sw__draft_rule(draft, "RULE-63");
        sw__draft_advise(all, draft,
                         "Backward is %.0f %% of a step, so there is much that it keeps: "
                         "gradient checkpointing (torch.utils.checkpoint) computes it "
                         "again instead, which takes up to another forward.",
                         100 * backward.mean);
    }
}

/* --- allocators of devices --- */

/* An allocator that gives up what it kept and asks the driver again has run out of room. */
static void retries(sw_findings *all)
{
    size_t count;
    const sw_memory_allocator *list =
        sw_memory_allocators(sw_summary_memory(all->it.summary), &count);
    const sw_memory_allocator *most = NULL;
    for (size_t i = 0; i < count; i++) {
        if (list[i].retries > 0 && list[i].retries != SW_UNKNOWN &&
            (!most || list[i].retries > most->retries)) {
            most = &list[i];
        }
    }
    if (!most) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_MEMORY_PRESSURE, "RULE-20");
    draft->group = SW__GROUP_MEMORY;
    draft->specific = 1;
    sw__draft_title(all, draft, "The allocator of device %u ran out of memory %llu times",
                    most->device, (unsigned long long)most->retries);
    sw__draft_number(draft, "retries", (double)most->retries);
    sw__draft_number(draft, "allocated_peak_mb", (double)most->allocated_peak / MB);
    sw__draft_number(draft, "reserved_peak_mb", (double)most->reserved_peak / MB);
    if (most->pieces_peak != SW_UNKNOWN) {
        sw__draft_number(draft, "in_pieces_mb", (double)most->pieces_peak / MB);
    }
    if (most->unused >= 0) {
        sw__draft_number(draft, "unused_share", most->unused);
    }
    draft->finding.confidence = 0.9;
    draft->finding.severity = SW_SEVERITY_HIGH;
    sw__draft_advise(all, draft,
                     "Use smaller batches or gradient checkpointing; where much more is "
                     "reserved than allocated, "
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
}

void sw__rules_memory(sw_findings *all)
{
    growth(all);
    spikes(all);
    pressure(all);
    retries(all);
}

/* What the process read and wrote, step by step. The kernel's counters are read at the end of a step, at most every 10 ms: a
 * reading stands for the steps since the one before. */
#include <stdlib.h>
#include <stepwatch/write.h>

#include "analyze/shares.h"
#include "analyze/steps.h"

/* A slow step read or wrote so much more than others that it is worth a word. */
#define MUCH_MORE ((uint64_t)1 << 20)

enum { FIELDS = 4 };

static uint64_t field_of(const sw_step_io *io, unsigned field)
{
    const uint64_t values[FIELDS] = {io->read_bytes, io->written_bytes, io->read_calls,
                                     io->write_calls};
    return values[field];
}

static bool add_reading(struct sw__io_steps *all, const sw_record_step *record)
{
    const sw_step_io io = sw__step_io(record);
    if (io.read_bytes == SW_UNKNOWN) {
        return true;
    }
    if (all->count == all->room) {
        const size_t room = all->room ? all->room * 2 : 256;
        sw_summary_io_step *grown = sw__realloc(all->list, room, sizeof *grown);
        if (!grown) {
            return false;
        }
        all->list = grown;
        all->room = room;
    }
    all->list[all->count++] = (sw_summary_io_step){
        .step = record->number, .steps = record->usage_steps, .io = io};
    return true;
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Statistics of one field over readings, each as what it means for one of its steps. */
static void find_stats(struct sw__io_steps *all, unsigned field, double *scratch)
{
    sw_summary_io_stats *stats = &all->stats[field];
    uint64_t total = 0, steps = 0;
    for (size_t i = 0; i < all->count; i++) {
        const sw_summary_io_step *at = &all->list[i];
        total = sw__add(total, field_of(&at->io, field));
        steps = sw__add(steps, at->steps);
        scratch[i] = (double)field_of(&at->io, field) / (double)at->steps;
    }
    qsort(scratch, all->count, sizeof *scratch, by_value);
    stats->total = total;
    stats->mean = (double)total / (double)steps;
    stats->p50 = scratch[(all->count - 1) / 2];
    stats->p99 = scratch[(size_t)((double)(all->count - 1) * 0.99)];
    stats->max = scratch[all->count - 1];
}

/* What of a reading is the last step's: the others are taken to be as usual. */
static uint64_t last_of(const struct sw__io_steps *all, const sw_summary_io_step *at,
                        unsigned field)
{
    const double others = all->stats[field].p50 * (double)(at->steps - 1);
    const double left = (double)field_of(&at->io, field) - others;
    return left > 0 ? (uint64_t)(left + 0.5) : 0;
}

/* "; read 300 MB against 1 MB usually", or nothing. NULL: no memory. */
static const char *difference(sw_summary *summary, const char *what, uint64_t here,
                              double usual)
{
    if ((double)here < 2 * usual + (double)MUCH_MORE) {
        return "";
    }
    char much[24];
    char less[24];
    sw_text_bytes(much, here);
    sw_text_bytes(less, (uint64_t)(usual + 0.5));
    return sw__summary_format(summary, "; %s %s against %s usually", what, much, less);
}

static int explain(sw_summary *summary, sw_summary_worst *worst,
                   const struct sw__io_steps *all)
{
    const sw_summary_io_step *at = NULL;
    for (size_t i = 0; i < all->count && !at; i++) {
        at = all->list[i].step == worst->step ? &all->list[i] : NULL;
    }
    if (!at) {
        return SW_OK;
    }
    worst->io = (sw_step_io){last_of(all, at, 0), last_of(all, at, 1),
                             last_of(all, at, 2), last_of(all, at, 3)};
    const char *read =
        difference(summary, "read", worst->io.read_bytes, all->stats[0].p50);
    const char *wrote =
        difference(summary, "wrote", worst->io.written_bytes, all->stats[1].p50);
    const char *why = read && wrote && (*read || *wrote)
                          ? sw__summary_format(summary, "%s%s%s", worst->why, read, wrote)
                          : worst->why;
    worst->why = why;
    return read && wrote && why ? SW_OK : SW_ENOMEM;
}

int sw__summary_step_io(sw_summary *summary)
{
    struct sw__io_steps *all = &summary->io_steps;
    sw_summary_steps *steps = &summary->steps;
    for (size_t i = 0; i < steps->worst_count; i++) {
        steps->worst[i].io = (sw_step_io){SW_UNKNOWN, SW_UNKNOWN, SW_UNKNOWN, SW_UNKNOWN};
    }
    struct sw__step_reader reader;
    sw__steps_open(&reader, sw__summary_trace(summary, summary->step_trace),
                   summary->step_lane);
    sw_event event;
    const sw_record_step *record;
    size_t place = 0;
    bool fits = true;
    while (fits && reader.cursor && (record = sw__steps_next(&reader, &event)) != NULL) {
        const bool early =
            place++ < summary->warmup_end || (record->head.flags & SW_STEP_WARMUP);
        fits = early || add_reading(all, record);
    }
    sw__steps_close(&reader);
    double *scratch = all->count ? sw__alloc_zero(all->count, sizeof *scratch) : NULL;
    int error = fits && (!all->count || scratch) ? SW_OK : SW_ENOMEM;
    for (unsigned field = 0; field < FIELDS && !error && all->count; field++) {
        find_stats(all, field, scratch);
    }
    sw__free(scratch);
    for (size_t i = 0; i < steps->worst_count && !error; i++) {
        error = explain(summary, &steps->worst[i], all);
    }
    return error;
}

const sw_summary_io_step *sw_summary_io_steps(const sw_summary *summary, size_t *count)
{
    *count = summary->io_steps.count;
    return summary->io_steps.list;
}

const sw_summary_io_stats *sw_summary_get_io_stats(const sw_summary *summary,
                                                   enum sw_summary_io_field field)
{
    return summary->io_steps.count ? &summary->io_steps.stats[field] : NULL;
}

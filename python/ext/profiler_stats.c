#include "profiler.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Durations -------------------------------------------------------------------- */

/* The few become a histogram. Without memory for it the quantiles know the first ones only. */
static void histogram_begin(profiler_stats *stats)
{
    stats->histogram = sw_histogram_create();
    for (size_t i = 0; stats->histogram && i < stats->calls && i < PROFILER_FEW; i++) {
        (void)sw_histogram_add(stats->histogram, stats->few[i], 1);
    }
}

/* Chan's formula: the mean and the sum of squares of two sets together. */
static void moments_merge(profiler_stats *into, uint64_t count, double mean, double m2)
{
    const double all = (double)into->calls + (double)count;
    const double apart = mean - into->mean;
    into->m2 += m2 + apart * apart * (double)into->calls * (double)count / all;
    into->mean += apart * (double)count / all;
}

void profiler_stats_add(profiler_stats *stats, uint64_t ns, uint64_t count)
{
    if (!stats->histogram && stats->calls + count > PROFILER_FEW) {
        histogram_begin(stats);
    }
    if (stats->histogram) {
        (void)sw_histogram_add(stats->histogram, ns, count);
    } else {
        for (uint64_t i = stats->calls; i < stats->calls + count && i < PROFILER_FEW;
             i++) {
            stats->few[i] = ns;
        }
    }
    moments_merge(stats, count, (double)ns, 0);
    stats->min = stats->calls && stats->min < ns ? stats->min : ns;
    stats->max = stats->max > ns ? stats->max : ns;
    stats->last = ns;
    stats->calls += count;
}

void profiler_stats_merge(profiler_stats *into, const profiler_stats *from)
{
    if (from->calls > 0) {
        if (!into->histogram && into->calls + from->calls > PROFILER_FEW) {
            histogram_begin(into);
        }
        for (size_t i = 0; !from->histogram && i < from->calls && i < PROFILER_FEW; i++) {
            if (into->histogram) {
                (void)sw_histogram_add(into->histogram, from->few[i], 1);
            } else if (into->calls + i < PROFILER_FEW) {
                into->few[into->calls + i] = from->few[i];
            }
        }
        if (from->histogram && into->histogram) {
            (void)sw_histogram_merge(into->histogram, from->histogram);
        }
        moments_merge(into, from->calls, from->mean, from->m2);
        into->min = into->calls && into->min < from->min ? into->min : from->min;
        into->max = into->max > from->max ? into->max : from->max;
        into->last = from->last;
    }
    into->calls += from->calls;
    into->recursive += from->recursive;
    into->errors += from->errors;
    into->total += from->total;
    into->self += from->self;
    into->looked += from->looked;
    into->exact += from->exact;
    into->memory += from->memory;
    into->peak = into->peak > from->peak ? into->peak : from->peak;
    into->peak_rss = into->peak_rss > from->peak_rss ? into->peak_rss : from->peak_rss;
}

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

uint64_t profiler_stats_quantile(const profiler_stats *stats, double q)
{
    uint64_t value;
    if (stats->histogram) {
        value = sw_histogram_quantile(stats->histogram, q);
    } else {
        uint64_t sorted[PROFILER_FEW];
        const size_t count =
            stats->calls < PROFILER_FEW ? (size_t)stats->calls : PROFILER_FEW;
        if (count == 0) {
            return 0;
        }
        memcpy(sorted, stats->few, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare);
        const double rank = ceil(q * (double)count);
        value = sorted[rank < 1 ? 0 : (size_t)rank - 1];
    }
    /* The middle of a bucket may lie outside of what was measured. */
    value = value < stats->min ? stats->min : value;
    return value > stats->max ? stats->max : value;
}

void profiler_stats_clear(profiler_stats *stats)
{
    sw_histogram_free(stats->histogram);
    memset(stats, 0, sizeof *stats);
}

/* --- The newest values ------------------------------------------------------------ */

void profiler_ring_put(profiler_ring *ring, int64_t item, size_t most)
{
    if (most == 0) {
        return;
    }
    if (ring->count == ring->room && ring->next == 0 && ring->room < most) {
        size_t room = ring->room ? ring->room * 2 : 4;
        room = room < most ? room : most;
        int64_t *items = realloc(ring->items, room * sizeof *items);
        if (items) {
            ring->items = items;
            ring->room = room;
            ring->next = ring->count;
        }
    }
    if (ring->room == 0) {
        return;
    }
    /* Without memory to grow, the oldest give way early; it is tried again where they are in order. */
    ring->items[ring->next] = item;
    ring->next = ring->next + 1 < ring->room ? ring->next + 1 : 0;
    ring->count += ring->count < ring->room;
}

int64_t profiler_ring_get(const profiler_ring *ring, size_t i)
{
    const size_t first = ring->count < ring->room ? 0 : ring->next;
    const size_t at = first + i;
    return ring->items[at < ring->room ? at : at - ring->room];
}

void profiler_ring_clear(profiler_ring *ring)
{
    free(ring->items);
    memset(ring, 0, sizeof *ring);
}

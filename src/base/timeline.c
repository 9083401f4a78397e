/* Ticks to nanoseconds, piecewise between snapshots.
 *
 * Within the interval i the time is mono[i] + (ticks - ticks[i]) · rate, where the rate
 * is a fixed-point number rounded down: multiplication and shift on 128 bits, no division
 * and no floating point. It follows that the result is
 *   exact at every chosen snapshot: the product is 0 there;
 *   monotone: each piece rises, and rounding down keeps it at or below mono[i + 1]. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/clock.h>

#include "base/memory.h"
#include "base/timeline_fast.h"
#include "base/timeline_select.h"

typedef unsigned __int128 wide;

/* Nanoseconds a tick = multiplier / 2^shift, rounded down; shift ≤ 64. */
struct rate {
    uint64_t multiplier;
    unsigned shift;
};

struct point {
    uint64_t ticks;
    uint64_t mono_ns;
    uint64_t mono_to_real; /* distance of the two clocks */
    bool real_is_later;
    bool real_is_known;
    struct rate rate; /* from here to the next point */
};

struct sw_timeline {
    enum sw_clock_kind kind;
    size_t count;     /* of points, ≥ 1; ticks and mono_ns strictly rise */
    struct rate rate; /* outside of the points */
    double rate_hz;
    size_t jumps;
    struct point points[];
};

static unsigned bit_length(uint64_t value)
{
    return value ? 64u - (unsigned)__builtin_clzll(value) : 0;
}

/* The rate ns / ticks with as many bits as fit; `ticks` > 0. With e the bit length of the
 * quotient at most, shift = 64 - e leaves the multiplier within 64 bits. */
static struct rate rate_of(uint64_t ns, uint64_t ticks)
{
    unsigned up = bit_length(ns) + 1;
    unsigned down = bit_length(ticks);
    unsigned excess = up > down ? up - down : 0;
    struct rate rate = {.shift = excess < 64 ? 64 - excess : 0};
    wide multiplier = ((wide)ns << rate.shift) / ticks;
    rate.multiplier = multiplier > UINT64_MAX ? UINT64_MAX : (uint64_t)multiplier;
    return rate;
}

static uint64_t apply(struct rate rate, uint64_t ticks)
{
    wide ns = ((wide)ticks * rate.multiplier) >> rate.shift;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t subtract_saturating(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Index of the last point at or before `ticks`; 0 also when all are later. */
static size_t point_before(const sw_timeline *timeline, uint64_t ticks)
{
    size_t low = 0;
    size_t high = timeline->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (timeline->points[middle].ticks <= ticks) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t convert(const sw_timeline *timeline, size_t index, uint64_t ticks)
{
    if (timeline->kind == SW_CLOCK_MONOTONIC) {
        return ticks;
    }
    const struct point *point = &timeline->points[index];
    if (ticks < point->ticks) {
        return subtract_saturating(point->mono_ns,
                                   apply(timeline->rate, point->ticks - ticks));
    }
    return add_saturating(point->mono_ns, apply(point->rate, ticks - point->ticks));
}

uint64_t sw_timeline_mono_ns(const sw_timeline *timeline, uint64_t ticks)
{
    return convert(timeline, point_before(timeline, ticks), ticks);
}

/* How many ticks after `point` convert without saturation. */
static uint64_t ticks_below_limit(const struct point *point)
{
    if (point->rate.multiplier == 0) {
        return UINT64_MAX;
    }
    wide room = (wide)(UINT64_MAX - point->mono_ns) << point->rate.shift;
    wide ticks = room / point->rate.multiplier;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

bool sw__timeline_piece_at(const sw_timeline *timeline, uint64_t ticks,
                           struct sw__timeline_piece *piece)
{
    if (timeline->kind == SW_CLOCK_MONOTONIC) {
        *piece = (struct sw__timeline_piece){.span = UINT64_MAX, .multiplier = 1};
        return ticks < UINT64_MAX;
    }
    size_t index = point_before(timeline, ticks);
    const struct point *point = &timeline->points[index];
    if (ticks < point->ticks) {
        return false;
    }
    /* Up to the last tick there is and no further: beyond it the difference that the
     * caller compares with the span stands for ticks before the piece. */
    uint64_t end = index + 1 < timeline->count ? point[1].ticks : UINT64_MAX;
    uint64_t span = end - point->ticks;
    uint64_t most = ticks_below_limit(point);
    *piece = (struct sw__timeline_piece){
        .from = point->ticks,
        .span = span < most ? span : most,
        .base_ns = point->mono_ns,
        .multiplier = point->rate.multiplier,
        .shift = point->rate.shift,
    };
    return ticks - piece->from < piece->span;
}

uint64_t sw_timeline_real_ns(const sw_timeline *timeline, uint64_t ticks)
{
    size_t index = point_before(timeline, ticks);
    uint64_t mono_ns = convert(timeline, index, ticks);
    const struct point *nearest = &timeline->points[index];
    if (index + 1 < timeline->count && ticks > nearest->ticks &&
        nearest[1].ticks - ticks < ticks - nearest->ticks) {
        nearest++;
    }
    if (!nearest->real_is_known) {
        return 0;
    }
    return nearest->real_is_later ? add_saturating(mono_ns, nearest->mono_to_real)
                                  : subtract_saturating(mono_ns, nearest->mono_to_real);
}

double sw_timeline_rate_hz(const sw_timeline *timeline)
{
    return timeline->rate_hz;
}

size_t sw_timeline_jumps(const sw_timeline *timeline)
{
    return timeline->jumps;
}

size_t sw_timeline_points(const sw_timeline *timeline)
{
    return timeline->count;
}

static void set_rate(sw_timeline *timeline, uint64_t ns, uint64_t ticks)
{
    timeline->rate = rate_of(ns, ticks);
    timeline->rate_hz = (double)ticks * 1e9 / (double)ns;
}

/* One snapshot has no rate. Counter and CLOCK_MONOTONIC both began at boot, so their
 * quotient is near it where it looks like one; else a tick is taken for a nanosecond. */
static void guess_rate(sw_timeline *timeline, const sw_clock_snapshot *only)
{
    double hz = (double)only->ticks * 1e9 / (double)only->mono_ns;
    double least = timeline->kind == SW_CLOCK_TSC ? 5e8 : 1e6;
    double most = timeline->kind == SW_CLOCK_TSC ? 1e10 : 4e9;
    if (hz >= least && hz <= most) {
        set_rate(timeline, only->mono_ns, only->ticks);
    } else {
        set_rate(timeline, 1, 1);
    }
}

/* An interval between chosen snapshots. */
struct span {
    uint64_t ns;
    uint64_t ticks;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    wide x = (wide)a->ticks * b->ns;
    wide y = (wide)b->ticks * a->ns;
    return x < y ? -1 : x > y;
}

/* Whether the interval after `from` keeps the median rate, within 1000 ppm and what the
 * reading of its two ends may have been wrong by. */
static bool has_jumped(const sw_clock_snapshot *from, struct span median)
{
    double ns = (double)(from[1].mono_ns - from[0].mono_ns);
    double ticks = (double)(from[1].ticks - from[0].ticks);
    double expected = ns * ((double)median.ticks / (double)median.ns);
    double allowed =
        (double)from[0].error_ticks + (double)from[1].error_ticks + expected * 1e-3 + 1;
    return ticks > expected + allowed || ticks < expected - allowed;
}

/* Rates and jumps from two or more chosen snapshots. After a jump the median stands for
 * the overall rate: what happened inside one interval says nothing about the outside. */
static int measure_rates(sw_timeline *timeline, const sw_clock_snapshot *chosen)
{
    size_t intervals = timeline->count - 1;
    struct span *spans = sw__alloc_zero(intervals, sizeof *spans);
    if (!spans) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < intervals; i++) {
        spans[i].ns = chosen[i + 1].mono_ns - chosen[i].mono_ns;
        spans[i].ticks = chosen[i + 1].ticks - chosen[i].ticks;
        timeline->points[i].rate = rate_of(spans[i].ns, spans[i].ticks);
    }
    qsort(spans, intervals, sizeof *spans, compare_spans);
    struct span median = spans[intervals / 2];
    sw__free(spans);
    for (size_t i = 0; i < intervals; i++) {
        timeline->jumps += has_jumped(&chosen[i], median);
    }
    if (timeline->jumps) {
        set_rate(timeline, median.ns, median.ticks);
    } else {
        set_rate(timeline, chosen[intervals].mono_ns - chosen[0].mono_ns,
                 chosen[intervals].ticks - chosen[0].ticks);
    }
    return SW_OK;
}

/* Snapshots that were not chosen lie on the line, as near as they could be read. Those
 * that do not tell of a clock that went backwards; neighbours among them tell of the same
 * jump. */
static size_t count_outliers(const sw_timeline *timeline, const sw_clock_snapshot *sorted,
                             size_t count)
{
    size_t jumps = 0;
    bool was_off = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t here = sw_timeline_mono_ns(timeline, sorted[i].ticks);
        uint64_t there = sorted[i].mono_ns;
        double error_ns = (double)sorted[i].error_ticks * 1e9 / timeline->rate_hz;
        double off_ns = (double)(here > there ? here - there : there - here);
        bool off = off_ns > SW__TIMELINE_APART_NS + error_ns;
        jumps += off && !was_off;
        was_off = off;
    }
    return jumps;
}

static void set_points(sw_timeline *timeline, const sw_clock_snapshot *chosen)
{
    size_t count = timeline->count;
    for (size_t i = 0; i < count; i++) {
        struct point *point = &timeline->points[i];
        const sw_clock_snapshot *from = &chosen[i];
        point->ticks = from->ticks;
        point->mono_ns = from->mono_ns;
        point->real_is_known = from->real_ns != 0;
        point->real_is_later = from->real_ns >= from->mono_ns;
        point->mono_to_real = point->real_is_later ? from->real_ns - from->mono_ns
                                                   : from->mono_ns - from->real_ns;
    }
    /* A point without a real time borrows from the one before it, the first from the
     * next. */
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t k = 1; k < count; k++) {
            struct point *to = &timeline->points[pass ? count - 1 - k : k];
            const struct point *from = pass ? to + 1 : to - 1;
            if (!to->real_is_known && from->real_is_known) {
                to->real_is_known = true;
                to->real_is_later = from->real_is_later;
                to->mono_to_real = from->mono_to_real;
            }
        }
    }
}

int sw_timeline_create(sw_timeline **out, enum sw_clock_kind kind,
                       const sw_clock_snapshot *snapshots, size_t count,
                       sw_error_info *info)
{
    *out = NULL;
    if (kind != SW_CLOCK_TSC && kind != SW_CLOCK_MONOTONIC && kind != SW_CLOCK_CNTVCT) {
        return sw_error_set(info, SW_EINVAL, "there is no clock of kind %d", (int)kind);
    }
    sw_timeline *timeline = NULL;
    size_t number = 0;
    sw_clock_snapshot *sorted = sw__alloc_zero(count, sizeof *sorted);
    sw_clock_snapshot *chosen = sw__alloc_zero(count, sizeof *chosen);
    int result = sorted && chosen ? SW_OK : SW_ENOMEM;
    if (result) {
        goto out;
    }
    count = sw__timeline_sort(sorted, kind, snapshots, count);
    if (count == 0) {
        result = SW_ECORRUPT;
        goto out;
    }
    result = sw__timeline_choose(chosen, &number, sorted, count);
    if (result) {
        goto out;
    }
    timeline = sw__alloc_zero(1, sizeof *timeline + number * sizeof timeline->points[0]);
    if (!timeline) {
        result = SW_ENOMEM;
        goto out;
    }
    timeline->kind = kind;
    timeline->count = number;
    set_points(timeline, chosen);
    if (kind == SW_CLOCK_MONOTONIC) {
        set_rate(timeline, 1, 1);
    } else if (number == 1) {
        guess_rate(timeline, chosen);
    } else {
        result = measure_rates(timeline, chosen);
        if (result) {
            goto out;
        }
    }
    timeline->points[number - 1].rate = timeline->rate;
    if (kind != SW_CLOCK_MONOTONIC && number > 1) {
        timeline->jumps += count_outliers(timeline, sorted, count);
    }
    *out = timeline;
    timeline = NULL;
out:
    sw_timeline_free(timeline);
    sw__free(chosen);
    sw__free(sorted);
    if (result == SW_ECORRUPT) {
        return sw_error_set(info, result, "the trace holds no usable clock snapshot");
    }
    return result ? sw_error_set(info, result, "%s", sw_error_text(result)) : SW_OK;
}

void sw_timeline_free(sw_timeline *timeline)
{
    sw__free(timeline);
}

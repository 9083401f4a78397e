/* Choosing snapshots for a timeline. They come from a file that may be torn or forged, so
 * a single bad one must not spoil the rest: the longest run of agreeing ones is kept. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/timeline_select.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A slot that was never written is all zeros; no clock of a running machine is at
 * zero. */
static bool is_usable(enum sw_clock_kind kind, const sw_clock_snapshot *snapshot)
{
    if (snapshot->ticks == 0 || snapshot->mono_ns == 0) {
        return false;
    }
    return kind != SW_CLOCK_MONOTONIC || snapshot->ticks == snapshot->mono_ns;
}

/* By ticks; among equal ones the later time first, so that a rising chain takes at most
 * one. */
static int compare(const void *left, const void *right)
{
    const sw_clock_snapshot *a = left;
    const sw_clock_snapshot *b = right;
    if (a->ticks != b->ticks) {
        return a->ticks < b->ticks ? -1 : 1;
    }
    return a->mono_ns == b->mono_ns ? 0 : a->mono_ns > b->mono_ns ? -1 : 1;
}

size_t sw__timeline_sort(sw_clock_snapshot *sorted, enum sw_clock_kind kind,
                         const sw_clock_snapshot *snapshots, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_usable(kind, &snapshots[i])) {
            sorted[used++] = snapshots[i];
        }
    }
    if (used > 1) {
        qsort(sorted, used, sizeof *sorted, compare);
    }
    return used;
}

/* The longest subsequence with strictly rising monotonic time (patience sorting).
 * `tails[k]` is the end of the chain of length k + 1 that ends lowest, `before[i]` the
 * one ahead of i in its chain. Returns its length and writes it to `chain`. */
static size_t longest_rising(sw_clock_snapshot *chain, size_t *tails, size_t *before,
                             const sw_clock_snapshot *sorted, size_t count)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t low = 0;
        size_t high = longest;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (sorted[tails[middle]].mono_ns < sorted[i].mono_ns) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        before[i] = low ? tails[low - 1] : SIZE_MAX;
        tails[low] = i;
        longest = low == longest ? longest + 1 : longest;
    }
    size_t at = longest ? tails[longest - 1] : SIZE_MAX;
    for (size_t k = longest; k-- > 0; at = before[at]) {
        chain[k] = sorted[at];
    }
    return longest;
}

static bool are_apart(const sw_clock_snapshot *a, const sw_clock_snapshot *b)
{
    return distance(a->mono_ns, b->mono_ns) >= SW__TIMELINE_APART_NS;
}

/* Thins a chain in place: of those within 50 ms the one read most tightly stays. A run
 * too short to have two that far apart keeps its ends, for a poor rate is better than
 * none. */
static size_t thin(sw_clock_snapshot *chain, size_t count)
{
    if (count < 2) {
        return count;
    }
    sw_clock_snapshot first = chain[0];
    sw_clock_snapshot last = chain[count - 1];
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        size_t best = i;
        size_t next = i + 1;
        for (; next < count && !are_apart(&chain[i], &chain[next]); next++) {
            if (chain[next].error_ticks < chain[best].error_ticks) {
                best = next;
            }
        }
        /* The best of one group may still be close to the best of the one before. */
        if (kept == 0 || are_apart(&chain[kept - 1], &chain[best])) {
            chain[kept++] = chain[best];
        } else if (chain[best].error_ticks < chain[kept - 1].error_ticks) {
            chain[kept - 1] = chain[best];
        }
        i = next;
    }
    if (kept == 1) {
        chain[0] = first;
        chain[1] = last;
        kept = 2;
    }
    return kept;
}

int sw__timeline_choose(sw_clock_snapshot *chosen, size_t *number,
                        const sw_clock_snapshot *sorted, size_t count)
{
    int result = SW_ENOMEM;
    size_t *tails = sw__alloc_zero(count, sizeof *tails);
    size_t *before = sw__alloc_zero(count, sizeof *before);
    if (tails && before) {
        size_t length = longest_rising(chosen, tails, before, sorted, count);
        *number = thin(chosen, length);
        result = SW_OK;
    }
    sw__free(before);
    sw__free(tails);
    return result;
}

/* Choosing, among the snapshots of a file, those that a timeline is built from. */
#ifndef SW_BASE_TIMELINE_SELECT_H
#define SW_BASE_TIMELINE_SELECT_H

#include <stddef.h>
#include <stepwatch/clock.h>

#define SW__TIMELINE_APART_NS 50000000u

/* Copies the usable ones of `count` snapshots into `sorted` (room for all), ordered by
 * ticks, and returns how many there are. */
size_t sw__timeline_sort(sw_clock_snapshot *sorted, enum sw_clock_kind kind,
                         const sw_clock_snapshot *snapshots, size_t count);
/* Writes to `chosen` (room for all) the largest set of sorted snapshots in which both
 * ticks and monotonic time strictly rise, thinned out to SW__TIMELINE_APART_NS. At least
 * one if `count` > 0. The number goes to `*number`; SW_ENOMEM is the only error. */
int sw__timeline_choose(sw_clock_snapshot *chosen, size_t *number,
                        const sw_clock_snapshot *sorted, size_t count);

#endif

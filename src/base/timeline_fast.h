/* Converting many ticks in a row: one piece of a timeline at a time, without the search
 * for it. The results are those of sw_timeline_mono_ns to the last nanosecond. */
#ifndef SW_BASE_TIMELINE_FAST_H
#define SW_BASE_TIMELINE_FAST_H

#include "base/compiler.h"
#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/clock.h>

/* mono_ns(t) = base_ns + ((t - from) · multiplier >> shift) for from ≤ t < from + span,
 * and no sum there exceeds 64 bits. All zero: a piece that holds no tick. */
struct sw__timeline_piece {
    uint64_t from;
    uint64_t span;
    uint64_t base_ns;
    uint64_t multiplier;
    unsigned shift; /* ≤ 64 */
};

/* The piece that `ticks` lies in. False before the first snapshot and where the result
 * saturates: convert those with sw_timeline_mono_ns. */
bool sw__timeline_piece_at(const sw_timeline *timeline, uint64_t ticks,
                           struct sw__timeline_piece *piece);

/* sw_timeline_mono_ns with `piece` as the memory of the last conversion. */
SW__INLINE uint64_t sw__timeline_piece_ns(const sw_timeline *timeline,
                                          struct sw__timeline_piece *piece,
                                          uint64_t ticks)
{
    if (SW__UNLIKELY(ticks - piece->from >= piece->span)) {
        struct sw__timeline_piece other;
        if (!sw__timeline_piece_at(timeline, ticks, &other)) {
            return sw_timeline_mono_ns(timeline, ticks);
        }
        *piece = other;
    }
    unsigned __int128 product =
        (unsigned __int128)(ticks - piece->from) * piece->multiplier;
    return piece->base_ns + (uint64_t)(product >> piece->shift);
}

#endif

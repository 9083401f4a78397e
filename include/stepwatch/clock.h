/* The clock that records are stamped with, and the way from its ticks to nanoseconds.
 *
 * Records hold raw ticks. A snapshot ties one tick value to CLOCK_MONOTONIC and
 * CLOCK_REALTIME; a timeline, built from all snapshots of a file, converts ticks to
 * nanoseconds piecewise. */
#ifndef STEPWATCH_CLOCK_H
#define STEPWATCH_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sw_clock_kind {
    SW_CLOCK_NONE = 0,
    SW_CLOCK_TSC = 1,       /* x86 time stamp counter, invariant */
    SW_CLOCK_MONOTONIC = 2, /* clock_gettime(CLOCK_MONOTONIC): a tick is a nanosecond */
    SW_CLOCK_CNTVCT = 3     /* aarch64 virtual counter */
};

/* One moment seen on three clocks. The monotonic and real times were read between two
 * tick reads whose midpoint is `ticks` and whose distance is `error_ticks`: the truth
 * lies within it. */
typedef struct sw_clock_snapshot {
    uint64_t ticks;
    uint64_t mono_ns;
    uint64_t real_ns;
    uint64_t error_ticks;
} sw_clock_snapshot;

/* The kind of clock this process records with, chosen once: the TSC where CPU and kernel
 * call it invariant, else clock_gettime. STEPWATCH_CLOCK=monotonic (or tsc) overrides the
 * choice. */
SW_API enum sw_clock_kind sw_clock_get_kind(void);
SW_API const char *sw_clock_kind_name(enum sw_clock_kind kind);
/* Why this kind was chosen, in a few words for `doctor` and the trace; static text. */
SW_API const char *sw_clock_why(void);
/* One read of that clock. */
SW_API uint64_t sw_clock_ticks(void);
/* The tightest of several bracketed readings. */
SW_API void sw_clock_snap(sw_clock_snapshot *out);

typedef struct sw_timeline sw_timeline;

/* Builds a timeline from `count` snapshots in any order (at least one usable). Snapshots
 * that are closer together than 50 ms are thinned out, so that reading noise does not
 * become a rate. The caller frees it with sw_timeline_free. Nothing in `snapshots` is
 * trusted. */
SW_API int sw_timeline_create(sw_timeline **out, enum sw_clock_kind kind,
                              const sw_clock_snapshot *snapshots, size_t count,
                              sw_error_info *info);
SW_API void sw_timeline_free(sw_timeline *timeline); /* NULL is fine */
/* Ticks to nanoseconds of CLOCK_MONOTONIC. Monotone: a ≤ b gives f(a) ≤ f(b); exact
 * integers, so differences of converted boundaries add up. Before the first and after the
 * last snapshot the overall rate is extrapolated. */
SW_API uint64_t sw_timeline_mono_ns(const sw_timeline *timeline, uint64_t ticks);
/* The same moment on CLOCK_REALTIME (nanoseconds since 1970), offset of the nearest
 * snapshot; 0 when no snapshot knows it. */
SW_API uint64_t sw_timeline_real_ns(const sw_timeline *timeline, uint64_t ticks);
/* Ticks per second over the whole file. */
SW_API double sw_timeline_rate_hz(const sw_timeline *timeline);
/* How many intervals between snapshots have a rate that differs from the median by more
 * than their reading error and 1000 ppm: a migrated machine, a suspended one, a clock
 * that jumped. */
SW_API size_t sw_timeline_jumps(const sw_timeline *timeline);
/* How many snapshots are in use. With 1 the rate is a guess (counter over time since
 * boot). */
SW_API size_t sw_timeline_points(const sw_timeline *timeline);

#ifdef __cplusplus
}
#endif
#endif

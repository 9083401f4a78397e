/* From the snapshots of a trace to its timeline. */
#include "read/trace_internal.h"

static bool is_set(const sw_clock_snapshot *snapshot)
{
    return snapshot->ticks != 0 && snapshot->mono_ns != 0;
}

struct snapshots {
    sw_clock_snapshot *list;
    size_t count;
    bool nanoseconds; /* ticks and monotonic time are the same in all of them */
};

static void add(struct snapshots *snapshots, sw_clock_snapshot snapshot)
{
    if (is_set(&snapshot)) {
        snapshots->list[snapshots->count++] = snapshot;
        snapshots->nanoseconds =
            snapshots->nanoseconds && snapshot.ticks == snapshot.mono_ns;
    }
}

static enum sw_clock_kind clock_kind(const sw_trace *trace,
                                     const struct snapshots *snapshots)
{
    uint32_t kind = trace->super ? trace->super->clock_kind : 0;
    if (kind == SW_CLOCK_TSC || kind == SW_CLOCK_MONOTONIC || kind == SW_CLOCK_CNTVCT) {
        return (enum sw_clock_kind)kind;
    }
    return snapshots->nanoseconds ? SW_CLOCK_MONOTONIC : SW_CLOCK_TSC;
}

int sw__clock_build(sw_trace *trace, sw_error_info *info)
{
    size_t chunks = trace->block_count - trace->state_count;
    struct snapshots all = {.nanoseconds = true};
    all.list = sw__alloc_zero(chunks + (size_t)3 * SW__SOURCES, sizeof *all.list);
    if (!all.list) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    for (int i = 0; i < SW__SOURCES; i++) {
        const struct sw__source *source = &trace->source[i];
        if (source->quality != SW__SUPER_NONE &&
            (i == SW__SOURCE_HOME || trace->has_hot)) {
            add(&all, source->super.start_snapshot);
            add(&all, source->super.latest_snapshot[source->super.latest & 1]);
            add(&all, source->super.end_snapshot);
        }
    }
    for (size_t i = trace->state_count; i < trace->block_count; i++) {
        /* Empty chunks are not folded, and times must not change by that. */
        if (trace->blocks[i].used) {
            add(&all, trace->blocks[i].snapshot);
        }
    }
    enum sw_clock_kind kind = clock_kind(trace, &all);
    int result = SW_ECORRUPT;
    if (all.count) {
        result = sw_timeline_create(&trace->timeline, kind, all.list, all.count, info);
    }
    sw__free(all.list);
    if (result == SW_ECORRUPT) {
        static const sw_clock_snapshot one = {.ticks = 1, .mono_ns = 1};
        sw__trace_damage(trace, "No clock snapshot is readable: times are in ticks.");
        kind = SW_CLOCK_MONOTONIC;
        result = sw_timeline_create(&trace->timeline, kind, &one, 1, info);
    }
    if (result) {
        return result;
    }
    trace->info.clock = kind;
    trace->info.clock_jumps = sw_timeline_jumps(trace->timeline);
    trace->ns_per_tick =
        kind == SW_CLOCK_MONOTONIC ? 1.0 : 1e9 / sw_timeline_rate_hz(trace->timeline);
    if (trace->info.clock_jumps) {
        sw__trace_say(trace, "The clock jumped %zu times while this was recorded.",
                      trace->info.clock_jumps);
    }
    return SW_OK;
}

uint64_t sw__trace_duration_ns(const sw_trace *trace, uint64_t ticks)
{
    if (trace->info.clock == SW_CLOCK_MONOTONIC) {
        return ticks;
    }
    double ns = (double)ticks * trace->ns_per_tick + 0.5;
    return ns < 18446744073709549568.0 ? (uint64_t)ns : UINT64_MAX;
}

uint64_t sw__trace_moment_ns(const sw_trace *trace, uint64_t ticks)
{
    return ticks ? sw_timeline_mono_ns(trace->timeline, ticks) : 0;
}

const sw_timeline *sw_trace_timeline(const sw_trace *trace)
{
    return trace->timeline;
}

double sw_trace_ns_per_tick(const sw_trace *trace)
{
    return trace->ns_per_tick;
}

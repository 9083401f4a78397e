/* Facts about the whole trace: identity, times and totals. */
#include <string.h>

#include "read/trace_internal.h"

/* How long after the last snapshot a record may lie and still count as a sign of
 * life. */
#define TRUSTED_NS 3600000000000u

static const char *text(sw_trace *trace, const char *bytes, size_t size)
{
    const char *copy = sw__arena_copy(trace->arena, bytes, strnlen(bytes, size));
    return copy ? copy : "";
}

static enum sw_trace_end how_it_ended(const sw_trace *trace)
{
    if (trace->super && trace->super->state == SW__STATE_CLOSED) {
        return SW_TRACE_CLOSED;
    }
    if (trace->super && trace->super->state != SW__STATE_OPEN) {
        return SW_TRACE_KILLED;
    }
    return trace->alive ? SW_TRACE_RUNNING : SW_TRACE_KILLED;
}

static void fill_times(sw_trace *trace)
{
    sw_trace_info *info = &trace->info;
    uint64_t first_ticks = UINT64_MAX;
    sw_clock_snapshot start = {0};
    sw_clock_snapshot latest = {0};
    if (trace->super) {
        start = trace->super->start_snapshot;
        latest = sw__super_latest(trace->super);
    }
    for (size_t i = trace->state_count; i < trace->block_count; i++) {
        const struct sw__block *chunk = &trace->blocks[i];
        if (chunk->first_ticks && chunk->first_ticks < first_ticks) {
            first_ticks = chunk->first_ticks;
        }
    }
    if (start.ticks) {
        first_ticks = start.ticks;
    }
    if (first_ticks != UINT64_MAX) {
        info->start_ns = sw_timeline_mono_ns(trace->timeline, first_ticks);
        info->start_real_ns = start.real_ns
                                  ? start.real_ns
                                  : sw_timeline_real_ns(trace->timeline, first_ticks);
    }
    info->end_ns = latest.ticks ? sw_timeline_mono_ns(trace->timeline, latest.ticks)
                                : info->start_ns;
    if (info->end != SW_TRACE_CLOSED) {
        uint64_t limit = sw__add_saturating(info->end_ns, TRUSTED_NS);
        for (size_t i = trace->state_count; i < trace->block_count; i++) {
            uint64_t ticks = trace->blocks[i].last_ticks;
            uint64_t ns = ticks ? sw_timeline_mono_ns(trace->timeline, ticks) : 0;
            info->end_ns = ns > info->end_ns && ns <= limit ? ns : info->end_ns;
        }
    }
    info->end_ns = info->end_ns > info->start_ns ? info->end_ns : info->start_ns;
}

static void fill_totals(sw_trace *trace)
{
    sw_trace_info *info = &trace->info;
    const _Atomic uint64_t *total = trace->super->total;
    info->dropped = total[SW__TOTAL_DROPPED];
    info->overwritten = total[SW__TOTAL_OVERWRITTEN];
    info->reentrant = total[SW__TOTAL_REENTRANT];
    info->too_deep = total[SW__TOTAL_TOO_DEEP];
    info->names_folded = total[SW__TOTAL_NAMES_FOLDED];
    info->nodes_folded = total[SW__TOTAL_NODES_FOLDED];
    info->unmatched = total[SW__TOTAL_UNMATCHED];
    info->bus_errors = total[SW__TOTAL_BUS_ERRORS];
    info->steps_dropped = total[SW__TOTAL_STEPS_DROPPED];
    info->write_errors = total[SW__TOTAL_WRITE_ERRORS];
    info->hist_missed = total[SW__TOTAL_HIST_MISSED];
    info->helper_cpu_ns = total[SW__TOTAL_HELPER_NS];
    info->step_ticks = total[SW__TOTAL_STEP_TICKS];
    info->emit_ticks = total[SW__TOTAL_EMIT_TICKS];
}

static double cost_ns(const sw_trace *trace, uint64_t cost)
{
    return (double)cost / 256.0 * trace->ns_per_tick;
}

/* A closed file says how long it is: one that was cut between two blocks looks whole otherwise. */
static void check_length(sw_trace *trace)
{
    const struct sw__source *home = &trace->source[SW__SOURCE_HOME];
    if (home->quality != SW__SUPER_NONE && home->super.home_end > home->size) {
        sw__trace_damage(trace, "The file was cut: %llu of its %llu bytes are there.",
                         (unsigned long long)home->size,
                         (unsigned long long)home->super.home_end);
    }
}

static void fill_super(sw_trace *trace)
{
    check_length(trace);
    sw_trace_info *info = &trace->info;
    const struct sw__fmt_super *super = trace->super;
    info->name = text(trace, super->name, sizeof super->name);
    info->run_id = text(trace, super->run_id, sizeof super->run_id);
    info->pid = super->pid;
    info->ppid = super->ppid;
    info->policy = super->policy;
    info->events = super->events != 0;
    info->max_bytes = super->max_bytes;
    info->keep_first = super->keep_first;
    info->keep_last = super->keep_last;
    info->keep_worst = super->keep_worst;
    info->first_error = super->error;
    info->cost_section_ns = cost_ns(trace, super->cost_section);
    info->cost_section_low_ns = cost_ns(trace, super->cost_section_low);
    info->cost_section_high_ns = cost_ns(trace, super->cost_section_high);
    info->cost_stats_ns = cost_ns(trace, super->cost_stats);
    fill_totals(trace);
}

void sw__info_fill(sw_trace *trace)
{
    sw_trace_info *info = &trace->info;
    info->path = trace->source[SW__SOURCE_HOME].path;
    info->file_bytes = trace->source[SW__SOURCE_HOME].size;
    info->name = "";
    info->run_id = "";
    info->end = how_it_ended(trace);
    if (trace->super) {
        fill_super(trace);
    }
    for (size_t i = 0; i < trace->thread_count; i++) {
        info->dropped = sw__add_saturating(info->dropped, trace->threads[i].dropped);
        info->overwritten =
            sw__add_saturating(info->overwritten, trace->threads[i].overwritten);
    }
    fill_times(trace);
}

const sw_trace_info *sw_trace_get_info(const sw_trace *trace)
{
    return &trace->info;
}

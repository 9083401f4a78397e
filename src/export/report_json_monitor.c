/* Member "monitor" of report.json. */
#include <string.h>

#include "export/json_put.h"
#include "export/report_parts.h"

/* Whether a series speaks of this process, so that its phases and sections say something. */
static bool is_own(const char *name)
{
    static const char *const machine[] = {"system.", "core.", "disk.", "net.",
                                          "pressure."};
    for (size_t i = 0; i < sizeof machine / sizeof machine[0]; i++) {
        if (strncmp(name, machine[i], strlen(machine[i])) == 0) {
            return false;
        }
    }
    return true;
}

static void put_stats(sw_writer *w, const sw_monitor_stats *stats)
{
    put_uint(w, "samples", stats->samples);
    put_double(w, "mean", stats->mean);
    put_double(w, "min", stats->min);
    put_double(w, "max", stats->max);
}

static void put_phases(sw_writer *w, const sw_monitor_series *series)
{
    sw_json_key(w, "phases");
    sw_json_array_begin(w);
    for (unsigned i = 0; i < SW_PHASE_COUNT && is_own(series->name); i++) {
        if (series->phase[i].samples) {
            sw_json_object_begin(w);
            put_string(w, "phase", sw_phase_name(i));
            put_stats(w, &series->phase[i]);
            sw_json_object_end(w);
        }
    }
    sw_json_array_end(w);
}

static void put_sections(sw_writer *w, const sw_monitor *monitor, size_t index)
{
    const bool own = is_own(sw_monitor_get_series(monitor, index)->name);
    sw_json_key(w, "sections");
    sw_json_array_begin(w);
    for (size_t i = 0; own && i < sw_monitor_section_count(monitor); i++) {
        const sw_monitor_section *section = sw_monitor_get_section(monitor, i);
        const sw_monitor_stats stats = sw_monitor_in_section(monitor, index, i);
        if (!stats.samples) {
            continue;
        }
        sw_json_object_begin(w);
        sw_json_key(w, "path");
        sw_json_array_begin(w);
        for (size_t k = 0; k < section->depth; k++) {
            sw_json_string(w, section->path[k]);
        }
        sw_json_array_end(w);
        put_stats(w, &stats);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_series(sw_writer *w, const sw_monitor *monitor)
{
    sw_json_key(w, "series");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_monitor_series_count(monitor); i++) {
        const sw_monitor_series *series = sw_monitor_get_series(monitor, i);
        sw_json_object_begin(w);
        put_string(w, "name", series->name);
        put_string(w, "unit", series->unit);
        put_string(w, "kind", series->kind == SW_SERIES_GAUGE ? "gauge" : "total");
        put_string(w, "source", series->source);
        put_double(w, "first", series->first);
        put_double(w, "last", series->last);
        put_double(w, "growth", series->growth);
        put_stats(w, &series->all);
        put_double(w, "p50", series->p50);
        put_double(w, "p95", series->p95);
        put_double(w, "per_step", series->per_step);
        sw_json_key(w, "steps");
        sw_json_object_begin(w);
        put_stats(w, &series->steps);
        sw_json_object_end(w);
        put_phases(w, series);
        put_sections(w, monitor, i);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_sources(sw_writer *w, const sw_monitor *monitor)
{
    sw_json_key(w, "sources");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_monitor_seen_count(monitor); i++) {
        const sw_monitor_seen *seen = sw_monitor_get_seen(monitor, i);
        sw_json_object_begin(w);
        put_string(w, "name", seen->name);
        put_string(w, "why", seen->why);
        put_double(w, "period_s", seen->period_s);
        put_uint(w, "looks", seen->looks);
        put_uint(w, "failed", seen->failed);
        put_double(w, "us_per_look",
                   seen->looks ? seen->seconds * 1e6 / (double)seen->looks : NAN);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_totals(sw_writer *w, const sw_monitor_totals *totals)
{
    put_uint(w, "pid", totals->pid);
    put_double(w, "interval_s", totals->interval_s);
    put_uint(w, "looks", totals->looks);
    put_uint(w, "late", totals->late);
    put_uint(w, "kept", totals->kept);
    put_double(w, "watched_s", totals->watched_s);
    put_double(w, "longest_gap_s", totals->longest_gap_s);
    put_double(w, "cpu_percent",
               totals->watched_s > 0 ? 100 * totals->cpu_s / totals->watched_s : NAN);
}

void sw__json_monitor(sw_writer *w, const sw_summary *summary)
{
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    if (!monitor) {
        put_missing(w, "monitor", "The monitor did not run: monitor_interval_s is 0.");
        return;
    }
    sw_json_key(w, "monitor");
    sw_json_object_begin(w);
    put_totals(w, sw_monitor_get_totals(monitor));
    put_series(w, monitor);
    put_sources(w, monitor);
    sw_json_key(w, "others");
    sw_json_array_begin(w);
    for (size_t i = 1; (monitor = sw_summary_monitor(summary, i)); i++) {
        sw_json_object_begin(w);
        put_totals(w, sw_monitor_get_totals(monitor));
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

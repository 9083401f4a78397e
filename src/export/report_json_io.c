/* Member "io" of report.json: calls on files and sockets. */
#include <stepwatch/export.h>
#include <stepwatch/io.h>

#include "export/json_put.h"
#include "export/report_parts.h"

#define THINGS_MOST 1000
#define SECTIONS_MOST 200
#define READINGS_MOST 500

static void put_sum(sw_writer *w, const char *key, const sw_io_sum *sum)
{
    if (sum->calls == 0) {
        return;
    }
    sw_json_key(w, key);
    sw_json_object_begin(w);
    put_uint(w, "calls", sum->calls);
    put_uint(w, "bytes", sum->bytes);
    put_ms(w, "ms", sum->ns);
    put_uint(w, "small", sum->small);
    put_ms(w, "longest_ms", sum->longest_ns);
    sw_json_object_end(w);
}

/* The operations that there were, by name. */
static void put_sums(sw_writer *w, const char *key, const sw_io_sum *sums)
{
    sw_json_key(w, key);
    sw_json_object_begin(w);
    for (unsigned op = 1; op < SW_IO_OPERATIONS; op++) {
        put_sum(w, sw_io_operation_name(op), &sums[op]);
    }
    sw_json_object_end(w);
}

static void put_totals(sw_writer *w, const sw_io *io)
{
    sw_json_key(w, "totals");
    sw_json_object_begin(w);
    for (unsigned kind = 1; kind < SW_IO_KINDS; kind++) {
        sw_io_sum sums[SW_IO_OPERATIONS] = {0};
        for (unsigned op = 1; op < SW_IO_OPERATIONS; op++) {
            sums[op] = *sw_io_total(io, (enum sw_io_kind)kind, (enum sw_io_operation)op);
        }
        put_sums(w, sw_io_kind_name(kind), sums);
    }
    sw_json_object_end(w);
}

static void put_things(sw_writer *w, const sw_io *io)
{
    size_t count;
    const sw_io_thing *things = sw_io_things(io, &count);
    sw_json_key(w, "files");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && i < THINGS_MOST; i++) {
        const sw_io_thing *thing = &things[i];
        sw_json_object_begin(w);
        put_string(w, "name", thing->name);
        put_string(w, "kind", sw_io_kind_name(thing->kind));
        put_ms(w, "ms", thing->sum[0].ns);
        put_uint(w, "calls", thing->sum[0].calls);
        put_uint(w, "size_bytes", thing->size);
        put_uint(w, "read_again_bytes", thing->again);
        put_uint(w, "failed", thing->failed);
        put_uint(w, "processes", thing->processes);
        put_sums(w, "operations", thing->sum);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    put_uint(w, "files_left_out", count > THINGS_MOST ? count - THINGS_MOST : 0);
}

static void put_sections(sw_writer *w, const sw_io *io)
{
    size_t count;
    const sw_io_section *sections = sw_io_sections(io, &count);
    sw_json_key(w, "sections");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && i < SECTIONS_MOST; i++) {
        const sw_io_section *section = &sections[i];
        sw_json_object_begin(w);
        put_string(w, "section", section->section);
        put_string(w, "phase",
                   section->phase == SW_PHASE_INHERIT ? NULL
                                                      : sw_phase_name(section->phase));
        put_bool(w, "training", section->training);
        put_ms(w, "ms", section->sum[0].ns);
        put_sums(w, "operations", section->sum);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void add(sw_io_sum *into, const sw_io_sum *from)
{
    into->calls += from->calls;
    into->bytes += from->bytes;
    into->ns += from->ns;
    into->small += from->small;
    into->longest_ns =
        from->longest_ns > into->longest_ns ? from->longest_ns : into->longest_ns;
}

/* Of the processes that have steps: in which phase of them, or outside; and of all other processes together. */
static void put_phases(sw_writer *w, const sw_io *io)
{
    enum { OUTSIDE = SW_PHASE_COUNT, OTHERS, PLACES };
    sw_io_sum sums[PLACES][SW_IO_OPERATIONS] = {0};
    size_t count;
    const sw_io_section *sections = sw_io_sections(io, &count);
    for (size_t i = 0; i < count; i++) {
        const unsigned place = !sections[i].training ? OTHERS
                               : sections[i].phase == SW_PHASE_INHERIT
                                   ? OUTSIDE
                                   : sections[i].phase;
        for (unsigned op = 0; op < SW_IO_OPERATIONS; op++) {
            add(&sums[place][op], &sections[i].sum[op]);
        }
    }
    sw_json_key(w, "phases");
    sw_json_array_begin(w);
    for (unsigned i = 0; i < PLACES; i++) {
        if (sums[i][0].calls == 0) {
            continue;
        }
        sw_json_object_begin(w);
        put_string(w, "phase",
                   i == OUTSIDE  ? "outside steps"
                   : i == OTHERS ? "other processes"
                                 : sw_phase_name(i));
        put_ms(w, "ms", sums[i][0].ns);
        put_sums(w, "operations", sums[i]);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

/* What the kernel counted for the watched processes (/proc/self/io), where a monitor ran: all that is read and written, pipes and
 * sockets too, and what of it came from and went to a device. */
static void put_kernel(sw_writer *w, const sw_summary *summary)
{
    static const struct {
        const char *key, *series;
    } fields[] = {{"read_bytes", "process.read"},
                  {"written_bytes", "process.written"},
                  {"read_calls", "process.read_calls"},
                  {"write_calls", "process.write_calls"},
                  {"device_read_bytes", "process.storage_read"},
                  {"device_written_bytes", "process.storage_written"}};
    sw_json_key(w, "kernel");
    if (!sw_summary_monitor(summary, 0)) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        double sum = NAN;
        const sw_monitor *monitor;
        for (size_t i = 0; (monitor = sw_summary_monitor(summary, i)) != NULL; i++) {
            const sw_monitor_series *series = sw_monitor_find(monitor, fields[f].series);
            if (series && !isnan(series->growth)) {
                sum = (isnan(sum) ? 0 : sum) + series->growth;
            }
        }
        put_uint(w, fields[f].key,
                 sum >= 0 && sum < 9.2e18 ? (uint64_t)(sum + 0.5) : SW_UNKNOWN);
    }
    sw_json_object_end(w);
}

static void put_reading(sw_writer *w, const sw_summary_io_step *at)
{
    sw_json_object_begin(w);
    put_uint(w, "step", at->step);
    put_uint(w, "steps", at->steps);
    put_uint(w, "read_bytes", at->io.read_bytes);
    put_uint(w, "written_bytes", at->io.written_bytes);
    put_uint(w, "read_calls", at->io.read_calls);
    put_uint(w, "write_calls", at->io.write_calls);
    sw_json_object_end(w);
}

/* Readings one by one; where there are many, as many neighbours are added up as it takes. */
static void put_readings(sw_writer *w, const sw_summary_io_step *list, size_t count)
{
    const size_t together = (count + READINGS_MOST - 1) / READINGS_MOST;
    sw_json_key(w, "series");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i += together) {
        sw_summary_io_step sum = list[i];
        for (size_t k = i + 1; k < i + together && k < count; k++) {
            sum.step = list[k].step;
            sum.steps += list[k].steps;
            sum.io.read_bytes += list[k].io.read_bytes;
            sum.io.written_bytes += list[k].io.written_bytes;
            sum.io.read_calls += list[k].io.read_calls;
            sum.io.write_calls += list[k].io.write_calls;
        }
        put_reading(w, &sum);
    }
    sw_json_array_end(w);
}

/* What a step read and wrote, as the kernel counts it for the process of the steps. */
static void put_steps(sw_writer *w, const sw_summary *summary)
{
    static const char *const names[] = {"read_bytes", "written_bytes", "read_calls",
                                        "write_calls"};
    size_t count;
    const sw_summary_io_step *list = sw_summary_io_steps(summary, &count);
    sw_json_key(w, "steps");
    if (count == 0) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_uint(w, "readings", count);
    for (unsigned field = 0; field < sizeof names / sizeof names[0]; field++) {
        const sw_summary_io_stats *stats =
            sw_summary_get_io_stats(summary, (enum sw_summary_io_field)field);
        sw_json_key(w, names[field]);
        sw_json_object_begin(w);
        put_uint(w, "total", stats->total);
        put_double(w, "mean", stats->mean);
        put_double(w, "p50", stats->p50);
        put_double(w, "p99", stats->p99);
        put_double(w, "max", stats->max);
        sw_json_object_end(w);
    }
    put_readings(w, list, count);
    sw_json_object_end(w);
}

void sw__json_io(sw_writer *w, const sw_summary *summary)
{
    const sw_io *io = sw_summary_io(summary);
    if (!io) {
        sw_json_key(w, "io");
        sw_json_object_begin(w);
        put_bool(w, "recorded", false);
        put_string(w, "why", "Calls are watched under --io only.");
        put_kernel(w, summary);
        put_steps(w, summary);
        sw_json_object_end(w);
        return;
    }
    sw_json_key(w, "io");
    sw_json_object_begin(w);
    put_bool(w, "recorded", true);
    put_uint(w, "processes", sw_io_processes(io));
    put_totals(w, io);
    put_phases(w, io);
    put_sections(w, io);
    put_things(w, io);
    put_uint(w, "missed", sw_io_missed(io));
    put_uint(w, "folded", sw_io_folded(io));
    put_kernel(w, summary);
    put_steps(w, summary);
    sw_json_object_end(w);
}

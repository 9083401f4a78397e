/* All tables of a run, and those whose rows come by index: sections and threads. */
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

const core_table_kind *const core_tables[CORE_TABLES] = {
    [CORE_TABLE_SECTIONS] = &core_table_sections,
    [CORE_TABLE_STEPS] = &core_table_steps,
    [CORE_TABLE_COUNTERS] = &core_table_counters,
    [CORE_TABLE_MARKS] = &core_table_marks,
    [CORE_TABLE_SPANS] = &core_table_spans,
    [CORE_TABLE_SAMPLES] = &core_table_samples,
    [CORE_TABLE_THREADS] = &core_table_threads,
    [CORE_TABLE_FUNCTIONS] = &core_table_functions,
    [CORE_TABLE_LINES] = &core_table_lines,
    [CORE_TABLE_STACKS] = &core_table_stacks,
    [CORE_TABLE_MODULES] = &core_table_modules,
    [CORE_TABLE_LOADERS] = &core_table_loaders,
    [CORE_TABLE_STAGES] = &core_table_stages,
    [CORE_TABLE_BATCHES] = &core_table_batches,
    [CORE_TABLE_COMPILATIONS] = &core_table_compilations,
    [CORE_TABLE_WAITS] = &core_table_waits,
    [CORE_TABLE_SITES] = &core_table_sites,
    [CORE_TABLE_SETTINGS] = &core_table_settings,
    [CORE_TABLE_OPERATORS] = &core_table_operators,
    [CORE_TABLE_EPOCHS] = &core_table_epochs,
    [CORE_TABLE_FILES] = &core_table_files,
    [CORE_TABLE_MONITOR] = &core_table_monitor,
    [CORE_TABLE_MONITOR_VALUES] = &core_table_monitor_values,
    [CORE_TABLE_MEMORY] = &core_table_memory,
    [CORE_TABLE_ALLOCATIONS] = &core_table_allocations,
};

/* --- Sections: as in report.json, with the nanoseconds they come from --------------- */

static const core_column section_columns[] = {
    {"path", CORE_TEXTS, false},     {"name", CORE_NAME, false},
    {"phase", CORE_NAME, true},      {"thread", CORE_NAME, true},
    {"calls", CORE_INTEGER, false},  {"errors", CORE_INTEGER, false},
    {"total_ms", CORE_REAL, false},  {"self_ms", CORE_REAL, true},
    {"mean_ms", CORE_REAL, true},    {"min_ms", CORE_REAL, true},
    {"max_ms", CORE_REAL, true},     {"p50_ms", CORE_REAL, true},
    {"p90_ms", CORE_REAL, true},     {"p99_ms", CORE_REAL, true},
    {"last_ms", CORE_REAL, true},    {"total_ns", CORE_INTEGER, false},
    {"self_ns", CORE_INTEGER, true}, {"min_ns", CORE_INTEGER, true},
    {"max_ns", CORE_INTEGER, true},  {"p50_ns", CORE_INTEGER, true},
    {"p90_ns", CORE_INTEGER, true},  {"p99_ns", CORE_INTEGER, true},
    {"last_ns", CORE_INTEGER, true}, {"domain", CORE_NAME, true},
    {"family", CORE_TRUTH, false},   {"unnested", CORE_INTEGER, false},
    {"open", CORE_INTEGER, false},   {"open_ns", CORE_INTEGER, true},
};

static int sections_prepare(core_source *source, void **made, sw_error_info *info)
{
    (void)made; /* the summary is the source's own */
    return core_source_summary(source, info);
}

static uint64_t sections_count(const core_source *source)
{
    size_t count;
    (void)sw_summary_sections(source->summary, SW_ROWS_EACH, &count);
    return count;
}

static void put_ms(core_cell *cell, uint64_t ns)
{
    if (ns == SW_UNKNOWN) {
        core_put_unknown(cell);
    } else {
        core_put_real(cell, (double)ns / 1e6);
    }
}

/* As in report.json, deeper paths are cut at the top. */
#define PATH_MOST 256

static int put_path(core_reader *reader, core_cell *cell, const sw_summary_section *rows,
                    uint32_t row)
{
    size_t depth = 0;
    for (uint32_t i = row; i != SW_NO_ROW && depth < PATH_MOST; i = rows[i].parent) {
        depth++;
    }
    core_bytes *items = core_reader_take(reader, depth * sizeof *items);
    if (!items) {
        return SW_ENOMEM;
    }
    size_t place = depth;
    for (uint32_t i = row; place > 0; i = rows[i].parent) {
        items[--place] = (core_bytes){rows[i].name, rows[i].name_length};
    }
    cell->known = true;
    cell->as.texts.items = items;
    cell->as.texts.count = depth;
    return SW_OK;
}

static int sections_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    size_t count;
    const sw_summary_section *rows =
        sw_summary_sections(reader->source->summary, SW_ROWS_EACH, &count);
    const sw_summary_section *row = &rows[index];
    if (put_path(reader, cell++, rows, (uint32_t)index) != SW_OK) {
        return SW_ENOMEM;
    }
    core_put_bytes(cell++, (core_bytes){row->name, row->name_length});
    core_put_text(cell++, sw_phase_name(row->phase));
    core_put_text(cell++, row->thread);
    core_put_count(cell++, row->calls);
    core_put_count(cell++, row->errors);
    core_put_real(cell++, (double)row->total_ns / 1e6);
    put_ms(cell++, sw_summary_section_self(row));
    if (row->calls) {
        core_put_real(cell++, (double)row->total_ns / (double)row->calls / 1e6);
    } else {
        core_put_unknown(cell++);
    }
    const uint64_t times[] = {row->min_ns, row->max_ns, row->p50_ns,
                              row->p90_ns, row->p99_ns, row->last_ns};
    for (size_t i = 0; i < COUNT(times); i++) {
        put_ms(cell++, times[i]);
    }
    core_put_count(cell++, row->total_ns);
    core_put_integer(cell++, sw_summary_section_self(row));
    for (size_t i = 0; i < COUNT(times); i++) {
        core_put_integer(cell++, times[i]);
    }
    core_put_text(cell++, row->domain);
    core_put_truth(cell++, row->family);
    core_put_count(cell++, row->unnested);
    core_put_count(cell++, row->open);
    core_put_integer(cell++, row->open ? row->open_ns : SW_UNKNOWN);
    return SW_OK;
}

const core_table_kind core_table_sections = {
    .name = "sections",
    .columns = section_columns,
    .column_count = COUNT(section_columns),
    .prepare = sections_prepare,
    .count = sections_count,
    .at = sections_at,
};

/* --- Threads ---------------------------------------------------------------------- */

static const core_column thread_columns[] = {
    {"name", CORE_NAME, true},        {"tid", CORE_INTEGER, false},
    {"pid", CORE_INTEGER, false},     {"process", CORE_NAME, true},
    {"alive", CORE_TRUTH, false},     {"begin_ns", CORE_INTEGER, true},
    {"end_ns", CORE_INTEGER, true},   {"records", CORE_INTEGER, false},
    {"dropped", CORE_INTEGER, false}, {"overwritten", CORE_INTEGER, false},
    {"steps", CORE_INTEGER, false},   {"incarnations", CORE_INTEGER, false},
};

static uint64_t threads_count(const core_source *source)
{
    uint64_t count = 0;
    for (size_t i = 0; i < source->trace_count; i++) {
        count += sw_trace_thread_count(source->traces[i]);
    }
    return count;
}

static int threads_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    sw_trace *const *trace = reader->source->traces;
    for (; index >= sw_trace_thread_count(*trace); trace++) {
        index -= sw_trace_thread_count(*trace);
    }
    const sw_trace_info *info = sw_trace_get_info(*trace);
    const sw_trace_thread *thread = sw_trace_get_thread(*trace, (size_t)index);
    core_put_text(cell++, thread->name);
    core_put_count(cell++, thread->tid);
    core_put_count(cell++, info->pid);
    core_put_text(cell++, info->name);
    core_put_truth(cell++, thread->alive);
    core_put_integer(cell++, thread->start_ns ? thread->start_ns : SW_UNKNOWN);
    core_put_integer(cell++, thread->end_ns ? thread->end_ns : SW_UNKNOWN);
    core_put_count(cell++, thread->records);
    core_put_count(cell++, thread->dropped);
    core_put_count(cell++, thread->overwritten);
    core_put_count(cell++, thread->steps);
    core_put_count(cell++, thread->incarnations);
    return SW_OK;
}

const core_table_kind core_table_threads = {
    .name = "threads",
    .columns = thread_columns,
    .column_count = COUNT(thread_columns),
    .count = threads_count,
    .at = threads_at,
};

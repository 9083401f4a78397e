/* Tables as CSV (RFC 4180): a head row, lines that end in CR LF, quotes where a value needs them. Names of columns carry the
 * unit. What is not known is empty. */
#include <math.h>
#include <string.h>

#include <stepwatch/export.h>

#include "base/utf8.h"
#include "export/report_parts.h"

/* --- values --- */

struct csv {
    sw_writer *w;
    size_t column; /* of the row that is being written */
};

static void separate(struct csv *csv)
{
    if (csv->column++ > 0) {
        sw_write_text(csv->w, ",");
    }
}

static void end_row(struct csv *csv)
{
    sw_write_text(csv->w, "\r\n");
    csv->column = 0;
}

/* Text in quotes; a quote is doubled, what is no UTF-8 becomes U+FFFD. */
static void put_quoted(sw_writer *w, const char *bytes, size_t length)
{
    sw_write_text(w, "\"");
    for (size_t at = 0; at < length;) {
        uint32_t code;
        const size_t size = sw__utf8_decode(bytes + at, length - at, &code);
        if (code == SW__UTF8_INVALID || code == 0) {
            sw_write_text(w, "\xEF\xBF\xBD");
        } else if (code == '"') {
            sw_write_text(w, "\"\"");
        } else {
            sw_write_bytes(w, bytes + at, size);
        }
        at += size;
    }
    sw_write_text(w, "\"");
}

static void put_text_n(struct csv *csv, const char *bytes, size_t length)
{
    separate(csv);
    if (bytes) {
        put_quoted(csv->w, bytes, length);
    }
}

static void put_text(struct csv *csv, const char *text)
{
    put_text_n(csv, text, text ? strlen(text) : 0);
}

static void put_uint(struct csv *csv, uint64_t value)
{
    separate(csv);
    if (value != SW_UNKNOWN) {
        sw_write_format(csv->w, "%llu", (unsigned long long)value);
    }
}

/* As JSON writes it: the shortest form that reads back the same, with a point. */
static void put_double(struct csv *csv, double value)
{
    separate(csv);
    sw_writer *number = isfinite(value) ? sw_writer_to_memory() : NULL;
    if (number) {
        sw_json_start(number, false);
        sw_json_double(number, value);
        const char *text = sw_writer_text(number, NULL);
        sw_write_text(csv->w, text ? text : "");
        sw_writer_close(number, NULL);
    }
}

static void put_bool(struct csv *csv, bool value)
{
    separate(csv);
    sw_write_text(csv->w, value ? "true" : "false");
}

static void put_head(struct csv *csv, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        separate(csv);
        sw_write_text(csv->w, names[i]);
    }
}

#define HEAD(csv, ...)                                                                   \
    do {                                                                                 \
        static const char *const names[] = {__VA_ARGS__};                                \
        put_head(csv, names, sizeof names / sizeof names[0]);                            \
    } while (0)

/* --- tables --- */

static int put_steps(struct csv *csv, const sw_summary *summary,
                     const sw_findings *findings)
{
    (void)findings;
    sw_summary_step *steps = NULL;
    size_t count = 0;
    const int error = sw_summary_step_series(summary, &steps, &count, NULL);
    const uint64_t origin = count ? steps[0].begin_ns : 0;
    const sw_summary_steps *whole = sw_summary_get_steps(summary);
    HEAD(csv, "step", "epoch", "complete", "warmup", "begin_ns", "duration_ns");
    for (unsigned p = 1; p <= SW_PHASE_COUNT; p++) {
        separate(csv);
        sw_write_format(csv->w, "%s_ns", sw_phase_name(p % SW_PHASE_COUNT));
    }
    HEAD(csv, "usage_steps", "cpu_ns", "run_delay_ns", "involuntary_switches", "brief");
    end_row(csv);
    for (size_t i = 0; i < count; i++) {
        const sw_summary_step *step = &steps[i];
        put_uint(csv, step->number);
        put_uint(csv, step->epoch == UINT32_MAX ? SW_UNKNOWN : step->epoch);
        put_bool(csv, step->complete);
        put_bool(csv, step->warmup);
        put_uint(csv, step->begin_ns - origin);
        put_uint(csv, step->end_ns - step->begin_ns);
        for (unsigned p = 1; p <= SW_PHASE_COUNT; p++) {
            const unsigned phase = p % SW_PHASE_COUNT;
            /* What a step that was watched in brief has in no known phase: the row still sums to the step. */
            put_uint(csv, !whole->phase[phase].measured ? SW_UNKNOWN
                          : phase == SW_PHASE_OTHER     ? step->phase_ns[phase]
                                                        : sw__phase_ns(step, phase));
        }
        const bool used = step->usage_steps > 0;
        put_uint(csv, used ? step->usage_steps : SW_UNKNOWN);
        put_uint(csv, step->cpu_ns);
        put_uint(csv, step->run_delay_ns);
        put_uint(csv, used ? step->involuntary : SW_UNKNOWN);
        put_bool(csv, step->brief);
        end_row(csv);
    }
    sw_summary_steps_free(steps);
    return error;
}

static int put_phases(struct csv *csv, const sw_summary *summary,
                      const sw_findings *findings)
{
    (void)findings;
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    HEAD(csv, "phase", "measured", "steps", "total_ns", "mean_ns", "median_ns", "p99_ns",
         "share", "looked");
    end_row(csv);
    for (unsigned i = 1; steps && i <= SW_PHASE_COUNT; i++) {
        const unsigned p = i % SW_PHASE_COUNT;
        const sw_summary_phase *phase = &steps->phase[p];
        const bool known = phase->measured && steps->counted > 0;
        put_text(csv, sw_phase_name(p));
        put_bool(csv, phase->measured);
        put_uint(csv, steps->counted);
        put_uint(csv, known ? phase->total_ns : SW_UNKNOWN);
        put_double(csv, known ? (double)phase->total_ns / (double)steps->counted : NAN);
        put_uint(csv, known ? phase->median_ns : SW_UNKNOWN);
        put_uint(csv, known ? phase->p99_ns : SW_UNKNOWN);
        put_double(csv, known ? phase->share : NAN);
        put_uint(csv, steps->looked);
        end_row(csv);
    }
    return SW_OK;
}

#define PATH_MOST 256

/* The names from the top, a slash between them; one in a name has a backslash before it. */
static void put_path(struct csv *csv, const sw_summary_section *rows, size_t index)
{
    uint32_t path[PATH_MOST];
    size_t depth = 0;
    sw_writer *text = sw_writer_to_memory();
    for (uint32_t i = (uint32_t)index; i != SW_NO_ROW && depth < PATH_MOST;
         i = rows[i].parent) {
        path[depth++] = i;
    }
    for (size_t d = depth; text && d-- > 0;) {
        const sw_summary_section *row = &rows[path[d]];
        for (uint32_t i = 0; i < row->name_length; i++) {
            if (row->name[i] == '/' || row->name[i] == '\\') {
                sw_write_text(text, "\\");
            }
            sw_write_bytes(text, &row->name[i], 1);
        }
        sw_write_text(text, d > 0 ? "/" : "");
    }
    size_t length = 0;
    const char *whole = text ? sw_writer_text(text, &length) : NULL;
    put_text_n(csv, whole, length);
    sw_writer_close(text, NULL);
}

static int put_sections(struct csv *csv, const sw_summary *summary,
                        const sw_findings *findings)
{
    (void)findings;
    size_t count;
    const sw_summary_section *rows = sw_summary_sections(summary, SW_ROWS_EACH, &count);
    HEAD(csv, "path", "name", "depth", "phase", "thread", "domain", "calls", "errors",
         "total_ns", "self_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns",
         "last_ns", "open", "open_ns");
    end_row(csv);
    for (size_t i = 0; i < count; i++) {
        const sw_summary_section *row = &rows[i];
        put_path(csv, rows, i);
        put_text_n(csv, row->name, row->name_length);
        put_uint(csv, row->depth);
        put_text(csv, sw_phase_name(row->phase));
        put_text(csv, row->thread);
        put_text(csv, row->domain);
        const uint64_t values[] = {
            row->calls,  row->errors,  row->total_ns, sw_summary_section_self(row),
            row->min_ns, row->max_ns,  row->p50_ns,   row->p90_ns,
            row->p99_ns, row->last_ns, row->open};
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            put_uint(csv, values[v]);
        }
        put_uint(csv, row->open ? row->open_ns : SW_UNKNOWN);
        end_row(csv);
    }
    return SW_OK;
}

static int put_modules(struct csv *csv, const sw_summary *summary,
                       const sw_findings *findings)
{
    (void)findings;
    size_t count;
    const sw_training_module *modules =
        sw_training_modules(sw_summary_training(summary), &count);
    HEAD(csv, "name", "type", "dtype", "root", "loss", "file", "line", "parameters",
         "bytes", "trainable", "calls", "total_ns", "self_ns", "min_ns", "max_ns",
         "validation_calls", "validation_ns", "backward_calls", "backward_ns");
    end_row(csv);
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *module = &modules[i];
        const sw_training_site *site = module->site;
        put_text(csv, module->name);
        put_text(csv, module->type);
        put_text(csv, module->dtype);
        put_bool(csv, module->root);
        put_bool(csv, module->loss);
        put_text(csv, site ? site->file : NULL);
        put_uint(csv, site && site->line ? site->line : SW_UNKNOWN);
        const uint64_t values[] = {
            module->parameters,    module->bytes,          module->trainable,
            module->calls,         module->total_ns,       module->self_ns,
            module->min_ns,        module->max_ns,         module->validation_calls,
            module->validation_ns, module->backward_calls, module->backward_ns};
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            put_uint(csv, values[v]);
        }
        end_row(csv);
    }
    return SW_OK;
}

/* Several values in one field: one a line for sentences, names with a space between. */
static void put_joined(struct csv *csv, const char *const *texts, size_t count,
                       const char *between)
{
    sw_writer *joined = sw_writer_to_memory();
    for (size_t i = 0; joined && i < count; i++) {
        sw_write_text(joined, i ? between : "");
        sw_write_text(joined, texts[i]);
    }
    put_text(csv, joined ? sw_writer_text(joined, NULL) : NULL);
    sw_writer_close(joined, NULL);
}

static void put_finding(struct csv *csv, const sw_finding *finding)
{
    const char *also[SW_FINDING_KINDS];
    size_t others = 0;
    for (unsigned kind = 0; kind < SW_FINDING_KINDS; kind++) {
        if (finding->also & (uint64_t)1 << kind) {
            also[others++] = sw_finding_kind_name((enum sw_finding_kind)kind);
        }
    }
    put_text(csv, finding->id);
    put_text(csv, sw_finding_kind_name(finding->kind));
    put_joined(csv, also, others, " ");
    put_text(csv, finding->title);
    put_text(csv, sw_severity_name(finding->severity));
    put_double(csv, finding->confidence);
    put_double(csv, finding->share);
    put_text(csv, finding->file);
    put_uint(csv, finding->line ? finding->line : SW_UNKNOWN);
    put_text(csv, finding->name);
    put_uint(csv, finding->predicted ? finding->step_ns : SW_UNKNOWN);
    put_double(csv, finding->predicted ? finding->speedup : NAN);
    put_double(csv, finding->predicted ? finding->low : NAN);
    put_double(csv, finding->predicted ? finding->high : NAN);
    put_joined(csv, finding->advice, finding->advice_count, "\n");
    put_joined(csv, finding->rules, finding->rule_count, " ");
    end_row(csv);
}

static int put_findings(struct csv *csv, const sw_summary *summary,
                        const sw_findings *findings)
{
    (void)summary;
    size_t count = 0;
    const sw_finding *list = findings ? sw_findings_get(findings, &count) : NULL;
    HEAD(csv, "id", "kind", "also", "title", "severity", "confidence", "share", "file",
         "line", "name", "predicted_step_ns", "predicted_speedup", "predicted_low",
         "predicted_high", "advice", "rules");
    end_row(csv);
    for (size_t i = 0; i < count; i++) {
        put_finding(csv, &list[i]);
    }
    return SW_OK;
}

static const struct table {
    const char *name;
    int (*put)(struct csv *csv, const sw_summary *summary, const sw_findings *findings);
} tables[SW_CSV_TABLES] = {
    [SW_CSV_STEPS] = {"steps", put_steps},
    [SW_CSV_PHASES] = {"phases", put_phases},
    [SW_CSV_SECTIONS] = {"sections", put_sections},
    [SW_CSV_MODULES] = {"modules", put_modules},
    [SW_CSV_FINDINGS] = {"findings", put_findings},
};

const char *sw_csv_table_name(enum sw_csv_table table)
{
    return (unsigned)table < SW_CSV_TABLES ? tables[table].name : NULL;
}

int sw_export_csv(sw_writer *writer, enum sw_csv_table table, const sw_summary *summary,
                  const sw_findings *findings)
{
    struct csv csv = {.w = writer};
    return (unsigned)table < SW_CSV_TABLES ? tables[table].put(&csv, summary, findings)
                                           : SW_EINVAL;
}

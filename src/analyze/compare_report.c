/* A report.json as it is compared, or a trace in Chrome's format, which is known by its events. The file may come from
 * anywhere: what is no number where one should be is unknown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/compare.h"
#include "analyze/compare_trace.h"
#include "analyze/file_load.h"
#include "analyze/json_scan.h"

#define FILE_MOST_MIB 512
#define TEXT 1024
#define SCHEMA "stepwatch.report/"

struct reading {
    struct sw__scan json;
    sw_compare_input *input;
    char schema[64];
    double count, warmup, incomplete, counted; /* of steps */
    double mean_ms, median_ms, deviation_ms, steps_per_s;
    double aside_s[2]; /* validation, checkpoint */
    double between_s;  /* steps and epochs */
    double exit_code, exit_signal;
    bool trace;     /* it has events */
    uint64_t spans; /* among them */
    int error;
};

/* --- values --- */

static bool enters(struct reading *reading, enum sw__scan_kind kind)
{
    if (sw__scan_peek(&reading->json) == kind) {
        return sw__scan_enter(&reading->json, kind);
    }
    (void)sw__scan_skip(&reading->json);
    return false;
}

/* A number that a time or count can be; NaN for all else. */
static double number(struct reading *reading)
{
    double value = NAN;
    if (sw__scan_peek(&reading->json) != SW__SCAN_NUMBER) {
        (void)sw__scan_skip(&reading->json);
        return NAN;
    }
    if (!sw__scan_number(&reading->json, &value)) {
        return NAN;
    }
    return value >= 0 && value < 1e15 ? value : NAN;
}

/* False, and an empty text, where there is none. */
static bool text(struct reading *reading, char *out, size_t size)
{
    out[0] = '\0';
    if (sw__scan_peek(&reading->json) != SW__SCAN_STRING) {
        (void)sw__scan_skip(&reading->json);
        return false;
    }
    return sw__scan_string(&reading->json, out, size) >= 0;
}

static const char *copied(struct reading *reading)
{
    char value[TEXT];
    return text(reading, value, sizeof value) ? sw__compare_copy(reading->input, value)
                                              : NULL;
}

static void put_fact(struct reading *reading, const char *key, const char *value)
{
    reading->error =
        reading->error ? reading->error : sw__compare_fact(reading->input, key, value);
}

static void put_count(struct reading *reading, const char *key, double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", value);
    put_fact(reading, key, isnan(value) ? NULL : digits);
}

/* A table of numbers by key; what is not in it is passed over. */
struct field {
    const char *key;
    double *value;
};

static void fields(struct reading *reading, const struct field *list, size_t count)
{
    char key[64];
    bool first = true;
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return;
    }
    while (sw__scan_member(&reading->json, &first, key, sizeof key)) {
        size_t i = 0;
        while (i < count && strcmp(key, list[i].key) != 0) {
            i++;
        }
        if (i < count) {
            *list[i].value = number(reading);
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
}

/* --- run --- */

static void read_frameworks(struct reading *reading)
{
    char key[64];
    char version[128];
    bool first = true;
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return;
    }
    while (sw__scan_member(&reading->json, &first, key, sizeof key)) {
        if (text(reading, version, sizeof version)) {
            put_fact(reading, key, version);
        }
    }
}

static void read_run(struct reading *reading)
{
    sw_compared_side *side = &reading->input->side;
    char key[64];
    bool first = true;
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return;
    }
    while (sw__scan_member(&reading->json, &first, key, sizeof key)) {
        if (strcmp(key, "name") == 0) {
            side->name = copied(reading);
        } else if (strcmp(key, "command") == 0) {
            side->command = copied(reading);
        } else if (strcmp(key, "host") == 0) {
            side->host = copied(reading);
        } else if (strcmp(key, "python") == 0) {
            side->python = copied(reading);
        } else if (strcmp(key, "duration_s") == 0) {
            side->duration_s = number(reading);
        } else if (strcmp(key, "frameworks") == 0) {
            read_frameworks(reading);
        } else if (strcmp(key, "ranks") == 0) {
            put_count(reading, "ranks", number(reading));
        } else if (strcmp(key, "exit") == 0) {
            const struct field list[] = {{"code", &reading->exit_code},
                                         {"signal", &reading->exit_signal}};
            fields(reading, list, 2);
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
}

/* --- rows --- */

/* A row of a table: texts and numbers that the tables have in common. */
struct row {
    char name[TEXT];
    double calls, total_ms, self_ms, ms;
    bool measured;
};

static bool truth(struct reading *reading)
{
    const struct sw__scan *json = &reading->json;
    const bool yes = sw__scan_peek(&reading->json) == SW__SCAN_BOOL && *json->at == 't';
    (void)sw__scan_skip(&reading->json);
    return yes;
}

static void read_row(struct reading *reading, struct row *row)
{
    char key[64];
    bool first = true;
    *row = (struct row){.calls = NAN, .total_ms = NAN, .self_ms = NAN, .ms = NAN};
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return;
    }
    while (sw__scan_member(&reading->json, &first, key, sizeof key)) {
        if (strcmp(key, "name") == 0 || strcmp(key, "phase") == 0 ||
            strcmp(key, "part") == 0) {
            char value[TEXT];
            const bool names = strcmp(key, "phase") != 0 || row->name[0] == '\0';
            if (text(reading, value, sizeof value) && names) {
                memcpy(row->name, value, sizeof row->name);
            }
        } else if (strcmp(key, "calls") == 0) {
            row->calls = number(reading);
        } else if (strcmp(key, "total_ms") == 0) {
            row->total_ms = number(reading);
        } else if (strcmp(key, "self_ms_per_step") == 0) {
            row->self_ms = number(reading);
        } else if (strcmp(key, "ms") == 0 || strcmp(key, "s") == 0) {
            row->ms = number(reading);
        } else if (strcmp(key, "measured") == 0) {
            row->measured = truth(reading);
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
}

static void take_phase(struct reading *reading, const struct row *row)
{
    struct sw__measured *part =
        sw__measured_put(reading->input, SW_COMPARED_PHASE, row->name, NULL, 0);
    if (!part) {
        reading->error = SW_ENOMEM;
        return;
    }
    part->calls = SW_UNKNOWN;
    part->known = row->measured && !isnan(row->ms);
    part->step.mean = row->ms * 1e6;
}

static void take_section(struct reading *reading, const struct row *row)
{
    struct sw__measured *part =
        sw__measured_put(reading->input, SW_COMPARED_SECTION, row->name, NULL, 0);
    if (!part) {
        reading->error = SW_ENOMEM;
    } else if (row->calls >= 1 && !isnan(row->total_ms)) {
        sw__calls_add(part, (uint64_t)row->calls, row->total_ms * 1e6 / floor(row->calls),
                      NAN);
        /* A report has no deviation of a section. */
        part->call_squares = NAN;
    }
}

static void take_module(struct reading *reading, const struct row *row)
{
    struct sw__measured *part =
        sw__measured_put(reading->input, SW_COMPARED_MODULE, row->name, NULL, 0);
    if (!part) {
        reading->error = SW_ENOMEM;
        return;
    }
    part->calls = isnan(row->calls) ? SW_UNKNOWN : (uint64_t)row->calls;
    part->step.mean = row->self_ms * 1e6;
    part->whole = (struct sw__mean){part->step.mean, NAN, NAN};
}

static void take_part(struct reading *reading, const struct row *row)
{
    static const char *const names[] = {"validation", "checkpoint"};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(row->name, names[i]) == 0) {
            reading->aside_s[i] = row->ms;
        }
    }
    if (strncmp(row->name, "between_", 8) == 0 && !isnan(row->ms)) {
        reading->between_s += row->ms;
    }
}

static void rows(struct reading *reading,
                 void (*take)(struct reading *reading, const struct row *row))
{
    struct row row;
    bool first = true;
    if (!enters(reading, SW__SCAN_ARRAY)) {
        return;
    }
    while (!reading->error && sw__scan_element(&reading->json, &first)) {
        read_row(reading, &row);
        if (!reading->json.bad && row.name[0]) {
            take(reading, &row);
        }
    }
}

/* --- steps --- */

static void read_steps(struct reading *reading)
{
    char key[64];
    bool first = true;
    const struct field counts[] = {{"count", &reading->count},
                                   {"warmup", &reading->warmup},
                                   {"incomplete", &reading->incomplete},
                                   {"counted", &reading->counted},
                                   {"steps_per_s", &reading->steps_per_s},
                                   {"samples_per_s", &reading->input->side.samples_per_s},
                                   {"updates", &reading->input->updates_per_step}};
    const struct field times[] = {{"mean", &reading->mean_ms},
                                  {"p50", &reading->median_ms},
                                  {"std", &reading->deviation_ms}};
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return;
    }
    while (!reading->error && sw__scan_member(&reading->json, &first, key, sizeof key)) {
        size_t i = 0;
        while (i < sizeof counts / sizeof counts[0] && strcmp(key, counts[i].key) != 0) {
            i++;
        }
        if (i < sizeof counts / sizeof counts[0]) {
            *counts[i].value = number(reading);
        } else if (strcmp(key, "unit") == 0) {
            reading->input->unit = copied(reading);
        } else if (strcmp(key, "step_ms") == 0) {
            fields(reading, times, 3);
        } else if (strcmp(key, "phases") == 0) {
            rows(reading, take_phase);
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
}

/* Validation and checkpoints between the steps: what the timeline has more of than the steps. */
static double outside_ns(struct reading *reading, size_t kind, double steps)
{
    static const char *const names[] = {"validation", "checkpoint"};
    const double all = isnan(reading->aside_s[kind]) ? 0 : reading->aside_s[kind] * 1e9;
    const double inside_least = 1000 + 2 * steps; /* rounding */
    struct sw__measured *part =
        sw__measured_put(reading->input, SW_COMPARED_PHASE, names[kind], NULL, 0);
    if (!part) {
        reading->error = SW_ENOMEM;
        return 0;
    }
    const double inside = isnan(part->step.mean) ? 0 : part->step.mean * steps;
    const double outside = all - inside > inside_least ? all - inside : 0;
    part->calls = SW_UNKNOWN;
    if (part->known || outside > 0) {
        part->known = true;
        part->step.mean = (inside + outside) / steps;
    }
    return outside;
}

static void add_between(struct reading *reading, double steps)
{
    struct sw__measured *part =
        sw__measured_put(reading->input, SW_COMPARED_PHASE, SW__BETWEEN_STEPS, NULL, 0);
    if (!part) {
        reading->error = SW_ENOMEM;
        return;
    }
    part->calls = SW_UNKNOWN;
    part->known = true;
    part->step.mean = reading->between_s * 1e9 / steps;
}

static void finish_steps(struct reading *reading)
{
    sw_compare_input *input = reading->input;
    double steps = reading->counted;
    if (isnan(steps)) { /* of the contract's keys alone */
        steps = reading->count - (isnan(reading->warmup) ? 0 : reading->warmup) -
                (isnan(reading->incomplete) ? 0 : reading->incomplete);
    }
    if (!(steps >= 1) || !(reading->mean_ms > 0)) {
        return;
    }
    steps = floor(steps);
    double ns = reading->mean_ms * 1e6;
    for (size_t i = 0; i < 2; i++) {
        ns += outside_ns(reading, i, steps) / steps;
    }
    ns += reading->between_s * 1e9 / steps;
    add_between(reading, steps);
    input->has_steps = true;
    input->step.mean = ns;
    if (steps > 1 && !isnan(reading->deviation_ms)) {
        const double deviation = reading->deviation_ms * 1e6;
        input->step.variance = deviation * deviation / steps;
        input->step.freedom = steps - 1;
    }
    input->median.value =
        reading->median_ms > 0 ? reading->median_ms * 1e6 : input->median.value;
    input->updates_per_step =
        input->updates_per_step > 0 ? input->updates_per_step / reading->count : NAN;
    input->samples_per_step = input->side.samples_per_s / reading->steps_per_s;
    input->side.steps = (uint64_t)steps;
    input->side.step_ns = ns;
    input->side.median_ns = input->median.value;
}

/* --- the document --- */

static void read_loader(struct reading *reading)
{
    double workers = NAN;
    const struct field list[] = {{"batch_size", &reading->input->side.batch_size},
                                 {"workers", &workers}};
    fields(reading, list, 2);
    put_count(reading, "loader workers", workers);
}

/* Whether a row of functions or lines was counted, and not sampled. */
static bool is_profiled(struct reading *reading)
{
    char key[64], source[TEXT];
    bool first = true;
    bool profiled = false;
    if (!enters(reading, SW__SCAN_OBJECT)) {
        return false;
    }
    while (sw__scan_member(&reading->json, &first, key, sizeof key)) {
        if (strcmp(key, "source") == 0) {
            profiled =
                text(reading, source, sizeof source) && strcmp(source, "profile") == 0;
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
    return profiled;
}

/* Whether a profile ran, which makes a run slower: then its table has rows. The sampler's stand there, too. */
static void read_profile(struct reading *reading, const char *key)
{
    bool first = true;
    bool any = false;
    if (enters(reading, SW__SCAN_ARRAY)) {
        while (sw__scan_element(&reading->json, &first)) {
            any = is_profiled(reading) || any;
        }
    }
    put_fact(reading, key, any ? "on" : "off");
}

static void read_trace(struct reading *reading)
{
    reading->trace = true;
    reading->error = sw__compare_trace(reading->input, &reading->json, &reading->spans);
}

static void read_members(struct reading *reading)
{
    char key[64];
    bool first = true;
    while (!reading->error && sw__scan_member(&reading->json, &first, key, sizeof key)) {
        if (strcmp(key, "schema") == 0) {
            (void)text(reading, reading->schema, sizeof reading->schema);
        } else if (strcmp(key, "run") == 0) {
            read_run(reading);
        } else if (strcmp(key, "timeline") == 0) {
            rows(reading, take_part);
        } else if (strcmp(key, "steps") == 0) {
            read_steps(reading);
        } else if (strcmp(key, "loader") == 0) {
            read_loader(reading);
        } else if (strcmp(key, "sections") == 0) {
            rows(reading, take_section);
        } else if (strcmp(key, "modules") == 0) {
            rows(reading, take_module);
        } else if (strcmp(key, "functions") == 0) {
            read_profile(reading, "function profile");
        } else if (strcmp(key, "lines") == 0) {
            read_profile(reading, "line profile");
        } else if (strcmp(key, "traceEvents") == 0) {
            read_trace(reading);
        } else {
            (void)sw__scan_skip(&reading->json);
        }
    }
}

static void read_document(struct reading *reading)
{
    if (sw__scan_peek(&reading->json) == SW__SCAN_ARRAY) {
        read_trace(reading); /* the older of the two forms: events alone */
        reading->trace = reading->spans > 0;
    } else if (enters(reading, SW__SCAN_OBJECT)) {
        read_members(reading);
    } else {
        reading->json.bad = true;
    }
    if (!reading->error && !reading->json.bad) {
        (void)sw__scan_peek(&reading->json); /* passes over blanks */
        reading->json.bad = reading->json.at != reading->json.end;
    }
}

static void note_end(struct reading *reading)
{
    sw_compare_input *input = reading->input;
    if (reading->exit_signal > 0) {
        reading->error =
            sw__compare_note(input->arena, &input->notes, "%s was ended by signal %.0f.",
                             input->side.path, reading->exit_signal);
    } else if (reading->exit_code > 0) {
        reading->error =
            sw__compare_note(input->arena, &input->notes, "%s ended with exit code %.0f.",
                             input->side.path, reading->exit_code);
    }
}

static int verdict_on(const struct reading *reading, const char *path,
                      sw_error_info *info)
{
    const size_t prefix = strlen(SCHEMA);
    if (reading->error) {
        return sw_error_set(info, reading->error, "%s could not be read: %s.", path,
                            sw_error_text(reading->error));
    }
    const bool is_trace = reading->trace && !reading->schema[0];
    if (is_trace && !reading->json.bad && reading->spans == 0) {
        return sw_error_set(info, SW_EFORMAT,
                            "%s is a trace without spans: it has nothing to compare",
                            path);
    }
    if (!is_trace && strncmp(reading->schema, SCHEMA, prefix) != 0) {
        return sw_error_set(info, SW_EFORMAT,
                            "%s is no report of stepwatch: its schema is not " SCHEMA
                            "1; give a run directory or its report.json",
                            path);
    }
    if (!is_trace && strcmp(reading->schema + prefix, "1") != 0) {
        return sw_error_set(info, SW_EVERSION,
                            "%s was written by a newer version: its schema is %s", path,
                            reading->schema);
    }
    if (reading->json.bad) {
        return sw_error_set(info, SW_ECORRUPT,
                            "%s is damaged: it is no complete JSON document", path);
    }
    return SW_OK;
}

int sw_compare_input_read_report(sw_compare_input **out, const char *bytes, size_t length,
                                 const char *path, sw_error_info *info)
{
    const char *shown = path ? path : "the report";
    struct reading reading = {.json = {.at = bytes, .end = bytes + length},
                              .input = sw__compare_input_new(shown),
                              .count = NAN,
                              .warmup = NAN,
                              .incomplete = NAN,
                              .counted = NAN,
                              .mean_ms = NAN,
                              .median_ms = NAN,
                              .deviation_ms = NAN,
                              .steps_per_s = NAN,
                              .aside_s = {NAN, NAN},
                              .exit_code = NAN,
                              .exit_signal = NAN};
    *out = NULL;
    if (!reading.input) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    read_document(&reading);
    if (!reading.error && !reading.json.bad) {
        sw__calls_finish(&reading.input->parts[SW_COMPARED_SECTION]);
        finish_steps(&reading);
        note_end(&reading);
    }
    const int error = verdict_on(&reading, shown, info);
    if (error) {
        sw_compare_input_free(reading.input);
        return error;
    }
    *out = reading.input;
    return SW_OK;
}

int sw_compare_input_open_report(sw_compare_input **out, const char *path,
                                 sw_error_info *info)
{
    char *bytes;
    size_t length;
    *out = NULL;
    int error = sw__file_load(path, FILE_MOST_MIB, &bytes, &length, info);
    if (!error) {
        error = sw_compare_input_read_report(out, bytes, length, path, info);
    }
    sw__free(bytes);
    return error;
}

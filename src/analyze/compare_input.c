/* What is compared, while it is being read: names, facts and notes. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/compare.h"

sw_compare_input *sw__compare_input_new(const char *path)
{
    sw_compare_input *input = sw__alloc_zero(1, sizeof *input);
    if (!input) {
        return NULL;
    }
    input->arena = sw__arena_create(0);
    bool good = input->arena != NULL;
    for (size_t kind = 0; kind < SW_COMPARED_KINDS && good; kind++) {
        input->parts[kind].keys = sw__intern_create(UINT32_MAX - 1);
        good = input->parts[kind].keys != NULL;
    }
    input->updates_per_step = NAN;
    input->samples_per_step = NAN;
    input->delay_ns = NAN;
    input->step = (struct sw__mean){NAN, NAN, NAN};
    input->median = (struct sw__median){NAN, NAN, NAN};
    input->side = (sw_compared_side){.steps = SW_UNKNOWN,
                                     .step_ns = NAN,
                                     .median_ns = NAN,
                                     .batch_size = NAN,
                                     .samples_per_s = NAN,
                                     .duration_s = NAN};
    if (good) {
        input->side.path = sw__compare_copy(input, path ? path : "");
        good = input->side.path != NULL;
    }
    if (!good) {
        sw_compare_input_free(input);
        return NULL;
    }
    return input;
}

void sw_compare_input_free(sw_compare_input *input)
{
    if (!input) {
        return;
    }
    for (size_t kind = 0; kind < SW_COMPARED_KINDS; kind++) {
        if (input->parts[kind].keys) {
            sw__intern_free(input->parts[kind].keys);
        }
        sw__free(input->parts[kind].items);
    }
    sw__arena_free(input->arena);
    sw__free(input);
}

const char *sw__compare_copy(sw_compare_input *input, const char *text)
{
    return text ? sw__arena_copy(input->arena, text, strlen(text)) : NULL;
}

int sw__compare_fact(sw_compare_input *input, const char *key, const char *value)
{
    if (!value || input->fact_count == SW__COMPARE_FACTS) {
        return SW_OK;
    }
    struct sw__compare_fact *fact = &input->facts[input->fact_count++];
    fact->key = sw__compare_copy(input, key);
    fact->value = sw__compare_copy(input, value);
    return fact->key && fact->value ? SW_OK : SW_ENOMEM;
}

int sw__compare_note(sw__arena *arena, struct sw__compare_notes *notes,
                     const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct sw__compare_note *note =
        sw__arena_take(arena, sizeof *note, _Alignof(max_align_t));
    if (length < 0 || !note) {
        return SW_ENOMEM;
    }
    *note = (struct sw__compare_note){.text = sw__arena_copy(arena, text, strlen(text))};
    if (!note->text) {
        return SW_ENOMEM;
    }
    if (notes->last) {
        notes->last->next = note;
    } else {
        notes->first = note;
    }
    notes->last = note;
    return SW_OK;
}

/* --- files --- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static int open_run(sw_compare_input **out, const char *path, sw_error_info *info)
{
    sw_run *run;
    sw_summary *summary;
    int error = sw_run_open(&run, path, info);
    if (error) {
        return error;
    }
    error = sw_summary_create(&summary, run, info);
    if (!error) {
        error = sw_compare_input_of_summary(out, summary, path, info);
        sw_summary_free(summary);
    }
    sw_run_free(run);
    return error;
}

static int open_profile(sw_compare_input **out, const char *path, sw_error_info *info)
{
    sw_functions *functions;
    int error = sw_functions_open_pstats(&functions, path, info);
    if (!error) {
        error = sw_compare_input_of_functions(out, functions, path, info);
        sw_functions_free(functions);
    }
    return error;
}

/* The name decides, and not the first bytes: a damaged file shall be called that, and not something else. */
int sw_compare_input_open(sw_compare_input **out, const char *path, sw_error_info *info)
{
    struct stat status;
    const bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    *out = NULL;
    if (!folder && ends_with(path, ".json")) {
        return sw_compare_input_open_report(out, path, info);
    }
    if (!folder && (ends_with(path, ".stats") || ends_with(path, ".prof") ||
                    ends_with(path, ".pstats"))) {
        return open_profile(out, path, info);
    }
    return open_run(out, path, info);
}

/* --- parts --- */

/* "name", or for functions "name NUL file": not the line, which is another one as soon as something above it changed. The
 * caller frees it; NULL when out of memory. */
static char *key_of(const char *name, const char *file, size_t *length)
{
    const size_t names = strlen(name) + 1;
    const size_t files = file ? strlen(file) + 1 : 0;
    char *key = sw__alloc(names + files);
    if (!key) {
        return NULL;
    }
    memcpy(key, name, names);
    if (file) {
        memcpy(key + names, file, files);
    }
    *length = names + files;
    return key;
}

static struct sw__measured *add_part(sw_compare_input *input,
                                     struct sw__measured_list *list, const char *name,
                                     const char *file, uint32_t line)
{
    const struct sw__mean none = {NAN, NAN, NAN};
    struct sw__measured *part = &list->items[list->count];
    *part = (struct sw__measured){.name = sw__compare_copy(input, name),
                                  .file = sw__compare_copy(input, file),
                                  .line = line,
                                  .step = none,
                                  .call = none,
                                  .total = none};
    if (!part->name || (file && !part->file)) {
        return NULL;
    }
    list->count++;
    return part;
}

struct sw__measured *sw__measured_put(sw_compare_input *input, enum sw_compared_kind kind,
                                      const char *name, const char *file, uint32_t line)
{
    struct sw__measured_list *list = &input->parts[kind];
    if (list->count == list->room) { /* before the key, which cannot be taken back */
        const size_t room = list->room ? list->room * 2 : 32;
        struct sw__measured *grown = sw__realloc(list->items, room, sizeof *grown);
        if (!grown) {
            return NULL;
        }
        list->items = grown;
        list->room = room;
    }
    size_t length;
    int fresh = 0;
    char *key = key_of(name, file, &length);
    uint32_t id = key ? sw__intern_put(list->keys, key, length, &fresh) : 0;
    sw__free(key);
    if (id == 0) {
        return NULL;
    }
    return fresh ? add_part(input, list, name, file, line) : &list->items[id - 1];
}

const struct sw__measured *sw__measured_find(const sw_compare_input *input,
                                             enum sw_compared_kind kind,
                                             const struct sw__measured *like)
{
    const struct sw__measured_list *list = &input->parts[kind];
    size_t length;
    char *key = key_of(like->name, like->file, &length);
    const uint32_t id = key ? sw__intern_find(list->keys, key, length) : 0;
    sw__free(key);
    return id ? &list->items[id - 1] : NULL;
}

void sw__calls_add(struct sw__measured *part, uint64_t calls, double mean,
                   double deviation)
{
    if (calls == 0) {
        return;
    }
    const double n = (double)calls;
    /* One call has no deviation, and needs none to be added up. */
    const double spread = calls == 1 ? 0 : deviation;
    part->calls += calls;
    part->call_sum += n * mean;
    part->call_squares += n * mean * mean + (n - 1) * spread * spread;
}

/* Calls are taken as independent of each other. */
void sw__calls_finish(struct sw__measured_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct sw__measured *part = &list->items[i];
        const double n = (double)part->calls;
        if (part->calls == 0) {
            continue;
        }
        part->call.mean = part->call_sum / n;
        if (part->calls >= SW_COMPARE_STEPS_LEAST) {
            const double squares = part->call_squares - part->call_sum * part->call.mean;
            part->call.variance = fmax(squares, 0) / (n * (n - 1));
            part->call.freedom = n - 1;
        }
        if (isnan(part->call_squares)) {
            part->call.variance = NAN;
        }
    }
}

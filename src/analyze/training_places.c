/* Compilations, waits, settings and operators: rows that need no more than being added up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "analyze/training.h"

/* --- compilations --- */

static int add_compiled(const struct sw__training_source *source, const sw_row *row)
{
    sw_training *training = source->training;
    const bool again = (row->flags & SW_ROW_AGAIN) != 0;
    const sw_training_compilation from = {
        .function = sw__row_text(source->trace, row->key[0]),
        .reason = sw__row_text(source->trace, row->key[1]),
        .file = sw__row_text(source->trace, row->key[2]),
        .line = row->key[3],
        .again = again};
    const uint64_t ns = sw__row_ns(source, row->value[1]);
    bool fresh;
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_text(key, from.function);
    sw__key_text(key, from.file);
    sw__key_number(key, from.line);
    uint64_t *function = sw__bag_put(&training->functions, key, &fresh);
    if (!function) {
        return SW_ENOMEM;
    }
    *function = sw__add(*function, ns);
    const uint32_t place = sw__bag_find(&training->functions, key) - 1;
    sw__key_text(key, from.reason);
    sw__key_number(key, again);
    struct sw__compiled *compiled = sw__bag_put(&training->compiled, key, &fresh);
    if (!compiled) {
        return SW_ENOMEM;
    }
    if (fresh) {
        *compiled = (struct sw__compiled){.compilation = from, .function = place};
    }
    sw_training_compilation *into = &compiled->compilation;
    into->compilations = sw__add(into->compilations, row->value[0]);
    into->ns = sw__add(into->ns, ns);
    into->trace_ns = sw__add(into->trace_ns, sw__row_ns(source, row->value[2]));
    into->lower_ns = sw__add(into->lower_ns, sw__row_ns(source, row->value[3]));
    into->backend_ns = sw__add(into->backend_ns, sw__row_ns(source, row->value[4]));
    return SW_OK;
}

static int by_function(const void *left, const void *right)
{
    const struct sw__compiled *a = left;
    const struct sw__compiled *b = right;
    if (a->function != b->function) {
        return a->function < b->function ? -1 : 1;
    }
    if (a->compilation.again != b->compilation.again) {
        return a->compilation.again ? 1 : -1;
    }
    return (a->compilation.ns < b->compilation.ns) -
           (a->compilation.ns > b->compilation.ns);
}

struct function {
    uint64_t ns;
    size_t begin, end; /* its compilations */
};

static int by_time(const void *left, const void *right)
{
    const struct function *a = left;
    const struct function *b = right;
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static int list_compilations(sw_training *training)
{
    const size_t count = training->compiled.count;
    const size_t functions = training->functions.count;
    struct function *order = sw__alloc_zero(functions + 1, sizeof *order);
    sw_training_compilation *list = sw__arena_take(
        training->arena, (count + 1) * sizeof *list, _Alignof(sw_training_compilation));
    if (!order || !list) {
        sw__free(order);
        return SW_ENOMEM;
    }
    const struct sw__compiled *compiled = sw__bag_at(&training->compiled, 0);
    if (count > 1) {
        qsort(training->compiled.items, count, training->compiled.size, by_function);
    }
    for (size_t i = 0, begin = 0; i < functions; i++, begin = order[i - 1].end) {
        order[i].ns = *(uint64_t *)sw__bag_at(&training->functions, i);
        order[i].begin = begin;
        order[i].end = begin;
        while (order[i].end < count && compiled[order[i].end].function == i) {
            order[i].end++;
        }
    }
    if (functions > 1) {
        qsort(order, functions, sizeof *order, by_time);
    }
    size_t used = 0;
    for (size_t i = 0; i < functions; i++) {
        for (size_t k = order[i].begin; k < order[i].end; k++) {
            list[used++] = compiled[k].compilation;
        }
    }
    training->compilation_list = list;
    sw__free(order);
    return SW_OK;
}

/* --- waits --- */

static int add_wait(const struct sw__training_source *source, const sw_row *row)
{
    sw_training *training = source->training;
    const sw_training_wait from = {.call = sw__row_text(source->trace, row->key[0]),
                                   .file = sw__row_text(source->trace, row->key[1]),
                                   .line = row->key[2],
                                   .kind = row->key[3]};
    bool fresh;
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_text(key, from.call);
    sw__key_text(key, from.file);
    sw__key_number(key, from.line);
    sw__key_number(key, from.kind);
    sw_training_wait *wait = sw__bag_put(&training->waits, key, &fresh);
    if (!wait) {
        return SW_ENOMEM;
    }
    if (fresh) {
        *wait = from;
    }
    wait->non_blocking |= (row->flags & SW_ROW_UNBLOCKED) != 0;
    wait->calls = sw__add(wait->calls, row->value[0]);
    wait->ns = sw__add(wait->ns, sw__row_ns(source, row->value[1]));
    wait->bytes = sw__add(wait->bytes, row->value[2]);
    sw__most(&wait->max_ns, sw__row_ns(source, row->value[3]));
    wait->pinned_calls = sw__add(wait->pinned_calls, row->value[4]);
    return SW_OK;
}

static int by_wait(const void *left, const void *right)
{
    const sw_training_wait *a = left;
    const sw_training_wait *b = right;
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return (a->calls < b->calls) - (a->calls > b->calls);
}

/* --- settings and operators --- */

static int add_setting(const struct sw__training_source *source, const sw_row *row)
{
    sw_training *training = source->training;
    sw_training_setting from = {.what = sw__row_text(source->trace, row->key[0]),
                                .name = sw__row_text(source->trace, row->key[1]),
                                .text = sw__row_text(source->trace, row->key[2]),
                                .number = NAN};
    bool fresh;
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_text(key, from.what);
    sw__key_text(key, from.name);
    sw__key_text(key, from.text);
    sw__key_number(key, row->value[0]);
    sw_training_setting *setting = sw__bag_put(&training->settings, key, &fresh);
    if (!setting) {
        return SW_ENOMEM;
    }
    if (fresh) {
        if (!from.text || row->value[0]) {
            memcpy(&from.number, &row->value[0], sizeof from.number);
        }
        *setting = from;
    }
    return SW_OK;
}

static int add_operator(const struct sw__training_source *source, const sw_row *row)
{
    sw_training *training = source->training;
    const sw_training_operator from = {
        .name = sw__row_text(source->trace, row->key[0]),
        .shapes = sw__row_text(source->trace, row->key[1]),
        .phase = row->key[2] < SW_PHASE_COUNT ? row->key[2] : SW_PHASE_INHERIT,
        .device = row->key[3]};
    bool fresh;
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_text(key, from.name);
    sw__key_text(key, from.shapes);
    sw__key_number(key, from.phase);
    sw__key_number(key, from.device);
    sw_training_operator *op = sw__bag_put(&training->operators, key, &fresh);
    if (!op) {
        return SW_ENOMEM;
    }
    if (fresh) {
        *op = from;
    }
    uint64_t *const into[] = {&op->calls, &op->self_ns, &op->total_ns, &op->bytes,
                              &op->flops};
    for (size_t i = 0; i < sizeof into / sizeof into[0]; i++) {
        *into[i] = sw__add(*into[i], row->value[i]);
    }
    return SW_OK;
}

static int by_operator(const void *left, const void *right)
{
    const sw_training_operator *a = left;
    const sw_training_operator *b = right;
    if (a->self_ns != b->self_ns) {
        return a->self_ns > b->self_ns ? -1 : 1;
    }
    return (a->calls < b->calls) - (a->calls > b->calls);
}

/* --- all of them --- */

int sw__training_places(const struct sw__training_source *source)
{
    static const struct {
        enum sw_table table;
        int (*add)(const struct sw__training_source *source, const sw_row *row);
    } tables[] = {{SW_TABLE_COMPILED, add_compiled},
                  {SW_TABLE_WAIT, add_wait},
                  {SW_TABLE_SETTING, add_setting},
                  {SW_TABLE_OPERATOR, add_operator}};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        const size_t count = sw_trace_row_count(source->trace, tables[t].table);
        for (size_t i = 0; i < count; i++) {
            const sw_row *row = sw_trace_get_row(source->trace, tables[t].table, i);
            if (row && tables[t].add(source, row)) {
                return SW_ENOMEM;
            }
        }
    }
    return SW_OK;
}

int sw__training_finish_places(sw_training *training)
{
    if (training->waits.count > 1) {
        qsort(training->waits.items, training->waits.count, training->waits.size,
              by_wait);
    }
    if (training->operators.count > 1) {
        qsort(training->operators.items, training->operators.count,
              training->operators.size, by_operator);
    }
    return list_compilations(training);
}

const sw_training_compilation *sw_training_compilations(const sw_training *training,
                                                        size_t *count)
{
    *count = training->compiled.count;
    return training->compilation_list;
}

const sw_training_wait *sw_training_waits(const sw_training *training, size_t *count)
{
    *count = training->waits.count;
    return sw__bag_at(&training->waits, 0);
}

const char *sw_training_wait_kind_name(unsigned kind)
{
    static const char *const names[] = {NULL, "sync", "h2d", "d2h"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

const sw_training_setting *sw_training_settings(const sw_training *training,
                                                size_t *count)
{
    *count = training->settings.count;
    return sw__bag_at(&training->settings, 0);
}

const sw_training_operator *sw_training_operators(const sw_training *training,
                                                  size_t *count)
{
    *count = training->operators.count;
    return sw__bag_at(&training->operators, 0);
}

/* What the tables of training say, over all processes of a run. */
#include "analyze/training.h"

#include <string.h>

#include "analyze/summary.h"

/* --- keys and bags --- */

struct sw__bag_key *sw__key_begin(sw_training *training)
{
    training->key.used = 0;
    training->key.failed = false;
    return &training->key;
}

static void key_bytes(struct sw__bag_key *key, const void *bytes, size_t length)
{
    if (key->room - key->used < length) {
        const size_t room = (key->used + length) * 2 + 64;
        char *grown = sw__realloc(key->bytes, room, 1);
        if (!grown) {
            key->failed = true;
            return;
        }
        key->bytes = grown;
        key->room = room;
    }
    memcpy(key->bytes + key->used, bytes, length);
    key->used += length;
}

void sw__key_text(struct sw__bag_key *key, const char *text)
{
    /* With its NUL, so that two texts cannot run into each other. */
    key_bytes(key, text ? "t" : "", 1);
    if (text) {
        key_bytes(key, text, strlen(text) + 1);
    }
}

void sw__key_number(struct sw__bag_key *key, uint64_t number)
{
    key_bytes(key, &number, sizeof number);
}

int sw__bag_init(struct sw__bag *bag, size_t size)
{
    *bag = (struct sw__bag){.keys = sw__intern_create(UINT32_MAX - 1), .size = size};
    return bag->keys ? SW_OK : SW_ENOMEM;
}

void sw__bag_free(struct sw__bag *bag)
{
    if (bag->keys) {
        sw__intern_free(bag->keys);
    }
    sw__free(bag->items);
}

void *sw__bag_put(struct sw__bag *bag, const struct sw__bag_key *key, bool *fresh)
{
    int added = 0;
    if (bag->count == bag->room) { /* before the key, which cannot be taken back */
        const size_t room = bag->room ? bag->room * 2 : 16;
        unsigned char *grown = sw__realloc(bag->items, room, bag->size);
        if (!grown) {
            return NULL;
        }
        bag->items = grown;
        bag->room = room;
    }
    const uint32_t id =
        key->failed ? 0 : sw__intern_put(bag->keys, key->bytes, key->used, &added);
    if (id == 0) {
        return NULL;
    }
    if (added) {
        memset(sw__bag_at(bag, bag->count++), 0, bag->size);
    }
    *fresh = added != 0;
    return sw__bag_at(bag, id - 1);
}

uint32_t sw__bag_find(const struct sw__bag *bag, const struct sw__bag_key *key)
{
    return key->failed ? 0 : sw__intern_find(bag->keys, key->bytes, key->used);
}

/* --- values --- */

const char *sw__row_text(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name && name->text && name->length ? name->text : NULL;
}

uint64_t sw__row_ns(const struct sw__training_source *source, uint64_t ticks)
{
    const double ns = (double)ticks * source->ns_per_tick;
    /* 2^53 and more come from no recording; what is NaN or negative neither. */
    return ns >= 0 && ns < 9.2e18 ? (uint64_t)(ns + 0.5) : ns > 0 ? INT64_MAX : 0;
}

void sw__least(uint64_t *into, uint64_t value)
{
    *into = value < *into ? value : *into; /* SW_UNKNOWN is the largest number */
}

void sw__most(uint64_t *into, uint64_t value)
{
    *into = *into == SW_UNKNOWN || value > *into ? value : *into;
}

/* --- sites --- */

static void key_site(const struct sw__training_source *source, const sw_row *row)
{
    struct sw__bag_key *key = sw__key_begin(source->training);
    sw__key_number(key, row->key[0]);
    sw__key_text(key, sw__row_text(source->trace, row->key[1]));
    sw__key_number(key, row->key[2]);
    sw__key_text(key, sw__row_text(source->trace, row->key[3]));
}

int sw__training_sites(const struct sw__training_source *source)
{
    sw_training *training = source->training;
    const size_t count = sw_trace_row_count(source->trace, SW_TABLE_SITE);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(source->trace, SW_TABLE_SITE, i);
        bool fresh;
        if (!row) {
            continue;
        }
        key_site(source, row);
        sw_training_site *site = sw__bag_put(&training->sites, &training->key, &fresh);
        if (!site) {
            return SW_ENOMEM;
        }
        if (fresh) {
            const uint32_t function = (uint32_t)row->value[0];
            *site = (sw_training_site){
                .what = row->key[0],
                .file = sw__row_text(source->trace, row->key[1]),
                .line = row->key[2],
                .object = sw__row_text(source->trace, row->key[3]),
                .function = function == row->value[0]
                                ? sw__row_text(source->trace, function)
                                : NULL,
            };
        }
    }
    return SW_OK;
}

const sw_training_site *sw__row_site(const struct sw__training_source *source,
                                     uint64_t index_plus_1)
{
    const sw_row *row =
        index_plus_1 && index_plus_1 <= SIZE_MAX
            ? sw_trace_get_row(source->trace, SW_TABLE_SITE, (size_t)index_plus_1 - 1)
            : NULL;
    if (!row) {
        return NULL;
    }
    key_site(source, row);
    const uint32_t found = sw__bag_find(&source->training->sites, &source->training->key);
    return found ? sw__bag_at(&source->training->sites, found - 1) : NULL;
}

/* --- all of it --- */

static int make_bags(sw_training *training)
{
    const struct {
        struct sw__bag *bag;
        size_t size;
    } bags[] = {
        {&training->sites, sizeof(sw_training_site)},
        {&training->modules, sizeof(sw_training_module)},
        {&training->dtypes, sizeof(sw_training_dtype)},
        {&training->loaders, sizeof(struct sw__loader)},
        {&training->stages, sizeof(struct sw__stage)},
        {&training->waited, sizeof(struct sw__waited)},
        {&training->compiled, sizeof(struct sw__compiled)},
        {&training->functions, sizeof(uint64_t)},
        {&training->waits, sizeof(sw_training_wait)},
        {&training->settings, sizeof(sw_training_setting)},
        {&training->operators, sizeof(sw_training_operator)},
    };
    int error = SW_OK;
    for (size_t i = 0; i < sizeof bags / sizeof bags[0] && !error; i++) {
        error = sw__bag_init(bags[i].bag, bags[i].size);
    }
    return error;
}

void sw_training_free(sw_training *training)
{
    if (!training) {
        return;
    }
    struct sw__bag *const bags[] = {
        &training->sites,  &training->modules,  &training->dtypes,   &training->loaders,
        &training->stages, &training->waited,   &training->compiled, &training->functions,
        &training->waits,  &training->settings, &training->operators};
    for (size_t i = 0; i < sizeof bags / sizeof bags[0]; i++) {
        sw__bag_free(bags[i]);
    }
    sw__free(training->key.bytes);
    sw__arena_free(training->arena);
    sw__free(training);
}

static bool has_rows(const sw_trace *trace)
{
    for (unsigned table = SW_TABLE_SITE; table <= SW_TABLE_OPERATOR; table++) {
        if (sw_trace_row_count(trace, (enum sw_table)table) > 0) {
            return true;
        }
    }
    return false;
}

static int read_traces(sw_training *training, const sw_trace *const *traces, size_t count)
{
    /* Sites first: the other rows point at them, and a bag that grows moves. */
    int (*const parts[])(const struct sw__training_source *) = {
        sw__training_sites, sw__training_modules, sw__training_loaders,
        sw__training_places};
    for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
        for (size_t i = 0; i < count; i++) {
            const struct sw__training_source source = {training, traces[i], i,
                                                       sw_trace_ns_per_tick(traces[i])};
            if (!has_rows(traces[i]) && part != 1) {
                continue; /* sections of a module may be in a file without its row */
            }
            training->recorded |= has_rows(traces[i]);
            if (parts[part](&source)) {
                return SW_ENOMEM;
            }
        }
    }
    return SW_OK;
}

int sw__training_of_traces(sw_training **out, const sw_trace *const *traces, size_t count)
{
    sw_training *training = sw__alloc_zero(1, sizeof *training);
    *out = NULL;
    if (!training) {
        return SW_ENOMEM;
    }
    training->arena = sw__arena_create(0);
    int error = training->arena ? make_bags(training) : SW_ENOMEM;
    if (!error) {
        error = read_traces(training, traces, count);
    }
    error = error ? error : sw__training_finish_modules(training);
    error = error ? error : sw__training_finish_loaders(training);
    error = error ? error : sw__training_finish_places(training);
    if (error) {
        sw_training_free(training);
        return error;
    }
    *out = training;
    return SW_OK;
}

int sw_training_of_run(sw_training **out, const sw_run *run, sw_error_info *info)
{
    const size_t count = sw_run_count(run);
    const sw_trace **traces = sw__alloc_zero(count + 1, sizeof(sw_trace *));
    int error = SW_ENOMEM;
    *out = NULL;
    if (traces) {
        for (size_t i = 0; i < count; i++) {
            traces[i] = sw_run_trace(run, i);
        }
        error = sw__training_of_traces(out, traces, count);
    }
    sw__free(traces);
    return error ? sw_error_set(info, error, "%s", sw_error_text(error)) : SW_OK;
}

bool sw_training_recorded(const sw_training *training)
{
    return training->recorded;
}

const sw_training_site *sw_training_sites(const sw_training *training, size_t *count)
{
    *count = training->sites.count;
    return sw__bag_at(&training->sites, 0);
}

const char *sw_training_site_what_name(unsigned what)
{
    static const char *const names[] = {NULL,    "loader",  "optimizer",
                                        "model", "dataset", "loop"};
    return what < sizeof names / sizeof names[0] ? names[what] : NULL;
}

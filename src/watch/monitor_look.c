/* One look of the monitor: sources that are due are asked, what changed is written, and statistics are kept of all. */
#include <math.h>
#include <stdio.h>
#include <stepwatch/record.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/os.h"
#include "record/recorder.h"
#include "watch/monitor.h"

#define NS 1000000000u
#define SERIES_MOST 4096u
/* Rows change at most once in so long: they are read when the run is over, or by somebody who watches. What a killed program
 * loses is the end of statistics, not of series. */
#define ROWS_PERIOD_NS ((uint64_t)5 * NS)
/* Of the cap on a trace a sixteenth is for series; without a cap this. */
#define BUDGET_SHARE 16u
#define BUDGET_ELSE ((uint64_t)64 << 20)

struct series {
    char name[SW__SERIES_NAME];
    char unit[16];
    enum sw_series_kind kind;
    uint32_t id;     /* of its name in the trace */
    uint32_t source; /* place of its source */
    uint64_t row;    /* handle */
    bool fresh;      /* put at this look */
    bool changed;    /* the row is to be written */
    double value;    /* newest; NaN: not known */
    double written;  /* in the newest record of this stretch */
    bool has_written;
    uint64_t known; /* values */
    uint64_t at;    /* TOTAL: when `before` was, in ns; 0: not in this stretch */
    double before;
    double sum, least, most; /* GAUGE */
    double growth;           /* TOTAL */
    uint64_t watched_ns;     /* TOTAL */
    double slowest, fastest; /* TOTAL: growth a second */
};

struct source {
    const struct sw__source *is;
    void *state;
    bool open;
    bool failing;
    double period_s;
    uint64_t next_ns; /* it is due then */
    uint64_t looks, ticks, failures;
    uint64_t row;
    uint32_t row_index;
    uint32_t name_id, why_id;
    char why[160];
};

struct sw__look {
    struct sw__looker *looker;
    uint32_t source;
    uint64_t now_ns;
    uint32_t training_tid;
    bool last;
};

struct sw__looker {
    struct source *sources;
    uint32_t source_count;
    struct series *series;
    uint32_t series_count, series_room;
    uint32_t series_told; /* of them have rows */
    uint64_t period_ns;
    /* Thinning: of every `stride` looks one is written; each level has half of what is left of the budget. */
    uint64_t budget_left, level_left;
    uint64_t stride, since_written;
    uint64_t asked; /* bits of sources, since the last look that was written */
    uint64_t rows_at;
    uint64_t looks, late, cpu_ns, cpu_before;
    uint64_t row; /* of the monitor itself */
    uint32_t name_id;
    uint32_t used; /* bytes of the buffer */
    _Alignas(8) uint8_t buffer[SW__KEPT_MOST];
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t name_id(const char *text)
{
    return *text ? sw_name(text, strlen(text)) : 0;
}

static void next_level(struct sw__looker *looker)
{
    looker->level_left = looker->budget_left / 2;
    looker->budget_left -= looker->level_left;
}

struct sw__looker *sw__looker_open(const struct sw__source *const *sources,
                                   const struct sw__source_setting *setting,
                                   double interval_s)
{
    uint32_t count = 0;
    while (sources[count]) {
        count++;
    }
    struct sw__looker *looker = sw__alloc_zero(1, sizeof *looker);
    struct source *places = sw__alloc_zero(count + 1, sizeof *places);
    if (!looker || !places) {
        sw__free(looker);
        sw__free(places);
        return NULL;
    }
    looker->sources = places;
    looker->source_count = count;
    looker->period_ns = (uint64_t)(interval_s * NS);
    looker->stride = 1;
    const uint64_t cap = sw__session.settings.max_bytes;
    looker->budget_left = cap ? cap / BUDGET_SHARE : BUDGET_ELSE;
    next_level(looker);
    sw__looker_thread(looker);
    for (uint32_t i = 0; i < count; i++) {
        struct source *source = &places[i];
        source->is = sources[i];
        source->period_s =
            sources[i]->period ? sources[i]->period(setting) : sources[i]->period_s;
        const int result =
            sources[i]->open(setting, &source->state, source->why, sizeof source->why);
        source->open = result == SW_OK;
        if (result == SW_EDISABLED) {
            source->why[0] = '\0';
        } else if (!source->open && !source->why[0]) {
            snprintf(source->why, sizeof source->why, "it cannot be read: %s",
                     sw_error_text(result));
        }
    }
    return looker;
}

void sw__looker_close(struct sw__looker *looker)
{
    if (!looker) {
        return;
    }
    for (uint32_t i = 0; i < looker->source_count; i++) {
        struct source *source = &looker->sources[i];
        if (source->open && source->is->close) {
            source->is->close(source->state);
        }
    }
    sw__free(looker->series);
    sw__free(looker->sources);
    sw__free(looker);
}

/* The place of a series, made if need be; SERIES_MOST: there is no room. */
static uint32_t find_series(struct sw__looker *looker, uint32_t source, const char *name,
                            const char *unit, enum sw_series_kind kind)
{
    for (uint32_t i = 0; i < looker->series_count; i++) {
        if (looker->series[i].source == source &&
            strcmp(looker->series[i].name, name) == 0) {
            return i;
        }
    }
    if (looker->series_count == looker->series_room) {
        const uint32_t room = looker->series_room ? looker->series_room * 2 : 64;
        struct series *grown =
            room <= SERIES_MOST ? sw__realloc(looker->series, room, sizeof *grown) : NULL;
        if (!grown) {
            return SERIES_MOST;
        }
        looker->series = grown;
        looker->series_room = room;
    }
    struct series *series = &looker->series[looker->series_count];
    *series = (struct series){.kind = kind,
                              .source = source,
                              .value = NAN,
                              .written = NAN,
                              .slowest = NAN,
                              .fastest = NAN};
    snprintf(series->name, sizeof series->name, "%s", name);
    snprintf(series->unit, sizeof series->unit, "%s", unit);
    series->id = name_id(series->name);
    return looker->series_count++;
}

static void count_gauge(struct series *series, double value)
{
    series->least = series->known == 0 || value < series->least ? value : series->least;
    series->most = series->known == 0 || value > series->most ? value : series->most;
    series->sum += value;
    series->known++;
}

/* `whole_ns`: shorter stretches than half of it say nothing of a rate. */
static void count_total(struct series *series, double value, uint64_t now_ns,
                        uint64_t whole_ns)
{
    const double grown = value - series->before;
    if (series->at && grown >= 0 && now_ns > series->at) {
        const uint64_t passed = now_ns - series->at;
        series->growth += grown;
        series->watched_ns += passed;
        if (passed >= whole_ns / 2) {
            const double rate = grown / (double)passed * NS;
            series->slowest = !(rate >= series->slowest) ? rate : series->slowest;
            series->fastest = !(rate <= series->fastest) ? rate : series->fastest;
        }
    }
    series->before = value;
    series->at = now_ns;
    series->known++;
}

static void take(struct sw__look *look, struct series *series, double value)
{
    struct sw__looker *looker = look->looker;
    series->fresh = true;
    series->changed = true;
    series->value = value;
    if (isnan(value)) {
        series->at = 0;
    } else if (series->kind == SW_SERIES_GAUGE) {
        count_gauge(series, value);
    } else {
        const double own = looker->sources[look->source].period_s * NS;
        const uint64_t whole =
            own > (double)looker->period_ns ? (uint64_t)own : looker->period_ns;
        count_total(series, value, look->now_ns, whole);
    }
}

void sw__look_hint(struct sw__look *look, uint32_t *hint, const char *name,
                   const char *unit, enum sw_series_kind kind, double value)
{
    if (*hint == 0) {
        *hint = find_series(look->looker, look->source, name, unit, kind) + 1;
    }
    if (*hint <= look->looker->series_count) {
        take(look, &look->looker->series[*hint - 1], value);
    }
}

void sw__look_put(struct sw__look *look, const char *name, const char *unit,
                  enum sw_series_kind kind, double value)
{
    uint32_t hint = 0;
    sw__look_hint(look, &hint, name, unit, kind, value);
}

uint32_t sw__look_training_tid(const struct sw__look *look)
{
    return look->training_tid;
}

bool sw__look_is_last(const struct sw__look *look)
{
    return look->last;
}

static void flush(struct sw__looker *looker)
{
    if (looker->used) {
        (void)sw__kept_put((const sw_record *)(void *)looker->buffer, looker->used);
        looker->used = 0;
    }
}

static void *room(struct sw__looker *looker, uint32_t bytes)
{
    if (looker->used + bytes > sizeof looker->buffer) {
        flush(looker);
    }
    void *at = looker->buffer + looker->used;
    looker->used += bytes;
    looker->level_left -= bytes < looker->level_left ? bytes : looker->level_left;
    return at;
}

/* Whether this look is written. Those at an edge always are. */
static bool is_kept(struct sw__looker *looker, unsigned edge)
{
    if (++looker->since_written < looker->stride && !edge) {
        return false;
    }
    looker->since_written = 0;
    if (looker->level_left == 0 && looker->budget_left > SW__KEPT_MOST) {
        /* Each level lasts twice as long as the one before, with half the bytes. */
        looker->stride *= 4;
        next_level(looker);
    }
    return true;
}

static void write_look(struct sw__looker *looker, const struct sw__peeked *peeked,
                       uint64_t ticks, unsigned edge)
{
    const uint32_t length =
        (uint32_t)(sizeof(sw_record_look) +
                   (peeked->look.depth + 1u) / 2 * 2 * sizeof(sw_look_frame));
    sw_record_look *look = room(looker, length);
    memset(look, 0, length);
    *look = peeked->look;
    look->head = (sw_record){.kind = SW_RECORD_LOOK,
                             .units = (uint8_t)(length / SW_RECORD_UNIT),
                             .ticks = ticks};
    look->edge = (uint8_t)edge;
    look->sources = looker->asked;
    looker->asked = 0;
    memcpy(look + 1, peeked->frames, peeked->look.depth * sizeof(sw_look_frame));
    for (uint32_t i = 0; i < looker->series_count; i++) {
        struct series *series = &looker->series[i];
        if (edge & SW_LOOK_FIRST) {
            series->has_written = false;
        }
        /* A level that was not read now is as it was; of a sum nobody knows how far it has come. */
        const bool counts =
            series->fresh || (series->kind == SW_SERIES_GAUGE && !isnan(series->value));
        const bool same =
            series->has_written && (series->written == series->value ||
                                    (isnan(series->written) && isnan(series->value)));
        const bool first_unknown = !series->has_written && isnan(series->value);
        if (!counts || first_unknown || (same && !edge)) {
            continue;
        }
        sw_record_counter *record = room(looker, sizeof *record);
        *record = (sw_record_counter){.head = {.kind = SW_RECORD_MONITOR,
                                               .units = 1,
                                               .id = series->id,
                                               .ticks = ticks},
                                      .value = series->value};
        series->written = series->value;
        series->has_written = true;
    }
    flush(looker);
}

static uint32_t bit_of(uint32_t place)
{
    return place < 64 ? place : UINT32_MAX;
}

static void write_source_row(struct source *source, uint32_t place)
{
    if (!source->name_id) {
        source->name_id = name_id(source->is->name);
        source->why_id = name_id(source->why);
    }
    sw_row row = {.table = SW_TABLE_SOURCE,
                  .key = {source->name_id, source->why_id,
                          (uint32_t)(source->period_s * 1000 + 0.5), bit_of(place)},
                  .value = {source->looks, source->ticks, source->failures}};
    source->row = sw_row_put(source->row, &row);
    source->row_index = row.index;
}

static void write_series_row(struct series *series, uint32_t source_row)
{
    sw_row row = {
        .table = SW_TABLE_SERIES,
        .key = {series->id, name_id(series->unit), (uint32_t)series->kind, source_row},
        .value[0] = series->known};
    if (series->kind == SW_SERIES_GAUGE) {
        row.value[1] = bits_of(series->sum);
        row.value[2] = bits_of(series->least);
        row.value[3] = bits_of(series->most);
        row.value[4] = bits_of(series->value);
    } else {
        row.value[1] = bits_of(series->growth);
        row.value[2] = series->watched_ns;
        row.value[3] = bits_of(series->slowest);
        row.value[4] = bits_of(series->fastest);
    }
    series->row = sw_row_put(series->row, &row);
    series->changed = false;
}

/* Sources first: series name their rows. */
static void write_rows(struct sw__looker *looker)
{
    for (uint32_t i = 0; i < looker->source_count; i++) {
        write_source_row(&looker->sources[i], i);
    }
    for (uint32_t i = 0; i < looker->series_count; i++) {
        struct series *series = &looker->series[i];
        if (series->changed) {
            write_series_row(series, looker->sources[series->source].row_index);
        }
    }
    if (!looker->name_id) {
        looker->name_id = name_id("monitor");
    }
    sw_row row = {
        .table = SW_TABLE_SOURCE,
        .key = {looker->name_id, 0, 0, UINT32_MAX},
        .value = {looker->looks, looker->cpu_ns, 0, looker->period_ns, looker->late}};
    looker->row = sw_row_put(looker->row, &row);
}

static void ask(struct sw__looker *looker, uint32_t place, struct sw__look *look)
{
    struct source *source = &looker->sources[place];
    const uint64_t began = sw_now();
    look->source = place;
    looker->asked |= place < 64 ? (uint64_t)1 << place : 0;
    const bool failed = source->is->sample(source->state, look) != SW_OK;
    source->looks++;
    source->failures += failed;
    if (failed && !source->failing) {
        for (uint32_t i = 0; i < looker->series_count; i++) {
            if (looker->series[i].source == place) {
                take(look, &looker->series[i], NAN);
            }
        }
    }
    source->failing = failed;
    source->ticks += sw_now() - began;
    source->next_ns = look->now_ns + (uint64_t)(source->period_s * NS);
}

void sw__looker_thread(struct sw__looker *looker)
{
    looker->cpu_before = sw__os_thread_cpu_ns();
}

/* What the looks took, for the row of the monitor: asked when that is written, for it is one of six calls that a look makes. */
void sw__looker_count(struct sw__looker *looker)
{
    const uint64_t cpu = sw__os_thread_cpu_ns();
    looker->cpu_ns += cpu - looker->cpu_before;
    looker->cpu_before = cpu;
}

void sw__looker_look(struct sw__looker *looker, unsigned edge, bool late, bool all)
{
    struct sw__peeked peeked;
    struct sw__look look = {.looker = looker,
                            .now_ns = sw__os_now_ns(),
                            .last = all && (edge & SW_LOOK_LAST)};
    if (edge & SW_LOOK_FIRST) {
        for (uint32_t i = 0; i < looker->series_count; i++) {
            looker->series[i].at = 0;
        }
    }
    const uint64_t ticks = sw_now();
    sw__peek_training(&peeked);
    /* Nobody has recorded anything yet: most programs train on their first thread. */
    look.training_tid = peeked.tid ? peeked.tid : (uint32_t)getpid();
    for (uint32_t i = 0; i < looker->series_count; i++) {
        looker->series[i].fresh = false;
    }
    /* A moment that is nearly there counts as come, or a source of one second at looks a second apart would be asked
     * every other time. */
    const uint64_t soon = look.now_ns + looker->period_ns / 10;
    for (uint32_t i = 0; i < looker->source_count; i++) {
        const struct source *source = &looker->sources[i];
        if (source->open && (all || source->next_ns <= soon)) {
            ask(looker, i, &look);
        }
    }
    looker->looks++;
    looker->late += late;
    if (is_kept(looker, edge)) {
        write_look(looker, &peeked, ticks, edge);
    }
    /* Values of a series mean nothing without its row. */
    if (edge || look.now_ns >= looker->rows_at ||
        looker->series_count != looker->series_told) {
        sw__looker_count(looker);
        write_rows(looker);
        looker->series_told = looker->series_count;
        looker->rows_at = look.now_ns + ROWS_PERIOD_NS - looker->period_ns / 10;
    }
}

size_t sw_monitor_sources(sw_monitor_source *out, size_t most)
{
    const struct sw__source_setting setting = {.root = "", .pss_s = 1};
    size_t count = 0;
    for (; sw__sources[count]; count++) {
        const struct sw__source *source = sw__sources[count];
        if (count >= most) {
            continue;
        }
        void *state = NULL;
        out[count] = (sw_monitor_source){
            .name = source->name,
            .period_s = source->period ? source->period(&setting) : source->period_s};
        const int result =
            source->open(&setting, &state, out[count].why, sizeof out[count].why);
        out[count].there = result == SW_OK;
        if (result == SW_OK && source->close) {
            source->close(state);
        } else if (result != SW_OK && !out[count].why[0]) {
            snprintf(out[count].why, sizeof out[count].why, "%s", sw_error_text(result));
        }
    }
    return count;
}

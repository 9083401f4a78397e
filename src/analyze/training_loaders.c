/* Data loaders: their settings, from the training process, and the stages of producing a batch, from all processes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "analyze/training.h"

#define BETWEEN "between passes" /* name of a stage of kind INDEX */

/* The loader of a name, made if need be; its place in the bag goes to `place`. */
static struct sw__loader *loader_of(sw_training *training, const char *name,
                                    uint32_t *place)
{
    struct sw__bag_key *key = sw__key_begin(training);
    bool fresh;
    sw__key_text(key, name);
    struct sw__loader *found = sw__bag_put(&training->loaders, key, &fresh);
    if (!found) {
        return NULL;
    }
    *place = sw__bag_find(&training->loaders, key) - 1;
    if (fresh) {
        *found = (struct sw__loader){.loader = {.name = name,
                                                .worker_setting = SW_UNKNOWN,
                                                .batch_size = SW_UNKNOWN,
                                                .prefetch_factor = SW_UNKNOWN,
                                                .samples = SW_UNKNOWN,
                                                .passes = SW_UNKNOWN,
                                                .batches = SW_UNKNOWN,
                                                .looked = SW_UNKNOWN}};
    }
    return found;
}

/* The settings are those of the first process that has such a loader, the newest there. A row counts all passes of its
 * process, and the ranks of a run go through their loaders together. */
static void add_settings(const struct sw__training_source *source, const sw_row *row,
                         struct sw__loader *into)
{
    sw_training_loader *loader = &into->loader;
    into->trace = loader->known ? into->trace : source->index;
    loader->known = true;
    sw__most(&loader->passes, row->value[3]);
    if (into->trace != source->index) {
        return;
    }
    const sw_training_site *site = sw__row_site(source, row->value[4]);
    loader->dataset = sw__row_text(source->trace, row->key[1]);
    loader->worker_setting = row->key[2];
    loader->batch_size = row->key[3] ? row->key[3] : SW_UNKNOWN;
    loader->bits = (unsigned)(row->value[0] & 0xffff);
    loader->prefetch_factor = row->value[1] && row->key[2] ? row->value[1] : SW_UNKNOWN;
    loader->samples = row->value[2];
    loader->site = site ? site : loader->site;
}

static void add_stage(const struct sw__training_source *source, const sw_row *row,
                      sw_training_stage *stage)
{
    const uint64_t calls = row->value[0];
    stage->calls = sw__add(stage->calls, calls);
    stage->ns = sw__add(stage->ns, sw__row_ns(source, row->value[1]));
    if (row->value[2] == 0 && row->value[1] > 0) {
        stage->cpu_ns = SW_UNKNOWN;
    } else if (stage->cpu_ns != SW_UNKNOWN) {
        stage->cpu_ns = sw__add(stage->cpu_ns, row->value[2]);
    }
    if (calls > 0) {
        sw__least(&stage->min_ns, sw__row_ns(source, row->value[3]));
        sw__most(&stage->max_ns, sw__row_ns(source, row->value[4]));
    }
}

static int add_waited(const struct sw__training_source *source, uint32_t loader,
                      const sw_row *row)
{
    struct sw__bag_key *key = sw__key_begin(source->training);
    bool fresh;
    sw__key_number(key, source->index);
    sw__key_number(key, loader);
    struct sw__waited *waited = sw__bag_put(&source->training->waited, key, &fresh);
    if (!waited) {
        return SW_ENOMEM;
    }
    waited->trace = source->index;
    waited->loader = loader;
    waited->calls = sw__add(waited->calls, row->value[0]);
    waited->ns = sw__add(waited->ns, sw__row_ns(source, row->value[1]));
    return SW_OK;
}

static bool waiting_kind(unsigned kind)
{
    return kind == SW_STAGE_ROOM || kind == SW_STAGE_INDEX || kind == SW_STAGE_WAIT ||
           kind == SW_STAGE_START || kind == SW_STAGE_FIRST ||
           kind == SW_STAGE_SHUTDOWN || kind == 0 || kind >= SW_STAGE_KINDS;
}

static int add_stage_row(const struct sw__training_source *source, const sw_row *row)
{
    sw_training *training = source->training;
    const char *loader_name = sw__row_text(source->trace, row->key[0]);
    const char *name = sw__row_text(source->trace, row->key[3]);
    const unsigned kind = row->key[2];
    uint32_t place;
    bool fresh;
    struct sw__loader *loader = loader_of(training, loader_name, &place);
    if (!loader) {
        return SW_ENOMEM;
    }
    struct sw__bag_key *key = sw__key_begin(training);
    sw__key_number(key, place);
    sw__key_number(key, row->key[1]);
    sw__key_number(key, kind);
    sw__key_text(key, name);
    struct sw__stage *stage = sw__bag_put(&training->stages, key, &fresh);
    if (!stage) {
        return SW_ENOMEM;
    }
    if (fresh) {
        *stage =
            (struct sw__stage){.loader = place,
                               .stage = {.loader = loader_name,
                                         .name = name ? name : sw_stage_kind_name(kind),
                                         .worker = row->key[1],
                                         .kind = kind,
                                         .waits = waiting_kind(kind),
                                         .min_ns = SW_UNKNOWN,
                                         .max_ns = SW_UNKNOWN,
                                         .share = NAN}};
    }
    add_stage(source, row, &stage->stage);
    return kind == SW_STAGE_WAIT && row->key[1] == SW_NO_WORKER
               ? add_waited(source, place, row)
               : SW_OK;
}

int sw__training_loaders(const struct sw__training_source *source)
{
    const size_t loaders = sw_trace_row_count(source->trace, SW_TABLE_LOADER);
    for (size_t i = 0; i < loaders; i++) {
        const sw_row *row = sw_trace_get_row(source->trace, SW_TABLE_LOADER, i);
        uint32_t place;
        struct sw__loader *loader =
            row ? loader_of(source->training, sw__row_text(source->trace, row->key[0]),
                            &place)
                : NULL;
        if (row && !loader) {
            return SW_ENOMEM;
        }
        if (row) {
            add_settings(source, row, loader);
        }
    }
    const size_t stages = sw_trace_row_count(source->trace, SW_TABLE_STAGE);
    int error = SW_OK;
    for (size_t i = 0; i < stages && !error; i++) {
        const sw_row *row = sw_trace_get_row(source->trace, SW_TABLE_STAGE, i);
        error = row ? add_stage_row(source, row) : SW_OK;
    }
    return error;
}

/* --- when all are in: self times and shares --- */

typedef unsigned __int128 wide;

static uint64_t part_of(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((wide)amount * part / whole) : 0;
}

/* Of `count` stages: what lies within others is taken from those once. */
static void find_self(sw_training_stage *stages, size_t count)
{
    uint64_t sum[SW_STAGE_KINDS] = {0};
    for (size_t i = 0; i < count; i++) {
        if (stages[i].kind < SW_STAGE_KINDS) {
            sum[stages[i].kind] = sw__add(sum[stages[i].kind], stages[i].ns);
        }
    }
    const uint64_t samples =
        sum[SW_STAGE_GETITEM] ? sum[SW_STAGE_GETITEM] : sum[SW_STAGE_TRANSFORM];
    const uint64_t getitem = sw__sub(sum[SW_STAGE_GETITEM], sum[SW_STAGE_TRANSFORM]);
    const uint64_t fetch =
        sw__sub(sum[SW_STAGE_FETCH], sw__add(samples, sum[SW_STAGE_COLLATE]));
    uint64_t work = 0;
    for (size_t i = 0; i < count; i++) {
        sw_training_stage *stage = &stages[i];
        stage->self_ns = stage->kind == SW_STAGE_GETITEM
                             ? part_of(stage->ns, getitem, sum[SW_STAGE_GETITEM])
                         : stage->kind == SW_STAGE_FETCH
                             ? part_of(stage->ns, fetch, sum[SW_STAGE_FETCH])
                             : stage->ns;
        work = stage->waits ? work : sw__add(work, stage->self_ns);
    }
    for (size_t i = 0; i < count; i++) {
        stages[i].share =
            !stages[i].waits && work > 0 ? (double)stages[i].self_ns / (double)work : NAN;
    }
}

static uint64_t sum_of(const sw_training_stage *stages, size_t count, unsigned kind,
                       uint64_t *calls)
{
    uint64_t ns = 0;
    *calls = 0;
    for (size_t i = 0; i < count; i++) {
        if (stages[i].kind == kind) {
            ns = sw__add(ns, stages[i].ns);
            *calls = sw__add(*calls, stages[i].calls);
        }
    }
    return ns;
}

static bool has_kind(const sw_training_stage *stages, size_t count, unsigned kind)
{
    for (size_t i = 0; i < count; i++) {
        if (stages[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* Stages of one worker. Batches go out by a thread of their own, so serialising and waiting for room there keep nobody from
 * fetching the next. Between two passes nothing is asked of a worker, which says nothing about its speed. */
static sw_training_worker worker_of(const sw_training_stage *stages, size_t count)
{
    sw_training_worker worker = {.worker = stages[0].worker, .idle_ns = SW_UNKNOWN};
    worker.getitem_ns = sum_of(stages, count, SW_STAGE_GETITEM, &worker.getitem_calls);
    worker.collate_ns = sum_of(stages, count, SW_STAGE_COLLATE, &worker.collate_calls);
    worker.busy_ns = has_kind(stages, count, SW_STAGE_FETCH)
                         ? sum_of(stages, count, SW_STAGE_FETCH, &worker.batches)
                         : sw__add(worker.getitem_ns, worker.collate_ns);
    worker.batches = worker.batches ? worker.batches : worker.collate_calls;
    for (size_t i = 0; i < count; i++) {
        if (stages[i].kind == SW_STAGE_INDEX) {
            const bool between = stages[i].name && strcmp(stages[i].name, BETWEEN) == 0;
            worker.idle_ns = worker.idle_ns == SW_UNKNOWN ? 0 : worker.idle_ns;
            worker.idle_ns = sw__add(worker.idle_ns, between ? 0 : stages[i].ns);
        }
    }
    const double all = (double)worker.busy_ns + (double)worker.idle_ns;
    worker.busy_share =
        worker.idle_ns != SW_UNKNOWN && all > 0 ? (double)worker.busy_ns / all : NAN;
    return worker;
}

/* By loader, worker, kind and name; the training process before its workers. */
static int by_worker(const void *left, const void *right)
{
    const struct sw__stage *a = left;
    const struct sw__stage *b = right;
    const uint32_t keys[][2] = {{a->loader, b->loader},
                                {a->stage.worker + 1, b->stage.worker + 1},
                                {a->stage.kind, b->stage.kind}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return strcmp(a->stage.name ? a->stage.name : "", b->stage.name ? b->stage.name : "");
}

static int by_name(const void *left, const void *right)
{
    const sw_training_stage *a = left;
    const sw_training_stage *b = right;
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

/* Work by self time, then what only waits. */
static int by_self(const void *left, const void *right)
{
    const sw_training_stage *a = left;
    const sw_training_stage *b = right;
    if (a->waits != b->waits) {
        return a->waits ? 1 : -1;
    }
    if (a->self_ns != b->self_ns) {
        return a->self_ns > b->self_ns ? -1 : 1;
    }
    return by_name(left, right);
}

static void add_to(sw_training_stage *into, const sw_training_stage *from)
{
    into->calls = sw__add(into->calls, from->calls);
    into->ns = sw__add(into->ns, from->ns);
    into->cpu_ns = into->cpu_ns == SW_UNKNOWN || from->cpu_ns == SW_UNKNOWN
                       ? SW_UNKNOWN
                       : sw__add(into->cpu_ns, from->cpu_ns);
    if (from->calls > 0) {
        sw__least(&into->min_ns, from->min_ns);
        sw__most(&into->max_ns, from->max_ns);
    }
}

/* The stages of one loader, which stand together in the list, merged over its workers. */
static int merge_workers(sw_training *training, sw_training_loader *loader,
                         const sw_training_stage *stages, size_t count)
{
    sw_training_stage *merged = sw__arena_take(training->arena, count * sizeof *merged,
                                               _Alignof(sw_training_stage));
    if (!merged) {
        return SW_ENOMEM;
    }
    memcpy(merged, stages, count * sizeof *merged);
    qsort(merged, count, sizeof *merged, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_name(&merged[kept - 1], &merged[i]) == 0) {
            add_to(&merged[kept - 1], &merged[i]);
        } else {
            merged[kept] = merged[i];
            merged[kept++].worker = SW_NO_WORKER;
        }
    }
    find_self(merged, kept);
    qsort(merged, kept, sizeof *merged, by_self);
    loader->stages = merged;
    loader->stage_count = kept;
    loader->wait_ns = sum_of(merged, kept, SW_STAGE_WAIT, &loader->waits);
    static const unsigned counting[] = {SW_STAGE_FETCH, SW_STAGE_COLLATE, SW_STAGE_WAIT};
    for (size_t i = 0; i < 3 && loader->batches == SW_UNKNOWN; i++) {
        uint64_t calls;
        (void)sum_of(merged, kept, counting[i], &calls);
        loader->batches = calls ? calls : SW_UNKNOWN;
    }
    loader->looked = loader->batches;
    if (loader->batches != SW_UNKNOWN && loader->batches < loader->waits) {
        loader->batches = loader->waits;
    }
    return SW_OK;
}

static int list_workers(sw_training *training, sw_training_loader *loader,
                        sw_training_stage *stages, size_t count)
{
    size_t workers = 0;
    for (size_t i = 0; i < count; i++) {
        workers += stages[i].worker != SW_NO_WORKER &&
                   (i == 0 || stages[i].worker != stages[i - 1].worker);
    }
    sw_training_worker *list = sw__arena_take(
        training->arena, (workers + 1) * sizeof *list, _Alignof(sw_training_worker));
    if (!list) {
        return SW_ENOMEM;
    }
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && stages[end].worker == stages[begin].worker) {
            end++;
        }
        find_self(stages + begin, end - begin);
        if (stages[begin].worker != SW_NO_WORKER) {
            list[loader->worker_count++] = worker_of(stages + begin, end - begin);
        }
    }
    loader->workers = list;
    return SW_OK;
}

int sw__training_finish_loaders(sw_training *training)
{
    const size_t loaders = training->loaders.count;
    const size_t stages = training->stages.count;
    training->loader_list =
        sw__arena_take(training->arena, (loaders + 1) * sizeof *training->loader_list,
                       _Alignof(sw_training_loader));
    training->stage_list =
        sw__arena_take(training->arena, (stages + 1) * sizeof *training->stage_list,
                       _Alignof(sw_training_stage));
    if (!training->loader_list || !training->stage_list) {
        return SW_ENOMEM;
    }
    if (stages > 1) {
        qsort(training->stages.items, stages, training->stages.size, by_worker);
    }
    for (size_t i = 0; i < stages; i++) {
        training->stage_list[i] =
            ((struct sw__stage *)sw__bag_at(&training->stages, i))->stage;
    }
    int error = SW_OK;
    for (size_t i = 0, begin = 0, end; i < loaders && !error; i++, begin = end) {
        sw_training_loader *loader = &training->loader_list[i];
        *loader = ((struct sw__loader *)sw__bag_at(&training->loaders, i))->loader;
        end = begin;
        while (end < stages &&
               ((struct sw__stage *)sw__bag_at(&training->stages, end))->loader == i) {
            end++;
        }
        if (end > begin) {
            sw_training_stage *first = training->stage_list + begin;
            error = merge_workers(training, loader, first, end - begin);
            error = error ? error : list_workers(training, loader, first, end - begin);
        }
    }
    return error;
}

/* --- what is handed out --- */

const sw_training_loader *sw_training_loaders(const sw_training *training, size_t *count)
{
    *count = training->loaders.count;
    return training->loader_list;
}

const sw_training_stage *sw_training_stages(const sw_training *training, size_t *count)
{
    *count = training->stages.count;
    return training->stage_list;
}

const sw_training_loader *sw_training_main_loader(const sw_training *training,
                                                  size_t trace, uint64_t steps)
{
    const struct sw__waited *best = NULL;
    uint64_t best_distance = UINT64_MAX;
    for (size_t i = 0; i < training->waited.count; i++) {
        const struct sw__waited *waited = sw__bag_at(&training->waited, i);
        if (waited->trace != trace || waited->calls == 0) {
            continue;
        }
        const uint64_t distance = steps == 0 || steps == SW_UNKNOWN ? 0
                                  : waited->calls > steps ? waited->calls - steps
                                                          : steps - waited->calls;
        if (!best || distance < best_distance ||
            (distance == best_distance &&
             (waited->calls > best->calls ||
              (waited->calls == best->calls && waited->ns > best->ns)))) {
            best = waited;
            best_distance = distance;
        }
    }
    if (best) {
        return &training->loader_list[best->loader];
    }
    /* Nobody counted waits: the one loader there is. */
    return training->loaders.count == 1 ? training->loader_list : NULL;
}

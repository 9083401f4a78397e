/* Tables of training, composed by hand so that every number is known beforehand, and others that no recorder writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "run_fixture.h"

#define START 1000000000u
#define MS 1000000u
#define NONE UINT32_MAX

/* Names by id, the same in every trace of a test. */
enum {
    N_NET = 1,    /* section, forward */
    N_NET_EVAL,   /* the same text, validation */
    N_CONV,       /* section */
    N_LOSS,       /* section, loss */
    N_VALIDATION, /* section, validation */
    N_CHECKPOINT, /* section, checkpoint */
    N_WAIT,       /* section, data_wait */
    T_NET,        /* texts from here on */
    T_CONV,
    T_LOSS,
    T_CONV2D,
    T_FLOAT32,
    T_FLOAT64,
    T_FILE,
    T_TRAIN,
    T_VAL,
    T_IMAGES,
    T_CROP,
    T_GETITEM,
    T_FUNCTION,
    T_FIRST,
    T_SHAPE,
    T_ITEM,
    T_AMP,
    T_DTYPE,
    T_BF16,
    T_OPERATOR,
    T_SHAPES,
    T_BETWEEN
};

static struct tb *new_trace(void)
{
    static const struct {
        uint32_t id;
        const char *text;
        unsigned phase;
    } sections[] = {{N_NET, "Net", SW_PHASE_FORWARD},
                    {N_NET_EVAL, "Net", SW_PHASE_VALIDATION},
                    {N_CONV, "Net.conv", SW_PHASE_INHERIT},
                    {N_LOSS, "CrossEntropyLoss", SW_PHASE_LOSS},
                    {N_VALIDATION, "validation", SW_PHASE_VALIDATION},
                    {N_CHECKPOINT, "checkpoint", SW_PHASE_CHECKPOINT},
                    {N_WAIT, "data_wait", SW_PHASE_DATA_WAIT}};
    static const struct {
        uint32_t id;
        const char *text;
    } texts[] = {{T_NET, "Net"},
                 {T_CONV, "Net.conv"},
                 {T_LOSS, "CrossEntropyLoss"},
                 {T_CONV2D, "Conv2d"},
                 {T_FLOAT32, "float32"},
                 {T_FLOAT64, "float64"},
                 {T_FILE, "/src/train.py"},
                 {T_TRAIN, "train_loader"},
                 {T_VAL, "val_loader"},
                 {T_IMAGES, "Images"},
                 {T_CROP, "RandomCrop"},
                 {T_GETITEM, "Images.__getitem__"},
                 {T_FUNCTION, "forward"},
                 {T_FIRST, "first call"},
                 {T_SHAPE, "size mismatch at index 0"},
                 {T_ITEM, "Tensor.item"},
                 {T_AMP, "amp"},
                 {T_DTYPE, "dtype"},
                 {T_BF16, "bfloat16"},
                 {T_OPERATOR, "aten::mm"},
                 {T_SHAPES, "[[8, 8], [8, 8]]"},
                 {T_BETWEEN, "between passes"}};
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        tb_name(tb, sections[i].id, sections[i].text, 1, sections[i].phase);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tb_name(tb, texts[i].id, texts[i].text, 0, SW_PHASE_INHERIT);
    }
    tb_thread(tb, 0, "main");
    return tb;
}

static void rows(struct tb *tb, const sw_row *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tb_row(tb, &list[i]);
    }
}
#define ROWS(tb, ...)                                                                    \
    do {                                                                                 \
        const sw_row list_[] = {__VA_ARGS__};                                            \
        rows(tb, list_, sizeof list_ / sizeof list_[0]);                                 \
    } while (0)

static const sw_training_module *module_named(const sw_training *training,
                                              const char *name)
{
    size_t count;
    const sw_training_module *modules = sw_training_modules(training, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(modules[i].name, name) == 0) {
            return &modules[i];
        }
    }
    return NULL;
}

/* --- modules --- */

/* Net [ conv, Net [ conv ] ] (a net inside itself), and a validation with a call of each. */
static struct tb *model_trace(void)
{
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, N_NET, START);
    call(tb, lane, N_CONV, START + 1 * MS, 3 * MS);
    tb_begin(tb, lane, N_NET, START + 5 * MS);
    call(tb, lane, N_CONV, START + 6 * MS, 1 * MS);
    tb_end(tb, lane, START + 8 * MS, 0);
    tb_end(tb, lane, START + 10 * MS, 0);
    call(tb, lane, N_LOSS, START + 10 * MS, 1 * MS);
    tb_begin(tb, lane, N_VALIDATION, START + 20 * MS);
    tb_begin(tb, lane, N_NET_EVAL, START + 20 * MS);
    call(tb, lane, N_CONV, START + 21 * MS, 5 * MS);
    tb_end(tb, lane, START + 28 * MS, 0);
    tb_end(tb, lane, START + 30 * MS, 0);
    ROWS(tb, {SW_TABLE_SITE, 0, 0, {SW_SITE_MODEL, T_FILE, 12, T_NET}, {T_FUNCTION}},
         {SW_TABLE_MODULE, SW_ROW_MODEL, 0, {T_NET, T_NET, 0, 1}, {0}},
         {SW_TABLE_MODULE,
          0,
          1,
          {T_CONV, T_CONV2D, T_FLOAT32, 0},
          {1000, 4000, 900, 20 * MS, 10}},
         {SW_TABLE_MODULE, SW_ROW_LOSS, 2, {T_LOSS, T_LOSS, T_FLOAT64, 99}, {1, 8, 1}},
         {SW_TABLE_MODULE, 0, 3, {4444, T_LOSS, 0, 0}, {7}});
    return tb;
}

static void modules_have_what_they_are_and_take(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, model_trace());
    write_trace(fixture, model_trace()); /* another rank */
    const sw_training *training = sw_summary_training(summarise(fixture));
    assert_true(sw_training_recorded(training));
    size_t count;
    const sw_training_module *modules = sw_training_modules(training, &count);
    assert_int_equal(count, 3); /* the one without a name is none */
    assert_true(modules[0].self_ns >= modules[1].self_ns);

    const sw_training_module *net = module_named(training, "Net");
    assert_true(net->root && !net->loss);
    assert_int_equal(net->calls, 4);
    assert_int_equal(net->total_ns, 2 * 10 * MS); /* the inner one lies in the outer */
    assert_int_equal(net->self_ns, 2 * (4 * MS + 2 * MS));
    assert_int_equal(net->min_ns, 3 * MS);
    assert_int_equal(net->max_ns, 10 * MS);
    assert_int_equal(net->validation_calls, 2);
    assert_int_equal(net->validation_ns, 2 * 8 * MS);
    assert_null(net->dtype);
    assert_string_equal(net->site->file, "/src/train.py");
    assert_string_equal(net->site->function, "forward");
    assert_int_equal(net->site->line, 12);

    const sw_training_module *conv = module_named(training, "Net.conv");
    assert_string_equal(conv->type, "Conv2d");
    assert_int_equal(conv->calls, 4);
    assert_int_equal(conv->total_ns, 2 * 4 * MS);
    assert_int_equal(conv->self_ns, conv->total_ns);
    assert_int_equal(conv->validation_calls, 2);
    assert_int_equal(conv->validation_ns, 2 * 5 * MS);
    assert_int_equal(conv->parameters, 1000); /* the same in both ranks */
    assert_int_equal(conv->bytes, 4000);
    assert_int_equal(conv->trainable, 900);
    assert_int_equal(conv->backward_ns, 2 * 20 * MS);
    assert_int_equal(conv->backward_calls, 20);
    assert_null(conv->site);
    assert_null(
        module_named(training, "CrossEntropyLoss")->site); /* there is no row 98 */
    assert_true(module_named(training, "CrossEntropyLoss")->loss);

    const sw_training_dtype *dtypes = sw_training_dtypes(training, &count);
    assert_int_equal(count, 2);
    assert_string_equal(dtypes[0].dtype, "float32");
    assert_int_equal(dtypes[0].bytes, 4000);
    assert_int_equal(dtypes[1].parameters, 1);
    sw_training_sites(training, &count);
    assert_int_equal(count, 1);
    fixture_free(fixture);
}

/* --- loaders --- */

static struct tb *training_process(void)
{
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t phases[SW_PHASE_SLOTS] = {
        [SW_PHASE_DATA_WAIT] = 2 * MS, [SW_PHASE_FORWARD] = 8 * MS};
    for (unsigned i = 0; i < 10; i++) {
        step(tb, lane, START + i * 10 * MS, phases, i / 5, 0);
    }
    const uint64_t bits = SW_LOADER_PIN | SW_LOADER_SHUFFLED;
    ROWS(tb, {SW_TABLE_SITE, 0, 0, {SW_SITE_LOADER, T_FILE, 30, T_IMAGES}, {0}},
         {SW_TABLE_LOADER, 0, 0, {T_VAL, T_IMAGES, 0, 0}, {0, 2, 50, 1, 0}},
         {SW_TABLE_LOADER, 0, 1, {T_TRAIN, T_IMAGES, 2, 16}, {bits, 2, 72, 2, 1}},
         {SW_TABLE_STAGE,
          0,
          0,
          {T_VAL, NONE, SW_STAGE_WAIT, 0},
          {30, 900 * MS, 0, MS, 50 * MS}},
         {SW_TABLE_STAGE,
          0,
          1,
          {T_TRAIN, NONE, SW_STAGE_WAIT, 0},
          {12, 24 * MS, MS, MS, 3 * MS}},
         {SW_TABLE_STAGE,
          0,
          2,
          {T_TRAIN, NONE, SW_STAGE_UNPICKLE, 0},
          {10, 5 * MS, 5 * MS, MS / 2, MS / 2}});
    return tb;
}

/* A worker whose batches take `ms` each, half of them in RandomCrop. */
static struct tb *worker_process(uint32_t number, uint64_t ms, uint64_t idle_ms)
{
    struct tb *tb = new_trace();
    ROWS(tb,
         {SW_TABLE_STAGE,
          0,
          0,
          {T_TRAIN, number, SW_STAGE_FETCH, 0},
          {5, 5 * ms * MS, 5 * ms * MS, ms * MS, ms * MS}},
         {SW_TABLE_STAGE,
          0,
          1,
          {T_TRAIN, number, SW_STAGE_GETITEM, T_GETITEM},
          {80, 4 * ms * MS, 0, 1, 7}},
         {SW_TABLE_STAGE,
          0,
          2,
          {T_TRAIN, number, SW_STAGE_TRANSFORM, T_CROP},
          {80, 3 * ms * MS, 1, 1, 5}},
         {SW_TABLE_STAGE,
          0,
          3,
          {T_TRAIN, number, SW_STAGE_COLLATE, 0},
          {5, ms * MS / 2, 1, 1, 5}},
         {SW_TABLE_STAGE,
          0,
          4,
          {T_TRAIN, number, SW_STAGE_SERIALISE, 0},
          {5, 5 * ms * MS / 10, 1, 1, 5}},
         {SW_TABLE_STAGE,
          0,
          5,
          {T_TRAIN, number, SW_STAGE_INDEX, 0},
          {5, idle_ms * MS, 0, 1, 5}},
         {SW_TABLE_STAGE,
          0,
          6,
          {T_TRAIN, number, SW_STAGE_INDEX, T_BETWEEN},
          {1, 1000 * MS, 0, 1, 5}});
    return tb;
}

static const sw_training_stage *stage_of(const sw_training_loader *loader, unsigned kind)
{
    for (size_t i = 0; i < loader->stage_count; i++) {
        if (loader->stages[i].kind == kind) {
            return &loader->stages[i];
        }
    }
    return NULL;
}

static void workers_join_their_loader(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, training_process());
    write_trace(fixture, worker_process(1, 10, 50));
    write_trace(fixture, worker_process(0, 10, 0));
    write_trace(fixture, worker_process(0, 10, 0)); /* started again */
    const sw_summary *summary = summarise(fixture);
    const sw_training *training = sw_summary_training(summary);
    size_t count;
    sw_training_loaders(training, &count);
    assert_int_equal(count, 2);
    const sw_training_loader *loader = sw_summary_main_loader(summary);
    assert_string_equal(loader->name,
                        "train_loader"); /* 12 waits are nearer to 10 steps */
    assert_string_equal(loader->dataset, "Images");
    assert_int_equal(loader->worker_setting, 2);
    assert_int_equal(loader->batch_size, 16);
    assert_int_equal(loader->prefetch_factor, 2);
    assert_int_equal(loader->samples, 72);
    assert_int_equal(loader->passes, 2);
    assert_int_equal(loader->bits, SW_LOADER_PIN | SW_LOADER_SHUFFLED);
    assert_int_equal(loader->site->line, 30);
    assert_int_equal(loader->batches, 15);
    assert_int_equal(loader->waits, 12);
    assert_int_equal(loader->wait_ns, 24 * MS);

    assert_int_equal(loader->worker_count, 2);
    assert_int_equal(loader->workers[0].worker, 0);
    assert_int_equal(loader->workers[0].batches, 10);
    assert_true(loader->workers[0].busy_share == 1);
    assert_int_equal(loader->workers[1].worker, 1);
    assert_int_equal(loader->workers[1].busy_ns, 50 * MS);
    assert_int_equal(loader->workers[1].idle_ns, 50 * MS);
    assert_true(fabs(loader->workers[1].busy_share - 0.5) < 1e-12);
    assert_int_equal(loader->workers[1].getitem_calls, 80);
    assert_int_equal(loader->workers[1].getitem_ns, 40 * MS);
    assert_int_equal(loader->workers[1].collate_ns, 5 * MS);

    /* Of the 150 ms of fetching: 90 cropping, 30 in getitem else, 15 collating, 15 besides. */
    const sw_training_stage *crop = stage_of(loader, SW_STAGE_TRANSFORM);
    assert_string_equal(crop->name, "RandomCrop");
    assert_ptr_equal(crop, loader->stages); /* the longest */
    assert_int_equal(crop->self_ns, 90 * MS);
    const sw_training_stage *getitem = stage_of(loader, SW_STAGE_GETITEM);
    assert_int_equal(getitem->ns, 120 * MS);
    assert_int_equal(getitem->self_ns, 30 * MS);
    assert_int_equal(getitem->cpu_ns, SW_UNKNOWN);
    assert_int_equal(getitem->min_ns, 1);
    assert_int_equal(getitem->max_ns, 7);
    assert_int_equal(stage_of(loader, SW_STAGE_COLLATE)->self_ns, 15 * MS);
    assert_string_equal(stage_of(loader, SW_STAGE_COLLATE)->name, "collate");
    assert_int_equal(stage_of(loader, SW_STAGE_FETCH)->self_ns, 15 * MS);
    assert_int_equal(stage_of(loader, SW_STAGE_FETCH)->cpu_ns, 150 * MS);
    assert_true(isnan(stage_of(loader, SW_STAGE_INDEX)->share));
    double shares = 0;
    for (size_t i = 0; i < loader->stage_count; i++) {
        shares += isnan(loader->stages[i].share) ? 0 : loader->stages[i].share;
    }
    assert_true(fabs(shares - 1) < 1e-12);

    /* Each worker for itself. */
    const sw_training_stage *stages = sw_training_stages(training, &count);
    assert_int_equal(count, 3 + 2 * 7);
    uint64_t fetched = 0;
    for (size_t i = 0; i < count; i++) {
        fetched += stages[i].kind == SW_STAGE_FETCH && stages[i].worker == 0
                       ? stages[i].calls
                       : 0;
    }
    assert_int_equal(fetched, 10);

    const sw_training_loader *other = sw_training_loaders(training, &count);
    assert_string_equal(other->name, "val_loader");
    assert_int_equal(other->batch_size, SW_UNKNOWN);
    assert_int_equal(other->prefetch_factor,
                     SW_UNKNOWN); /* there is nobody to prefetch */
    assert_int_equal(other->batches, 30);

    /* 72 samples in batches of 16 are 5 steps of 14.4. */
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    assert_true(fabs(steps->samples_per_s - 14.4 * 100) < 1e-6);
    fixture_free(fixture);
}

/* --- compilations, waits, settings, operators --- */

static void places_are_added_up(void **state)
{
    (void)state;
    const double two = 2;
    uint64_t bits;
    memcpy(&bits, &two, sizeof bits);
    struct fixture *fixture = fixture_new();
    for (unsigned i = 0; i < 2; i++) {
        struct tb *tb = new_trace();
        ROWS(tb, {SW_TABLE_COMPILED, 0, 0, {T_NET, T_FIRST, T_FILE, 1}, {1, MS, 0, 0, 0}},
             {SW_TABLE_COMPILED,
              SW_ROW_AGAIN,
              1,
              {T_FUNCTION, T_SHAPE, T_FILE, 5},
              {3, 40 * MS, 10 * MS, 10 * MS, 20 * MS}},
             {SW_TABLE_COMPILED, 0, 2, {T_FUNCTION, T_FIRST, T_FILE, 5}, {1, 9 * MS}},
             {SW_TABLE_WAIT,
              0,
              0,
              {T_ITEM, T_FILE, 40, SW_WAIT_SYNC},
              {100, MS, 400, 20, 0}},
             {SW_TABLE_WAIT,
              SW_ROW_UNBLOCKED,
              1,
              {T_ITEM, T_FILE, 41, SW_WAIT_H2D},
              {1, (1 + i) * 5 * MS, 8, 5 * MS, 1}},
             {SW_TABLE_SETTING, 0, 0, {T_AMP, T_DTYPE, T_BF16, 0}, {0}},
             {SW_TABLE_SETTING, 0, 1, {T_AMP, T_DTYPE, 0, 0}, {bits}},
             {SW_TABLE_OPERATOR,
              0,
              0,
              {T_OPERATOR, T_SHAPES, SW_PHASE_FORWARD, 0},
              {10, 100, 150, 8, 1024}});
        write_trace(fixture, tb);
    }
    const sw_training *training = sw_summary_training(summarise(fixture));
    size_t count;
    const sw_training_compilation *compiled = sw_training_compilations(training, &count);
    assert_int_equal(count, 3);
    assert_string_equal(compiled[0].function, "forward"); /* has most time */
    assert_string_equal(compiled[0].reason, "first call");
    assert_false(compiled[0].again);
    assert_true(compiled[1].again);
    assert_int_equal(compiled[1].compilations, 6);
    assert_int_equal(compiled[1].ns, 80 * MS);
    assert_int_equal(compiled[1].trace_ns, 20 * MS);
    assert_int_equal(compiled[1].backend_ns, 40 * MS);
    assert_int_equal(compiled[1].line, 5);
    assert_string_equal(compiled[2].function, "Net");

    const sw_training_wait *waits = sw_training_waits(training, &count);
    assert_int_equal(count, 2);
    assert_int_equal(waits[0].line, 41);
    assert_int_equal(waits[0].ns, 15 * MS);
    assert_int_equal(waits[0].pinned_calls, 2);
    assert_true(waits[0].non_blocking && !waits[1].non_blocking);
    assert_string_equal(sw_training_wait_kind_name(waits[0].kind), "h2d");
    assert_int_equal(waits[1].calls, 200);
    assert_int_equal(waits[1].bytes, 800);
    assert_int_equal(waits[1].max_ns, 20);

    const sw_training_setting *settings = sw_training_settings(training, &count);
    assert_int_equal(count, 2);
    assert_string_equal(settings[0].text, "bfloat16");
    assert_true(isnan(settings[0].number));
    assert_null(settings[1].text);
    assert_true(settings[1].number == 2);

    const sw_training_operator *operators = sw_training_operators(training, &count);
    assert_int_equal(count, 1);
    assert_int_equal(operators[0].calls, 20);
    assert_int_equal(operators[0].self_ns, 200);
    assert_int_equal(operators[0].flops, 2048);
    assert_string_equal(operators[0].shapes, "[[8, 8], [8, 8]]");
    fixture_free(fixture);
}

static void a_run_without_training_has_none(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, new_trace());
    const sw_summary *summary = summarise(fixture);
    assert_false(sw_training_recorded(sw_summary_training(summary)));
    assert_null(sw_summary_main_loader(summary));
    size_t count;
    sw_training_modules(sw_summary_training(summary), &count);
    assert_int_equal(count, 0);
    uint64_t steps;
    uint64_t ns;
    sw_summary_all_steps(summary, &steps, &ns);
    assert_int_equal(steps, 0);
    fixture_free(fixture);
}

/* --- the timeline --- */

static uint64_t part_ns(const sw_summary *summary, const char *name)
{
    for (size_t i = 0; i < sw_summary_part_count(summary); i++) {
        const sw_summary_part *part = sw_summary_get_part(summary, i);
        if (strcmp(part->part, name) == 0) {
            return part->ns;
        }
    }
    return 0;
}

static void check_sum(const sw_summary *summary)
{
    uint64_t sum = 0;
    double shares = 0;
    for (size_t i = 0; i < sw_summary_part_count(summary); i++) {
        sum += sw_summary_get_part(summary, i)->ns;
        shares += sw_summary_get_part(summary, i)->share;
    }
    assert_int_equal(sum, sw_summary_get_run(summary)->duration_ns);
    assert_true(shares == 1);
}

/* 20 steps of 10 ms in two epochs from START + 100 ms on. A trial validation of 5 ms in the startup, one of 30 ms between the
 * epochs, 3 of them a checkpoint, with a checkpoint of 4 ms behind it, one of 2 ms in step 13, and a checkpoint of 7 ms at the end. `spans` false:
 * the records of the sections were given up. */
static struct tb *validating_trace(bool spans)
{
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, N_VALIDATION, START + 50 * MS);
    call(tb, lane, N_NET_EVAL, START + 51 * MS, 2 * MS); /* lies within, counts once */
    tb_end(tb, lane, START + 55 * MS, 0);
    uint64_t at = START + 100 * MS;
    for (unsigned i = 0; i < 20; i++) {
        uint64_t phases[SW_PHASE_SLOTS] = {[SW_PHASE_FORWARD] = 10 * MS};
        if (i == 10) {
            tb_begin(tb, lane, N_VALIDATION, at);
            tb_begin(tb, lane, N_CHECKPOINT,
                     at + 10 * MS); /* a checkpoint all the same */
            call(tb, lane, N_CHECKPOINT, at + 11 * MS, 1 * MS);
            tb_end(tb, lane, at + 13 * MS, 0);
            tb_end(tb, lane, at + 30 * MS, 0);
            call(tb, lane, N_CHECKPOINT, at + 31 * MS, 4 * MS);
            at += 40 * MS;
        }
        if (i == 13) {
            phases[SW_PHASE_FORWARD] = 8 * MS;
            phases[SW_PHASE_VALIDATION] = 2 * MS;
            call(tb, lane, N_VALIDATION, at + 1 * MS, 2 * MS);
        }
        step(tb, lane, at, phases, i / 10, 0);
        at += 10 * MS;
    }
    call(tb, lane, N_CHECKPOINT, at + 1 * MS, 7 * MS);
    tb_seal(tb);
    for (size_t i = 0; !spans && i < tb->block_count; i++) {
        if (tb->blocks[i].head->kind == SW__BLOCK_EVENTS) {
            tb->blocks[i].head->kind = SW__BLOCK_FREE;
        }
    }
    return tb;
}

static void validation_and_checkpoints_are_parts(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, validating_trace(true));
    const sw_summary *summary = summarise(fixture);
    check_sum(summary);
    assert_int_equal(part_ns(summary, "validation"), (5 + 27 + 2) * MS);
    assert_int_equal(part_ns(summary, "checkpoint"), (3 + 4 + 7) * MS);
    assert_int_equal(part_ns(summary, "steps"), 198 * MS);
    assert_int_equal(part_ns(summary, "startup"), 95 * MS);
    assert_int_equal(part_ns(summary, "between_epochs"), 6 * MS);
    const uint64_t end = sw_summary_get_run(summary)->duration_ns - (340 - 0) * MS;
    assert_int_equal(part_ns(summary, "teardown"), end - 7 * MS);
    assert_int_equal(sw_summary_get_steps(summary)->phase[SW_PHASE_VALIDATION].total_ns,
                     2 * MS);
    fixture_free(fixture);
}

static void without_spans_the_amounts_stay(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, validating_trace(false));
    const sw_summary *summary = summarise(fixture);
    check_sum(summary);
    assert_int_equal(part_ns(summary, "validation"), (5 + 27 + 2) * MS);
    assert_int_equal(part_ns(summary, "checkpoint"), (3 + 4 + 7) * MS);
    assert_int_equal(part_ns(summary, "steps"), 198 * MS);
    /* Where they were is a guess: the gap between the epochs is used up first. */
    assert_int_equal(part_ns(summary, "between_epochs"), 0);
    fixture_free(fixture);
}

static void an_evaluation_has_no_steps(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = new_trace();
    call(tb, tb_lane(tb, 0, 0), N_VALIDATION, START + 5 * MS, 30 * MS);
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    check_sum(summary);
    assert_null(sw_summary_get_steps(summary));
    assert_int_equal(part_ns(summary, "validation"), 30 * MS);
    fixture_free(fixture);
}

static void an_open_validation_counts(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb->super.state = SW__STATE_FOLDED;
    uint64_t phases[SW_PHASE_SLOTS] = {10 * MS};
    step(tb, lane, START, phases, 0, 0);
    tb_begin(tb, lane, N_VALIDATION, START + 20 * MS);
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    check_sum(summary);
    assert_int_equal(part_ns(summary, "teardown"), 10 * MS);
    assert_int_equal(part_ns(summary, "validation"),
                     sw_summary_get_run(summary)->duration_ns - 20 * MS);
    fixture_free(fixture);
}

/* --- warm-up --- */

/* Steps of the given length in ms; those with a minus have half of it in compile. */
static uint64_t warmup_of(const int *lengths, size_t count)
{
    struct fixture *fixture = fixture_new();
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    for (size_t i = 0; i < count; i++) {
        const uint64_t ns = (uint64_t)abs(lengths[i]) * MS;
        uint64_t phases[SW_PHASE_SLOTS] = {0};
        phases[SW_PHASE_COMPILE] = lengths[i] < 0 ? ns / 2 : 0;
        phases[SW_PHASE_FORWARD] = ns - phases[SW_PHASE_COMPILE];
        step(tb, lane, at, phases, 0, 0);
        at += ns;
    }
    write_trace(fixture, tb);
    const sw_summary_steps *steps = sw_summary_get_steps(summarise(fixture));
    const uint64_t warmup = steps->warmup;
    assert_int_equal(steps->counted + warmup, count);
    fixture_free(fixture);
    return warmup;
}

static void warm_up_is_what_is_slow_at_first(void **state)
{
    (void)state;
    int steps[100];
    for (int i = 0; i < 100; i++) {
        steps[i] = 100 + i * 7 % 11; /* 100 to 110 ms, mixed */
    }
    assert_int_equal(warmup_of(steps, 100), 0);
    assert_int_equal(warmup_of(steps, 4), 0);
    steps[0] = 114; /* within a fifth */
    assert_int_equal(warmup_of(steps, 100), 0);
    steps[0] = 300;
    steps[1] = 200;
    assert_int_equal(warmup_of(steps, 100), 2);
    assert_int_equal(warmup_of(steps, 10), 1); /* a tenth at most */
    assert_int_equal(warmup_of(steps, 4), 0);
    steps[4] = 900; /* later ones belong to the program */
    assert_int_equal(warmup_of(steps, 100), 2);
    for (int i = 0; i < 15; i++) {
        steps[i] = 300;
    }
    assert_int_equal(warmup_of(steps, 100), 10);
    for (int i = 0; i < 15; i++) {
        steps[i] = -300; /* a compiler may take its time */
    }
    assert_int_equal(warmup_of(steps, 100), 15);
}

static void what_happens_all_the_time_is_no_warm_up(void **state)
{
    (void)state;
    int steps[100];
    for (int i = 0; i < 100; i++) {
        steps[i] = -(100 + i % 3); /* recompiles for ever */
    }
    assert_int_equal(warmup_of(steps, 100), 0);
    for (int i = 0; i < 100; i++) {
        steps[i] = i % 5 == 0 ? 200 : 100; /* every fifth one logs */
    }
    assert_int_equal(warmup_of(steps, 100), 0);
    for (int i = 0; i < 100; i++) {
        steps[i] = i == 0 || i == 2 || i == 50 ? -5000 : 1;
    }
    assert_int_equal(warmup_of(steps, 100), 3); /* the second time soon after the first */
}

/* --- reports --- */

static char *json_of(const sw_summary *summary)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_json(writer, summary, NULL);
    size_t length;
    const char *text = sw_writer_text(writer, &length);
    struct sw__scan scan = {.at = text, .end = text + length};
    assert_true(sw__scan_skip(&scan));
    assert_false(scan.bad);
    char *copy = strdup(text);
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

static void check_text(const sw_summary *summary, size_t columns, bool unicode)
{
    sw_writer *writer = sw_writer_to_memory();
    const sw_text_options options = {
        .columns = columns, .unicode = unicode, .top = SW_TEXT_ALL};
    sw_export_report_text(writer, summary, NULL, &options);
    const char *text = sw_writer_text(writer, NULL);
    while (*text) {
        const size_t length = strcspn(text, "\n");
        assert_true(sw_text_columns(text, length) <= columns);
        assert_true(length == 0 || text[length - 1] != ' ');
        for (size_t i = 0; i < length; i++) {
            const unsigned char c = (unsigned char)text[i];
            assert_true(c >= 0x20 && c != 0x7f && (unicode || c < 0x80));
        }
        text += length + 1;
    }
    assert_int_equal(sw_writer_close(writer, NULL), 0);
}

static void check_reports(const sw_summary *summary)
{
    free(json_of(summary));
    for (size_t columns = SW_TEXT_COLUMNS_MIN; columns <= SW_TEXT_COLUMNS_MAX;
         columns += 13) {
        check_text(summary, columns, false);
        check_text(summary, columns, true);
    }
}

static void reports_tell_of_training(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = training_process();
    ROWS(tb,
         {SW_TABLE_MODULE, 0, 0, {T_CONV, T_CONV2D, T_FLOAT32, 0}, {10, 40, 10, MS, 2}},
         {SW_TABLE_COMPILED,
          SW_ROW_AGAIN,
          0,
          {T_FUNCTION, T_SHAPE, T_FILE, 5},
          {3, 40 * MS}},
         {SW_TABLE_WAIT, 0, 0, {T_ITEM, T_FILE, 40, SW_WAIT_SYNC}, {100, MS, 4, 20, 0}});
    call(tb, tb->lanes[0], N_CONV, START, 5 * MS);
    write_trace(fixture, tb);
    write_trace(fixture, worker_process(0, 10, 5));
    const sw_summary *summary = summarise(fixture);
    check_reports(summary);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_text(writer, summary, NULL,
                          &(sw_text_options){.columns = 200, .top = 20});
    const char *text = sw_writer_text(writer, NULL);
    static const char *const expected[] = {
        "Loader   train_loader: 2 workers | batch of 16 | pin_memory | prefetch_factor 2",
        "steps wait 20.0 % for it",
        "a batch  RandomCrop 6.00 ms",
        "Slowest modules",
        "Net.conv",
        "most of it forward (train.py:5): size mismatch at index 0",
        "Waits    Tensor.item (train.py:40) 1.00 ms in 100 calls"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (!strstr(text, expected[i])) {
            fail_msg("'%s' is not in:\n%s", expected[i], text);
        }
    }
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    fixture_free(fixture);
}

/* Rows with every value that damage may leave: no crash, no loop, whole reports. */
static void hostile_rows_do_no_harm(void **state)
{
    (void)state;
    static const uint32_t keys[] = {0,       1,       T_NET,      T_CONV, T_TRAIN,   99,
                                    1 << 20, 1 << 31, UINT32_MAX, T_FILE, N_NET_EVAL};
    static const uint64_t values[] = {
        0, 1, 2, MS, 1ull << 32, 1ull << 63, INT64_MAX, UINT64_MAX, 0x7ff8000000000000u};
    uint64_t random = 42;
    for (unsigned round = 0; round < 20; round++) {
        struct fixture *fixture = fixture_new();
        for (unsigned file = 0; file < 2; file++) {
            struct tb *tb = file ? training_process() : model_trace();
            uint32_t index[SW_TABLES] = {0};
            for (unsigned i = 0; i < 300; i++) {
                sw_row row = {.table = (uint16_t)(SW_TABLE_SITE + tb_random(&random) % 8),
                              .flags = (uint16_t)tb_random(&random)};
                row.index = index[row.table]++;
                for (unsigned k = 0; k < 4; k++) {
                    row.key[k] = keys[tb_random(&random) % 11];
                }
                if (row.table == SW_TABLE_STAGE) {
                    row.key[2] = (uint32_t)(tb_random(&random) % 16);
                }
                for (unsigned v = 0; v < 5; v++) {
                    row.value[v] = values[tb_random(&random) % 9];
                }
                tb_row(tb, &row);
            }
            write_trace(fixture, tb);
        }
        const sw_summary *summary = summarise(fixture);
        check_sum(summary);
        free(json_of(summary));
        check_text(summary, 60 + round * 7, round % 2);
        fixture_free(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_have_what_they_are_and_take),
        cmocka_unit_test(workers_join_their_loader),
        cmocka_unit_test(places_are_added_up),
        cmocka_unit_test(a_run_without_training_has_none),
        cmocka_unit_test(validation_and_checkpoints_are_parts),
        cmocka_unit_test(without_spans_the_amounts_stay),
        cmocka_unit_test(an_evaluation_has_no_steps),
        cmocka_unit_test(an_open_validation_counts),
        cmocka_unit_test(warm_up_is_what_is_slow_at_first),
        cmocka_unit_test(what_happens_all_the_time_is_no_warm_up),
        cmocka_unit_test(reports_tell_of_training),
        cmocka_unit_test(hostile_rows_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Counting for an allocator of small blocks: what is counted is exact, in sum and for sections, also beside samples. */
#include "recorder_util.h"

#include <pthread.h>
#include <stdalign.h>
#include <stepwatch/heap.h>

enum { POOL = 1 << 14, POOLS = 33 };

/* A pool a size, which are multiples of 16; blocks are given out in turn and never used again. */
static struct {
    alignas(POOL) char pool[POOLS][POOL];
    size_t used[POOLS];
    bool stays; /* realloc leaves blocks where they are */
} small;

static void *small_malloc(void *context, size_t size)
{
    const size_t grains = size ? (size + 15) / 16 : 1;
    (void)context;
    if (grains >= POOLS || small.used[grains] + grains * 16 > POOL) {
        return NULL;
    }
    void *block = small.pool[grains] + small.used[grains];
    small.used[grains] += grains * 16;
    return block;
}

static void *small_calloc(void *context, size_t count, size_t size)
{
    return small_malloc(context, count * size);
}

static void *small_realloc(void *context, void *block, size_t size)
{
    return small.stays ? block : small_malloc(context, size);
}

static void small_free(void *context, void *block)
{
    (void)context;
    (void)block;
}

static const sw_heap_allocator original = {NULL, small_malloc, small_calloc,
                                           small_realloc, small_free};
static sw_heap_allocator pools;

static int begin(void **state)
{
    small.stays = false;
    memset(small.used, 0, sizeof small.used);
    return ru_setup(state);
}

static void start(uint64_t sample_bytes)
{
    assert_int_equal(sw_heap_start(sample_bytes, NULL), 0);
    assert_int_equal(sw_heap_pools_prepare(14), 0);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &original, 512);
}

static sw_heap_totals counted(void)
{
    sw_heap_stats stats;
    sw_heap_read(&stats);
    return stats.part[SW_HEAP_OBJECT];
}

#define assert_counted(before, bytes, count, bytes_gone, count_gone)                     \
    do {                                                                                 \
        const sw_heap_totals now = counted();                                            \
        assert_int_equal(now.allocated - (before).allocated, (bytes));                   \
        assert_int_equal(now.blocks - (before).blocks, (count));                         \
        assert_int_equal(now.freed - (before).freed, (bytes_gone));                      \
        assert_int_equal(now.blocks_freed - (before).blocks_freed, (count_gone));        \
    } while (0)

static void test_counts(void **state)
{
    (void)state;
    for (unsigned samples = 0; samples < 2; samples++) {
        small.used[3] = 0;
        start(samples ? 64 : 0);
        const sw_heap_totals before = counted();
        for (unsigned i = 0; i < 300; i++) {
            void *block = pools.malloc(NULL, 33 + i % 16);
            assert_non_null(block);
            if (i % 3 != 0) {
                pools.free(NULL, block);
            }
        }
        assert_counted(before, 300 * 48, 300, 200 * 48, 200);
        /* There is no room for more: nothing was made, nothing is counted. */
        small.used[3] = POOL;
        assert_null(pools.malloc(NULL, 48));
        pools.free(NULL, NULL);
        assert_counted(before, 300 * 48, 300, 200 * 48, 200);
        sw_heap_stop();
    }
}

static void test_sizes(void **state)
{
    (void)state;
    start(0);
    sw_heap_totals before = counted();
    void *none = pools.malloc(NULL, 0);
    void *most = pools.malloc(NULL, 512);
    void *zeros = pools.calloc(NULL, 5, 20);
    void *empty = pools.calloc(NULL, 0, 20);
    /* Those of no bytes are left to malloc, which nobody has called here. */
    assert_counted(before, 512 + 112, 2, 0, 0);
    pools.free(NULL, none);
    pools.free(NULL, most);
    pools.free(NULL, zeros);
    pools.free(NULL, empty);
    assert_counted(before, 624, 2, 624, 2);
    /* One that moves is freed and made; one that stays is as it was. */
    void *block = pools.realloc(NULL, NULL, 64);
    block = pools.realloc(NULL, block, 128);
    before = counted();
    small.stays = true;
    assert_ptr_equal(pools.realloc(NULL, block, 120), block);
    assert_counted(before, 128, 1, 128, 1);
    pools.free(NULL, block);
    assert_counted(before, 128, 1, 256, 2);
    sw_heap_stop();
}

/* Nothing comes from pools: malloc is called for the part, and nobody else's calls are. */
static unsigned seen;

static void *see_malloc(void *context, size_t size)
{
    (void)context;
    (void)size;
    seen = sw_heap_within();
    return NULL;
}

static void test_within(void **state)
{
    (void)state;
    sw_heap_allocator other = original;
    other.malloc = see_malloc;
    start(0);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &other, 512);
    const sw_heap_totals before = counted();
    assert_null(pools.malloc(NULL, 513));
    assert_int_equal(seen, SW_HEAP_OBJECT);
    assert_int_equal(sw_heap_within(), SW_HEAP_NATIVE);
    assert_int_equal(sw_heap_pools_prepare(0), 0);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &other, 0);
    seen = SW_HEAP_NATIVE;
    assert_null(pools.malloc(NULL, 0));
    assert_int_equal(seen, SW_HEAP_OBJECT);
    assert_counted(before, 0, 0, 0, 0);
    sw_heap_stop();
}

static void take(void **blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = pools.malloc(NULL, 256);
        ru_must(blocks[i] != NULL);
    }
}

static void give(void **blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        pools.free(NULL, blocks[i]);
    }
}

static void sections(bool allocate)
{
    void *outside[10], *inside[20];
    SW_SCOPE("outer");
    if (allocate) {
        take(outside, 10);
        give(outside, 5);
    }
    {
        SW_SCOPE("inner");
        if (allocate) {
            take(inside, 20);
            give(inside, 20);
        }
    }
    if (allocate) {
        give(outside + 5, 5);
    }
}

static const sw_row *row_of(const struct ru_trace *trace, uint64_t blocks)
{
    for (size_t i = 0; i < sw_trace_row_count(trace->trace, SW_TABLE_ALLOCATIONS); i++) {
        const sw_row *row = sw_trace_get_row(trace->trace, SW_TABLE_ALLOCATIONS, i);
        if (row->value[1] == blocks && row->key[2] == 0) {
            return row;
        }
    }
    return NULL;
}

/* value: bytes, blocks, bytes freed, blocks freed, peak. */
static void test_peaks_of_sections(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sections(false); /* what is made once is made now */
    start(0);
    sections(true);
    struct ru_trace trace = ru_finish();
    sw_heap_stop();
    const sw_row *outer = row_of(&trace, 30), *inner = row_of(&trace, 20);
    assert_true(outer && inner);
    assert_int_equal(outer->value[0], 30 * 256);
    assert_int_equal(outer->value[2], 30 * 256);
    assert_int_equal(outer->value[3], 30);
    assert_int_equal(outer->value[4], 25 * 256);
    assert_int_equal(inner->value[0], 20 * 256);
    assert_int_equal(inner->value[4], 20 * 256);
    /* Its parts follow: here there is one. */
    const sw_row *part = inner + 1;
    assert_int_equal(part->key[0], inner->key[0]);
    assert_int_equal(part->key[1], inner->key[1]);
    assert_true(part->key[2] > 0);
    assert_memory_equal(part->value, inner->value, 4 * sizeof part->value[0]);
    ru_free(&trace);
}

/* Sections tell nobody while nothing is counted, and do so again after that. */
static void test_sections_again(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sections(false);
    for (unsigned i = 0; i < 3; i++) {
        small.used[16] = 0;
        start(0);
        sections(true);
        sw_heap_stop();
        sections(false);
    }
    start(0);
    struct ru_trace trace = ru_finish();
    sw_heap_stop();
    const sw_row *outer = row_of(&trace, 90), *inner = row_of(&trace, 60);
    assert_true(outer && inner);
    assert_int_equal(outer->value[0], 90 * 256);
    assert_int_equal(outer->value[3], 90);
    assert_int_equal(outer->value[4], 25 * 256);
    assert_int_equal(inner->value[0], 60 * 256);
    assert_int_equal(inner->value[4], 20 * 256);
    ru_free(&trace);
}

/* Sections one inside the other, opened and closed at random, with and without phases and steps, while resident memory is read or not:
 * what is counted for each, and how often it was called, is what a model says. */
enum { DEPTHS = 6, ROUNDS = 20000 };
static const char *const deep[DEPTHS] = {"train", "epoch", "forward",
                                         "layer", "loss",  "backward"};
struct model {
    uint64_t calls[DEPTHS], made[DEPTHS], gone[DEPTHS];
    int64_t peak[DEPTHS]; /* of any call */
    int64_t base[DEPTHS], most[DEPTHS];
    int64_t net;
    unsigned depth;
};

static void model_block(struct model *model, int64_t by)
{
    model->net += by;
    for (unsigned i = 0; i < model->depth; i++) {
        model->made[i] += by > 0;
        model->gone[i] += by < 0;
        const int64_t above = model->net - model->base[i];
        model->most[i] = above > model->most[i] ? above : model->most[i];
    }
}

static void model_leave(struct model *model)
{
    const unsigned i = --model->depth;
    model->calls[i]++;
    model->peak[i] = model->most[i] > model->peak[i] ? model->most[i] : model->peak[i];
}

static void follow_model(struct model *model)
{
    uint32_t random = 7;
    void *kept[64];
    unsigned count = 0;
    for (unsigned round = 0; round < ROUNDS || model->depth || count; round++) {
        random = random * 1664525u + 1013904223u;
        const unsigned what = round < ROUNDS ? random >> 29 : 4 + (random >> 30 & 1) * 2;
        if (what < 3 && model->depth < DEPTHS) {
            sw_begin(sw_section_get(deep[model->depth]));
            model->base[model->depth] = model->net;
            model->most[model->depth++] = 0;
        } else if ((what == 3 || what == 4) && model->depth) {
            model_leave(model);
            sw_end(sw_section_get(deep[model->depth]));
        } else if (what == 5 && count < 64) {
            small.used[16] = 0;
            kept[count++] = pools.malloc(NULL, 256);
            model_block(model, 256);
        } else if (what == 6 && count) {
            pools.free(NULL, kept[--count]);
            model_block(model, -256);
        } else if (what == 7 && model->depth == 0) {
            sw_step_end();
            sw_step_begin();
        }
    }
}

static void test_sections_at_random(void **state)
{
    (void)state;
    for (unsigned memory = 0; memory < 2; memory++) {
        struct model model = {0};
        setenv("STEPWATCH_MEMORY", memory ? "1" : "0", 1);
        ru_start((sw_config){0});
        start(0);
        sw_step_begin();
        follow_model(&model);
        sw_step_end();
        struct ru_trace trace = ru_finish();
        sw_heap_stop();
        for (unsigned i = 0; i < DEPTHS; i++) {
            const sw_row *row = row_of(&trace, model.made[i]);
            assert_non_null(row);
            assert_int_equal(row->value[0], model.made[i] * 256);
            assert_int_equal(row->value[3], model.gone[i]);
            assert_int_equal(row->value[4], model.peak[i]);
            const sw_trace_node *node =
                &ru_lane(&trace, row->key[0], 0)->nodes[row->key[1]];
            assert_int_equal(node->calls, model.calls[i]);
        }
        ru_free(&trace);
    }
    unsetenv("STEPWATCH_MEMORY");
}

/* Sections of a thread that allocates before it records anything. */
static void *allocate_first(void *arg)
{
    void *block = pools.malloc(NULL, 256);
    (void)arg;
    sections(true);
    pools.free(NULL, block);
    return NULL;
}

static void test_sections_of_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    ru_start((sw_config){0});
    start(0);
    assert_int_equal(pthread_create(&thread, NULL, allocate_first, NULL), 0);
    pthread_join(thread, NULL);
    struct ru_trace trace = ru_finish();
    sw_heap_stop();
    const sw_row *outer = row_of(&trace, 30);
    assert_non_null(outer);
    assert_int_equal(outer->value[2], 30 * 256);
    assert_int_equal(outer->value[4], 25 * 256);
    ru_free(&trace);
}

/* Tables of samples grow: every block is sampled, at a place of its own, and each is found again when it is freed. Nobody
 * touches the memory, so there is none. */
enum { MANY = 6000 };
static uintptr_t next_address = (uintptr_t)1 << 40;
static uint32_t walked;

static void *far_malloc(void *context, size_t size)
{
    (void)context;
    (void)size;
    next_address += 512;
    return (void *)next_address;
}

static size_t walk(sw_heap_frame *out, size_t most)
{
    assert_true(most >= 2);
    out[0] = (sw_heap_frame){walked++, 7};
    out[1] = (sw_heap_frame){1, 1};
    return 2;
}

static double live_now(size_t *sites)
{
    sw_heap_snapshot snapshot;
    assert_int_equal(sw_heap_snapshot_take(&snapshot), 0);
    const double live = snapshot.live;
    *sites = snapshot.count;
    sw_heap_snapshot_free(&snapshot);
    return live;
}

/* Pools that share a place in the table of hooks, and a pool whose blocks have another size than before. */
static uintptr_t given;

static void *given_malloc(void *context, size_t size)
{
    (void)context;
    (void)size;
    return (void *)given;
}

static void test_places_of_pools(void **state)
{
    (void)state;
    sw_heap_allocator known = original;
    known.malloc = given_malloc;
    start(0);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &known, 512);
    const sw_heap_totals before = counted();
    const uintptr_t near = (uintptr_t)3 << 40, far = near + ((uintptr_t)1 << 30);
    for (unsigned i = 0; i < 10; i++) {
        given = near + 64;
        assert_ptr_equal(pools.malloc(NULL, i % 2 ? 48 : 33), (void *)(near + 64));
        given = far + 64;
        assert_ptr_equal(pools.malloc(NULL, 512), (void *)(far + 64));
        pools.free(NULL, (void *)(near + 64));
        pools.free(NULL, (void *)(far + 64));
    }
    assert_counted(before, 10 * 560, 20, 10 * 560, 20);
    for (unsigned size = 16; size <= 512; size += 16) {
        given = near + 64;
        void *block = pools.malloc(NULL, size);
        const sw_heap_totals held = counted();
        pools.free(NULL, block);
        assert_counted(held, 0, 0, size, 1);
    }
    sw_heap_stop();
}

/* What one thread has freed is not in what another one takes for the most. */
enum { SOME = 1000 };

static void *take_and_give(void *arg)
{
    void *blocks[SOME];
    (void)arg;
    for (unsigned i = 0; i < SOME; i++) {
        blocks[i] = pools.malloc(NULL, 512);
    }
    for (unsigned i = 0; i < SOME; i++) {
        pools.free(NULL, blocks[i]);
    }
    return NULL;
}

static void *stay(void *arg)
{
    pthread_barrier_t *barrier = arg;
    take_and_give(NULL);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void test_peak_of_threads(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    sw_heap_window window;
    sw_heap_allocator far = original;
    far.malloc = far_malloc;
    start(0);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &far, 512);
    const int number = sw_heap_window_open();
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, stay, &barrier), 0);
    pthread_barrier_wait(&barrier);
    take_and_give(NULL);
    sw_heap_window_read(number, &window);
    assert_true(window.peak - window.begin <= SOME * 512 + 4096);
    assert_true(window.peak - window.begin >= SOME * 512 - 2 * 64 * 1024);
    assert_true(window.now - window.begin < 4096);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    sw_heap_window_close(number);
    sw_heap_stop();
}

static void test_many_samples(void **state)
{
    (void)state;
    static void *blocks[MANY];
    sw_heap_allocator far = original;
    far.malloc = far_malloc;
    size_t sites;
    sw_heap_set_walk(walk, false);
    start(1);
    pools = sw_heap_pools_count(SW_HEAP_OBJECT, &far, 512);
    for (unsigned i = 0; i < MANY; i++) {
        blocks[i] = pools.malloc(NULL, 512);
    }
    /* When they come too fast one stands for more than itself, of 128 bytes at most: nearly all are taken all the same. */
    const double live = live_now(&sites);
    assert_true(live > 0.95 * MANY * 512 && live < 1.05 * MANY * 512);
    assert_true(sites > MANY * 9 / 10);
    for (unsigned i = 0; i < MANY; i += 2) {
        pools.free(NULL, blocks[i]);
    }
    const double half = live_now(&sites);
    assert_true(half > 0.45 * live && half < 0.55 * live);
    for (unsigned i = 1; i < MANY; i += 2) {
        pools.free(NULL, blocks[i]);
    }
    assert_true(live_now(&sites) < 0.01 * live);
    sw_heap_stop();
    sw_heap_set_walk(NULL, false);
}

#define heap_test(function) cmocka_unit_test_setup_teardown(function, begin, ru_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        heap_test(test_counts),
        heap_test(test_sizes),
        heap_test(test_within),
        heap_test(test_peaks_of_sections),
        heap_test(test_many_samples),
        heap_test(test_sections_again),
        heap_test(test_sections_at_random),
        heap_test(test_places_of_pools),
        heap_test(test_peak_of_threads),
        heap_test(test_sections_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

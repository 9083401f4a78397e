/* Counting for an allocator of small blocks: what is counted is exact, in sum and for sections, also beside samples. */
#include "recorder_util.h"

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

static sw_heap_pools pools = {.malloc = small_malloc,
                              .calloc = small_calloc,
                              .realloc = small_realloc,
                              .free = small_free,
                              .part = SW_HEAP_OBJECT,
                              .small_most = 512};

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
            void *block = sw_heap_pools_malloc(&pools, 33 + i % 16);
            assert_non_null(block);
            if (i % 3 != 0) {
                sw_heap_pools_free(&pools, block);
            }
        }
        assert_counted(before, 300 * 48, 300, 200 * 48, 200);
        /* There is no room for more: nothing was made, nothing is counted. */
        small.used[3] = POOL;
        assert_null(sw_heap_pools_malloc(&pools, 48));
        sw_heap_pools_free(&pools, NULL);
        assert_counted(before, 300 * 48, 300, 200 * 48, 200);
        sw_heap_stop();
    }
}

static void test_sizes(void **state)
{
    (void)state;
    start(0);
    sw_heap_totals before = counted();
    void *none = sw_heap_pools_malloc(&pools, 0);
    void *most = sw_heap_pools_malloc(&pools, 512);
    void *zeros = sw_heap_pools_calloc(&pools, 5, 20);
    void *empty = sw_heap_pools_calloc(&pools, 0, 20);
    assert_counted(before, 16 + 512 + 112 + 16, 4, 0, 0);
    sw_heap_pools_free(&pools, none);
    sw_heap_pools_free(&pools, most);
    sw_heap_pools_free(&pools, zeros);
    sw_heap_pools_free(&pools, empty);
    assert_counted(before, 656, 4, 656, 4);
    /* One that moves is freed and made; one that stays is as it was. */
    void *block = sw_heap_pools_realloc(&pools, NULL, 64);
    block = sw_heap_pools_realloc(&pools, block, 128);
    before = counted();
    small.stays = true;
    assert_ptr_equal(sw_heap_pools_realloc(&pools, block, 120), block);
    assert_counted(before, 128, 1, 128, 1);
    sw_heap_pools_free(&pools, block);
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
    sw_heap_pools other = pools;
    other.malloc = see_malloc;
    start(0);
    const sw_heap_totals before = counted();
    assert_null(sw_heap_pools_malloc(&other, 513));
    assert_int_equal(seen, SW_HEAP_OBJECT);
    assert_int_equal(sw_heap_within(), SW_HEAP_NATIVE);
    assert_int_equal(sw_heap_pools_prepare(0), 0);
    other.small_most = 0;
    seen = SW_HEAP_NATIVE;
    assert_null(sw_heap_pools_malloc(&other, 0));
    assert_int_equal(seen, SW_HEAP_OBJECT);
    assert_counted(before, 0, 0, 0, 0);
    sw_heap_stop();
}

static void take(void **blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = sw_heap_pools_malloc(&pools, 256);
        ru_must(blocks[i] != NULL);
    }
}

static void give(void **blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        sw_heap_pools_free(&pools, blocks[i]);
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
        if (row->value[1] == blocks) {
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

static void test_many_samples(void **state)
{
    (void)state;
    static void *blocks[MANY];
    sw_heap_pools far = pools;
    far.malloc = far_malloc;
    size_t sites;
    sw_heap_set_walk(walk, false);
    start(1);
    for (unsigned i = 0; i < MANY; i++) {
        blocks[i] = sw_heap_pools_malloc(&far, 512);
    }
    /* When they come too fast one stands for more than itself, of 128 bytes at most: nearly all are taken all the same. */
    const double live = live_now(&sites);
    assert_true(live > 0.95 * MANY * 512 && live < 1.05 * MANY * 512);
    assert_true(sites > MANY * 9 / 10);
    for (unsigned i = 0; i < MANY; i += 2) {
        sw_heap_pools_free(&far, blocks[i]);
    }
    const double half = live_now(&sites);
    assert_true(half > 0.45 * live && half < 0.55 * live);
    for (unsigned i = 1; i < MANY; i += 2) {
        sw_heap_pools_free(&far, blocks[i]);
    }
    assert_true(live_now(&sites) < 0.01 * live);
    sw_heap_stop();
    sw_heap_set_walk(NULL, false);
}

#define heap_test(function) cmocka_unit_test_setup_teardown(function, begin, ru_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        heap_test(test_counts),       heap_test(test_sizes),
        heap_test(test_within),       heap_test(test_peaks_of_sections),
        heap_test(test_many_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The heap seam and the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void seam_counts_and_checks_overflow(void **state)
{
    (void)state;
    uint64_t before = sw__alloc_count();
    void *memory = sw__alloc(0);
    assert_non_null(memory);
    memory = sw__realloc(memory, 10, 10);
    assert_non_null(memory);
    sw__free(memory);
    unsigned char *zeros = sw__alloc_zero(16, 4);
    assert_non_null(zeros);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(zeros[i], 0);
    }
    sw__free(zeros);
    assert_int_equal(sw__alloc_count() - before, 3);
    assert_null(sw__alloc_zero(SIZE_MAX / 2, 4));
    assert_null(sw__realloc(NULL, SIZE_MAX / 2, 4));
    sw__free(NULL);
}

static void strndup_ends_with_nul(void **state)
{
    (void)state;
    char *copy = sw__strndup("abcdef", 3);
    assert_string_equal(copy, "abc");
    sw__free(copy);
    copy = sw__strndup(NULL, 0);
    assert_string_equal(copy, "");
    sw__free(copy);
    assert_null(sw__strndup("x", SIZE_MAX));
}

static void memory_is_aligned_and_apart(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static unsigned char *taken[COUNT];
    static size_t sizes[COUNT];
    sw__arena *arena = sw__arena_create(0);
    srand(1);
    for (size_t i = 0; i < COUNT; i++) {
        size_t align = (size_t)1 << (rand() % 8);
        sizes[i] = (size_t)(rand() % 100 == 0 ? rand() % 20000 : rand() % 64);
        taken[i] = sw__arena_take(arena, sizes[i], align);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % align, 0);
        memset(taken[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(taken[i][k], i % 251);
        }
    }
    sw__arena_free(arena);
}

static void limit_holds(void **state)
{
    (void)state;
    enum { LIMIT = 10000 };
    sw__arena *arena = sw__arena_create(LIMIT);
    size_t total = 0;
    while (sw__arena_take(arena, 100, 1)) {
        total += 100;
        assert_true(total <= LIMIT);
    }
    assert_true(total > LIMIT / 2);
    assert_null(sw__arena_take(arena, 100, 1));
    sw__arena_free(arena);

    arena = sw__arena_create(64);
    assert_null(sw__arena_take(arena, 1000, 1));
    assert_non_null(sw__arena_take(arena, 8, 8));
    sw__arena_free(arena);
}

static void large_ones_do_not_waste_the_current_block(void **state)
{
    (void)state;
    sw__arena *arena = sw__arena_create(0);
    char *first = sw__arena_take(arena, 16, 16);
    assert_non_null(sw__arena_take(arena, 1 << 20, 1));
    uint64_t before = sw__alloc_count();
    char *second = sw__arena_take(arena, 16, 16);
    assert_int_equal(sw__alloc_count(), before);
    assert_true(second == first + 16);
    sw__arena_free(arena);
}

static void wrong_requests_give_null(void **state)
{
    (void)state;
    sw__arena *arena = sw__arena_create(0);
    assert_null(sw__arena_take(arena, 8, 0));
    assert_null(sw__arena_take(arena, 8, 3));
    assert_null(sw__arena_take(arena, SIZE_MAX, 1));
    assert_null(sw__arena_take(arena, SIZE_MAX - 32, 8));
    assert_null(sw__arena_copy(arena, "", SIZE_MAX));
    assert_string_equal(sw__arena_copy(arena, "abc", 2), "ab");
    assert_string_equal(sw__arena_copy(arena, NULL, 0), "");
    sw__arena_free(arena);
    sw__arena_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seam_counts_and_checks_overflow),
        cmocka_unit_test(strndup_ends_with_nul),
        cmocka_unit_test(memory_is_aligned_and_apart),
        cmocka_unit_test(limit_holds),
        cmocka_unit_test(large_ones_do_not_waste_the_current_block),
        cmocka_unit_test(wrong_requests_give_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

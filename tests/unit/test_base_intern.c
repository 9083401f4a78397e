/* Interning, alone and by several threads, families of names, and the hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/memory.h"

/* The address sanitizer's heap can stay locked in a child of a process with threads. */
#if defined(__SANITIZE_ADDRESS__)
#define HEAP_NEEDS_NO_FORK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAP_NEEDS_NO_FORK 1
#endif
#endif

#define NAMES 10000u
#define THREADS 4u

static void ids_come_in_order_of_arrival(void **state)
{
    (void)state;
    sw__intern *table = sw__intern_create(100);
    int fresh = -1;
    assert_int_equal(sw__intern_find(table, "a", 1), 0);
    assert_int_equal(sw__intern_put(table, "a", 1, &fresh), 1);
    assert_int_equal(fresh, 1);
    assert_int_equal(sw__intern_put(table, "b", 1, NULL), 2);
    assert_int_equal(sw__intern_put(table, "a", 1, &fresh), 1);
    assert_int_equal(fresh, 0);
    assert_int_equal(sw__intern_put(table, "", 0, &fresh), 3);
    assert_int_equal(sw__intern_find(table, "", 0), 3);
    assert_int_equal(sw__intern_find(table, NULL, 0), 3);
    assert_int_equal(sw__intern_count(table), 3);
    sw__intern_free(table);
    sw__intern_free(NULL);
}

static void any_bytes_are_kept(void **state)
{
    (void)state;
    sw__intern *table = sw__intern_create(100);
    size_t length;
    assert_int_equal(sw__intern_put(table, "a\0b", 3, NULL), 1);
    assert_int_equal(sw__intern_put(table, "a\0c", 3, NULL), 2);
    assert_int_equal(sw__intern_put(table, "a", 1, NULL), 3);
    assert_memory_equal(sw__intern_text(table, 2, &length), "a\0c", 4);
    assert_int_equal(length, 3);
    assert_null(sw__intern_text(table, 0, &length));
    assert_int_equal(length, 0);
    assert_null(sw__intern_text(table, 4, NULL));
    assert_null(sw__intern_text(table, UINT32_MAX, NULL));
    sw__intern_free(table);
}

static void limit_is_the_largest_id(void **state)
{
    (void)state;
    sw__intern *table = sw__intern_create(2);
    int fresh = -1;
    assert_int_equal(sw__intern_put(table, "a", 1, NULL), 1);
    assert_int_equal(sw__intern_put(table, "b", 1, NULL), 2);
    assert_int_equal(sw__intern_put(table, "c", 1, &fresh), 0);
    assert_int_equal(fresh, 0);
    assert_int_equal(sw__intern_put(table, "b", 1, NULL), 2);
    assert_int_equal(sw__intern_count(table), 2);
    sw__intern_free(table);
}

static void entries_never_move(void **state)
{
    (void)state;
    static const char *texts[NAMES + 1];
    sw__intern *table = sw__intern_create(UINT32_MAX);
    char name[32];
    for (uint32_t i = 1; i <= NAMES; i++) {
        int length = snprintf(name, sizeof name, "section %u", i);
        assert_int_equal(sw__intern_put(table, name, (size_t)length, NULL), i);
        texts[i] = sw__intern_text(table, i, NULL);
    }
    uint64_t before = sw__alloc_count();
    for (uint32_t i = 1; i <= NAMES; i++) {
        size_t length;
        int expected = snprintf(name, sizeof name, "section %u", i);
        assert_ptr_equal(sw__intern_text(table, i, &length), texts[i]);
        assert_int_equal(length, expected);
        assert_string_equal(texts[i], name);
        assert_int_equal(sw__intern_find(table, name, length), i);
        assert_int_equal(sw__intern_put(table, name, length, NULL), i);
    }
    assert_int_equal(sw__alloc_count(), before);
    sw__intern_free(table);
}

struct shared {
    sw__intern *table;
    _Atomic uint32_t fresh;
    _Atomic uint32_t wrong;
    _Atomic uint32_t ids[NAMES];
};

/* cmocka's asserts are for the main thread; threads count what is wrong. */
static void check_text(struct shared *shared, uint32_t id, const char *name,
                       size_t length)
{
    size_t got = 0;
    const char *text = sw__intern_text(shared->table, id, &got);
    if (!text || got != length || memcmp(text, name, length + 1) != 0) {
        shared->wrong++;
    }
}

static void *put_all(void *arg)
{
    static _Atomic unsigned number;
    struct shared *shared = arg;
    /* Each goes through the names in another order, so that all meet everywhere. */
    uint32_t step = (uint32_t[]){1, 3, 7, 9}[number++ % THREADS];
    for (uint32_t k = 0; k < NAMES; k++) {
        uint32_t i = (uint32_t)((uint64_t)k * step % NAMES);
        char name[32];
        size_t length = (size_t)snprintf(name, sizeof name, "name_%u", i);
        int fresh;
        uint32_t id = sw__intern_put(shared->table, name, length, &fresh);
        shared->fresh += (uint32_t)fresh;
        uint32_t known = 0;
        if (id == 0 || (!atomic_compare_exchange_strong(&shared->ids[i], &known, id) &&
                        known != id)) {
            shared->wrong++;
        }
        check_text(shared, id, name, length);
    }
    return NULL;
}

static void *find_all(void *arg)
{
    struct shared *shared = arg;
    uint32_t count;
    do {
        count = sw__intern_count(shared->table);
        for (uint32_t id = 1; id <= count; id += 97) {
            size_t length;
            const char *text = sw__intern_text(shared->table, id, &length);
            if (!text || sw__intern_find(shared->table, text, length) != id) {
                shared->wrong++;
            }
        }
    } while (count < NAMES);
    return NULL;
}

static void threads_agree_on_ids(void **state)
{
    (void)state;
    static struct shared shared;
    pthread_t writers[THREADS];
    pthread_t readers[THREADS];
    shared.table = sw__intern_create(NAMES);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, find_all, &shared), 0);
        assert_int_equal(pthread_create(&writers[i], NULL, put_all, &shared), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(writers[i], NULL);
        pthread_join(readers[i], NULL);
    }
    assert_int_equal(shared.wrong, 0);
    assert_int_equal(shared.fresh, NAMES);
    assert_int_equal(sw__intern_count(shared.table), NAMES);
    sw__intern_free(shared.table);
}

static _Atomic int stop;

static void *put_until_stopped(void *arg)
{
    for (uint32_t i = 0; !stop && i < 50000; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "busy %u", i);
        sw__intern_put(arg, name, (size_t)length, NULL);
    }
    return NULL;
}

/* Whether a table that was copied by a fork works and is whole. */
static int check_in_child(sw__intern *table)
{
    sw__intern_after_fork(table);
    if (sw__intern_put(table, "of the child", 12, NULL) == 0) {
        return 1;
    }
    uint32_t count = sw__intern_count(table);
    for (uint32_t id = 1; id <= count; id++) {
        size_t length;
        const char *text = sw__intern_text(table, id, &length);
        if (!text || sw__intern_find(table, text, length) != id) {
            return 2;
        }
    }
    return sw__intern_text(table, count + 1, NULL) ? 3 : 0;
}

static void fork_in_the_middle_of_insertions(void **state)
{
    (void)state;
#if HEAP_NEEDS_NO_FORK
    skip();
#endif
    for (uint32_t round = 0; round < 50; round++) {
        sw__intern *table = sw__intern_create(UINT32_MAX);
        pthread_t thread;
        stop = 0;
        assert_int_equal(pthread_create(&thread, NULL, put_until_stopped, table), 0);
        while (sw__intern_count(table) < round * round * 2) {
        }
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(check_in_child(table));
        }
        stop = 1;
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        pthread_join(thread, NULL);
        sw__intern_free(table);
    }
}

static void check_family(const char *name, const char *family)
{
    char out[64];
    size_t length = sw__name_family(name, strlen(name), out);
    assert_int_equal(length, strlen(family));
    assert_memory_equal(out, family, length);
}

static void families_set_numbers_aside(void **state)
{
    (void)state;
    check_family("epoch_17", "epoch_*");
    check_family("7", "*");
    check_family("a1b22c333", "a*b*c*");
    check_family("layer.0.conv1", "layer.*.conv*");
    check_family("*", "");
    check_family("plain", "");
    check_family("", "");
    check_family("\xC2\xB2 0", "\xC2\xB2 *");
}

static void hash_sees_every_byte(void **state)
{
    (void)state;
    unsigned char bytes[40] = {0};
    for (size_t length = 1; length <= sizeof bytes; length++) {
        uint64_t base = sw__hash_bytes(bytes, length);
        assert_true(base != sw__hash_bytes(bytes, length - 1));
        assert_true(base != sw__hash_seeded(bytes, length, 1));
        for (size_t i = 0; i < length * 8; i++) {
            bytes[i / 8] ^= (unsigned char)(1u << i % 8);
            assert_true(base != sw__hash_bytes(bytes, length));
            bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_in_order_of_arrival),
        cmocka_unit_test(any_bytes_are_kept),
        cmocka_unit_test(limit_is_the_largest_id),
        cmocka_unit_test(entries_never_move),
        cmocka_unit_test(threads_agree_on_ids),
        cmocka_unit_test(fork_in_the_middle_of_insertions),
        cmocka_unit_test(families_set_numbers_aside),
        cmocka_unit_test(hash_sees_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Calls on files and sockets: joined over processes, from sound rows and from others, and what is remarked on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

static void watched(struct scene *scene, uint64_t missed, uint64_t folded)
{
    (void)scene_row(scene, SW_TABLE_WATCHED, 0, KEY(0), VALUE(10, 0, missed, folded, 0));
}

static void in_section(struct scene *scene, uint32_t section, uint32_t phase,
                       uint32_t kind, uint32_t operation, const uint64_t value[5])
{
    (void)scene_row(scene, SW_TABLE_IO, 0, KEY(section, phase, kind, operation), value);
}

static void on_thing(struct scene *scene, uint32_t name, uint32_t kind,
                     uint32_t operation, const uint64_t value[5])
{
    (void)scene_row(scene, SW_TABLE_THING, 0, KEY(name, kind, operation), value);
}

static void is_sum(const sw_io_sum *sum, uint64_t calls, uint64_t bytes, uint64_t ms,
                   uint64_t small)
{
    assert_int_equal(sum->calls, calls);
    assert_int_equal(sum->bytes, bytes);
    assert_int_equal(sum->ns, ms * MS);
    assert_int_equal(sum->small, small);
}

static void test_processes_are_joined(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 20, PHASES([SW_PHASE_FORWARD] = 10));
    for (int process = 0; process < 2; process++) {
        if (process) {
            scene_close(scene);
            scene_process(scene);
            scene->tb->super.pid = 5000;
        }
        watched(scene, 1, 2);
        const uint32_t path = scene_text(scene, "/data/a");
        const uint32_t load = scene_section(scene, "load", SW_PHASE_INHERIT);
        on_thing(scene, path, SW_IO_KIND_FILE, SW_IO_READ, VALUE(10, 600, 5 * MS, 3, MS));
        on_thing(scene, path, SW_IO_KIND_FILE, 0, VALUE(process ? 1000 : 900, 1));
        const uint32_t kernel = scene_text(scene, "/proc/cpuinfo");
        on_thing(scene, kernel, SW_IO_KIND_FILE, SW_IO_READ, VALUE(1, 5000, MS, 0, MS));
        on_thing(scene, kernel, SW_IO_KIND_FILE, 0, VALUE(0, 0));
        on_thing(scene, path, SW_IO_KIND_FILE, SW_IO_WAIT, VALUE(1, 0, 900 * MS, 0, MS));
        in_section(scene, load, SW_PHASE_DATA_WAIT, SW_IO_KIND_FILE, SW_IO_READ,
                   VALUE(10, 600, 5 * MS, 3, MS));
        in_section(scene, load, SW_PHASE_DATA_WAIT, SW_IO_KIND_FILE, SW_IO_WAIT,
                   VALUE(1, 0, 900 * MS, 0, MS));
    }
    (void)scene_look(scene);
    const sw_io *io = sw_summary_io(scene->fixture->summary);
    assert_non_null(io);
    assert_int_equal(sw_io_processes(io), 2);
    assert_int_equal(sw_io_missed(io), 2);
    assert_int_equal(sw_io_folded(io), 4);
    size_t count;
    const sw_io_thing *things = sw_io_things(io, &count);
    assert_int_equal(count, 2);
    assert_string_equal(things[0].name, "/data/a");
    assert_true(things[1].again == SW_UNKNOWN); /* a size of 0 is none */
    is_sum(&things[0].sum[SW_IO_READ], 20, 1200, 10, 6);
    is_sum(&things[0].sum[0], 20, 1200, 10, 6); /* waiting is apart */
    assert_int_equal(things[0].size, 1000);
    assert_int_equal(things[0].again, 200);
    assert_int_equal(things[0].failed, 2);
    assert_int_equal(things[0].processes, 2);
    const sw_io_section *sections = sw_io_sections(io, &count);
    assert_int_equal(count, 2);
    assert_true(sections[0].training != sections[1].training);
    assert_string_equal(sections[0].section, "load");
    is_sum(&sections[0].sum[SW_IO_READ], 10, 600, 5, 3);
    is_sum(sw_io_total(io, SW_IO_KIND_FILE, SW_IO_READ), 20, 1200, 10, 6);
    assert_int_equal(sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_READ)->calls, 0);
    scene_free(scene);
}

/* What there was to read of a file that the program writes to: what it had, and what came. */
static void test_read_again_after_writing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 20, PHASES([SW_PHASE_FORWARD] = 10));
    watched(scene, 0, 0);
    static const struct {
        const char *path;
        uint64_t first, written, read, again; /* first: and one */
    } cases[] = {
        {"/data/made", 1, 1000, 3000, 2000},     {"/data/more", 501, 1000, 3000, 1500},
        {"/data/once", 1, 1000, 1000, 0},        {"/data/old", 0, 1000, 3000, SW_UNKNOWN},
        {"/data/saved", 1, 1000, 0, SW_UNKNOWN},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    for (uint64_t i = 0; i < CASES; i++) {
        const uint32_t path = scene_text(scene, cases[i].path);
        on_thing(scene, path, SW_IO_KIND_FILE, SW_IO_WRITE,
                 VALUE(1, cases[i].written, (CASES - i) * MS, 0, MS));
        if (cases[i].read) {
            on_thing(scene, path, SW_IO_KIND_FILE, SW_IO_READ,
                     VALUE(1, cases[i].read, 0, 0, 0));
        }
        on_thing(scene, path, SW_IO_KIND_FILE, 0, VALUE(1000, 0, cases[i].first));
    }
    (void)scene_look(scene);
    size_t count;
    const sw_io_thing *things =
        sw_io_things(sw_summary_io(scene->fixture->summary), &count);
    assert_int_equal(count, CASES);
    for (size_t i = 0; i < CASES; i++) {
        assert_string_equal(things[i].name, cases[i].path);
        assert_true(things[i].again == cases[i].again);
    }
    scene_free(scene);
}

/* Numbers that no table has, names that are not there, sums that do not fit. */
static void test_hostile_rows(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 20, PHASES([SW_PHASE_FORWARD] = 10));
    watched(scene, UINT64_MAX, UINT64_MAX);
    const uint32_t path = scene_text(scene, "/data/a");
    for (int i = 0; i < 3; i++) {
        on_thing(scene, path, 77, 99,
                 VALUE(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX));
        on_thing(scene, 123456, 0, UINT32_MAX, VALUE(1, 1, 1, 1, 1));
        in_section(scene, 123456, 999, UINT32_MAX, UINT32_MAX,
                   VALUE(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX));
    }
    (void)scene_look(scene);
    const sw_io *io = sw_summary_io(scene->fixture->summary);
    size_t count;
    const sw_io_thing *things = sw_io_things(io, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(things[i].kind, SW_IO_KIND_MORE);
        assert_true(things[i].sum[SW_IO_OTHER].calls > 0);
        assert_true(things[i].again == SW_UNKNOWN);
        assert_non_null(things[i].name);
    }
    assert_int_equal(sw_io_total(io, SW_IO_KIND_MORE, SW_IO_OTHER)->calls, UINT64_MAX);
    scene_free(scene);
}

static struct scene *reading_scene(uint64_t reads, uint64_t small, uint64_t bytes,
                                   uint64_t read_ms, uint64_t sync_ms)
{
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 10, [SW_PHASE_DATA_WAIT] = 0.3));
    watched(scene, 0, 0);
    const uint32_t path = scene_text(scene, "/data/a");
    on_thing(scene, path, SW_IO_KIND_FILE, SW_IO_READ,
             VALUE(reads, bytes, read_ms * MS, small, MS));
    on_thing(scene, path, SW_IO_KIND_FILE, 0, VALUE(1000000, 0));
    in_section(scene, 0, SW_PHASE_DATA_WAIT, SW_IO_KIND_FILE, SW_IO_READ,
               VALUE(reads, bytes, read_ms * MS, small, MS));
    if (sync_ms) {
        in_section(scene, 0, SW_PHASE_OTHER, SW_IO_KIND_FILE, SW_IO_SYNC,
                   VALUE(7, 0, sync_ms * MS, 0, MS));
    }
    (void)scene_look(scene);
    return scene;
}

static void test_remarks(void **state)
{
    (void)state;
    struct scene *scene = reading_scene(5000, 4500, 1000000, 100, 0);
    assert_true(remarked(scene, "90 % of the 5000 reads"));
    assert_false(remarked(scene, "times over"));
    assert_false(remarked(scene, "fsync"));
    scene_free(scene);
    scene = reading_scene(5000, 0, 3000000, 100, 200);
    assert_false(remarked(scene, "fewer than 4 KiB"));
    assert_true(remarked(scene, "3.0 times over"));
    assert_true(remarked(scene, "0.2 s in 7 calls"));
    scene_free(scene);
    /* What takes no time is not worth a word. */
    scene = reading_scene(5000, 4500, 3000000, 5, 1);
    assert_false(remarked(scene, "fewer than 4 KiB"));
    assert_false(remarked(scene, "times over"));
    assert_false(remarked(scene, "fsync"));
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_are_joined),
        cmocka_unit_test(test_read_again_after_writing),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_remarks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A light look at a process that records, and that it believes no file. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <stepwatch/record.h>
#include <stepwatch/trace.h>

static char folder[64];
static char path[400];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stepwatch-glance-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void begin(void)
{
    sw_config config = {.out = folder, .name = "glance", .quiet = SW_ON};
    assert_int_equal(sw_init(&config), 0);
    path[0] = '\0';
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strstr(entry->d_name, ".stepwatch")) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(stream);
    assert_true(path[0] != '\0');
}

static void steps(unsigned count)
{
    sw_section *wait = sw_section_get("data_wait");
    for (unsigned i = 0; i < count; i++) {
        sw_step_begin();
        sw_begin(wait);
        sw_end(wait);
        sw_step_end();
    }
}

static void test_steps_of_a_running_process(void **state)
{
    (void)state;
    sw_glance *glance;
    sw_glance_steps seen;
    begin();
    assert_int_equal(sw_glance_open(&glance, path), 0);
    assert_int_equal(sw_glance_read(glance, &seen), SW_ENOTFOUND);
    assert_false(seen.ended);
    steps(7);
    assert_int_equal(sw_glance_read(glance, &seen), 0);
    assert_int_equal(seen.steps, 7);
    assert_int_equal(seen.pid, getpid());
    assert_false(seen.open);
    const uint64_t ticks = seen.step_ticks;
    uint64_t sum = 0;
    for (int i = 0; i < SW_PHASE_SLOTS; i++) {
        sum += seen.phase_ticks[i];
    }
    assert_int_equal(sum, ticks);
    assert_true(seen.phase_ticks[SW_PHASE_DATA_WAIT] > 0);
    /* Many blocks later. */
    steps(20000);
    sw_step_begin();
    assert_int_equal(sw_glance_read(glance, &seen), 0);
    assert_int_equal(seen.steps, 20007);
    assert_true(seen.open);
    assert_true(seen.step_ticks > ticks);
    sw_step_end();
    sw_shutdown();
    assert_int_equal(sw_glance_read(glance, &seen), 0);
    assert_true(seen.ended);
    assert_int_equal(seen.steps, 20008);
    sw_glance_free(glance);
    /* A closed file has nothing to look into. */
    assert_int_equal(sw_glance_open(&glance, path), SW_ENOTFOUND);
    assert_null(glance);
}

static void test_other_files(void **state)
{
    (void)state;
    sw_glance *glance;
    char name[128];
    static const char junk[8192] = "STEPWTCHjunk";
    assert_int_equal(sw_glance_open(&glance, "/nowhere/x.stepwatch"), SW_EOPEN);
    assert_int_equal(sw_glance_open(&glance, folder), SW_EOPEN);
    for (size_t length = 0; length <= sizeof junk; length += 1024) {
        snprintf(name, sizeof name, "%s/junk", folder);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, junk, length), length);
        close(fd);
        assert_int_not_equal(sw_glance_open(&glance, name), 0);
        assert_null(glance);
    }
    sw_glance_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_of_a_running_process),
        cmocka_unit_test(test_other_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

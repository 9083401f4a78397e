/* The thread that asks NVML: what it leaves, forks, and a driver that does not come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/gpu_watch.h"

#define PATIENCE ((uint64_t)20 * 1000000000)

static char path[64];
static char log_path[80];

static void script(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%slog %s\n", text, log_path);
    fclose(file);
}

static struct sw__gpu_watch *begin(const char *text)
{
    snprintf(path, sizeof path, "/tmp/fake-gpu-%d-XXXXXX", (int)getpid());
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(log_path, sizeof log_path, "%s.log", path);
    script(text);
    setenv("FAKE_NVML", path, 1);
    struct sw__gpu_wish wish = {.local_rank = -1};
    snprintf(wish.library, sizeof wish.library, FAKE_NVML_DIR "/fake_nvml.so");
    struct sw__gpu_watch *watch = sw__gpu_watch_create(&wish);
    assert_non_null(watch);
    return watch;
}

static void end(struct sw__gpu_watch *watch)
{
    sw__gpu_watch_free(watch, false);
    unlink(path);
    unlink(log_path);
}

static unsigned logged(const char *name)
{
    char line[200];
    unsigned count = 0;
    FILE *file = fopen(log_path, "r");
    while (file && fgets(line, sizeof line, file)) {
        count += strncmp(line, name, strlen(name)) == 0;
    }
    if (file) {
        fclose(file);
    }
    return count;
}

static double take(struct sw__gpu_watch *watch, size_t device, enum sw_gpu_value value)
{
    double number;
    return sw__gpu_watch_take(watch, device, value, &number) ? number : NAN;
}

static void values(void **state)
{
    (void)state;
    struct sw__gpu_watch *watch =
        begin("gpus 2\ngpu1.power 9000\ngpu1.energy.result 3\n");
    char why[100];
    assert_int_equal(sw__gpu_watch_state(watch, why, sizeof why), SW__GPU_STARTING);
    sw__gpu_watch_look(watch, false, PATIENCE);
    assert_int_equal(sw__gpu_watch_state(watch, why, sizeof why), SW__GPU_WATCHING);
    static struct sw__nvml_info devices[SW__NVML_MOST];
    static bool aside[SW__NVML_MOST];
    assert_int_equal(sw__gpu_watch_devices(watch, devices, aside, SW__NVML_MOST), 2);
    assert_string_equal(devices[1].name, "FAKE H200");
    assert_int_equal(devices[1].visible, 1);
    assert_true(take(watch, 1, SW_GPU_POWER) == 9);
    assert_true(isnan(take(watch, 1, SW_GPU_POWER))); /* once */
    sw__gpu_watch_look(watch, true, PATIENCE);
    assert_false(isnan(take(watch, 0, SW_GPU_ENERGY)));
    assert_true(isnan(take(watch, 1, SW_GPU_ENERGY)));
    assert_true(sw__gpu_watch_missing(watch, 1, SW_GPU_ENERGY, why, sizeof why));
    assert_string_equal(why, "the device does not support it");
    assert_false(sw__gpu_watch_missing(watch, 0, SW_GPU_ENERGY, why, sizeof why));
    end(watch);
}

static void pauses(void **state)
{
    (void)state;
    struct sw__gpu_watch *watch = begin("");
    sw__gpu_watch_pause(watch); /* nothing runs yet */
    for (unsigned i = 0; i < 5; i++) {
        sw__gpu_watch_look(watch, false, PATIENCE);
        assert_true(take(watch, 0, SW_GPU_POWER) == 650);
        sw__gpu_watch_pause(watch);
        sw__gpu_watch_pause(watch);
    }
    assert_int_equal(logged("init"), 1);
    assert_int_equal(logged("shutdown"), 0);
    sw__gpu_watch_free(watch, false);
    assert_int_equal(logged("shutdown"), 1);
    unlink(path);
    unlink(log_path);
}

static void never_started(void **state)
{
    (void)state;
    end(begin(""));
    struct sw__gpu_watch *watch = begin("init 9\n");
    char why[100];
    sw__gpu_watch_look(watch, false, PATIENCE);
    assert_int_equal(sw__gpu_watch_state(watch, why, sizeof why), SW__GPU_FAILED);
    assert_string_equal(why, "NVML does not start: the driver is not loaded");
    sw__gpu_watch_look(watch, true, PATIENCE);
    assert_int_equal(logged("init"), 1); /* not again */
    end(watch);
    sw__gpu_watch_free(NULL, false);
}

static void notes(void **state)
{
    (void)state;
    struct sw__gpu_watch *watch = begin("gpu0.power.result 4\n");
    char text[400];
    sw__gpu_watch_look(watch, false, PATIENCE);
    assert_true(sw__gpu_watch_note(watch, text, sizeof text));
    assert_string_equal(text, "GPU 0: no power: this user has no permission.");
    assert_false(sw__gpu_watch_note(watch, text, sizeof text));
    end(watch);
}

/* The driver does not come back: nobody waits for ever, neither at a look nor at a fork nor at the end. */
static void hangs(void **state)
{
    (void)state;
    struct sw__gpu_watch *watch = begin("gpu0.temperature.sleep 600000\n");
    sw__gpu_watch_look(watch, false, 200000000);
    assert_true(take(watch, 0, SW_GPU_POWER) == 650); /* what came before it is there */
    assert_true(isnan(take(watch, 0, SW_GPU_TEMPERATURE)));
    sw__gpu_watch_look(watch, false, 1000000);
    sw__gpu_watch_pause(watch);
    sw__gpu_watch_look(watch, true, 1000000);
    end(watch);
}

/* It comes back late: the thread that was left alone is joined, and another one goes on. */
static void comes_back(void **state)
{
    (void)state;
    struct sw__gpu_watch *watch = begin("gpu0.temperature.sleep 1500\n");
    sw__gpu_watch_look(watch, false, 1000000);
    sw__gpu_watch_pause(watch); /* gives up after half a second */
    script("");
    sleep(3);
    sw__gpu_watch_look(watch, false, PATIENCE);
    assert_true(take(watch, 0, SW_GPU_TEMPERATURE) == 61);
    assert_int_equal(logged("init"), 1);
    end(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),        cmocka_unit_test(pauses),
        cmocka_unit_test(never_started), cmocka_unit_test(notes),
        cmocka_unit_test(comes_back),    cmocka_unit_test(hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* NVML by a library that does what a file says: values, and every way in which calls fail. Time is what the test says it is. */
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

#include <stepwatch/nvml.h>

#include "watch/gpu_visible.h"
#include "watch/nvml.h"

#define S ((uint64_t)1000000000)
#define BOTH (SW__NVML_CHEAP | SW__NVML_DEAR)
#define GIB 1073741824.0

struct heard {
    double value[SW__NVML_MOST][SW_GPU_VALUES];
    unsigned times[SW__NVML_MOST][SW_GPU_VALUES];
    char notes[32][400];
    size_t note_count;
};

struct scene {
    char path[64];
    struct heard heard;
    sw__nvml *nvml;
    sw_error_info info;
    uint64_t now;
};

static void on_value(void *context, size_t device, enum sw_gpu_value value, double number)
{
    struct heard *heard = context;
    heard->value[device][value] = number;
    heard->times[device][value]++;
}

static void on_note(void *context, const char *text)
{
    struct heard *heard = context;
    assert_true(heard->note_count < 32);
    snprintf(heard->notes[heard->note_count++], 400, "%s", text);
}

static void script(struct scene *scene, const char *text)
{
    FILE *file = fopen(scene->path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct scene *begin(const char *library, const char *text)
{
    struct scene *scene = calloc(1, sizeof *scene);
    snprintf(scene->path, sizeof scene->path, "/tmp/fake-nvml-%d-XXXXXX", (int)getpid());
    const int fd = mkstemp(scene->path);
    assert_true(fd >= 0);
    close(fd);
    script(scene, text);
    setenv("FAKE_NVML", scene->path, 1);
    for (size_t i = 0; i < SW__NVML_MOST; i++) {
        for (size_t j = 0; j < SW_GPU_VALUES; j++) {
            scene->heard.value[i][j] = NAN;
        }
    }
    char path[512];
    snprintf(path, sizeof path, FAKE_NVML_DIR "/%s.so", library);
    const struct sw__nvml_sink sink = {on_value, on_note, &scene->heard};
    (void)sw__nvml_open(&scene->nvml, path, &sink, &scene->info);
    scene->now = 1000 * S;
    return scene;
}

static void look(struct scene *scene, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        sw__nvml_look(scene->nvml, scene->now, BOTH);
        scene->now += S;
    }
}

static void end(struct scene *scene)
{
    sw__nvml_close(scene->nvml);
    unlink(scene->path);
    free(scene);
}

static bool noted(const struct scene *scene, const char *text)
{
    for (size_t i = 0; i < scene->heard.note_count; i++) {
        if (strstr(scene->heard.notes[i], text)) {
            return true;
        }
    }
    return false;
}

#define VALUE(scene, device, what) ((scene)->heard.value[device][SW_GPU_##what])
#define TIMES(scene, device, what) ((scene)->heard.times[device][SW_GPU_##what])
#define assert_value(scene, device, what, number)                                        \
    assert_true(fabs(VALUE(scene, device, what) - (number)) <                            \
                1e-9 * (1 + fabs((double)(number))))
#define assert_unknown(scene, device, what) assert_true(isnan(VALUE(scene, device, what)))

/* --- values --- */

static void every_value(void **state)
{
    (void)state;
    struct scene *scene =
        begin("fake_nvml", "gpu0.memory 5000\ngpu0.gpu 77\ngpu0.dram_time 33\n"
                           "gpu0.power 123456\ngpu0.energy 7500\ngpu0.temperature 55\n"
                           "gpu0.clock 1500\ngpu0.memory_clock 2500\ngpu0.reasons 4\n"
                           "gpu0.ecc_corrected 3\ngpu0.ecc_uncorrected 1\n"
                           "gpu0.processes 5:7,self:4000\ngpu0.sm 61.5\n"
                           "gpu0.tensor 21\ngpu0.occupancy 12\ngpu0.dram 9\n"
                           "gpu0.pcie_sent 2\ngpu0.nvlink_received 3\n");
    assert_non_null(scene->nvml);
    assert_int_equal(sw__nvml_count(scene->nvml), 1);
    const struct sw__nvml_info *info = sw__nvml_get(scene->nvml, 0);
    assert_string_equal(info->name, "FAKE H200");
    assert_string_equal(info->uuid, "GPU-00000001-aaaa-bbbb-cccc-000000000000");
    assert_string_equal(info->pci, "00000000:01:00.0");
    assert_true(info->gpm);
    assert_int_equal(info->sm_clock_mhz, 1980);
    assert_int_equal(info->power_limit_mw, 700000);
    assert_int_equal(info->power_default_mw, 700000);
    assert_int_equal(info->slowdown_c, 92);
    assert_int_equal(info->most_c, 87);
    assert_true((double)info->memory_bytes == 141 * GIB);
    assert_string_equal(sw__nvml_driver(scene->nvml), "580.65.06");

    look(scene, 1);
    assert_value(scene, 0, MEMORY_USED, 5000);
    assert_value(scene, 0, UTILISATION, 77);
    assert_value(scene, 0, MEMORY_UTILISATION, 33);
    assert_value(scene, 0, POWER, 123.456);
    assert_value(scene, 0, ENERGY, 7.5);
    assert_value(scene, 0, TEMPERATURE, 55);
    assert_value(scene, 0, SM_CLOCK, 1500);
    assert_value(scene, 0, MEMORY_CLOCK, 2500);
    assert_value(scene, 0, CLOCK_REASONS, 4);
    assert_value(scene, 0, ECC_CORRECTED, 3);
    assert_value(scene, 0, ECC_UNCORRECTED, 1);
    assert_value(scene, 0, XID, 0);
    assert_unknown(scene, 0, SM_ACTIVE);      /* needs two samples */
    assert_unknown(scene, 0, PROCESS_MEMORY); /* nobody has made anything yet */
    usleep(110000);
    look(scene, 1);
    assert_value(scene, 0, SM_ACTIVE, 61.5);
    assert_value(scene, 0, SM_OCCUPANCY, 12);
    assert_value(scene, 0, TENSOR_ACTIVE, 21);
    assert_value(scene, 0, DRAM_ACTIVE, 9);
    assert_value(scene, 0, PCIE_SENT, 2 * 1048576.0);
    assert_value(scene, 0, NVLINK_RECEIVED, 3 * 1048576.0);
    assert_value(scene, 0, PROCESS_MEMORY, 4000);
    assert_int_equal(scene->heard.note_count, 0);
    end(scene);
}

static void dear_calls_are_rare(void **state)
{
    (void)state;
    struct scene *scene = begin("fake_nvml", "gpu0.gpm 0\n");
    look(scene, 61);
    assert_int_equal(TIMES(scene, 0, POWER), 61);
    assert_int_equal(TIMES(scene, 0, SM_CLOCK), 31);
    assert_int_equal(TIMES(scene, 0, ENERGY), 7);
    assert_int_equal(TIMES(scene, 0, ECC_CORRECTED), 3);
    assert_true(TIMES(scene, 0, PROCESS_MEMORY) <= 3);
    /* The last look asks everything, however new the last answer is. */
    sw__nvml_look(scene->nvml, scene->now, BOTH | SW__NVML_ALL);
    assert_int_equal(TIMES(scene, 0, ENERGY), 8);
    /* The two halves: what is cheap does not wait for what is dear. */
    sw__nvml_look(scene->nvml, scene->now + 100 * S, SW__NVML_CHEAP);
    assert_int_equal(TIMES(scene, 0, POWER), 63);
    assert_int_equal(TIMES(scene, 0, ENERGY), 8);
    end(scene);
}

static void traffic_without_activity(void **state)
{
    (void)state;
    /* Counts of bytes, and their growth. */
    struct scene *scene =
        begin("fake_nvml", "gpu0.gpm 0\ngpu0.field197 1000\ngpu0.field198 0\n"
                           "gpu0.field138 0\ngpu0.field139 0\n");
    look(scene, 1);
    assert_unknown(scene, 0, PCIE_SENT);
    script(scene, "gpu0.gpm 0\ngpu0.field197 91000\ngpu0.field198 9000\n"
                  "gpu0.field138 18\ngpu0.field139 0\n");
    look(scene, 10);
    assert_value(scene, 0, PCIE_SENT, 90000 / 10.0);
    assert_value(scene, 0, PCIE_RECEIVED, 900);
    assert_value(scene, 0, NVLINK_SENT, 1843.2);
    assert_value(scene, 0, NVLINK_RECEIVED, 0);
    /* A count that fell has wrapped: nothing new is said. */
    script(scene, "gpu0.gpm 0\ngpu0.field197 5\ngpu0.field198 9001\n"
                  "gpu0.field138 18\ngpu0.field139 0\n");
    look(scene, 10);
    assert_value(scene, 0, PCIE_SENT, 90000 / 10.0);
    end(scene);

    /* No such counts: the call that measures for 20 ms, once a minute. */
    scene = begin("fake_nvml", "gpu0.gpm 0\ngpu0.fields.result 3\n");
    look(scene, 60);
    assert_value(scene, 0, PCIE_SENT, 1e6);
    assert_value(scene, 0, PCIE_RECEIVED, 2e6);
    assert_int_equal(TIMES(scene, 0, PCIE_SENT), 1);
    assert_unknown(scene, 0, NVLINK_SENT);
    end(scene);
}

static void processes(void **state)
{
    (void)state;
    /* More of them than there is room for at first. */
    struct scene *scene =
        begin("fake_nvml", "gpu0.process_count 300\ngpu0.processes self:12345\n");
    look(scene, 2);
    assert_value(scene, 0, PROCESS_MEMORY, 12345);
    end(scene);
    /* Nobody: nothing is used. */
    scene = begin("fake_nvml", "");
    look(scene, 2);
    assert_value(scene, 0, PROCESS_MEMORY, 0);
    end(scene);
    /* Not told, and more than the device has. */
    scene = begin("fake_nvml", "gpu0.processes self:?\n");
    look(scene, 2);
    assert_unknown(scene, 0, PROCESS_MEMORY);
    end(scene);
    scene = begin("fake_nvml", "gpu0.processes self:999999999999999\n");
    look(scene, 2);
    assert_unknown(scene, 0, PROCESS_MEMORY);
    end(scene);
    /* More than there can be. */
    scene = begin("fake_nvml", "gpu0.process_count 100000\n");
    look(scene, 2);
    assert_unknown(scene, 0, PROCESS_MEMORY);
    assert_value(scene, 0, POWER, 650);
    end(scene);
}

static void several_and_divided(void **state)
{
    (void)state;
    struct scene *scene =
        begin("fake_nvml", "gpus 3\ngpu1.mig 2\ngpu1.1.memory 111\ngpu1.2.memory 222\n"
                           "gpu1.2.sm 44\ngpu2.power 5000\ngpu1.rates.result 3\n");
    assert_int_equal(sw__nvml_count(scene->nvml), 5);
    assert_true(sw__nvml_get(scene->nvml, 1)->mig_on);
    assert_int_equal(sw__nvml_get(scene->nvml, 2)->parent, 1);
    assert_int_equal(sw__nvml_get(scene->nvml, 3)->instance, 8);
    assert_int_equal(sw__nvml_get(scene->nvml, 4)->index, 2);
    look(scene, 1);
    usleep(110000);
    look(scene, 1);
    assert_value(scene, 2, MEMORY_USED, 111);
    assert_value(scene, 3, MEMORY_USED, 222);
    assert_value(scene, 3, SM_ACTIVE, 44);
    assert_unknown(scene, 3, POWER);
    assert_unknown(scene, 1, UTILISATION);
    assert_value(scene, 1, POWER, 650);
    assert_value(scene, 4, POWER, 5);
    assert_string_equal(sw__nvml_missing(scene->nvml, 3, SW__NVML_GROUP_POWER),
                        "the whole device has it");
    assert_int_equal(scene->heard.note_count, 0);
    const bool wanted[5] = {[4] = true};
    const unsigned before = TIMES(scene, 0, POWER);
    sw__nvml_select(scene->nvml, wanted);
    look(scene, 2);
    assert_int_equal(TIMES(scene, 0, POWER), before);
    assert_int_equal(TIMES(scene, 4, POWER), 4);
    end(scene);
}

static void old_and_bare(void **state)
{
    (void)state;
    struct scene *scene = begin("fake_nvml_old", "gpu0.reasons 8\n");
    assert_non_null(scene->nvml);
    look(scene, 3);
    assert_value(scene, 0, MEMORY_USED, 10 * GIB); /* by the older call */
    assert_value(scene, 0, CLOCK_REASONS, 8);
    assert_value(scene, 0, PCIE_SENT, 1e6);
    assert_unknown(scene, 0, ENERGY);
    assert_unknown(scene, 0, SM_ACTIVE);
    assert_unknown(scene, 0, XID);
    assert_non_null(strstr(sw__nvml_missing(scene->nvml, 0, SW__NVML_GROUP_ENERGY),
                           "no such function"));
    assert_int_equal(scene->heard.note_count, 0);
    end(scene);

    scene = begin("fake_nvml_bare", "gpus 2\n");
    assert_non_null(scene->nvml);
    assert_int_equal(sw__nvml_count(scene->nvml), 2);
    look(scene, 3);
    for (unsigned i = 0; i < SW_GPU_VALUES; i++) {
        assert_int_equal(scene->heard.times[0][i], 0);
    }
    end(scene);

    scene = begin("fake_nvml", "memory2 refused\ngpu0.memory 99\n");
    look(scene, 1);
    assert_value(scene, 0, MEMORY_USED, 99);
    end(scene);
}

/* --- failures --- */

static void no_beginning(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {{"init 9\n", "the driver is not loaded"},
                 {"init 18\n", "library and kernel driver are of different versions"},
                 {"init 12\n", "a library of the driver is missing"},
                 {"init 4\n", "this user has no permission"},
                 {"init 4711\n", "of a kind this version does not know"},
                 {"gpus 0\n", "the driver knows of no GPU"},
                 {"count 999\n", "an internal error"},
                 {"gpus 2\ngpu0.handle 4\ngpu1.handle 4\n", "none of the 2 GPUs"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = begin("fake_nvml", cases[i].text);
        assert_null(scene->nvml);
        assert_non_null(strstr(scene->info.message, cases[i].message));
        end(scene);
    }
    struct scene *scene = begin("no_such_library", "");
    assert_null(scene->nvml);
    assert_non_null(strstr(scene->info.message, "could not be loaded"));
    end(scene);

    const struct sw__nvml_sink sink = {on_value, on_note, NULL};
    sw__nvml *nvml;
    sw_error_info info;
    assert_int_equal(sw__nvml_open(&nvml, "libm.so.6", &sink, &info), SW_EUNSUPPORTED);
    assert_non_null(strstr(info.message, "is not NVML"));
    assert_null(nvml);

    /* One that may not be asked does not keep the others from it. */
    scene = begin("fake_nvml", "gpus 2\ngpu0.handle 4\ngpu1.power 1000\n");
    assert_int_equal(sw__nvml_count(scene->nvml), 1);
    look(scene, 1);
    assert_value(scene, 0, POWER, 1);
    end(scene);
}

static void not_supported(void **state)
{
    (void)state;
    struct scene *scene =
        begin("fake_nvml", "gpu0.power.result 3\ngpu0.ecc_corrected.result 3\n"
                           "gpu0.event_types 0\ngpu0.memory_clock.result 3\n"
                           "gpu0.occupancy.result 3\n");
    look(scene, 1);
    usleep(110000);
    look(scene, 1);
    assert_unknown(scene, 0, POWER);
    assert_unknown(scene, 0, ECC_UNCORRECTED);
    assert_unknown(scene, 0, XID);
    assert_unknown(scene, 0, SM_OCCUPANCY);
    assert_value(scene, 0, SM_ACTIVE, 80);
    assert_value(scene, 0, SM_CLOCK, 1980);
    assert_unknown(scene, 0, MEMORY_CLOCK);
    assert_string_equal(sw__nvml_missing(scene->nvml, 0, SW__NVML_GROUP_POWER),
                        "the device does not support it");
    assert_null(sw__nvml_missing(scene->nvml, 0, SW__NVML_GROUP_CLOCKS));
    /* Nobody can help it, so nobody is told. */
    assert_int_equal(scene->heard.note_count, 0);
    end(scene);
}

static void no_permission(void **state)
{
    (void)state;
    struct scene *scene =
        begin("fake_nvml", "gpu0.power.result 4\ngpu0.gpm_get.result 4\n");
    look(scene, 15);
    assert_unknown(scene, 0, POWER);
    assert_unknown(scene, 0, SM_ACTIVE);
    assert_int_equal(scene->heard.note_count, 2);
    assert_true(noted(scene, "GPU 0: no power: this user has no permission."));
    assert_true(noted(scene, "no activity of multiprocessors"));
    /* Traffic has another way. */
    assert_false(isnan(VALUE(scene, 0, PCIE_SENT)));
    end(scene);
}

static void one_device_is_lost(void **state)
{
    (void)state;
    struct scene *scene = begin("fake_nvml", "gpus 2\n");
    look(scene, 2);
    assert_value(scene, 0, POWER, 650);
    script(scene, "gpus 2\ngpu0.xid 79\n@3 gpu0.result 15\n");
    look(scene, 10);
    assert_unknown(scene, 0, POWER);
    assert_unknown(scene, 0, MEMORY_USED);
    assert_value(scene, 1, POWER, 650);
    assert_int_equal(TIMES(scene, 1, POWER), 12);
    assert_true(noted(scene, "GPU 0 cannot be watched any more: the device fell off"));
    assert_true(
        noted(scene, "GPU 0 reported error Xid 79: the device fell off the bus."));
    assert_int_equal(scene->heard.note_count, 2);
    end(scene);
}

static void errors_are_counted(void **state)
{
    (void)state;
    struct scene *scene = begin("fake_nvml", "gpus 2\n@3 gpu1.xid 31,31,94\n");
    look(scene, 2);
    assert_value(scene, 1, XID, 0);
    look(scene, 10);
    assert_value(scene, 1, XID, 3);
    assert_value(scene, 0, XID, 0);
    assert_int_equal(scene->heard.note_count, 2); /* one for each code */
    assert_true(noted(scene, "GPU 1 reported error Xid 31: a kernel touched memory"));
    end(scene);

    scene = begin("fake_nvml", "wait 4\n"); /* waiting for them is forbidden */
    look(scene, 10);
    assert_unknown(scene, 0, XID);
    assert_true(noted(scene, "no errors (Xid)"));
    assert_value(scene, 0, POWER, 650);
    end(scene);
}

static void the_driver_goes_and_comes(void **state)
{
    static const int causes[] = {1, 9, 18};
    (void)state;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        char text[200];
        struct scene *scene = begin("fake_nvml", "gpus 2\n");
        look(scene, 2);
        snprintf(text, sizeof text, "gpus 2\ngpu0.result %d\ngpu1.result %d\ninit %d\n",
                 causes[i], causes[i], causes[i]);
        script(scene, text);
        look(scene, 40);
        assert_unknown(scene, 0, POWER);
        assert_unknown(scene, 1, MEMORY_USED);
        assert_int_equal(scene->heard.note_count, 1);
        assert_true(noted(scene, "GPUs could not be watched for a part of the run"));
        const unsigned times = TIMES(scene, 0, POWER);
        script(scene, "gpus 2\ngpu0.power 77000\n");
        look(scene, 100);
        assert_value(scene, 0, POWER, 77);
        assert_true(TIMES(scene, 0, POWER) > times);
        assert_value(scene, 1, MEMORY_USED, 10 * GIB);
        assert_int_equal(scene->heard.note_count, 1); /* once for each cause */
        end(scene);
    }
    /* It comes back without one of its devices. */
    struct scene *scene = begin("fake_nvml", "gpus 2\n");
    look(scene, 1);
    script(scene, "gpus 2\ngpu0.result 9\n");
    look(scene, 1);
    script(scene, "gpus 1\n");
    look(scene, 40);
    assert_value(scene, 0, POWER, 650);
    assert_unknown(scene, 1, POWER);
    assert_true(noted(scene, "GPU 1 cannot be watched any more"));
    end(scene);
}

static void hiccups(void **state)
{
    (void)state;
    /* One failure is nothing to speak of. */
    struct scene *scene = begin("fake_nvml", "gpu0.power.result 0,999,0\n");
    look(scene, 2);
    assert_unknown(scene, 0, POWER);
    look(scene, 1);
    assert_value(scene, 0, POWER, 650);
    assert_int_equal(scene->heard.note_count, 0);
    end(scene);
    /* Many are, and are tried more seldom. */
    scene = begin("fake_nvml", "gpu0.power.result 10\n");
    look(scene, 40);
    assert_int_equal(scene->heard.note_count, 1);
    assert_true(noted(scene, "GPU 0: no power for a part of the run: the driver did not "
                             "answer in time."));
    script(scene, "");
    look(scene, 12);
    assert_value(scene, 0, POWER, 650);
    end(scene);
    scene = begin("fake_nvml", "gpm_alloc 20\n");
    look(scene, 5);
    assert_unknown(scene, 0, SM_ACTIVE);
    assert_value(scene, 0, POWER, 650);
    end(scene);
}

static void every_result_of_every_call(void **state)
{
    static const char *const calls[] = {
        "memory",          "rates",       "power",     "temperature",   "reasons",
        "clock",           "energy",      "processes", "fields",        "pcie",
        "gpm_get",         "gpm_metrics", "register",  "ecc_corrected", "memory_clock",
        "ecc_uncorrected", "name",        "uuid"};
    static const int results[] = {1,  2,  3,  4,  6,  7,  8,  9,   10,   11, 12,
                                  13, 14, 15, 16, 17, 18, 19, 20,  21,   22, 23,
                                  24, 25, 26, 27, 28, 29, 30, 999, 1234, -1};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (size_t j = 0; j < sizeof results / sizeof results[0]; j++) {
            char text[200];
            snprintf(text, sizeof text, "gpus 2\ngpu0.gpm %d\ngpu0.%s.result %d\n",
                     strncmp(calls[i], "gpm", 3) == 0, calls[i], results[j]);
            struct scene *scene = begin("fake_nvml", text);
            assert_non_null(scene->nvml);
            look(scene, 12);
            sw__nvml_look(scene->nvml, scene->now, BOTH | SW__NVML_ALL);
            assert_true(scene->heard.note_count <= 2);
            end(scene);
        }
    }
}

/* --- what a program sees --- */

static void see(struct sw__nvml_info *devices, size_t count, const char *list,
                bool by_bus, const char *expected)
{
    char got[16] = "";
    sw__gpu_visible(devices, count, list, by_bus);
    for (size_t i = 0; i < count; i++) {
        got[i] = devices[i].visible == 1 ? '1' : devices[i].visible == 0 ? '0' : '?';
        got[i + 1] = '\0';
    }
    assert_string_equal(got, expected);
}

static void visible_devices(void **state)
{
    (void)state;
    struct sw__nvml_info devices[4];
    memset(devices, 0, sizeof devices);
    for (unsigned i = 0; i < 4; i++) {
        devices[i].parent = SW__NVML_NO_PARENT;
        snprintf(devices[i].name, sizeof devices[i].name, "A");
        snprintf(devices[i].uuid, sizeof devices[i].uuid, "GPU-%u%u%u%u-x", i, i, i, i);
    }
    see(devices, 4, NULL, false, "1111");
    see(devices, 4, "", false, "0000");
    see(devices, 4, "-1", false, "0000");
    see(devices, 4, "NoDevFiles", false, "0000");
    see(devices, 4, "1,3", false, "0101");
    see(devices, 4, " 2 , 0 ", false, "1010");
    see(devices, 4, "0,9,1", false, "1000"); /* what follows a wrong one does not count */
    see(devices, 4, "1,-1,2", false, "0100");
    see(devices, 4, "GPU-2222-x", false, "0010");
    see(devices, 4, "GPU-22,GPU-0", false, "1010");
    see(devices, 4, "GPU-", false, "0000"); /* more than one */
    see(devices, 4, "GPU-7,1", false, "0000");
    see(devices, 4, "99999999999999999999999", false, "0000");
    snprintf(devices[2].name, sizeof devices[2].name, "B");
    see(devices, 4, "1", false, "????"); /* CUDA counts the fastest first */
    see(devices, 4, "1", true, "0100");
    see(devices, 4, "GPU-1", false, "0100");
    see(devices, 4, NULL, false, "1111");

    /* The second is divided into two parts. */
    devices[1].mig_on = true;
    devices[2].parent = devices[3].parent = 1;
    snprintf(devices[2].uuid, sizeof devices[2].uuid, "MIG-aa");
    snprintf(devices[3].uuid, sizeof devices[3].uuid, "MIG-bb");
    see(devices, 4, "MIG-bb", true, "0101");
    see(devices, 4, "1", true, "0110");
    see(devices, 4, "0", true, "1000");
    see(devices, 4, NULL, true, "1110");
}

static void probe(void **state)
{
    (void)state;
    struct scene *scene = begin("fake_nvml", "");
    end(scene);
    static sw_nvml_view view;
    sw_error_info info = {0};
    unsetenv("FAKE_NVML");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_equal(sw_nvml_probe(FAKE_NVML_DIR "/fake_nvml.so", &view, &info), SW_OK);
    assert_int_equal(view.count, 1);
    assert_string_equal(view.driver, "580.65.06");
    assert_string_equal(view.device[0].name, "FAKE H200");
    assert_int_equal(view.device[0].visible, 1);
    assert_true(view.device[0].activity);
    assert_string_equal(view.device[0].missing, "");
    assert_int_equal(sw_nvml_probe(FAKE_NVML_DIR "/fake_nvml_old.so", &view, &info),
                     SW_OK);
    assert_false(view.device[0].activity);
    assert_non_null(strstr(view.device[0].missing, "energy"));
    assert_false(view.device[0].forbidden);
    assert_int_not_equal(sw_nvml_probe("/no/such.so", &view, &info), SW_OK);
    assert_int_equal(view.count, 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value),
        cmocka_unit_test(dear_calls_are_rare),
        cmocka_unit_test(traffic_without_activity),
        cmocka_unit_test(processes),
        cmocka_unit_test(several_and_divided),
        cmocka_unit_test(old_and_bare),
        cmocka_unit_test(no_beginning),
        cmocka_unit_test(not_supported),
        cmocka_unit_test(no_permission),
        cmocka_unit_test(one_device_is_lost),
        cmocka_unit_test(errors_are_counted),
        cmocka_unit_test(the_driver_goes_and_comes),
        cmocka_unit_test(hiccups),
        cmocka_unit_test(every_result_of_every_call),
        cmocka_unit_test(visible_devices),
        cmocka_unit_test(probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What torch's allocator of devices says of itself: read where a step ends, into counters and rows of the trace.
 *
 * torch keeps these statistics anyway. To read them makes a dict of dicts, some tens of microseconds a device, so it is done at
 * most ten times a second, and less often where it takes long. Nothing here imports anything or starts a device: what the
 * program has not loaded and begun to use is left alone. Only with the GIL. */
#include "core.h"

#include "ticks.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

enum { DEVICES = 64, FAILURES = 3 };
#define PERIOD_NS 100e6
/* Time that goes by between two readings, in multiples of what the last one took. */
#define SHARE 200
/* Devices that were not in use are looked at again after so many readings. */
#define LOOK_AGAIN 10

struct device {
    bool used;
    uint64_t handle, more; /* of its rows */
    uint64_t allocated_peak, reserved_peak, split_peak, readings;
    double unused_most; /* largest share of what it held that was not in use */
};

static struct {
    atomic_flag busy;
    uint32_t recording; /* that all of this is of */
    uint64_t due;       /* ticks */
    unsigned failures, readings;
    struct device device[DEVICES];
} watch = {.busy = ATOMIC_FLAG_INIT};

/* torch.cuda, if the program has loaded torch and begun to use a device; a new reference or NULL, perhaps with an
 * exception. */
static PyObject *cuda_get(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *torch = modules && PyDict_Check(modules)
                          ? PyDict_GetItemString(modules, "torch") /* borrowed */
                          : NULL;
    PyObject *cuda = torch ? PyObject_GetAttrString(torch, "cuda") : NULL;
    PyObject *begun = cuda ? PyObject_CallMethod(cuda, "is_initialized", NULL) : NULL;
    const int is = begun ? PyObject_IsTrue(begun) : 0;
    Py_XDECREF(begun);
    if (is != 1) {
        Py_CLEAR(cuda);
    }
    return cuda;
}

/* stats[what]["all"][which], or UINT64_MAX; `which` NULL: stats[what]. */
static uint64_t stat_get(PyObject *stats, const char *what, const char *which)
{
    PyObject *at =
        PyDict_GetItemString(stats, what); /* borrowed, like those that follow */
    if (which) {
        at = at && PyDict_Check(at) ? PyDict_GetItemString(at, "all") : NULL;
        at = at && PyDict_Check(at) ? PyDict_GetItemString(at, which) : NULL;
    }
    if (!at || !PyLong_Check(at)) {
        return UINT64_MAX;
    }
    const long long number = PyLong_AsLongLong(at);
    if (number < 0) {
        PyErr_Clear();
        return UINT64_MAX;
    }
    return (uint64_t)number;
}

static void raise_to(uint64_t *most, uint64_t value)
{
    *most = value != UINT64_MAX && value > *most ? value : *most;
}

static void count(unsigned device, const char *what, uint64_t value)
{
    char name[48];
    if (value != UINT64_MAX) {
        snprintf(name, sizeof name, "torch.cuda.%u.%s", device, what);
        sw_counter(name, (double)value);
    }
}

static void device_put(unsigned number, PyObject *stats, bool at_step)
{
    struct device *device = &watch.device[number];
    const uint64_t allocated = stat_get(stats, "allocated_bytes", "current");
    const uint64_t reserved = stat_get(stats, "reserved_bytes", "current");
    const uint64_t split = stat_get(stats, "inactive_split_bytes", "current");
    const uint64_t retries = stat_get(stats, "num_alloc_retries", NULL);
    /* The program may have set the peaks back. */
    raise_to(&device->allocated_peak, stat_get(stats, "allocated_bytes", "peak"));
    raise_to(&device->reserved_peak, stat_get(stats, "reserved_bytes", "peak"));
    raise_to(&device->split_peak, stat_get(stats, "inactive_split_bytes", "peak"));
    device->readings++;
    if (allocated <= reserved && reserved > 0 && reserved != UINT64_MAX) {
        const double unused = 1 - (double)allocated / (double)reserved;
        device->unused_most = unused > device->unused_most ? unused : device->unused_most;
    }
    static const char name[] = "torch.cuda";
    const uint32_t id = sw_name(name, sizeof name - 1);
    sw_row row = {.table = SW_TABLE_ALLOCATOR,
                  .key = {id, number, SW_ALLOCATOR_BYTES},
                  .value = {allocated, device->allocated_peak, reserved,
                            device->reserved_peak, retries}};
    device->handle = sw_row_put(device->handle, &row);
    sw_row more = {.table = SW_TABLE_ALLOCATOR,
                   .key = {id, number, SW_ALLOCATOR_PIECES},
                   .value = {split, device->split_peak, stat_get(stats, "num_ooms", NULL),
                             (uint64_t)(device->unused_most * 1e6 + 0.5),
                             device->readings}};
    device->more = sw_row_put(device->more, &more);
    if (at_step) {
        count(number, "allocated_bytes", allocated);
        count(number, "reserved_bytes", reserved);
        count(number, "inactive_split_bytes", split);
    }
}

/* 0, or -1 with an exception. */
static int device_read(PyObject *cuda, unsigned number, bool at_step)
{
    PyObject *stats =
        PyObject_CallMethod(cuda, "memory_stats_as_nested_dict", "I", number);
    if (!stats) {
        return -1;
    }
    if (PyDict_Check(stats)) {
        const uint64_t ever = stat_get(stats, "allocation", "allocated");
        watch.device[number].used |= ever != UINT64_MAX && ever > 0;
        if (watch.device[number].used) {
            device_put(number, stats, at_step);
        }
    }
    Py_DECREF(stats);
    return PyErr_Occurred() ? -1 : 0;
}

static int devices_read(PyObject *cuda, bool at_step)
{
    PyObject *counted = PyObject_CallMethod(cuda, "device_count", NULL);
    const long all = counted ? PyLong_AsLong(counted) : -1;
    const bool look = !at_step || watch.readings++ % LOOK_AGAIN == 0;
    Py_XDECREF(counted);
    if (all < 0) {
        return -1;
    }
    for (long i = 0; i < all && i < DEVICES; i++) {
        if ((look || watch.device[i].used) && device_read(cuda, (unsigned)i, at_step)) {
            return -1;
        }
    }
    return 0;
}

/* torch has no statistics of memory of the CPU: that is said, rather than nothing. */
static void cpu_put(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    static const char name[] = "torch.cpu";
    if (modules && PyDict_Check(modules) && PyDict_GetItemString(modules, "torch")) {
        sw_row row = {
            .table = SW_TABLE_ALLOCATOR,
            .key = {sw_name(name, sizeof name - 1), UINT32_MAX},
            .value = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
        (void)sw_row_put(0, &row);
    }
}

static void recording_is(uint32_t number)
{
    if (watch.recording != number) {
        memset(watch.device, 0, sizeof watch.device);
        watch.recording = number;
        watch.failures = watch.readings = 0;
    }
}

/* Nothing of what goes wrong here is the program's business. */
static void read_all(bool at_step)
{
    const uint32_t recording = sw_recording_number();
    if (!recording || atomic_flag_test_and_set(&watch.busy)) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    recording_is(recording);
    const uint64_t began = core_ticks();
    if (watch.failures < FAILURES) {
        PyObject *cuda = cuda_get();
        if (PyErr_Occurred() || (cuda && devices_read(cuda, at_step) != 0)) {
            watch.failures++;
        }
        Py_XDECREF(cuda);
        core_error_forget();
    }
    const uint64_t ended = core_ticks();
    const double unit_ns = core_ticks_ns();
    const uint64_t pause = (uint64_t)(unit_ns > 0 ? PERIOD_NS / unit_ns : PERIOD_NS);
    const uint64_t took = (ended - began) * SHARE;
    watch.due = ended + (took > pause ? took : pause);
    PyErr_Restore(type, value, trace);
    atomic_flag_clear(&watch.busy);
}

void core_allocators_step(void)
{
    core_memory_step();
    if ((core_ticks() >= watch.due || sw_recording_number() != watch.recording) &&
        core_in_main_interpreter()) {
        read_all(true);
    }
}

void core_allocators_flush(void)
{
    read_all(false);
    cpu_put();
}

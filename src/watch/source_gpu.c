/* GPUs as a source of the monitor. What NVML says is in the box of gpu_watch.c; here it becomes series and rows. */
#include "watch/source_gpu.h"

#include <link.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/record.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "record/recorder.h"
#include "watch/gpu_visible.h"
#include "watch/gpu_watch.h"
#include "watch/sources.h"

/* Counters of the driver change no faster than that, and its lock is everybody's. */
#define PERIOD_S 0.1
/* How long a look of the monitor waits for the cheap calls, and the last one for all. */
#define CHEAP_PATIENCE_NS ((uint64_t)3000000)
#define LAST_PATIENCE_NS ((uint64_t)1000000000)

enum { GPU_AUTO = 0, GPU_ON = 1, GPU_OFF = 2 };

/* Units of the series, and which of them are sums that grow. */
static const struct {
    const char *unit;
    enum sw_series_kind kind;
} series[SW_GPU_VALUES] = {
    [SW_GPU_MEMORY_USED] = {"B", SW_SERIES_GAUGE},
    [SW_GPU_PROCESS_MEMORY] = {"B", SW_SERIES_GAUGE},
    [SW_GPU_UTILISATION] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_MEMORY_UTILISATION] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_SM_ACTIVE] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_SM_OCCUPANCY] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_TENSOR_ACTIVE] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_DRAM_ACTIVE] = {"%", SW_SERIES_GAUGE},
    [SW_GPU_POWER] = {"W", SW_SERIES_GAUGE},
    [SW_GPU_ENERGY] = {"J", SW_SERIES_GAUGE},
    [SW_GPU_TEMPERATURE] = {"°C", SW_SERIES_GAUGE},
    [SW_GPU_SM_CLOCK] = {"MHz", SW_SERIES_GAUGE},
    [SW_GPU_MEMORY_CLOCK] = {"MHz", SW_SERIES_GAUGE},
    [SW_GPU_CLOCK_REASONS] = {"1", SW_SERIES_GAUGE},
    [SW_GPU_PCIE_SENT] = {"B/s", SW_SERIES_GAUGE},
    [SW_GPU_PCIE_RECEIVED] = {"B/s", SW_SERIES_GAUGE},
    [SW_GPU_NVLINK_SENT] = {"B/s", SW_SERIES_GAUGE},
    [SW_GPU_NVLINK_RECEIVED] = {"B/s", SW_SERIES_GAUGE},
    [SW_GPU_ECC_CORRECTED] = {"1", SW_SERIES_GAUGE},
    [SW_GPU_ECC_UNCORRECTED] = {"1", SW_SERIES_GAUGE},
    [SW_GPU_XID] = {"1", SW_SERIES_GAUGE},
};

struct gpu_source {
    pid_t pid; /* whose it is: a child that inherited it must not touch it */
    struct sw__gpu_watch *watch;
    struct sw__gpu_wish wish;
    bool asked_for;             /* gpu=on: somebody wants to know why not */
    bool waiting;               /* gpu=auto, and CUDA has not been loaded */
    bool told;                  /* what became of it is in the trace */
    unsigned long long objects; /* loaded and unloaded when looked at last */
    size_t count;               /* devices that have rows */
    struct sw__nvml_info device[SW__NVML_MOST];
    bool aside[SW__NVML_MOST];
    uint64_t row[SW__NVML_MOST];
    uint32_t driver_id;
    uint32_t hint[SW__NVML_MOST][SW_GPU_VALUES];
    bool missing[SW__NVML_MOST][SW_GPU_VALUES]; /* … has been told */
    bool known[SW__NVML_MOST][SW_GPU_VALUES];   /* there was a value */
};

/* The one whose thread has to stop for a fork. Sources are opened and closed under the monitor's lock, which is held around
 * forks. */
static _Atomic(struct sw__gpu_watch *) active;

/* --- what is wanted --- */

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

/* In the thread that starts or stops the monitor, which is one of the program's: the environment is not for other threads to
 * read. */
static void read_environment(struct sw__gpu_wish *wish)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const char *order = getenv("CUDA_DEVICE_ORDER");
    sw_rank rank;
    wish->has_visible = visible != NULL;
    copy_text(wish->visible, sizeof wish->visible, visible);
    wish->by_bus = order && strcmp(order, "PCI_BUS_ID") == 0;
    wish->local_rank = sw_rank_get(&rank) ? rank.local_rank : -1;
}

struct search {
    unsigned long long before, now;
    bool found;
};

static int look_for_cuda(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    search->now = info->dlpi_adds + info->dlpi_subs;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *name = slash ? slash + 1 : info->dlpi_name;
    search->found = name && strncmp(name, "libcuda.so", 10) == 0;
    return search->found || search->now == search->before;
}

/* Whether the program has loaded the CUDA driver. The list of libraries is gone through only when it has changed. */
static bool cuda_is_loaded(struct gpu_source *source)
{
    struct search search = {.before = source->objects};
    (void)dl_iterate_phdr(look_for_cuda, &search);
    source->objects = search.now;
    return search.found;
}

static int gpu_open(const struct sw__source_setting *setting, void **state, char *why,
                    size_t size)
{
    (void)setting;
    const bool recording = sw_is_recording();
    const struct sw__settings *settings = &sw__session.settings;
    const unsigned wanted = recording ? settings->gpu : GPU_AUTO;
    if (wanted == GPU_OFF) {
        sw_fact("gpu", "gpu is off in the configuration");
        return SW_EDISABLED;
    }
    /* Who only asks what there is does not want a driver started. */
    struct sw__nvml_api api;
    sw_error_info info = {0};
    if (!recording && sw__nvml_load(&api, NULL, &info) != SW_OK) {
        snprintf(why, size, "%s", info.message);
        return SW_EUNSUPPORTED;
    }
    struct gpu_source *source = sw__alloc_zero(1, sizeof *source);
    if (!source) {
        return SW_ENOMEM;
    }
    source->pid = getpid();
    source->asked_for = wanted == GPU_ON;
    source->waiting = wanted == GPU_AUTO;
    copy_text(source->wish.library, sizeof source->wish.library,
              recording ? settings->nvml : "");
    read_environment(&source->wish);
    if (source->waiting && recording) {
        sw_fact("gpu", "the program did not load the CUDA driver");
    }
    *state = source;
    return SW_OK;
}

/* --- rows --- */

static uint32_t name_id(const char *text)
{
    return *text ? sw_name(text, strlen(text)) : 0;
}

static void put_note(uint32_t device, uint32_t value, const char *text)
{
    sw_row row = {.table = SW_TABLE_GPUNOTE, .key = {device, value, name_id(text)}};
    (void)sw_row_put(0, &row);
}

static uint64_t two(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static void put_device(struct gpu_source *source, size_t place)
{
    const struct sw__nvml_info *info = &source->device[place];
    sw_row row = {.table = SW_TABLE_GPU,
                  .key = {(uint32_t)place, name_id(info->name), name_id(info->uuid),
                          info->parent == SW__NVML_NO_PARENT ? 0 : info->parent + 1},
                  .value = {info->memory_bytes,
                            two(info->sm_clock_mhz, info->memory_clock_mhz),
                            two(info->power_limit_mw, info->power_default_mw),
                            two(info->slowdown_c, info->most_c),
                            two(info->index, source->driver_id)}};
    row.flags = (uint16_t)((info->visible == 1 ? SW_ROW_GPU_VISIBLE : 0) |
                           (info->visible == 0 ? SW_ROW_GPU_HIDDEN : 0) |
                           (info->gpm ? SW_ROW_GPU_ACTIVITY : 0) |
                           (info->mig_on ? SW_ROW_GPU_DIVIDED : 0) |
                           (source->aside[place] ? SW_ROW_GPU_ASIDE : 0));
    source->row[place] = sw_row_put(source->row[place], &row);
}

/* The state of things, once. */
static void tell(struct gpu_source *source)
{
    char why[300];
    char driver[80];
    switch (sw__gpu_watch_state(source->watch, why, sizeof why)) {
    case SW__GPU_STARTING:
        return;
    case SW__GPU_FAILED:
        sw_fact("gpu", why);
        if (source->asked_for) {
            char text[400];
            snprintf(text, sizeof text, "GPUs were to be watched, and cannot be: %s.",
                     why);
            put_note(UINT32_MAX, UINT32_MAX, text);
        }
        break;
    case SW__GPU_WATCHING:
        sw_fact("gpu", "watched");
        sw__gpu_watch_driver(source->watch, driver, sizeof driver);
        source->driver_id = name_id(driver);
        source->count = sw__gpu_watch_devices(source->watch, source->device,
                                              source->aside, SW__NVML_MOST);
        for (size_t i = 0; i < source->count; i++) {
            put_device(source, i);
        }
        break;
    }
    source->told = true;
}

/* --- looks --- */

static void put_values(struct gpu_source *source, struct sw__look *look)
{
    for (size_t i = 0; i < source->count; i++) {
        for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
            double number;
            if (!sw__gpu_watch_take(source->watch, i, (enum sw_gpu_value)value,
                                    &number)) {
                continue;
            }
            char name[SW__SERIES_NAME];
            name[0] = '\0';
            if (!source->hint[i][value]) {
                snprintf(name, sizeof name, "gpu.%zu.%s", i, sw_gpu_value_name(value));
            }
            source->known[i][value] = source->known[i][value] || !isnan(number);
            sw__look_hint(look, &source->hint[i][value], name, series[value].unit,
                          series[value].kind, number);
        }
    }
}

/* Of values that never came: why. */
static void put_missing(struct gpu_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
            char why[200];
            if (source->missing[i][value] || source->known[i][value] ||
                !sw__gpu_watch_missing(source->watch, i, (enum sw_gpu_value)value, why,
                                       sizeof why)) {
                continue;
            }
            source->missing[i][value] = true;
            put_note((uint32_t)i, value, why);
        }
    }
}

static int gpu_sample(void *state, struct sw__look *look)
{
    struct gpu_source *source = state;
    if (source->waiting) {
        if (!cuda_is_loaded(source)) {
            return SW_OK;
        }
        source->waiting = false;
    }
    if (!source->watch) {
        source->watch = sw__gpu_watch_create(&source->wish);
        if (!source->watch) {
            return SW_ENOMEM;
        }
        atomic_store(&active, source->watch);
    }
    const bool last = sw__look_is_last(look);
    sw__gpu_watch_look(source->watch, last, last ? LAST_PATIENCE_NS : CHEAP_PATIENCE_NS);
    if (!source->told) {
        tell(source);
    }
    put_values(source, look);
    put_missing(source);
    char text[400];
    while (sw__gpu_watch_note(source->watch, text, sizeof text)) {
        put_note(UINT32_MAX, UINT32_MAX, text);
    }
    return SW_OK;
}

/* Programs choose their devices in their first lines, after recording began: what counts is what is set at the end. */
static void see_again(struct gpu_source *source)
{
    struct sw__gpu_wish wish = {0};
    read_environment(&wish);
    if (wish.has_visible == source->wish.has_visible &&
        strcmp(wish.visible, source->wish.visible) == 0 &&
        wish.by_bus == source->wish.by_bus) {
        return;
    }
    sw__gpu_visible(source->device, source->count, wish.has_visible ? wish.visible : NULL,
                    wish.by_bus);
    for (size_t i = 0; i < source->count; i++) {
        put_device(source, i);
    }
}

static void gpu_close(void *state)
{
    struct gpu_source *source = state;
    const bool child = source->pid != getpid();
    if (source->watch && atomic_load(&active) == source->watch) {
        atomic_store(&active, NULL);
    }
    sw__gpu_watch_free(source->watch, child);
    if (!child) {
        if (sw_is_recording()) {
            see_again(source);
        }
        sw__free(source);
    }
}

const struct sw__source sw__source_gpu = {
    .name = "gpu",
    .period_s = PERIOD_S,
    .open = gpu_open,
    .sample = gpu_sample,
    .close = gpu_close,
};

static void before_fork(void)
{
    struct sw__gpu_watch *watch = atomic_load(&active);
    if (watch) {
        sw__gpu_watch_pause(watch);
    }
}

static void after_fork(bool child)
{
    if (child) {
        atomic_store(&active, NULL);
        sw__gpu_watch_forked();
    }
}

const struct sw__watcher sw__gpu_watcher = {.before_fork = before_fork,
                                            .after_fork = after_fork};

/* When which call is made, and what becomes of those that fail. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "watch/gpu_visible.h"
#include "watch/nvml_internal.h"

#define NO_DEVICE UINT32_MAX
#define NO_GROUP UINT32_MAX
/* A driver that went away is looked for again, ever more seldom. */
#define RETRY_NS 30000000000u
#define RETRY_DOUBLINGS 5u
/* Calls that fail in a row before that is told, and before it is tried more seldom. */
#define FAILURES_TOLD 3u
#define FAILURES_SELDOM 10u
#define SELDOM 10u
#define EARLY_NS 200000000u
/* Processes have made nothing yet when all begins, and a call that takes 20 ms does not belong there. */
#define LATER_NS 1000000000u
/* The number of the outermost namespace of process ids (PROC_PID_INIT_INO of the kernel). */
#define OUTERMOST "pid:[4026531836]"

static const struct {
    uint32_t period_ms;
    const char *text;
} groups[SW__NVML_GROUPS] = {
#define GROUP(symbol, period, text) {period, text},
    SW__NVML_GROUP_TABLE(GROUP)
#undef GROUP
};

static const enum sw__nvml_group group_of[SW_GPU_VALUES] = {
    [SW_GPU_MEMORY_USED] = SW__NVML_GROUP_MEMORY,
    [SW_GPU_PROCESS_MEMORY] = SW__NVML_GROUP_PROCESSES,
    [SW_GPU_UTILISATION] = SW__NVML_GROUP_RATES,
    [SW_GPU_MEMORY_UTILISATION] = SW__NVML_GROUP_RATES,
    [SW_GPU_SM_ACTIVE] = SW__NVML_GROUP_GPM,
    [SW_GPU_SM_OCCUPANCY] = SW__NVML_GROUP_GPM,
    [SW_GPU_TENSOR_ACTIVE] = SW__NVML_GROUP_GPM,
    [SW_GPU_DRAM_ACTIVE] = SW__NVML_GROUP_GPM,
    [SW_GPU_POWER] = SW__NVML_GROUP_POWER,
    [SW_GPU_ENERGY] = SW__NVML_GROUP_ENERGY,
    [SW_GPU_TEMPERATURE] = SW__NVML_GROUP_TEMPERATURE,
    [SW_GPU_SM_CLOCK] = SW__NVML_GROUP_CLOCKS,
    [SW_GPU_MEMORY_CLOCK] = SW__NVML_GROUP_CLOCKS,
    [SW_GPU_CLOCK_REASONS] = SW__NVML_GROUP_REASONS,
    [SW_GPU_PCIE_SENT] = SW__NVML_GROUP_LINKS,
    [SW_GPU_PCIE_RECEIVED] = SW__NVML_GROUP_LINKS,
    [SW_GPU_NVLINK_SENT] = SW__NVML_GROUP_LINKS,
    [SW_GPU_NVLINK_RECEIVED] = SW__NVML_GROUP_LINKS,
    [SW_GPU_ECC_CORRECTED] = SW__NVML_GROUP_ECC,
    [SW_GPU_ECC_UNCORRECTED] = SW__NVML_GROUP_ECC,
    [SW_GPU_XID] = SW__NVML_GROUP_ERRORS,
};

enum sw__nvml_group sw__nvml_group_of(enum sw_gpu_value value)
{
    return group_of[value];
}

const char *sw__nvml_group_text(enum sw__nvml_group group)
{
    return groups[group].text;
}

/* --- telling --- */

void sw__nvml_give(sw__nvml *nvml, size_t device, enum sw_gpu_value value, double number)
{
    double *last = &nvml->gpu[device].last[value];
    if (isnan(number) && isnan(*last)) {
        return;
    }
    *last = number;
    nvml->sink.value(nvml->sink.context, device, value, number);
}

void sw__nvml_tell(sw__nvml *nvml, uint32_t device, uint32_t group, int result,
                   const char *format, ...)
{
    for (size_t i = 0; i < nvml->told_count; i++) {
        if (nvml->told[i].device == device && nvml->told[i].group == group &&
            nvml->told[i].result == result) {
            return;
        }
    }
    if (nvml->told_count == SW__COUNTOF(nvml->told)) {
        return;
    }
    nvml->told[nvml->told_count].device = device;
    nvml->told[nvml->told_count].group = group;
    nvml->told[nvml->told_count++].result = result;
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    nvml->sink.note(nvml->sink.context, text);
}

const char *sw__nvml_title(const sw__nvml *nvml, size_t device, char *out, size_t size)
{
    const struct sw__nvml_info *info = &nvml->gpu[device].info;
    if (info->parent == SW__NVML_NO_PARENT) {
        snprintf(out, size, "GPU %u", info->index);
    } else {
        snprintf(out, size, "part %u of GPU %u", info->index,
                 nvml->gpu[info->parent].info.index);
    }
    return out;
}

/* --- what becomes of failures --- */

/* What a result says about everything else. */
enum meaning {
    GOOD,
    NEVER,     /* this will not work, and nobody can help it */
    FORBIDDEN, /* it will not work until somebody allows it */
    DEVICE,    /* the device is gone */
    LIBRARY,   /* the driver is gone */
    PERHAPS    /* it may work next time */
};

static enum meaning meaning_of(int result)
{
    switch (result) {
    case SW__NVML_OK:
        return GOOD;
    case SW__NVML_NOT_SUPPORTED:
    case SW__NVML_NO_FUNCTION:
    case SW__NVML_VERSION:
    case SW__NVML_DEPRECATED:
    case SW__NVML_INVALID:
        return NEVER;
    case SW__NVML_NO_PERMISSION:
    case SW__NVML_BLOCKED:
        return FORBIDDEN;
    case SW__NVML_LOST:
    case SW__NVML_RESET:
    case SW__NVML_NOT_FOUND:
    case SW__NVML_NO_POWER:
        return DEVICE;
    case SW__NVML_UNINITIALIZED:
    case SW__NVML_NO_DRIVER:
    case SW__NVML_NO_LIBRARY:
    case SW__NVML_MISMATCH:
        return LIBRARY;
    default:
        return PERHAPS;
    }
}

static void forget_values(sw__nvml *nvml, size_t device)
{
    for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
        sw__nvml_give(nvml, device, (enum sw_gpu_value)value, NAN);
    }
}

static void forget_group(sw__nvml *nvml, size_t device, enum sw__nvml_group group)
{
    for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
        const bool links = group_of[value] == SW__NVML_GROUP_LINKS;
        if (group_of[value] == group || (group == SW__NVML_GROUP_PCIE && links)) {
            sw__nvml_give(nvml, device, (enum sw_gpu_value)value, NAN);
        }
    }
}

/* The activity counters also tell of traffic; where they do not work, there are other ways. */
static void fall_back(struct sw__nvml_gpu *gpu, bool gpm)
{
    const bool whole = gpu->info.parent == SW__NVML_NO_PARENT;
    gpu->asked[SW__NVML_GROUP_LINKS].off = gpm || !whole;
    gpu->asked[SW__NVML_GROUP_LINKS].elsewhere = gpm || !whole;
    gpu->asked[SW__NVML_GROUP_PCIE].off = gpm || !whole;
    gpu->asked[SW__NVML_GROUP_PCIE].elsewhere = gpm || !whole;
}

static void switch_off(sw__nvml *nvml, size_t device, enum sw__nvml_group group)
{
    nvml->gpu[device].asked[group].off = true;
    forget_group(nvml, device, group);
    if (group == SW__NVML_GROUP_GPM) {
        fall_back(&nvml->gpu[device], false);
    }
}

static void lose_device(sw__nvml *nvml, size_t device, int result)
{
    char title[64];
    nvml->gpu[device].dead = result;
    sw__nvml_tell(
        nvml, (uint32_t)device, NO_GROUP, result, "%s cannot be watched any more: %s.",
        sw__nvml_title(nvml, device, title, sizeof title), sw__nvml_text(result));
    forget_values(nvml, device);
    for (size_t i = 0; i < nvml->count; i++) {
        if (nvml->gpu[i].info.parent == device && !nvml->gpu[i].dead) {
            lose_device(nvml, i, result);
        }
    }
}

static void lose_library(sw__nvml *nvml, int result, uint64_t now_ns)
{
    nvml->lost = result;
    nvml->retry_ns = now_ns + RETRY_NS;
    nvml->retries = 0;
    sw__nvml_tell(nvml, NO_DEVICE, NO_GROUP, result,
                  "GPUs could not be watched for a part of the run: %s.",
                  sw__nvml_text(result));
    for (size_t i = 0; i < nvml->count; i++) {
        forget_values(nvml, i);
    }
}

static void settle(sw__nvml *nvml, size_t device, enum sw__nvml_group group, int result,
                   uint64_t now_ns)
{
    struct sw__nvml_asked *asked = &nvml->gpu[device].asked[group];
    char title[64];
    sw__nvml_title(nvml, device, title, sizeof title);
    asked->result = result;
    asked->failures = result == SW__NVML_OK ? 0 : asked->failures + 1;
    switch (meaning_of(result)) {
    case GOOD:
        break;
    case NEVER:
        switch_off(nvml, device, group);
        break;
    case FORBIDDEN:
        switch_off(nvml, device, group);
        sw__nvml_tell(nvml, (uint32_t)device, group, result, "%s: no %s: %s.", title,
                      groups[group].text, sw__nvml_text(result));
        break;
    case DEVICE:
        lose_device(nvml, device, result);
        break;
    case LIBRARY:
        lose_library(nvml, result, now_ns);
        break;
    case PERHAPS:
        forget_group(nvml, device, group);
        if (asked->failures == FAILURES_TOLD) {
            sw__nvml_tell(nvml, (uint32_t)device, group, result,
                          "%s: no %s for a part of the run: %s.", title,
                          groups[group].text, sw__nvml_text(result));
        }
        break;
    }
}

/* --- looking --- */

static uint64_t next_due(const struct sw__nvml_asked *asked, uint32_t period_ms,
                         uint64_t now_ns)
{
    const uint64_t period = (uint64_t)period_ms * 1000000u;
    if (asked->failures >= FAILURES_SELDOM) {
        return now_ns + SELDOM * (period ? period : 1000000000u);
    }
    if (period == 0) {
        return 0;
    }
    /* Looks come a little early and late around their moment. */
    const uint64_t early = period / 10 < EARLY_NS ? period / 10 : EARLY_NS;
    return now_ns + period - early;
}

static void look_at(sw__nvml *nvml, size_t device, uint64_t now_ns, unsigned which)
{
    struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    for (unsigned i = 0; i < SW__NVML_GROUPS; i++) {
        struct sw__nvml_asked *asked = &gpu->asked[i];
        if (nvml->lost || gpu->dead) {
            return;
        }
        /* The last look must not keep a program waiting for a measurement. */
        const bool all = (which & SW__NVML_ALL) && i != SW__NVML_GROUP_PCIE;
        const bool due = now_ns >= asked->due_ns || all;
        const unsigned half = groups[i].period_ms ? SW__NVML_DEAR : SW__NVML_CHEAP;
        if (asked->off || !due || !(which & half) || i == SW__NVML_GROUP_ERRORS) {
            continue;
        }
        settle(nvml, device, (enum sw__nvml_group)i,
               sw__nvml_call(nvml, device, (enum sw__nvml_group)i, now_ns), now_ns);
        asked->due_ns = next_due(asked, groups[i].period_ms, now_ns);
    }
}

/* The driver was gone: starts anew if it is back. */
static void try_again(sw__nvml *nvml, uint64_t now_ns)
{
    if (now_ns < nvml->retry_ns) {
        return;
    }
    const unsigned doublings =
        nvml->retries < RETRY_DOUBLINGS ? nvml->retries : RETRY_DOUBLINGS;
    nvml->retries++;
    nvml->retry_ns = now_ns + ((uint64_t)RETRY_NS << doublings);
    /* Starts are counted: what was started is shut down once, unless somebody else did so. */
    if (nvml->started && nvml->lost != SW__NVML_UNINITIALIZED && nvml->api.shutdown) {
        nvml->api.shutdown();
    }
    nvml->started = nvml->api.init() == SW__NVML_OK;
    if (!nvml->started) {
        return;
    }
    nvml->lost = 0;
    sw__nvml_find_again(nvml);
    for (size_t i = 0; i < nvml->count; i++) {
        for (size_t j = 0; j < SW__NVML_GROUPS; j++) {
            nvml->gpu[i].asked[j].due_ns = 0;
            nvml->gpu[i].asked[j].failures = 0;
        }
        if (nvml->gpu[i].dead) {
            lose_device(nvml, i, nvml->gpu[i].dead);
        }
    }
}

/* Events come for all devices together, when the first of them is due. */
static void look_for_errors(sw__nvml *nvml, uint64_t now_ns, bool all)
{
    for (size_t i = 0; i < nvml->count; i++) {
        const struct sw__nvml_gpu *gpu = &nvml->gpu[i];
        if (gpu->wanted && !gpu->dead && !gpu->asked[SW__NVML_GROUP_ERRORS].off &&
            isnan(gpu->last[SW_GPU_XID])) {
            sw__nvml_give(nvml, i, SW_GPU_XID, gpu->xids); /* none is known of */
        }
    }
    for (size_t i = 0; nvml->events && !nvml->lost && i < nvml->count; i++) {
        struct sw__nvml_asked *asked = &nvml->gpu[i].asked[SW__NVML_GROUP_ERRORS];
        if (asked->off || nvml->gpu[i].dead || !(now_ns >= asked->due_ns || all)) {
            continue;
        }
        const int result = sw__nvml_poll_events(nvml);
        if (result != SW__NVML_OK) {
            settle(nvml, i, SW__NVML_GROUP_ERRORS, result, now_ns);
        }
        const uint64_t due =
            next_due(asked, groups[SW__NVML_GROUP_ERRORS].period_ms, now_ns);
        for (size_t j = 0; j < nvml->count; j++) {
            nvml->gpu[j].asked[SW__NVML_GROUP_ERRORS].due_ns = due;
        }
        return;
    }
}

void sw__nvml_look(sw__nvml *nvml, uint64_t now_ns, unsigned which)
{
    if (!nvml->looked) {
        nvml->looked = true;
        for (size_t i = 0; i < nvml->count; i++) {
            nvml->gpu[i].asked[SW__NVML_GROUP_PROCESSES].due_ns = now_ns + LATER_NS;
            nvml->gpu[i].asked[SW__NVML_GROUP_PCIE].due_ns = now_ns + LATER_NS;
        }
    }
    if (nvml->lost) {
        try_again(nvml, now_ns);
    }
    if (which & SW__NVML_DEAR) {
        look_for_errors(nvml, now_ns, (which & SW__NVML_ALL) != 0);
    }
    for (size_t i = 0; !nvml->lost && i < nvml->count; i++) {
        if (nvml->gpu[i].wanted) {
            look_at(nvml, i, now_ns, which);
        }
    }
}

const char *sw__nvml_missing(const sw__nvml *nvml, size_t device,
                             enum sw__nvml_group group)
{
    const struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    const struct sw__nvml_asked *asked = &gpu->asked[group];
    if (!gpu->wanted) {
        return "another process of the run watches this device";
    }
    if (nvml->lost) {
        return sw__nvml_text(nvml->lost);
    }
    if (gpu->dead) {
        return sw__nvml_text(gpu->dead);
    }
    if (asked->elsewhere) {
        return gpu->info.parent == SW__NVML_NO_PARENT ? NULL : "the whole device has it";
    }
    if (group == SW__NVML_GROUP_PROCESSES && asked->result == SW__NVML_OK &&
        !nvml->outermost_pids && isnan(gpu->last[SW_GPU_PROCESS_MEMORY])) {
        return "the driver numbers processes as they are outside this container";
    }
    return asked->result > 0 ? sw__nvml_text(asked->result) : NULL;
}

/* --- beginning and end --- */

static bool pids_are_outermost(void)
{
    char text[64];
    const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return strcmp(text, OUTERMOST) == 0;
}

static void ask_versions(sw__nvml *nvml)
{
    const struct sw__nvml_api *api = &nvml->api;
    if (!api->driver_version ||
        api->driver_version(nvml->driver, sizeof nvml->driver) != SW__NVML_OK) {
        nvml->driver[0] = '\0';
    }
    if (!api->library_version ||
        api->library_version(nvml->version, sizeof nvml->version) != SW__NVML_OK) {
        nvml->version[0] = '\0';
    }
    nvml->driver[sizeof nvml->driver - 1] = '\0';
    nvml->version[sizeof nvml->version - 1] = '\0';
}

int sw__nvml_open(sw__nvml **out, const char *path, const struct sw__nvml_sink *sink,
                  sw_error_info *info)
{
    *out = NULL;
    sw__nvml *nvml = sw__alloc_zero(1, sizeof *nvml);
    if (nvml) {
        nvml->gpu = sw__alloc_zero(SW__NVML_MOST, sizeof *nvml->gpu);
        nvml->process_room = 64;
    }
    if (!nvml || !nvml->gpu) {
        sw__nvml_close(nvml);
        return sw_error_set(info, SW_ENOMEM, "out of memory");
    }
    nvml->sink = *sink;
    nvml->outermost_pids = pids_are_outermost();
    int error = sw__nvml_load(&nvml->api, path, info);
    if (error) {
        goto fail;
    }
    const int result = nvml->api.init();
    if (result != SW__NVML_OK) {
        error = sw_error_set(info, SW_EUNSUPPORTED, "NVML does not start: %s",
                             sw__nvml_text(result));
        goto fail;
    }
    nvml->started = true;
    ask_versions(nvml);
    error = sw__nvml_list(nvml, info);
    if (error) {
        goto fail;
    }
    for (size_t i = 0; i < nvml->count; i++) {
        fall_back(&nvml->gpu[i], nvml->gpu[i].info.gpm);
    }
    sw__nvml_watch_events(nvml);
    *out = nvml;
    return SW_OK;
fail:
    sw__nvml_close(nvml);
    return error;
}

void sw__nvml_close(sw__nvml *nvml)
{
    if (!nvml) {
        return;
    }
    sw__nvml_free_samples(nvml);
    /* What belongs to a driver that is gone went with it. */
    if (nvml->events && !nvml->lost && nvml->api.events_free) {
        nvml->api.events_free(nvml->events);
    }
    if (nvml->started && nvml->api.shutdown) {
        nvml->api.shutdown();
    }
    sw__free(nvml->metrics);
    sw__free(nvml->processes);
    sw__free(nvml->gpu);
    sw__free(nvml);
}

size_t sw__nvml_count(const sw__nvml *nvml)
{
    return nvml->count;
}

const struct sw__nvml_info *sw__nvml_get(const sw__nvml *nvml, size_t index)
{
    return &nvml->gpu[index].info;
}

const char *sw__nvml_driver(const sw__nvml *nvml)
{
    return nvml->driver;
}

const char *sw__nvml_version(const sw__nvml *nvml)
{
    return nvml->version;
}

const char *sw__nvml_path(const sw__nvml *nvml)
{
    return nvml->api.path;
}

void sw__nvml_see(sw__nvml *nvml, const char *visible, bool by_bus)
{
    struct sw__nvml_info *devices =
        sw__alloc_zero(nvml->count ? nvml->count : 1, sizeof *devices);
    for (size_t i = 0; devices && i < nvml->count; i++) {
        devices[i] = nvml->gpu[i].info;
    }
    if (devices) {
        sw__gpu_visible(devices, nvml->count, visible, by_bus);
        for (size_t i = 0; i < nvml->count; i++) {
            nvml->gpu[i].info.visible = devices[i].visible;
        }
        sw__free(devices);
    }
}

void sw__nvml_select(sw__nvml *nvml, const bool *wanted)
{
    for (size_t i = 0; i < nvml->count; i++) {
        nvml->gpu[i].wanted = !wanted || wanted[i];
    }
}

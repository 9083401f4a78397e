/* Which devices there are, and what is known of each from the beginning. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "watch/nvml_internal.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { THRESHOLD_SLOWDOWN = 1, THRESHOLD_GPU_MOST = 3 };

/* Texts come from the driver: they end where their array does, whatever it wrote. */
static void end_text(char *text, size_t size)
{
    text[size - 1] = '\0';
}

static void ask_numbers(const struct sw__nvml_api *api, sw__nvml_device handle,
                        struct sw__nvml_info *info)
{
    unsigned number = 0;
    if (api->clock_most && api->clock_most(handle, CLOCK_SM, &number) == SW__NVML_OK) {
        info->sm_clock_mhz = number;
    }
    if (api->clock_most &&
        api->clock_most(handle, CLOCK_MEMORY, &number) == SW__NVML_OK) {
        info->memory_clock_mhz = number;
    }
    if (api->power_limit && api->power_limit(handle, &number) == SW__NVML_OK) {
        info->power_limit_mw = number;
    }
    if (api->power_default && api->power_default(handle, &number) == SW__NVML_OK) {
        info->power_default_mw = number;
    }
    if (api->threshold &&
        api->threshold(handle, THRESHOLD_SLOWDOWN, &number) == SW__NVML_OK) {
        info->slowdown_c = number;
    }
    if (api->threshold &&
        api->threshold(handle, THRESHOLD_GPU_MOST, &number) == SW__NVML_OK) {
        info->most_c = number;
    }
}

static void ask_memory(const struct sw__nvml_api *api, sw__nvml_device handle,
                       struct sw__nvml_info *info)
{
    struct sw__nvml_memory2 newer = {.version =
                                         SW__NVML_VERSIONED(struct sw__nvml_memory2, 2)};
    struct sw__nvml_memory older = {0};
    if (api->memory2 && api->memory2(handle, &newer) == SW__NVML_OK) {
        info->memory_bytes = newer.total;
    } else if (api->memory && api->memory(handle, &older) == SW__NVML_OK) {
        info->memory_bytes = older.total;
    }
}

static void ask_texts(const struct sw__nvml_api *api, sw__nvml_device handle,
                      struct sw__nvml_info *info)
{
    if (!api->name || api->name(handle, info->name, sizeof info->name) != SW__NVML_OK) {
        info->name[0] = '\0';
    }
    if (!api->uuid || api->uuid(handle, info->uuid, sizeof info->uuid) != SW__NVML_OK) {
        info->uuid[0] = '\0';
    }
    end_text(info->name, sizeof info->name);
    end_text(info->uuid, sizeof info->uuid);
    struct sw__nvml_pci pci = {0};
    if (api->pci && api->pci(handle, &pci) == SW__NVML_OK) {
        snprintf(info->pci, sizeof info->pci, "%.31s", pci.bus_id);
    }
}

/* Adds a device; NULL when there is no room. */
static struct sw__nvml_gpu *add(sw__nvml *nvml, sw__nvml_device handle, uint32_t index,
                                uint32_t parent)
{
    if (nvml->count == SW__NVML_MOST) {
        return NULL;
    }
    struct sw__nvml_gpu *gpu = &nvml->gpu[nvml->count++];
    gpu->handle = handle;
    gpu->wanted = true;
    gpu->info = (struct sw__nvml_info){.index = index, .parent = parent, .visible = -1};
    for (size_t i = 0; i < SW_GPU_VALUES; i++) {
        gpu->last[i] = NAN;
    }
    for (size_t i = 0; i < SW__NVML_GROUPS; i++) {
        gpu->asked[i].result = -1;
    }
    ask_texts(&nvml->api, handle, &gpu->info);
    ask_memory(&nvml->api, handle, &gpu->info);
    return gpu;
}

static bool has_gpm(const struct sw__nvml_api *api, sw__nvml_device handle)
{
    struct sw__nvml_support support = {.version = 1};
    return api->gpm_support && api->gpm_alloc && api->gpm_free && api->gpm_metrics &&
           api->gpm_support(handle, &support) == SW__NVML_OK && support.supported;
}

/* Groups that a part of a device has no answer to: they belong to the whole. */
static const bool of_the_whole[SW__NVML_GROUPS] = {
    [SW__NVML_GROUP_RATES] = true,       [SW__NVML_GROUP_POWER] = true,
    [SW__NVML_GROUP_TEMPERATURE] = true, [SW__NVML_GROUP_REASONS] = true,
    [SW__NVML_GROUP_CLOCKS] = true,      [SW__NVML_GROUP_ERRORS] = true,
    [SW__NVML_GROUP_ENERGY] = true,      [SW__NVML_GROUP_LINKS] = true,
    [SW__NVML_GROUP_PCIE] = true,        [SW__NVML_GROUP_ECC] = true,
};

static void list_parts(sw__nvml *nvml, size_t whole)
{
    const struct sw__nvml_api *api = &nvml->api;
    sw__nvml_device handle = nvml->gpu[whole].handle;
    unsigned now = 0;
    unsigned later = 0;
    unsigned most = 0;
    if (!api->mig_mode || !api->mig_device || !api->mig_most ||
        api->mig_mode(handle, &now, &later) != SW__NVML_OK || now != 1 ||
        api->mig_most(handle, &most) != SW__NVML_OK) {
        return;
    }
    nvml->gpu[whole].info.mig_on = true;
    for (unsigned i = 0; i < most && i < SW__NVML_MOST; i++) {
        sw__nvml_device part = NULL;
        if (api->mig_device(handle, i, &part) != SW__NVML_OK) {
            continue; /* places without a part are usual */
        }
        struct sw__nvml_gpu *gpu = add(nvml, part, i, (uint32_t)whole);
        if (!gpu) {
            return;
        }
        unsigned instance = 0;
        if (api->mig_instance && api->mig_instance(part, &instance) == SW__NVML_OK) {
            gpu->info.instance = instance;
            gpu->info.gpm = nvml->gpu[whole].info.gpm && api->gpm_get_mig;
        }
        for (size_t group = 0; group < SW__NVML_GROUPS; group++) {
            gpu->asked[group].off = of_the_whole[group];
            gpu->asked[group].elsewhere = of_the_whole[group];
        }
    }
}

int sw__nvml_list(sw__nvml *nvml, sw_error_info *info)
{
    unsigned count = 0;
    int result = nvml->api.count(&count);
    if (result != SW__NVML_OK) {
        return sw_error_set(info, SW_EUNSUPPORTED, "the GPUs cannot be listed: %s",
                            sw__nvml_text(result));
    }
    int last = SW__NVML_OK;
    size_t refused = 0;
    for (unsigned i = 0; i < count && i < SW__NVML_MOST; i++) {
        sw__nvml_device handle = NULL;
        result = nvml->api.by_index(i, &handle);
        if (result != SW__NVML_OK) {
            /* A container is given some of the machine's GPUs; the others are not ours to speak of. */
            last = result;
            refused++;
            continue;
        }
        const size_t place = nvml->count;
        struct sw__nvml_gpu *gpu = add(nvml, handle, i, SW__NVML_NO_PARENT);
        if (!gpu) {
            break;
        }
        ask_numbers(&nvml->api, handle, &gpu->info);
        gpu->info.gpm = has_gpm(&nvml->api, handle) && nvml->api.gpm_get;
        list_parts(nvml, place);
    }
    if (nvml->count == 0) {
        return refused ? sw_error_set(info, SW_EUNSUPPORTED,
                                      "none of the %u GPUs can be asked: %s", count,
                                      sw__nvml_text(last))
                       : sw_error_set(info, SW_ENOTFOUND, "the driver knows of no GPU");
    }
    return SW_OK;
}

/* Handles are those of one start of the library; a UUID is for good. */
static void take_handle(sw__nvml *nvml, sw__nvml_device handle)
{
    struct sw__nvml_info info = {0};
    ask_texts(&nvml->api, handle, &info);
    for (size_t i = 0; i < nvml->count; i++) {
        if (info.uuid[0] && strcmp(nvml->gpu[i].info.uuid, info.uuid) == 0) {
            nvml->gpu[i].handle = handle;
            nvml->gpu[i].dead = 0;
        }
    }
}

void sw__nvml_free_samples(sw__nvml *nvml)
{
    for (size_t i = 0; nvml->gpu && i < nvml->count; i++) {
        struct sw__nvml_gpu *gpu = &nvml->gpu[i];
        for (size_t j = 0; j < 2; j++) {
            if (gpu->sample[j]) {
                nvml->api.gpm_free(gpu->sample[j]);
                gpu->sample[j] = NULL;
            }
        }
        gpu->sample_ns = 0;
    }
}

void sw__nvml_find_again(sw__nvml *nvml)
{
    const struct sw__nvml_api *api = &nvml->api;
    unsigned count = 0;
    for (size_t i = 0; i < nvml->count; i++) {
        nvml->gpu[i].handle = NULL;
    }
    if (api->count(&count) != SW__NVML_OK) {
        count = 0;
    }
    for (unsigned i = 0; i < count && i < SW__NVML_MOST; i++) {
        sw__nvml_device handle = NULL;
        unsigned most = 0;
        if (api->by_index(i, &handle) != SW__NVML_OK) {
            continue;
        }
        take_handle(nvml, handle);
        if (!api->mig_device || !api->mig_most ||
            api->mig_most(handle, &most) != SW__NVML_OK) {
            continue;
        }
        for (unsigned j = 0; j < most && j < SW__NVML_MOST; j++) {
            sw__nvml_device part = NULL;
            if (api->mig_device(handle, j, &part) == SW__NVML_OK) {
                take_handle(nvml, part);
            }
        }
    }
    for (size_t i = 0; i < nvml->count; i++) {
        struct sw__nvml_gpu *gpu = &nvml->gpu[i];
        if (!gpu->handle) {
            gpu->dead = SW__NVML_NOT_FOUND;
        }
        /* Counts are those of the driver that is gone. */
        memset(gpu->link, 0, sizeof gpu->link);
    }
    sw__nvml_free_samples(nvml);
    nvml->events = NULL;
    sw__nvml_watch_events(nvml);
}

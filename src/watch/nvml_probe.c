/* One look at everything, for those who ask what could be watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/nvml.h>

#include "base/compiler.h"
#include "base/os.h"
#include "watch/nvml_internal.h"

_Static_assert(SW_NVML_DEVICES >= SW__NVML_MOST, "a view has room for all devices");

/* The activity counters need two samples that lie so far apart. */
#define APART_NS 120000000u

static void ignore_value(void *context, size_t device, enum sw_gpu_value value,
                         double number)
{
    (void)context;
    (void)device;
    (void)value;
    (void)number;
}

static void ignore_note(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* "energy, clocks: the device does not support it; power: …", one clause for each reason. */
static void list_missing(const sw__nvml *nvml, size_t device, sw_nvml_device *out)
{
    bool done[SW__NVML_GROUPS] = {false};
    size_t used = 0;
    out->missing[0] = '\0';
    for (unsigned i = 0; i < SW__NVML_GROUPS; i++) {
        const char *why = sw__nvml_missing(nvml, device, (enum sw__nvml_group)i);
        if (done[i] || !why || nvml->gpu[device].asked[i].elsewhere) {
            continue;
        }
        const char *before = used ? "; " : "";
        for (unsigned j = i; j < SW__NVML_GROUPS; j++) {
            const char *same = sw__nvml_missing(nvml, device, (enum sw__nvml_group)j);
            if (!same || strcmp(same, why) != 0 || nvml->gpu[device].asked[j].elsewhere) {
                continue;
            }
            done[j] = true;
            const int length =
                snprintf(out->missing + used, sizeof out->missing - used, "%s%s", before,
                         sw__nvml_group_text((enum sw__nvml_group)j));
            used += length > 0 ? (size_t)length : 0;
            used = used < sizeof out->missing ? used : sizeof out->missing - 1;
            before = ", ";
            const int result = nvml->gpu[device].asked[j].result;
            out->forbidden = out->forbidden || result == SW__NVML_NO_PERMISSION ||
                             result == SW__NVML_BLOCKED;
        }
        const int length =
            snprintf(out->missing + used, sizeof out->missing - used, " (%s)", why);
        used += length > 0 ? (size_t)length : 0;
        used = used < sizeof out->missing ? used : sizeof out->missing - 1;
    }
}

static void show(const sw__nvml *nvml, size_t device, sw_nvml_device *out)
{
    const struct sw__nvml_info *info = sw__nvml_get(nvml, device);
    *out = (sw_nvml_device){
        .index = info->index,
        .part = info->parent != SW__NVML_NO_PARENT,
        .divided = info->mig_on,
        .visible = info->visible,
        .activity = info->gpm &&
                    nvml->gpu[device].asked[SW__NVML_GROUP_GPM].result == SW__NVML_OK,
        .memory_bytes = info->memory_bytes};
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->uuid, sizeof out->uuid, "%s", info->uuid);
    snprintf(out->pci, sizeof out->pci, "%s", info->pci);
    list_missing(nvml, device, out);
}

int sw_nvml_probe(const char *library, sw_nvml_view *out, sw_error_info *info)
{
    const struct sw__nvml_sink sink = {ignore_value, ignore_note, NULL};
    const char *order = getenv("CUDA_DEVICE_ORDER");
    sw__nvml *nvml;
    memset(out, 0, sizeof *out);
    const int error = sw__nvml_open(&nvml, library, &sink, info);
    if (error) {
        return error;
    }
    sw__nvml_see(nvml, getenv("CUDA_VISIBLE_DEVICES"),
                 order && strcmp(order, "PCI_BUS_ID") == 0);
    const unsigned all = SW__NVML_CHEAP | SW__NVML_DEAR | SW__NVML_ALL;
    sw__nvml_look(nvml, sw__os_now_ns(), all);
    for (size_t i = 0; i < sw__nvml_count(nvml); i++) {
        if (sw__nvml_get(nvml, i)->gpm) {
            sw__os_sleep_ns(APART_NS);
            sw__nvml_look(nvml, sw__os_now_ns(), all);
            break;
        }
    }
    snprintf(out->library, sizeof out->library, "%s", sw__nvml_path(nvml));
    snprintf(out->driver, sizeof out->driver, "%s", sw__nvml_driver(nvml));
    snprintf(out->version, sizeof out->version, "%s", sw__nvml_version(nvml));
    out->count = sw__nvml_count(nvml);
    for (size_t i = 0; i < out->count; i++) {
        show(nvml, i, &out->device[i]);
    }
    sw__nvml_close(nvml);
    return SW_OK;
}

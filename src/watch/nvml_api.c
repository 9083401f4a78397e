/* Loading NVML by name. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "watch/nvml_api.h"

_Static_assert(sizeof(struct sw__nvml_memory) == 24 &&
                   sizeof(struct sw__nvml_memory2) == 40 &&
                   sizeof(struct sw__nvml_pci) == 68 &&
                   sizeof(struct sw__nvml_process) == 24 &&
                   sizeof(struct sw__nvml_event) == 32 &&
                   sizeof(struct sw__nvml_field) == 40 &&
                   sizeof(struct sw__nvml_metric) == 40 &&
                   offsetof(struct sw__nvml_metrics, metric) == 24,
               "structures are those of NVML on 64-bit Linux");

static const char *const places[] = {
    "libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",        /* Windows Subsystem for Linux */
    "/run/opengl-driver/lib/libnvidia-ml.so.1",  /* NixOS */
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1", /* drivers that a cluster mounts */
};

static const struct {
    const char *symbol, *older;
    size_t offset;
} wanted[] = {
#define WANTED(field, parameters, symbol, older)                                         \
    {symbol, older, offsetof(struct sw__nvml_api, field)},
    SW__NVML_CALLS(WANTED)
#undef WANTED
};

static void *open_library(struct sw__nvml_api *api, const char *path, sw_error_info *info)
{
    const size_t count = path && *path ? 1 : SW__COUNTOF(places);
    for (size_t i = 0; i < count; i++) {
        const char *place = path && *path ? path : places[i];
        void *library = dlopen(place, RTLD_LAZY | RTLD_LOCAL);
        if (library) {
            snprintf(api->path, sizeof api->path, "%s", place);
            return library;
        }
        if (i == 0) {
            const char *why = dlerror();
            sw_error_set(info, SW_EUNSUPPORTED, "NVML could not be loaded: %.300s",
                         why ? why : place);
        } else {
            (void)dlerror();
        }
    }
    return NULL;
}

int sw__nvml_load(struct sw__nvml_api *api, const char *path, sw_error_info *info)
{
    memset(api, 0, sizeof *api);
    void *library = open_library(api, path, info);
    if (!library) {
        return SW_EUNSUPPORTED;
    }
    for (size_t i = 0; i < SW__COUNTOF(wanted); i++) {
        void *found = dlsym(library, wanted[i].symbol);
        if (!found && wanted[i].older) {
            found = dlsym(library, wanted[i].older);
        }
        memcpy((char *)api + wanted[i].offset, &found, sizeof found);
    }
    (void)dlerror();
    if (!api->init || !api->count || !api->by_index) {
        return sw_error_set(info, SW_EUNSUPPORTED,
                            "%.200s is not NVML: it cannot list devices", api->path);
    }
    if (info) {
        *info = (sw_error_info){0};
    }
    return SW_OK;
}

const char *sw__nvml_text(int result)
{
    switch (result) {
#define RESULT(number, symbol, text)                                                     \
    case number:                                                                         \
        return text;
        SW__NVML_RESULT_TABLE(RESULT)
#undef RESULT
    default:
        return "the driver reports an error of a kind this version does not know";
    }
}

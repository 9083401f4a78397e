/* Whether GPUs can be watched: library, driver, devices, permissions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/nvml.h>
#include <stepwatch/write.h>

#include "cli/doctor.h"

/* More would push everything else from the screen. */
#define SHOWN_MOST 16

static bool hardware_is_there(void)
{
    return access("/proc/driver/nvidia/version", F_OK) == 0 ||
           access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static void check_device(struct checks *checks, const sw_nvml_device *device)
{
    static const char *const seen[] = {"unknown whether programs see it",
                                       "hidden from programs by CUDA_VISIBLE_DEVICES",
                                       "visible to programs"};
    char memory[24] = "memory unknown";
    if (device->memory_bytes) {
        sw_text_bytes(memory, device->memory_bytes);
    }
    check_add(checks, device->part ? "gpu part" : "gpu",
              device->forbidden ? CHECK_WARN : CHECK_OK, "%u: %.60s, %s, %s%s%s%s%.230s.",
              device->index, *device->name ? device->name : "name unknown", memory,
              seen[device->visible + 1], device->divided ? ", divided into parts" : "",
              device->activity ? ", tells of its multiprocessors (GPM)" : "",
              *device->missing ? "; not told: " : "", device->missing);
}

void check_gpu(struct checks *checks, const char *library)
{
    sw_error_info info = {0};
    sw_nvml_view *view = malloc(sizeof *view);
    if (!view) {
        return;
    }
    if (sw_nvml_probe(library, view, &info) != SW_OK) {
        const bool warn = hardware_is_there() || *library;
        check_add(checks, "gpu", warn ? CHECK_WARN : CHECK_OK,
                  "No GPU can be watched: %.300s.", info.message);
        free(view);
        return;
    }
    check_add(checks, "gpu library", CHECK_OK,
              "%.200s is NVML %s, with driver %s; it knows %zu GPU%s.", view->library,
              *view->version ? view->version : "of unknown version",
              *view->driver ? view->driver : "of unknown version", view->count,
              view->count == 1 ? "" : "s and parts");
    for (size_t i = 0; i < view->count && i < SHOWN_MOST; i++) {
        check_device(checks, &view->device[i]);
    }
    if (view->count > SHOWN_MOST) {
        check_add(checks, "gpu", CHECK_OK, "%zu more are not shown.",
                  view->count - SHOWN_MOST);
    }
    free(view);
}

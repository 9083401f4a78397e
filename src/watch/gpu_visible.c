/* CUDA_VISIBLE_DEVICES: numbers, UUIDs and beginnings of UUIDs, separated by commas. What CUDA does with it: the list ends at the
 * first entry that names no device; an empty list, and -1, leave nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/gpu_visible.h"

static bool is_whole(const struct sw__nvml_info *device)
{
    return device->parent == SW__NVML_NO_PARENT;
}

/* Whether numbers name devices without doubt. */
static bool numbers_are_clear(const struct sw__nvml_info *devices, size_t count,
                              bool by_bus)
{
    const struct sw__nvml_info *first = NULL;
    for (size_t i = 0; !by_bus && i < count; i++) {
        if (is_whole(&devices[i])) {
            first = first ? first : &devices[i];
            if (strcmp(first->name, devices[i].name) != 0) {
                return false;
            }
        }
    }
    return true;
}

/* Makes visible what CUDA sees of a device: itself, or, where it is divided, its first part. */
static void show(struct sw__nvml_info *devices, size_t count, size_t device)
{
    devices[device].visible = 1;
    for (size_t i = 0; devices[device].mig_on && i < count; i++) {
        if (devices[i].parent == device) {
            devices[i].visible = 1;
            return;
        }
    }
}

static bool show_number(struct sw__nvml_info *devices, size_t count, unsigned long number)
{
    for (size_t i = 0; i < count; i++) {
        if (is_whole(&devices[i]) && number-- == 0) {
            show(devices, count, i);
            return true;
        }
    }
    return false;
}

/* A UUID or the beginning of exactly one. Older drivers name a part "MIG-GPU-<uuid of the device>/instance/part". */
static bool show_uuid(struct sw__nvml_info *devices, size_t count, const char *text,
                      size_t length)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(devices[i].uuid, text, length) == 0 && devices[i].uuid[0]) {
            if (found < count) {
                return false;
            }
            found = i;
        }
    }
    if (found == count) {
        return false;
    }
    if (is_whole(&devices[found])) {
        show(devices, count, found);
    } else {
        devices[found].visible = 1;
        devices[devices[found].parent].visible = 1;
    }
    return true;
}

void sw__gpu_visible(struct sw__nvml_info *devices, size_t count, const char *list,
                     bool by_bus)
{
    const bool clear = numbers_are_clear(devices, count, by_bus);
    for (size_t i = 0; i < count; i++) {
        devices[i].visible = 0;
        if (!list && is_whole(&devices[i])) {
            devices[i].visible = 1;
        }
    }
    if (!list) {
        /* Of divided devices CUDA takes one part in all; the first that there is. */
        for (size_t i = 0; i < count; i++) {
            if (!is_whole(&devices[i])) {
                devices[i].visible = 1;
                return;
            }
        }
        return;
    }
    for (const char *at = list; *at;) {
        const size_t space = strspn(at, " \t");
        const char *entry = at + space;
        size_t length = strcspn(entry, ",");
        at = entry + length + (entry[length] == ',');
        while (length > 0 && (entry[length - 1] == ' ' || entry[length - 1] == '\t')) {
            length--;
        }
        if (length > 0 && entry[0] >= '0' && entry[0] <= '9') {
            if (!clear) {
                for (size_t i = 0; i < count; i++) {
                    devices[i].visible = -1;
                }
                return;
            }
            if (!show_number(devices, count, strtoul(entry, NULL, 10))) {
                return;
            }
        } else if (length < 5 || !show_uuid(devices, count, entry, length)) {
            return;
        }
    }
}

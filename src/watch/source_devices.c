/* Disks and network interfaces of the machine. */
#include <math.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

#define DEVICES_MOST 64u
#define NAME_MOST 32u
#define SERIES_EACH 5u
#define TEXT_BYTES 32768u
#define SECTOR 512.0 /* of diskstats, whatever the device has */

struct device {
    char name[NAME_MOST];
    bool counts; /* a part of another device, or a line without one, does not */
    uint32_t hint[SERIES_EACH];
};

struct devices {
    const char *root;
    struct sw__proc_file file;
    struct device device[DEVICES_MOST];
    unsigned count;
    char text[TEXT_BYTES];
};

static void devices_close(void *state)
{
    struct devices *devices = state;
    sw__proc_close(&devices->file);
    sw__free(devices);
}

static int devices_open(const struct sw__source_setting *setting, const char *path,
                        void **state, char *why, size_t size)
{
    struct devices *devices = sw__alloc_zero(1, sizeof *devices);
    if (!devices) {
        return SW_ENOMEM;
    }
    const int result = sw__proc_open(&devices->file, setting->root, path, why, size);
    if (result != SW_OK) {
        sw__free(devices);
        return result;
    }
    devices->root = setting->root;
    *state = devices;
    return SW_OK;
}

/* The device of that name; NULL: there are too many. `*fresh`: it was not known before. */
static struct device *device_of(struct devices *devices, const char *name, size_t length,
                                bool *fresh)
{
    *fresh = false;
    for (unsigned i = 0; i < devices->count; i++) {
        if (strncmp(devices->device[i].name, name, length) == 0 &&
            !devices->device[i].name[length]) {
            return &devices->device[i];
        }
    }
    if (devices->count == DEVICES_MOST) {
        return NULL;
    }
    struct device *device = &devices->device[devices->count++];
    memcpy(device->name, name, length);
    device->name[length] = '\0';
    *fresh = true;
    return device;
}

static void put(struct sw__look *look, struct device *device, unsigned which,
                const char *kind, const char *what, const char *unit, double value)
{
    char name[SW__SERIES_NAME];
    if (!device->hint[which]) {
        snprintf(name, sizeof name, "%s.%s.%s", kind, device->name, what);
    }
    sw__look_hint(look, &device->hint[which], name, unit, SW_SERIES_TOTAL, value);
}

/* --- Disks ------------------------------------------------------------------------- */

static int disks_open(const struct sw__source_setting *setting, void **state, char *why,
                      size_t size)
{
    return devices_open(setting, "/proc/diskstats", state, why, size);
}

/* Whole devices have a folder; a loop device without a file, or anything never used, is left out. */
static bool is_disk(const char *root, const char *name, uint64_t reads, uint64_t writes)
{
    char path[256];
    struct stat facts;
    snprintf(path, sizeof path, "%.180s/sys/block/%s", root, name);
    return (reads || writes) && stat(path, &facts) == 0;
}

/* "major minor name reads merged sectors ms writes merged sectors ms running ms …" */
static void put_disk(struct devices *devices, struct sw__look *look, const char *line)
{
    const char *at = line;
    uint64_t number, field[10];
    bool fresh;
    if (!sw__proc_number(&at, &number) || !sw__proc_number(&at, &number)) {
        return;
    }
    at += strspn(at, " ");
    const size_t length = strcspn(at, " \n");
    if (length == 0 || length >= NAME_MOST) {
        return;
    }
    const char *name = at;
    at += length;
    for (unsigned i = 0; i < 10; i++) {
        if (!sw__proc_number(&at, &field[i])) {
            return;
        }
    }
    struct device *device = device_of(devices, name, length, &fresh);
    if (device && (fresh || !device->counts)) {
        device->counts = is_disk(devices->root, device->name, field[0], field[4]);
    }
    if (!device || !device->counts) {
        return;
    }
    put(look, device, 0, "disk", "reads", "1", (double)field[0]);
    put(look, device, 1, "disk", "read", "B", (double)field[2] * SECTOR);
    put(look, device, 2, "disk", "writes", "1", (double)field[4]);
    put(look, device, 3, "disk", "written", "B", (double)field[6] * SECTOR);
    put(look, device, 4, "disk", "busy", "s", (double)field[9] * 1e-3);
}

static int disks_sample(void *state, struct sw__look *look)
{
    struct devices *devices = state;
    if (sw__proc_read(&devices->file, devices->text, sizeof devices->text) < 0) {
        return SW_EREAD;
    }
    for (const char *line = devices->text; line && *line;
         line = sw__proc_next_line(line)) {
        put_disk(devices, look, line);
    }
    return SW_OK;
}

const struct sw__source sw__source_disks = {
    .name = "disks",
    .period_s = 1,
    .open = disks_open,
    .sample = disks_sample,
    .close = devices_close,
};

/* --- Network ----------------------------------------------------------------------- */

static int network_open(const struct sw__source_setting *setting, void **state, char *why,
                        size_t size)
{
    return devices_open(setting, "/proc/self/net/dev", state, why, size);
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets …" */
static void put_interface(struct devices *devices, struct sw__look *look,
                          const char *line)
{
    const char *name = line + strspn(line, " ");
    const size_t length = strcspn(name, ":\n");
    uint64_t field[9];
    bool fresh;
    if (length == 0 || length >= NAME_MOST || name[length] != ':') {
        return;
    }
    const char *at = name + length + 1;
    for (unsigned i = 0; i < 9; i++) {
        if (!sw__proc_number(&at, &field[i])) {
            return;
        }
    }
    if (!field[0] && !field[8]) {
        return; /* never used */
    }
    struct device *device = device_of(devices, name, length, &fresh);
    if (device) {
        put(look, device, 0, "net", "received", "B", (double)field[0]);
        put(look, device, 1, "net", "sent", "B", (double)field[8]);
    }
}

static int network_sample(void *state, struct sw__look *look)
{
    struct devices *devices = state;
    if (sw__proc_read(&devices->file, devices->text, sizeof devices->text) <= 0) {
        return SW_EREAD;
    }
    for (const char *line = devices->text; line; line = sw__proc_next_line(line)) {
        put_interface(devices, look, line);
    }
    return SW_OK;
}

const struct sw__source sw__source_network = {
    .name = "network",
    .period_s = 1,
    .open = network_open,
    .sample = network_sample,
    .close = devices_close,
};

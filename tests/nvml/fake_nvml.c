/* An NVML that does what a file says, for tests.
 *
 * The file is named by FAKE_NVML; without it there are the defaults: one healthy GPU. Each line is a key and a value; a line
 * "@N key value" counts from the N-th look on (a look is a call for the memory of GPU 0, but the first). Of several lines that count the last
 * one does. The file is read anew at each call, so that a test may change it. Values that are lists, separated by
 * commas, go with the looks, and their last entry stays.
 *
 *     gpus 2                  how many there are
 *     init 9                  result of nvmlInit; likewise count, handle
 *     gpu0.power 300000       a number, in NVML's own unit
 *     gpu0.power.result 4     what the call returns instead
 *     gpu0.power.sleep 5000   milliseconds it takes
 *     gpu0.xid 31,79          errors that happen, each once
 *     gpu0.mig 2              it is divided into so many parts, known as gpu0.1, gpu0.2 …
 *     gpu0.processes self:1000,77:5   who has how much memory
 *     log FILE                each call appends its name, device and process there
 *
 * FAKE_OLD builds one as old as driver 418, without anything that came later; FAKE_BARE one that can do nothing but list. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define GPUS 16
#define PARTS 8

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { TOO_SMALL = 7, TIMEOUT = 10, VERSION = 25 };

struct handle {
    int gpu, part; /* part 0: the whole */
};
static struct handle handles[GPUS][PARTS + 1];
static int started;
static long looks = -1; /* the first call for memory is made when devices are listed */
static int happened[GPUS], registered[GPUS]; /* errors told; events wanted */
static int live_samples;

/* --- the file --- */

static char text[16384];

static void read_file(void)
{
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    size_t length = 0;
    if (file) {
        length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
    }
    text[length] = '\0';
}

/* The value of a key, or NULL. `out` has room for 1024. */
static const char *find(const char *key, char *out)
{
    const char *found = NULL;
    read_file();
    const size_t length = strlen(key);
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        const bool more = *end != '\0';
        char *at = line;
        long from = 0;
        if (*at == '@') {
            from = strtol(at + 1, &at, 10);
            at += *at == ' ';
        }
        if ((from == 0 || looks >= from) && strncmp(at, key, length) == 0 &&
            at[length] == ' ') {
            snprintf(out, 1024, "%.*s", (int)(end - at - (long)length - 1),
                     at + length + 1);
            found = out;
        }
        line = more ? end + 1 : end;
    }
    return found;
}

/* The entry of a list that goes with this look. */
static const char *entry_now(const char *list)
{
    const char *at = list;
    for (long i = 1; i < looks && strchr(at, ','); i++) {
        at = strchr(at, ',') + 1;
    }
    return at;
}

static double number(const char *key, double otherwise)
{
    char value[1024];
    return find(key, value) ? strtod(entry_now(value), NULL) : otherwise;
}

static void log_call(const char *name, const char *device)
{
    char path[1024];
    FILE *file = find("log", path) ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %s %d\n", name, device, (int)getpid());
        fclose(file);
    }
}

static void sleep_ms(double milliseconds)
{
    struct timespec rest = {(time_t)(milliseconds / 1000),
                            (long)(milliseconds * 1e6) % 1000000000L};
    while (rest.tv_sec + rest.tv_nsec > 0 && nanosleep(&rest, &rest) != 0) {
    }
}

/* --- devices --- */

static const char *title(const struct handle *device, char *out)
{
    if (device->part) {
        snprintf(out, 32, "gpu%d.%d", device->gpu, device->part);
    } else {
        snprintf(out, 32, "gpu%d", device->gpu);
    }
    return out;
}

/* What a call for `what` returns; logs it. `usual` holds for whole devices, parts support memory and processes alone. */
static int result_of(const struct handle *device, const char *what)
{
    char name[32], key[96], value[1024];
    if (!started) {
        return UNINITIALIZED;
    }
    if (!device || device->gpu < 0 || device->gpu >= GPUS) {
        return INVALID;
    }
    log_call(what, title(device, name));
    snprintf(key, sizeof key, "%s.%s.sleep", name, what);
    sleep_ms(number(key, 0));
    const bool of_parts = strcmp(what, "memory") == 0 || strcmp(what, "processes") == 0 ||
                          strcmp(what, "name") == 0 || strcmp(what, "uuid") == 0 ||
                          strcmp(what, "instance") == 0;
    snprintf(key, sizeof key, "%s.%s.result", name, what);
    if (find(key, value)) {
        return atoi(entry_now(value));
    }
    snprintf(key, sizeof key, "%s.result", name);
    const int result = (int)number(key, device->part && !of_parts ? NOT_SUPPORTED : OK);
    started = result == UNINITIALIZED ? 0 : started;
    return result;
}

static double value_of(const struct handle *device, const char *what, double otherwise)
{
    char name[32], key[96];
    snprintf(key, sizeof key, "%s.%s", title(device, name), what);
    return number(key, otherwise);
}

__attribute__((unused)) static int give(const struct handle *device, const char *what,
                                        double otherwise, unsigned *out)
{
    const int result = result_of(device, what);
    if (result == OK) {
        *out = (unsigned)value_of(device, what, otherwise);
    }
    return result;
}

__attribute__((unused)) static int give64(const struct handle *device, const char *what,
                                          double otherwise, uint64_t *out)
{
    const int result = result_of(device, what);
    if (result == OK) {
        *out = (uint64_t)value_of(device, what, otherwise);
    }
    return result;
}

static int init(void)
{
    const int result = (int)number("init", OK);
    log_call("init", "-");
    sleep_ms(number("init.sleep", 0));
    if (!started) {
        looks = -1;
        live_samples = 0;
        memset(happened, 0, sizeof happened);
        memset(registered, 0, sizeof registered);
    }
    for (int i = 0; i < GPUS; i++) {
        for (int j = 0; j <= PARTS; j++) {
            handles[i][j] = (struct handle){i, j};
        }
    }
    started += result == OK;
    return result;
}

static int count(unsigned *out)
{
    *out = (unsigned)number("gpus", 1);
    return started ? (int)number("count", OK) : UNINITIALIZED;
}

static int by_index(unsigned index, struct handle **out)
{
    char key[64];
    if (!started || index >= (unsigned)number("gpus", 1)) {
        return started ? INVALID : UNINITIALIZED;
    }
    snprintf(key, sizeof key, "gpu%u.handle", index);
    *out = &handles[index][0];
    return (int)number(key, OK);
}

#ifdef FAKE_OLD
#define NEWER(name) name
#else
#define NEWER(name) name##_v2
#endif

EXPORT int NEWER(nvmlInit)(void);
int NEWER(nvmlInit)(void)
{
    return init();
}
EXPORT int NEWER(nvmlDeviceGetCount)(unsigned *out);
int NEWER(nvmlDeviceGetCount)(unsigned *out)
{
    return count(out);
}
EXPORT int NEWER(nvmlDeviceGetHandleByIndex)(unsigned index, struct handle **out);
int NEWER(nvmlDeviceGetHandleByIndex)(unsigned index, struct handle **out)
{
    return by_index(index, out);
}

#ifndef FAKE_BARE
EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    char left[32];
    snprintf(left, sizeof left, "%d", live_samples);
    log_call("shutdown", left);
    started -= started > 0;
    return OK;
}

static int put_text(const char *key, const char *otherwise, char *out, unsigned size)
{
    char value[1024];
    snprintf(out, size, "%s", find(key, value) ? value : otherwise);
    return started ? OK : UNINITIALIZED;
}

EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    return put_text("driver", "580.65.06", out, size);
}
EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned size);
int nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    return put_text("library", "13.580.65.06", out, size);
}

EXPORT int nvmlDeviceGetName(struct handle *device, char *out, unsigned size);
int nvmlDeviceGetName(struct handle *device, char *out, unsigned size)
{
    char key[64], name[32];
    const int result = result_of(device, "name");
    snprintf(key, sizeof key, "%s.name", title(device, name));
    return result ? result
                  : put_text(key, device->part ? "FAKE H200 MIG 1g.18gb" : "FAKE H200",
                             out, size);
}
EXPORT int nvmlDeviceGetUUID(struct handle *device, char *out, unsigned size);
int nvmlDeviceGetUUID(struct handle *device, char *out, unsigned size)
{
    char key[64], name[32], usual[64];
    const int result = result_of(device, "uuid");
    snprintf(key, sizeof key, "%s.uuid", title(device, name));
    snprintf(usual, sizeof usual, "%s-%08d-aaaa-bbbb-cccc-%012d",
             device->part ? "MIG" : "GPU", device->gpu + 1, device->part);
    return result ? result : put_text(key, usual, out, size);
}

struct pci {
    char bus_short[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
EXPORT int nvmlDeviceGetPciInfo_v3(struct handle *device, struct pci *out);
int nvmlDeviceGetPciInfo_v3(struct handle *device, struct pci *out)
{
    const int result = result_of(device, "pci");
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", device->gpu + 1);
    return result;
}

static const double gibibyte = 1073741824.0;

struct memory {
    uint64_t total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(struct handle *device, struct memory *out);
int nvmlDeviceGetMemoryInfo(struct handle *device, struct memory *out)
{
    looks += device && device->gpu == 0 && !device->part;
    const int result = result_of(device, "memory");
    out->total = (uint64_t)value_of(device, "total", 141 * gibibyte);
    out->used = (uint64_t)value_of(device, "memory", 10 * gibibyte);
    out->free = out->total - out->used;
    return result;
}

struct rates {
    unsigned gpu, memory;
};
EXPORT int nvmlDeviceGetUtilizationRates(struct handle *device, struct rates *out);
int nvmlDeviceGetUtilizationRates(struct handle *device, struct rates *out)
{
    const int result = result_of(device, "rates");
    out->gpu = (unsigned)value_of(device, "gpu", 90);
    out->memory = (unsigned)value_of(device, "dram_time", 40);
    return result;
}
EXPORT int nvmlDeviceGetPowerUsage(struct handle *device, unsigned *out);
int nvmlDeviceGetPowerUsage(struct handle *device, unsigned *out)
{
    return give(device, "power", 650000, out);
}
EXPORT int nvmlDeviceGetPowerManagementLimit(struct handle *device, unsigned *out);
int nvmlDeviceGetPowerManagementLimit(struct handle *device, unsigned *out)
{
    return give(device, "limit", 700000, out);
}
EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(struct handle *device, unsigned *out);
int nvmlDeviceGetPowerManagementDefaultLimit(struct handle *device, unsigned *out)
{
    return give(device, "default_limit", 700000, out);
}
EXPORT int nvmlDeviceGetTemperature(struct handle *device, int sensor, unsigned *out);
int nvmlDeviceGetTemperature(struct handle *device, int sensor, unsigned *out)
{
    return sensor ? INVALID : give(device, "temperature", 61, out);
}
EXPORT int nvmlDeviceGetTemperatureThreshold(struct handle *device, int which,
                                             unsigned *out);
int nvmlDeviceGetTemperatureThreshold(struct handle *device, int which, unsigned *out)
{
    return give(device, "threshold", which == 1 ? 92 : 87, out);
}
EXPORT int nvmlDeviceGetClockInfo(struct handle *device, int which, unsigned *out);
int nvmlDeviceGetClockInfo(struct handle *device, int which, unsigned *out)
{
    return which == 1 ? give(device, "clock", 1980, out)
                      : give(device, "memory_clock", 3201, out);
}
EXPORT int nvmlDeviceGetMaxClockInfo(struct handle *device, int which, unsigned *out);
int nvmlDeviceGetMaxClockInfo(struct handle *device, int which, unsigned *out)
{
    return give(device, which == 1 ? "clock_most" : "memory_clock_most",
                which == 1 ? 1980 : 3201, out);
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(struct handle *device,
                                                     uint64_t *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct handle *device, uint64_t *out)
{
    return give64(device, "reasons", 0, out);
}
EXPORT int nvmlDeviceGetPcieThroughput(struct handle *device, int which, unsigned *out);
int nvmlDeviceGetPcieThroughput(struct handle *device, int which, unsigned *out)
{
    return give(device, "pcie", which ? 2000 : 1000, out);
}

#ifndef FAKE_OLD
struct memory2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct handle *device, struct memory2 *out);
int nvmlDeviceGetMemoryInfo_v2(struct handle *device, struct memory2 *out)
{
    char value[1024];
    if (out->version != (sizeof *out | 2u << 24) || find("memory2", value)) {
        return VERSION;
    }
    struct memory older = {0};
    const int result = nvmlDeviceGetMemoryInfo(device, &older);
    out->total = older.total;
    out->reserved = 0;
    out->free = older.free;
    out->used = older.used;
    return result;
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(struct handle *device, unsigned *out);
int nvmlDeviceGetEnforcedPowerLimit(struct handle *device, unsigned *out)
{
    return give(device, "limit", 700000, out);
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(struct handle *device, uint64_t *out);
int nvmlDeviceGetTotalEnergyConsumption(struct handle *device, uint64_t *out)
{
    return give64(device, "energy", 1e6 + 5e4 * (double)looks, out);
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(struct handle *device, uint64_t *out);
int nvmlDeviceGetCurrentClocksEventReasons(struct handle *device, uint64_t *out)
{
    return give64(device, "reasons", 0, out);
}
EXPORT int nvmlDeviceGetTotalEccErrors(struct handle *device, int type, int counter,
                                       uint64_t *out);
int nvmlDeviceGetTotalEccErrors(struct handle *device, int type, int counter,
                                uint64_t *out)
{
    return counter ? INVALID
                   : give64(device, type ? "ecc_uncorrected" : "ecc_corrected", 0, out);
}

struct event {
    struct handle *device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};
static int set;
EXPORT int nvmlEventSetCreate(void **out);
int nvmlEventSetCreate(void **out)
{
    *out = &set;
    return (int)number("events", OK);
}
EXPORT int nvmlEventSetFree(void *events);
int nvmlEventSetFree(void *events)
{
    memset(registered, 0, sizeof registered);
    return events == &set ? OK : INVALID;
}
EXPORT int nvmlDeviceGetSupportedEventTypes(struct handle *device, uint64_t *out);
int nvmlDeviceGetSupportedEventTypes(struct handle *device, uint64_t *out)
{
    *out = (uint64_t)value_of(device, "event_types", 0x1f);
    return OK;
}
EXPORT int nvmlDeviceRegisterEvents(struct handle *device, uint64_t types, void *events);
int nvmlDeviceRegisterEvents(struct handle *device, uint64_t types, void *events)
{
    const int result = result_of(device, "register");
    registered[device->gpu] = result == OK;
    return events == &set && types ? result : INVALID;
}
EXPORT int nvmlEventSetWait_v2(void *events, struct event *out, unsigned milliseconds);
int nvmlEventSetWait_v2(void *events, struct event *out, unsigned milliseconds)
{
    if (events != &set || milliseconds != 0) {
        return INVALID; /* whoever waits here keeps a program waiting */
    }
    if (!started) {
        return UNINITIALIZED;
    }
    log_call("events", "-");
    if (number("wait", OK) != OK) {
        return (int)number("wait", OK);
    }
    for (int i = 0; i < GPUS; i++) {
        char key[32], list[1024];
        snprintf(key, sizeof key, "gpu%d.xid", i);
        const char *at = registered[i] ? find(key, list) : NULL;
        for (int j = 0; at && j < happened[i]; j++) {
            at = strchr(at, ',');
            at = at ? at + 1 : NULL;
        }
        if (at) {
            happened[i]++;
            *out = (struct event){&handles[i][0], 8, strtoull(at, NULL, 10), UINT32_MAX,
                                  UINT32_MAX};
            return OK;
        }
    }
    return TIMEOUT;
}

struct field {
    uint32_t id, scope;
    int64_t timestamp, latency;
    uint32_t type;
    int32_t result;
    uint64_t value;
};
EXPORT int nvmlDeviceGetFieldValues(struct handle *device, int many,
                                    struct field *fields);
int nvmlDeviceGetFieldValues(struct handle *device, int many, struct field *fields)
{
    const int result = result_of(device, "fields");
    for (int i = 0; i < many && result == OK; i++) {
        const bool nvlink = fields[i].id == 138 || fields[i].id == 139;
        char key[32];
        snprintf(key, sizeof key, "field%u", fields[i].id);
        fields[i].type = 3;
        fields[i].result =
            (int32_t)value_of(device, nvlink ? "nvlink.result" : "pcie_count.result", OK);
        fields[i].value = (uint64_t)value_of(device, key, (double)looks * 1e6);
        if (nvlink && fields[i].scope != UINT32_MAX) {
            fields[i].result = INVALID;
        }
    }
    return result;
}

struct process {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance, compute_instance;
};
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct handle *device, unsigned *many,
                                                   struct process *out);
int nvmlDeviceGetComputeRunningProcesses_v3(struct handle *device, unsigned *many,
                                            struct process *out)
{
    char key[64], name[32], list[1024];
    const int result = result_of(device, "processes");
    if (result != OK) {
        return result;
    }
    snprintf(key, sizeof key, "%s.processes", title(device, name));
    const char *at = find(key, list) ? list : "";
    snprintf(key, sizeof key, "%s.process_count", name);
    const unsigned extra = (unsigned)number(key, 0);
    unsigned found = 0;
    for (; found < extra; found++) {
        if (found < *many) {
            out[found] = (struct process){900000 + found, 1, UINT32_MAX, UINT32_MAX};
        }
    }
    while (*at) {
        char *end;
        const bool self = strncmp(at, "self", 4) == 0;
        const uint32_t pid = self ? (uint32_t)getpid() : (uint32_t)strtoul(at, NULL, 10);
        at = strchr(at, ':') + 1;
        const uint64_t memory = *at == '?' ? UINT64_MAX : strtoull(at, &end, 10);
        if (found < *many) {
            out[found] = (struct process){pid, memory, UINT32_MAX, UINT32_MAX};
        }
        found++;
        at = strchr(at, ',') ? strchr(at, ',') + 1 : "";
    }
    const bool fits = found <= *many;
    *many = found;
    return fits ? OK : TOO_SMALL;
}

EXPORT int nvmlDeviceGetMigMode(struct handle *device, unsigned *now, unsigned *later);
int nvmlDeviceGetMigMode(struct handle *device, unsigned *now, unsigned *later)
{
    *now = *later = value_of(device, "mig", 0) > 0;
    return result_of(device, "mig_mode");
}
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct handle *device, unsigned *out);
int nvmlDeviceGetMaxMigDeviceCount(struct handle *device, unsigned *out)
{
    (void)device;
    *out = PARTS - 1;
    return OK;
}
/* Places of parts need not be the first ones: the first is always empty here. */
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct handle *device, unsigned index,
                                               struct handle **out);
int nvmlDeviceGetMigDeviceHandleByIndex(struct handle *device, unsigned index,
                                        struct handle **out)
{
    const unsigned parts = (unsigned)value_of(device, "mig", 0);
    if (index == 0 || index > parts || index > PARTS) {
        return NOT_FOUND;
    }
    *out = &handles[device->gpu][index];
    return OK;
}
EXPORT int nvmlDeviceGetGpuInstanceId(struct handle *device, unsigned *out);
int nvmlDeviceGetGpuInstanceId(struct handle *device, unsigned *out)
{
    *out = (unsigned)device->part + 6;
    return result_of(device, "instance");
}

struct support {
    uint32_t version, supported;
};
EXPORT int nvmlGpmQueryDeviceSupport(struct handle *device, struct support *out);
int nvmlGpmQueryDeviceSupport(struct handle *device, struct support *out)
{
    if (out->version != 1) {
        return VERSION;
    }
    out->supported = value_of(device, "gpm", 1) > 0;
    return result_of(device, "gpm_support");
}
struct sample {
    int gpu, instance;
    struct timespec at;
};
EXPORT int nvmlGpmSampleAlloc(struct sample **out);
int nvmlGpmSampleAlloc(struct sample **out)
{
    const int result = (int)number("gpm_alloc", OK);
    *out = result == OK ? calloc(1, sizeof **out) : NULL;
    live_samples += *out != NULL;
    return result;
}
EXPORT int nvmlGpmSampleFree(struct sample *sample);
int nvmlGpmSampleFree(struct sample *sample)
{
    free(sample);
    live_samples--;
    return OK;
}
static int fill(struct handle *device, int instance, struct sample *out)
{
    const int result = result_of(device, "gpm_get");
    if (result == OK) {
        out->gpu = device->gpu;
        out->instance = instance;
        clock_gettime(CLOCK_MONOTONIC, &out->at);
    }
    return result;
}
EXPORT int nvmlGpmSampleGet(struct handle *device, struct sample *out);
int nvmlGpmSampleGet(struct handle *device, struct sample *out)
{
    return fill(device, 0, out);
}
EXPORT int nvmlGpmMigSampleGet(struct handle *device, unsigned instance,
                               struct sample *out);
int nvmlGpmMigSampleGet(struct handle *device, unsigned instance, struct sample *out)
{
    return fill(device, (int)instance, out);
}
struct metric {
    uint32_t id;
    int32_t result;
    double value;
    const char *text[3];
};
struct metrics {
    uint32_t version, many;
    struct sample *before, *after;
    struct metric metric[333];
};
EXPORT int nvmlGpmMetricsGet(struct metrics *out);
int nvmlGpmMetricsGet(struct metrics *out)
{
    static const struct {
        uint32_t id;
        const char *name;
        double usual;
    } known[] = {{2, "sm", 80},
                 {3, "occupancy", 50},
                 {5, "tensor", 35},
                 {10, "dram", 45},
                 {20, "pcie_sent", 10},
                 {21, "pcie_received", 20},
                 {60, "nvlink_received", 0},
                 {61, "nvlink_sent", 0}};
    if (out->version != 1) {
        return VERSION;
    }
    const struct sample *before = out->before;
    const struct sample *after = out->after;
    const double apart = (double)(after->at.tv_sec - before->at.tv_sec) * 1e3 +
                         (double)(after->at.tv_nsec - before->at.tv_nsec) / 1e6;
    /* Samples of different devices, the wrong way round or too near give nonsense on real ones. */
    if (apart < 99 || before->gpu != after->gpu || before->instance != after->instance) {
        return INVALID;
    }
    const struct handle *device = &handles[after->gpu][0];
    const struct handle part = {after->gpu, after->instance ? after->instance - 6 : 0};
    device = after->instance ? &part : device;
    for (uint32_t i = 0; i < out->many; i++) {
        out->metric[i].result = NOT_SUPPORTED;
        for (size_t j = 0; j < sizeof known / sizeof known[0]; j++) {
            if (known[j].id == out->metric[i].id) {
                char key[64];
                snprintf(key, sizeof key, "%s.result", known[j].name);
                out->metric[i].result = (int32_t)value_of(device, key, OK);
                out->metric[i].value = value_of(device, known[j].name, known[j].usual);
            }
        }
    }
    /* As real ones do: what lies behind the metrics asked for is cleared. */
    memset(&out->metric[out->many], 0, (333 - out->many) * sizeof *out->metric);
    return result_of(&handles[after->gpu][0], "gpm_metrics");
}
#endif
#endif

/* The calls themselves, by group. Each function gives what it reads to the sink; its result is that of NVML. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "watch/nvml_internal.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { SENSOR_GPU = 0 };
enum { ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_SINCE_LOADED = 0 };
enum { PCIE_SENT = 0, PCIE_RECEIVED = 1 };
#define EVENT_DOUBLE_BIT 0x2u
#define EVENT_XID 0x8u
/* Fields of nvmlDeviceGetFieldValues. */
enum {
    FIELD_NVLINK_SENT = 138, /* KiB */
    FIELD_NVLINK_RECEIVED = 139,
    FIELD_PCIE_SENT = 197, /* bytes */
    FIELD_PCIE_RECEIVED = 198
};
/* The activity counters are refreshed every 100 ms; nearer samples give nonsense. */
#define SAMPLES_APART_NS 100000000u
/* A rate over less than this says little. */
#define RATE_APART_NS 400000000u
#define PROCESSES_MOST 4096u
#define MEBIBYTE 1048576.0

static int read_memory(sw__nvml *nvml, size_t device)
{
    const struct sw__nvml_api *api = &nvml->api;
    sw__nvml_device handle = nvml->gpu[device].handle;
    struct sw__nvml_memory2 newer = {.version =
                                         SW__NVML_VERSIONED(struct sw__nvml_memory2, 2)};
    int result = SW__NVML_NO_FUNCTION;
    if (api->memory2 && !nvml->old_memory) {
        result = api->memory2(handle, &newer);
        if (result == SW__NVML_OK) {
            sw__nvml_give(nvml, device, SW_GPU_MEMORY_USED, (double)newer.used);
            return result;
        }
        nvml->old_memory =
            api->memory && (result == SW__NVML_VERSION || result == SW__NVML_INVALID ||
                            result == SW__NVML_NO_FUNCTION);
    }
    if (api->memory && (nvml->old_memory || !api->memory2)) {
        struct sw__nvml_memory older = {0};
        result = api->memory(handle, &older);
        if (result == SW__NVML_OK) {
            sw__nvml_give(nvml, device, SW_GPU_MEMORY_USED, (double)older.used);
        }
    }
    return result;
}

static int read_rates(sw__nvml *nvml, size_t device)
{
    struct sw__nvml_rates rates = {0};
    int result = nvml->api.rates ? nvml->api.rates(nvml->gpu[device].handle, &rates)
                                 : SW__NVML_NO_FUNCTION;
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_UTILISATION, rates.gpu);
        sw__nvml_give(nvml, device, SW_GPU_MEMORY_UTILISATION, rates.memory);
    }
    return result;
}

static int read_power(sw__nvml *nvml, size_t device)
{
    unsigned milliwatts = 0;
    int result = nvml->api.power ? nvml->api.power(nvml->gpu[device].handle, &milliwatts)
                                 : SW__NVML_NO_FUNCTION;
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_POWER, milliwatts / 1e3);
    }
    return result;
}

static int read_temperature(sw__nvml *nvml, size_t device)
{
    unsigned celsius = 0;
    int result = nvml->api.temperature ? nvml->api.temperature(nvml->gpu[device].handle,
                                                               SENSOR_GPU, &celsius)
                                       : SW__NVML_NO_FUNCTION;
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_TEMPERATURE, celsius);
    }
    return result;
}

static int read_reasons(sw__nvml *nvml, size_t device)
{
    uint64_t reasons = 0;
    int result = nvml->api.reasons ? nvml->api.reasons(nvml->gpu[device].handle, &reasons)
                                   : SW__NVML_NO_FUNCTION;
    if (result == SW__NVML_OK) {
        /* Bits beyond those that are known would not survive in a double. */
        sw__nvml_give(nvml, device, SW_GPU_CLOCK_REASONS,
                      (double)(reasons & (((uint64_t)1 << 52) - 1)));
    }
    return result;
}

static int read_clocks(sw__nvml *nvml, size_t device)
{
    unsigned megahertz = 0;
    if (!nvml->api.clock) {
        return SW__NVML_NO_FUNCTION;
    }
    int result = nvml->api.clock(nvml->gpu[device].handle, CLOCK_SM, &megahertz);
    if (result != SW__NVML_OK) {
        return result;
    }
    sw__nvml_give(nvml, device, SW_GPU_SM_CLOCK, megahertz);
    result = nvml->api.clock(nvml->gpu[device].handle, CLOCK_MEMORY, &megahertz);
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_MEMORY_CLOCK, megahertz);
    }
    return result == SW__NVML_NOT_SUPPORTED ? SW__NVML_OK : result;
}

static int read_energy(sw__nvml *nvml, size_t device)
{
    uint64_t millijoules = 0;
    int result = nvml->api.energy
                     ? nvml->api.energy(nvml->gpu[device].handle, &millijoules)
                     : SW__NVML_NO_FUNCTION;
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_ENERGY, (double)millijoules / 1e3);
    }
    return result;
}

static int read_ecc(sw__nvml *nvml, size_t device)
{
    static const struct {
        int type;
        enum sw_gpu_value value;
    } kinds[] = {{ECC_CORRECTED, SW_GPU_ECC_CORRECTED},
                 {ECC_UNCORRECTED, SW_GPU_ECC_UNCORRECTED}};
    int result = SW__NVML_NO_FUNCTION;
    for (size_t i = 0; nvml->api.ecc && i < SW__COUNTOF(kinds); i++) {
        uint64_t errors = 0;
        result = nvml->api.ecc(nvml->gpu[device].handle, kinds[i].type, ECC_SINCE_LOADED,
                               &errors);
        if (result != SW__NVML_OK) {
            break;
        }
        sw__nvml_give(nvml, device, kinds[i].value, (double)errors);
    }
    return result;
}

/* --- activity (GPM) --- */

static const struct {
    uint32_t id;
    enum sw_gpu_value value;
    double unit;
} metrics[] = {
    {2, SW_GPU_SM_ACTIVE, 1},           {3, SW_GPU_SM_OCCUPANCY, 1},
    {5, SW_GPU_TENSOR_ACTIVE, 1},       {10, SW_GPU_DRAM_ACTIVE, 1},
    {20, SW_GPU_PCIE_SENT, MEBIBYTE},   {21, SW_GPU_PCIE_RECEIVED, MEBIBYTE},
    {61, SW_GPU_NVLINK_SENT, MEBIBYTE}, {60, SW_GPU_NVLINK_RECEIVED, MEBIBYTE}};

static int take_sample(sw__nvml *nvml, size_t device, sw__nvml_sample sample)
{
    const struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    if (gpu->info.parent == SW__NVML_NO_PARENT) {
        return nvml->api.gpm_get(gpu->handle, sample);
    }
    return nvml->api.gpm_get_mig(nvml->gpu[gpu->info.parent].handle, gpu->info.instance,
                                 sample);
}

static int give_metrics(sw__nvml *nvml, size_t device)
{
    const struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    struct sw__nvml_metrics *asked = nvml->metrics;
    memset(asked, 0, SW__NVML_METRICS_BYTES);
    asked->version = 1;
    asked->count = SW__COUNTOF(metrics);
    asked->before = gpu->sample[1 - gpu->newest];
    asked->after = gpu->sample[gpu->newest];
    for (size_t i = 0; i < SW__COUNTOF(metrics); i++) {
        asked->metric[i].id = metrics[i].id;
    }
    int result = nvml->api.gpm_metrics(asked);
    for (size_t i = 0; result == SW__NVML_OK && i < SW__COUNTOF(metrics); i++) {
        const double value = asked->metric[i].value;
        const bool known = asked->metric[i].result == SW__NVML_OK && isfinite(value);
        sw__nvml_give(nvml, device, metrics[i].value,
                      known ? value * metrics[i].unit : NAN);
    }
    return result;
}

static int read_activity(sw__nvml *nvml, size_t device, uint64_t now_ns)
{
    struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    if (!gpu->info.gpm) {
        return SW__NVML_NOT_SUPPORTED;
    }
    if (gpu->sample_ns && now_ns - gpu->sample_ns < SAMPLES_APART_NS) {
        return SW__NVML_OK;
    }
    if (!nvml->metrics) {
        nvml->metrics = sw__alloc_zero(1, SW__NVML_METRICS_BYTES);
        if (!nvml->metrics) {
            return SW__NVML_MEMORY;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        int result = gpu->sample[i] ? SW__NVML_OK : nvml->api.gpm_alloc(&gpu->sample[i]);
        if (result != SW__NVML_OK) {
            gpu->sample[i] = NULL;
            return result;
        }
    }
    const unsigned next = 1 - gpu->newest;
    int result = take_sample(nvml, device, gpu->sample[next]);
    if (result != SW__NVML_OK) {
        gpu->sample_ns = 0;
        return result;
    }
    const bool pair = gpu->sample_ns != 0;
    gpu->newest = next;
    gpu->sample_ns = now_ns;
    return pair ? give_metrics(nvml, device) : SW__NVML_OK;
}

/* --- traffic --- */

static double field_number(const struct sw__nvml_field *field)
{
    switch (field->type) {
    case 0:
        return field->value.real;
    case 1:
        return field->value.small;
    case 2:
    case 3:
        return (double)field->value.whole;
    case 4:
        return (double)field->value.with_sign;
    case 5:
        return field->value.small_with_sign;
    case 6:
        return field->value.tiny;
    default:
        return NAN;
    }
}

static void give_rate(sw__nvml *nvml, size_t device, size_t which, double bytes,
                      uint64_t now_ns)
{
    static const enum sw_gpu_value values[] = {SW_GPU_PCIE_SENT, SW_GPU_PCIE_RECEIVED,
                                               SW_GPU_NVLINK_SENT,
                                               SW_GPU_NVLINK_RECEIVED};
    struct sw__nvml_counter *counter = &nvml->gpu[device].link[which];
    if (!(bytes >= 0 && bytes < 18e18)) {
        counter->known = false;
        return;
    }
    const uint64_t now = (uint64_t)bytes;
    const uint64_t passed = now_ns - counter->ns;
    if (counter->known && passed < RATE_APART_NS) {
        return;
    }
    /* A count that fell has wrapped around or begun anew: this stretch is not known. */
    if (counter->known && now >= counter->bytes) {
        sw__nvml_give(nvml, device, values[which],
                      (double)(now - counter->bytes) / ((double)passed / 1e9));
    }
    *counter = (struct sw__nvml_counter){.bytes = now, .ns = now_ns, .known = true};
}

static int read_links(sw__nvml *nvml, size_t device, uint64_t now_ns)
{
    struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    struct sw__nvml_field field[4] = {{.id = FIELD_PCIE_SENT},
                                      {.id = FIELD_PCIE_RECEIVED},
                                      {.id = FIELD_NVLINK_SENT, .scope = UINT32_MAX},
                                      {.id = FIELD_NVLINK_RECEIVED, .scope = UINT32_MAX}};
    if (!nvml->api.fields) {
        return SW__NVML_NO_FUNCTION;
    }
    int result = nvml->api.fields(gpu->handle, (int)SW__COUNTOF(field), field);
    if (result != SW__NVML_OK) {
        return result;
    }
    bool any = false;
    for (size_t i = 0; i < SW__COUNTOF(field); i++) {
        if (field[i].result == SW__NVML_OK) {
            any = true;
            give_rate(nvml, device, i, field_number(&field[i]) * (i < 2 ? 1 : 1024),
                      now_ns);
        }
    }
    /* The count of bytes is free; the other call measures for 20 ms. */
    if (field[0].result == SW__NVML_OK) {
        gpu->asked[SW__NVML_GROUP_PCIE].off = true;
        gpu->asked[SW__NVML_GROUP_PCIE].elsewhere = true;
    }
    return any ? SW__NVML_OK : field[0].result;
}

static int read_pcie(sw__nvml *nvml, size_t device)
{
    unsigned sent = 0;
    unsigned received = 0;
    if (!nvml->api.pcie) {
        return SW__NVML_NO_FUNCTION;
    }
    int result = nvml->api.pcie(nvml->gpu[device].handle, PCIE_SENT, &sent);
    if (result == SW__NVML_OK) {
        result = nvml->api.pcie(nvml->gpu[device].handle, PCIE_RECEIVED, &received);
    }
    if (result == SW__NVML_OK) {
        sw__nvml_give(nvml, device, SW_GPU_PCIE_SENT, sent * 1e3);
        sw__nvml_give(nvml, device, SW_GPU_PCIE_RECEIVED, received * 1e3);
    }
    return result;
}

/* --- processes --- */

static int list_processes(sw__nvml *nvml, sw__nvml_device handle, unsigned *count)
{
    int result = SW__NVML_TOO_SMALL;
    while (result == SW__NVML_TOO_SMALL) {
        if (!nvml->processes) {
            /* Some drivers write larger entries than they promise: twice the room keeps that harmless. */
            nvml->processes =
                sw__alloc_zero(2 * (size_t)nvml->process_room, sizeof *nvml->processes);
        }
        if (!nvml->processes) {
            return SW__NVML_MEMORY;
        }
        *count = nvml->process_room;
        result = nvml->api.processes(handle, count, nvml->processes);
        if (result == SW__NVML_TOO_SMALL) {
            if (nvml->process_room >= PROCESSES_MOST) {
                return result;
            }
            nvml->process_room *= 4;
            sw__free(nvml->processes);
            nvml->processes = NULL;
        }
    }
    *count = *count < nvml->process_room ? *count : nvml->process_room;
    return result;
}

static int read_processes(sw__nvml *nvml, size_t device)
{
    struct sw__nvml_gpu *gpu = &nvml->gpu[device];
    if (!nvml->api.processes) {
        return SW__NVML_NO_FUNCTION;
    }
    /* Where a device is divided, its processes are those of the parts. */
    if (gpu->info.mig_on) {
        gpu->asked[SW__NVML_GROUP_PROCESSES].off = true;
        gpu->asked[SW__NVML_GROUP_PROCESSES].elsewhere = true;
        return SW__NVML_OK;
    }
    unsigned count = 0;
    int result = list_processes(nvml, gpu->handle, &count);
    if (result != SW__NVML_OK) {
        return result;
    }
    const uint32_t self = (uint32_t)getpid();
    double used = nvml->outermost_pids || count == 0 ? 0 : NAN;
    bool found = false;
    for (unsigned i = 0; i < count; i++) {
        const struct sw__nvml_process *process = &nvml->processes[i];
        if (process->pid == self && !found) {
            found = true;
            used = process->memory != UINT64_MAX &&
                           (gpu->info.memory_bytes == 0 ||
                            process->memory <= gpu->info.memory_bytes)
                       ? (double)process->memory
                       : NAN;
        }
    }
    sw__nvml_give(nvml, device, SW_GPU_PROCESS_MEMORY, used);
    return SW__NVML_OK;
}

/* --- errors --- */

/* Of the codes that mean most to somebody who trains. */
static const char *xid_text(uint64_t code)
{
    static const struct {
        uint64_t code;
        const char *text;
    } known[] = {{13, "a kernel failed"},
                 {31, "a kernel touched memory that is not mapped"},
                 {43, "the driver stopped a program's work"},
                 {45, "work was stopped after an earlier error"},
                 {48, "an error of memory that could not be corrected"},
                 {61, "the controller on the device failed"},
                 {62, "the controller on the device failed"},
                 {63, "a bad row of memory was put out of use"},
                 {64, "a bad row of memory could not be put out of use"},
                 {74, "an error of NVLink"},
                 {79, "the device fell off the bus"},
                 {94, "an error of memory that stopped one program"},
                 {95, "an error of memory that may have reached other programs"},
                 {119, "the controller on the device does not answer"},
                 {120, "the controller on the device failed"}};
    for (size_t i = 0; i < SW__COUNTOF(known); i++) {
        if (known[i].code == code) {
            return known[i].text;
        }
    }
    return "see NVIDIA's list of Xid errors";
}

void sw__nvml_watch_events(sw__nvml *nvml)
{
    const struct sw__nvml_api *api = &nvml->api;
    int result = api->events_create && api->events_register && api->events_wait
                     ? api->events_create(&nvml->events)
                     : SW__NVML_NO_FUNCTION;
    if (result != SW__NVML_OK) {
        nvml->events = NULL;
    }
    for (size_t i = 0; i < nvml->count; i++) {
        struct sw__nvml_gpu *gpu = &nvml->gpu[i];
        struct sw__nvml_asked *asked = &gpu->asked[SW__NVML_GROUP_ERRORS];
        if (asked->off || !gpu->handle) {
            continue;
        }
        uint64_t types = EVENT_XID | EVENT_DOUBLE_BIT;
        uint64_t supported = 0;
        if (result == SW__NVML_OK && api->events_supported &&
            api->events_supported(gpu->handle, &supported) == SW__NVML_OK) {
            types &= supported;
        }
        int registered = result;
        if (result == SW__NVML_OK) {
            registered = types & EVENT_XID
                             ? api->events_register(gpu->handle, types, nvml->events)
                             : SW__NVML_NOT_SUPPORTED;
        }
        asked->result = registered;
        asked->off = registered != SW__NVML_OK;
    }
}

int sw__nvml_poll_events(sw__nvml *nvml)
{
    /* A device that fails over and over must not keep us here. */
    for (unsigned i = 0; nvml->events && i < 16; i++) {
        struct sw__nvml_event event = {0};
        int result = nvml->api.events_wait(nvml->events, &event, 0);
        if (result != SW__NVML_OK) {
            return result == SW__NVML_TIMEOUT ? SW__NVML_OK : result;
        }
        for (size_t device = 0; device < nvml->count; device++) {
            if (nvml->gpu[device].handle != event.device || !nvml->gpu[device].wanted ||
                !(event.type & EVENT_XID)) {
                continue;
            }
            char title[64];
            sw__nvml_give(nvml, device, SW_GPU_XID, ++nvml->gpu[device].xids);
            sw__nvml_tell(nvml, (uint32_t)device, SW__NVML_GROUP_ERRORS,
                          (int)(event.data & 0xffff), "%s reported error Xid %u: %s.",
                          sw__nvml_title(nvml, device, title, sizeof title),
                          (unsigned)event.data, xid_text(event.data));
        }
    }
    return SW__NVML_OK;
}

int sw__nvml_call(sw__nvml *nvml, size_t device, enum sw__nvml_group group,
                  uint64_t now_ns)
{
    switch (group) {
    case SW__NVML_GROUP_MEMORY:
        return read_memory(nvml, device);
    case SW__NVML_GROUP_RATES:
        return read_rates(nvml, device);
    case SW__NVML_GROUP_POWER:
        return read_power(nvml, device);
    case SW__NVML_GROUP_TEMPERATURE:
        return read_temperature(nvml, device);
    case SW__NVML_GROUP_REASONS:
        return read_reasons(nvml, device);
    case SW__NVML_GROUP_GPM:
        return read_activity(nvml, device, now_ns);
    case SW__NVML_GROUP_CLOCKS:
        return read_clocks(nvml, device);
    case SW__NVML_GROUP_ENERGY:
        return read_energy(nvml, device);
    case SW__NVML_GROUP_LINKS:
        return read_links(nvml, device, now_ns);
    case SW__NVML_GROUP_ECC:
        return read_ecc(nvml, device);
    case SW__NVML_GROUP_PROCESSES:
        return read_processes(nvml, device);
    case SW__NVML_GROUP_PCIE:
        return read_pcie(nvml, device);
    case SW__NVML_GROUP_ERRORS: /* of all devices at once */
    case SW__NVML_GROUPS:
        break;
    }
    return SW__NVML_OK;
}

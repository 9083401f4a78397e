/* The machine: CPU time of all cores and of each, load, memory, pressure. */
#include <math.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

#define CORES_MOST 1024u
#define STAT_BYTES 131072u /* the lines of so many cores come first */

/* --- CPU -------------------------------------------------------------------------- */

struct cpus {
    struct sw__proc_file file;
    double tick; /* seconds of one */
    uint32_t hint[5];
    uint32_t core_hint[CORES_MOST];
    char text[STAT_BYTES];
};

static void cpus_close(void *state)
{
    struct cpus *cpus = state;
    sw__proc_close(&cpus->file);
    sw__free(cpus);
}

static int cpus_open(const struct sw__source_setting *setting, void **state, char *why,
                     size_t size)
{
    struct cpus *cpus = sw__alloc_zero(1, sizeof *cpus);
    if (!cpus) {
        return SW_ENOMEM;
    }
    const int result = sw__proc_open(&cpus->file, setting->root, "/proc/stat", why, size);
    if (result != SW_OK) {
        sw__free(cpus);
        return result;
    }
    cpus->tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    *state = cpus;
    return SW_OK;
}

/* user, nice, system, idle, iowait, irq, softirq, steal; a kernel may have fewer. At least the first four. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, CPU_FIELDS };

static bool read_cpu(const char *at, uint64_t field[CPU_FIELDS])
{
    for (unsigned i = 0; i < CPU_FIELDS; i++) {
        field[i] = SW__UNKNOWN;
        if (!sw__proc_number(&at, &field[i]) && i <= IDLE) {
            return false;
        }
    }
    return true;
}

static double sum_of(const uint64_t *field, unsigned a, unsigned b, unsigned c)
{
    double sum = (double)field[a] + (double)field[b];
    return c < CPU_FIELDS && field[c] != SW__UNKNOWN ? sum + (double)field[c] : sum;
}

static double busy(const uint64_t field[CPU_FIELDS])
{
    const double interrupts =
        (field[IRQ] != SW__UNKNOWN ? (double)field[IRQ] : 0) +
        (field[SOFTIRQ] != SW__UNKNOWN ? (double)field[SOFTIRQ] : 0);
    return sum_of(field, USER, NICE, SYSTEM) + interrupts;
}

static int cpus_sample(void *state, struct sw__look *look)
{
    struct cpus *cpus = state;
    uint64_t field[CPU_FIELDS];
    if (sw__proc_read(&cpus->file, cpus->text, sizeof cpus->text) <= 0 ||
        strncmp(cpus->text, "cpu ", 4) != 0 || !read_cpu(cpus->text + 4, field)) {
        return SW_EREAD;
    }
    const double tick = cpus->tick;
    const double user = sum_of(field, USER, NICE, CPU_FIELDS) * tick;
    sw__look_hint(look, &cpus->hint[0], "system.cpu", "s", SW_SERIES_TOTAL,
                  busy(field) * tick);
    sw__look_hint(look, &cpus->hint[1], "system.cpu_user", "s", SW_SERIES_TOTAL, user);
    sw__look_hint(look, &cpus->hint[2], "system.cpu_system", "s", SW_SERIES_TOTAL,
                  busy(field) * tick - user);
    sw__look_hint(look, &cpus->hint[3], "system.iowait", "s", SW_SERIES_TOTAL,
                  sw__proc_value(field[IOWAIT], tick));
    sw__look_hint(look, &cpus->hint[4], "system.steal", "s", SW_SERIES_TOTAL,
                  sw__proc_value(field[STEAL], tick));
    for (const char *line = sw__proc_next_line(cpus->text);
         line && strncmp(line, "cpu", 3) == 0; line = sw__proc_next_line(line)) {
        const char *at = line + 3;
        uint64_t core;
        char name[SW__SERIES_NAME];
        if (!sw__proc_number(&at, &core) || core >= CORES_MOST || !read_cpu(at, field)) {
            continue;
        }
        if (!cpus->core_hint[core]) {
            snprintf(name, sizeof name, "core.%u.cpu", (unsigned)core);
        }
        sw__look_hint(look, &cpus->core_hint[core], name, "s", SW_SERIES_TOTAL,
                      busy(field) * tick);
    }
    return SW_OK;
}

const struct sw__source sw__source_cpus = {
    .name = "cpus",
    .period_s = 0.5,
    .open = cpus_open,
    .sample = cpus_sample,
    .close = cpus_close,
};

/* --- Load and memory --------------------------------------------------------------- */

struct system {
    struct sw__proc_file load, memory;
    uint32_t hint[8];
};

static void system_close(void *state)
{
    struct system *system = state;
    sw__proc_close(&system->load);
    sw__proc_close(&system->memory);
    sw__free(system);
}

static int system_open(const struct sw__source_setting *setting, void **state, char *why,
                       size_t size)
{
    struct system *system = sw__alloc_zero(1, sizeof *system);
    if (!system) {
        return SW_ENOMEM;
    }
    const int load =
        sw__proc_open(&system->load, setting->root, "/proc/loadavg", why, size);
    const int memory =
        sw__proc_open(&system->memory, setting->root, "/proc/meminfo", why, size);
    if (load != SW_OK && memory != SW_OK) {
        sw__free(system);
        return memory;
    }
    *state = system;
    return SW_OK;
}

/* "0.42 0.50 0.61 3/512 12345". Not strtod, whose decimal point follows the program's locale. */
static void put_load(struct system *system, struct sw__look *look, const char *text)
{
    const char *at = text;
    uint64_t whole, hundredths, running = SW__UNKNOWN;
    double load = NAN;
    if (sw__proc_number(&at, &whole) && *at == '.' && at[1] >= '0' && at[1] <= '9') {
        at++;
        if (sw__proc_number(&at, &hundredths) && hundredths < 100) {
            load = (double)whole + (double)hundredths / 100;
        }
    }
    const char *slash = strchr(text, '/');
    while (slash && slash > text && slash[-1] >= '0' && slash[-1] <= '9') {
        slash--;
    }
    if (!slash || !sw__proc_number(&slash, &running)) {
        running = SW__UNKNOWN;
    }
    sw__look_hint(look, &system->hint[0], "system.load", "1", SW_SERIES_GAUGE, load);
    sw__look_hint(look, &system->hint[1], "system.running", "1", SW_SERIES_GAUGE,
                  sw__proc_value(running, 1));
}

static int system_sample(void *state, struct sw__look *look)
{
    struct system *system = state;
    char text[4096];
    if (system->load.fd >= 0) {
        (void)sw__proc_read(&system->load, text, sizeof text);
        put_load(system, look, text);
    }
    if (system->memory.fd < 0) {
        return SW_OK;
    }
    (void)sw__proc_read(&system->memory, text, sizeof text);
    const uint64_t total = sw__proc_field(text, "MemTotal:");
    const uint64_t left = sw__proc_field(text, "MemAvailable:");
    const uint64_t swap = sw__proc_field(text, "SwapTotal:");
    const uint64_t swap_left = sw__proc_field(text, "SwapFree:");
    const bool swap_known =
        swap != SW__UNKNOWN && swap_left != SW__UNKNOWN && swap >= swap_left;
    sw__look_hint(look, &system->hint[2], "system.memory", "B", SW_SERIES_GAUGE,
                  sw__proc_value(total, 1024));
    sw__look_hint(look, &system->hint[3], "system.memory_available", "B", SW_SERIES_GAUGE,
                  sw__proc_value(left, 1024));
    sw__look_hint(look, &system->hint[4], "system.swap_used", "B", SW_SERIES_GAUGE,
                  swap_known ? (double)(swap - swap_left) * 1024 : NAN);
    return SW_OK;
}

const struct sw__source sw__source_system = {
    .name = "system",
    .period_s = 0.5,
    .open = system_open,
    .sample = system_sample,
    .close = system_close,
};

/* What the machine is, and how much of it this process may use. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/os.h"

static void copy_cut(char *out, size_t size, const char *text, size_t length)
{
    if (size == 0) {
        return;
    }
    length = length < size - 1 ? length : size - 1;
    memcpy(out, text, length);
    out[length] = '\0';
}

void sw__os_host_name(char *out, size_t size)
{
    struct utsname name;
    const char *host = uname(&name) == 0 && name.nodename[0] ? name.nodename : "unknown";
    copy_cut(out, size, host, strlen(host));
}

void sw__os_kernel(char *out, size_t size)
{
    struct utsname name;
    const char *release = uname(&name) == 0 ? name.release : "unknown";
    copy_cut(out, size, release, strlen(release));
}

/* The value of the first line "key : value" of /proc/cpuinfo. */
static const char *cpuinfo_value(const char *text, const char *key, size_t *length)
{
    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n');
        const char *colon = strchr(line, ':');
        size_t key_length = strlen(key);
        if (strncmp(line, key, key_length) == 0 && colon && (!end || colon < end) &&
            (line[key_length] == ':' || line[key_length] == '\t' ||
             line[key_length] == ' ')) {
            const char *value = colon + 1 + strspn(colon + 1, " \t");
            *length = end && end > value ? (size_t)(end - value) : strlen(value);
            return end && value >= end ? NULL : value;
        }
        line = end ? end + 1 : NULL;
    }
    return NULL;
}

void sw__os_cpu_model(char *out, size_t size)
{
    char text[4096];
    size_t length = 0;
    const char *model = NULL;
    if (sw__os_read_file("/proc/cpuinfo", text, sizeof text) > 0) {
        model = cpuinfo_value(text, "model name", &length);
        if (!model) {
            model = cpuinfo_value(text, "Model", &length);
        }
    }
    struct utsname name;
    if (!model) {
        model = uname(&name) == 0 ? name.machine : "unknown";
        length = strlen(model);
    }
    copy_cut(out, size, model, length);
}

unsigned sw__os_cpus_online(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT_MAX ? (unsigned)online : 1;
}

static unsigned cpus_of_affinity(void)
{
    cpu_set_t sets[8]; /* 8192 CPUs, the most a kernel is built for */
    memset(sets, 0, sizeof sets);
    if (sched_getaffinity(0, sizeof sets, sets) != 0) {
        return sw__os_cpus_online();
    }
    int count = CPU_COUNT_S(sizeof sets, sets);
    return count > 0 ? (unsigned)count : 1;
}

/* Reads "<quota> <period>" (v2) into hundredths of a CPU; UINT64_MAX where there is no
 * limit. */
static uint64_t percent_of(const char *quota_text, const char *period_text)
{
    char *end;
    long long quota = strtoll(quota_text, &end, 10);
    if (end == quota_text || quota <= 0) {
        return UINT64_MAX; /* "max", or -1 in v1 */
    }
    long long period = strtoll(period_text, &end, 10);
    if (end == period_text || period <= 0 || quota > LLONG_MAX / 100) {
        return UINT64_MAX;
    }
    long long percent = quota * 100 / period;
    if (percent >= INT_MAX) {
        return UINT64_MAX;
    }
    return percent > 0 ? (uint64_t)percent : 1;
}

static uint64_t quota_v2(const char *folder)
{
    char text[64];
    if (sw__os_cgroup_text(folder, "cpu.max", text, sizeof text) <= 0) {
        return UINT64_MAX;
    }
    const char *space = strchr(text, ' ');
    return space ? percent_of(text, space + 1) : UINT64_MAX;
}

static uint64_t quota_v1(const char *folder)
{
    char quota[64];
    char period[64];
    if (sw__os_cgroup_text(folder, "cpu.cfs_quota_us", quota, sizeof quota) <= 0 ||
        sw__os_cgroup_text(folder, "cpu.cfs_period_us", period, sizeof period) <= 0) {
        return UINT64_MAX;
    }
    return percent_of(quota, period);
}

unsigned sw__os_cpus_usable_percent(void)
{
    int saved = errno;
    unsigned affinity = cpus_of_affinity() * 100;
    uint64_t quota = sw__os_cgroup_least("cpu", quota_v2, quota_v1);
    errno = saved;
    return quota < affinity ? (unsigned)quota : affinity;
}

uint64_t sw__os_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

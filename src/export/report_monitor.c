/* What the monitor saw, as one line of the text report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/report_parts.h"

static double mean_of(const sw_monitor *monitor, const char *name)
{
    const sw_monitor_series *series = sw_monitor_find(monitor, name);
    return series ? series->all.mean : NAN;
}

/* Files are not to be trusted: what is no number of bytes is not shown. */
static bool is_size(double bytes)
{
    return bytes >= 0 && bytes < 9e18;
}

static void append(char *text, size_t size, const char *before, const char *words)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? before : "", words);
}

static void add_cores(char *text, size_t size, const sw_monitor *monitor)
{
    char words[128];
    const double own =
        mean_of(monitor, "process.cpu_user") + mean_of(monitor, "process.cpu_system");
    const double workers = mean_of(monitor, "workers.cpu");
    if (isnan(own)) {
        return;
    }
    snprintf(words, sizeof words, "%.2f cores used", own);
    append(text, size, "", words);
    if (workers >= 0.005) {
        snprintf(words, sizeof words, "%.2f by workers", workers);
        append(text, size, ", ", words);
    }
    size_t cores = 0;
    for (size_t i = 0; i < sw_monitor_series_count(monitor); i++) {
        cores += strncmp(sw_monitor_get_series(monitor, i)->name, "core.",
                         strlen("core.")) == 0;
    }
    const double all = mean_of(monitor, "system.cpu");
    if (!isnan(all) && cores) {
        /* The kernel counts by ticks, which in a very short run can be more than there was time. */
        const double busy = all < (double)cores ? all : (double)cores;
        snprintf(words, sizeof words, "%.2f of %zu busy in the machine", busy, cores);
        append(text, size, ", ", words);
    }
}

static void add_storage(char *text, size_t size, const sw_monitor *monitor)
{
    static const struct {
        const char *name, *words;
    } kinds[] = {{"process.storage_read", "read from disk"},
                 {"process.storage_written", "written to disk"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const sw_monitor_series *series = sw_monitor_find(monitor, kinds[i].name);
        char bytes[32];
        char words[128];
        /* What a second of an idle program writes is of no interest. */
        if (series && series->growth >= (1 << 20) && is_size(series->growth)) {
            sw_text_bytes(bytes, (uint64_t)series->growth);
            snprintf(words, sizeof words, "%s %s", bytes, kinds[i].words);
            append(text, size, "; ", words);
        }
    }
}

void sw__monitor_line(char *out, size_t size, const sw_summary *summary)
{
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    *out = '\0';
    if (monitor) {
        add_cores(out, size, monitor);
        add_storage(out, size, monitor);
    }
}

void sw__report_monitor(const struct sw__page *page, const sw_summary *summary)
{
    char text[SW__LINE];
    sw__monitor_line(text, sizeof text, summary);
    if (*text) {
        sw__page_wrap(page, "Monitor  ", SW__BOLD, text);
    }
}

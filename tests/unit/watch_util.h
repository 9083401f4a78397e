/* What tests of the monitor share: a root with files of /proc and /sys of the test's own, and looks at them. */
#ifndef WATCH_UTIL_H
#define WATCH_UTIL_H

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder_util.h"
#include "watch/monitor.h"
#include <stepwatch/monitor.h>

/* Writes a file below the root, and the folders that it needs. */
static inline void put_file(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/root%s", ru_folder, path);
    for (char *at = whole + strlen(ru_folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

struct watching {
    struct sw__looker *looker;
    char root[96];
    sw_monitor *monitor;
    struct ru_trace trace;
};

/* Opens one source below the root. */
static inline struct watching *watch(const struct sw__source *source)
{
    struct watching *watching = calloc(1, sizeof *watching);
    const struct sw__source *const sources[] = {source, NULL};
    snprintf(watching->root, sizeof watching->root, "%s/root", ru_folder);
    const struct sw__source_setting setting = {.root = watching->root, .pss_s = 1};
    if (!sw_is_recording()) {
        ru_start((sw_config){0});
    }
    watching->looker = sw__looker_open(sources, &setting, 1);
    assert_non_null(watching->looker);
    return watching;
}

static inline void look(struct watching *watching, unsigned edge)
{
    sw__looker_look(watching->looker, edge, false, true);
}

/* Ends the recording and reads what is in it. */
static inline const sw_monitor *seen(struct watching *watching)
{
    sw_error_info info = {0};
    sw__looker_close(watching->looker);
    watching->looker = NULL;
    watching->trace = ru_finish();
    assert_int_equal(
        sw_monitor_of_trace(&watching->monitor, watching->trace.trace, &info), SW_OK);
    assert_non_null(watching->monitor);
    return watching->monitor;
}

static inline void forget(struct watching *watching)
{
    sw_monitor_free(watching->monitor);
    ru_free(&watching->trace);
    free(watching);
}

static inline const sw_monitor_series *series_of(const struct watching *watching,
                                                 const char *name)
{
    const sw_monitor_series *series = sw_monitor_find(watching->monitor, name);
    if (!series) {
        fail_msg("there is no series %s", name);
    }
    return series;
}

#define assert_value(actual, expected)                                                   \
    do {                                                                                 \
        if (!(fabs((actual) - (expected)) <= 1e-9 * fabs((double)(expected)))) {         \
            fail_msg("%s is %.17g, not %.17g", #actual, (double)(actual),                \
                     (double)(expected));                                                \
        }                                                                                \
    } while (0)

#endif

/* The monitor: what it writes and what is read of it, its thread, forks. */
#include "watch_util.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>

#include "base/os.h"
#include "record/recorder.h"

/* A source that says what the test wants. */
static double level, amount;
static bool fails;

static int fake_open(const struct sw__source_setting *setting, void **state, char *why,
                     size_t size)
{
    (void)setting;
    (void)why;
    (void)size;
    *state = NULL;
    return SW_OK;
}

static int fake_sample(void *state, struct sw__look *look)
{
    (void)state;
    if (fails) {
        return SW_EREAD;
    }
    sw__look_put(look, "level", "B", SW_SERIES_GAUGE, level);
    sw__look_put(look, "amount", "1", SW_SERIES_TOTAL, amount);
    return SW_OK;
}

static const struct sw__source fake = {
    .name = "fake", .open = fake_open, .sample = fake_sample};

static void at(struct watching *watching, unsigned edge, double new_level,
               double new_amount)
{
    level = new_level;
    amount = new_amount;
    sw__os_sleep_ns(200000); /* growth needs time to pass */
    look(watching, edge);
}

static void levels_and_sums(void **state)
{
    (void)state;
    fails = false;
    struct watching *watching = watch(&fake);
    at(watching, SW_LOOK_FIRST, 10, 100);
    at(watching, 0, 30, 110);
    at(watching, 0, 30, 110); /* nothing changed: nothing is written but the look */
    at(watching, SW_LOOK_LAST, 20, 150);
    /* While it did not run the sum went on: that is nobody's growth. */
    at(watching, SW_LOOK_FIRST, 50, 1000);
    at(watching, SW_LOOK_LAST, 40, 1005);
    seen(watching);
    const sw_monitor_series *gauge = series_of(watching, "level");
    assert_int_equal(gauge->known, 6);
    assert_int_equal(gauge->all.samples, 6);
    assert_value(gauge->first, 10);
    assert_value(gauge->last, 40);
    assert_value(gauge->all.mean, 30);
    assert_value(gauge->all.min, 10);
    assert_value(gauge->all.max, 50);
    assert_value(gauge->p50, 30);
    assert_value(gauge->p95, 50);
    assert_true(isnan(gauge->growth));
    assert_string_equal(gauge->unit, "B");
    assert_string_equal(gauge->source, "fake");
    const sw_monitor_series *total = series_of(watching, "amount");
    assert_int_equal(total->kind, SW_SERIES_TOTAL);
    assert_value(total->growth, 55);
    assert_int_equal(total->all.samples, 4);
    assert_true(total->all.min == 0 && total->all.max > 0);
    const sw_monitor_totals *totals = sw_monitor_get_totals(watching->monitor);
    assert_int_equal(totals->looks, 6);
    assert_int_equal(totals->kept, 6);
    assert_value(totals->interval_s, 1);
    assert_true(total->all.mean > 0 && totals->watched_s > 0);
    /* 6 looks, and of the series what changed or stands at an edge. */
    assert_int_equal(ru_count(&watching->trace, 1u << SW_RECORD_LOOK), 6);
    assert_int_equal(ru_count(&watching->trace, 1u << SW_RECORD_MONITOR), 10);
    sw_monitor_point *points;
    size_t count;
    assert_int_equal(sw_monitor_points(watching->monitor, 0, &points, &count), SW_OK);
    assert_int_equal(count, 6);
    assert_value(points[2].value, 30);
    assert_true(points[0].first && !points[3].first && points[4].first);
    sw_monitor_points_free(points);
    assert_int_equal(sw_monitor_points(watching->monitor, 1, &points, &count), SW_OK);
    assert_int_equal(count, 4);
    sw_monitor_points_free(points);
    assert_int_equal(sw_monitor_points(watching->monitor, 9, &points, &count), SW_EINVAL);
    forget(watching);
}

static void unknown_is_not_zero(void **state)
{
    (void)state;
    fails = false;
    struct watching *watching = watch(&fake);
    at(watching, SW_LOOK_FIRST, 10, 100);
    fails = true;
    at(watching, 0, 0, 0);
    at(watching, 0, 0, 0);
    fails = false;
    at(watching, 0, 10, 500);
    at(watching, 0, NAN, 510);
    at(watching, 0, 10, 400); /* it was set back: what it grew by is not known */
    at(watching, SW_LOOK_LAST, 10, 401);
    seen(watching);
    const sw_monitor_series *gauge = series_of(watching, "level");
    assert_int_equal(gauge->known, 4);
    assert_value(gauge->all.mean, 10);
    assert_value(gauge->all.min, 10);
    assert_value(series_of(watching, "amount")->growth, 11);
    assert_int_equal(sw_monitor_get_seen(watching->monitor, 0)->failed, 2);
    sw_monitor_point *points;
    size_t count;
    assert_int_equal(sw_monitor_points(watching->monitor, 0, &points, &count), SW_OK);
    assert_int_equal(count, 4);
    sw_monitor_points_free(points);
    forget(watching);
}

/* Levels count where they were seen; growth only where it happened altogether. */
/* Whoever watches a program that runs finds a series as soon as it has values. */
static void series_that_come_later(void **state)
{
    (void)state;
    fails = true;
    struct watching *watching = watch(&fake);
    at(watching, SW_LOOK_FIRST, 0, 0);
    fails = false;
    at(watching, 0, 10, 100);
    at(watching, SW_LOOK_ASKED, 20, 100);
    seen(watching);
    const sw_monitor_series *gauge = series_of(watching, "level");
    assert_int_equal(gauge->known, 2);
    assert_value(gauge->last, 20);
    forget(watching);
}

/* A program may ask for looks, whatever the period. */
static void looks_that_are_asked_for(void **state)
{
    (void)state;
    assert_false(sw_monitor_look());
    ru_start((sw_config){0});
    assert_false(sw_monitor_look());
    assert_int_equal(sw_monitor_start(3600, NULL), SW_OK);
    for (int i = 0; i < 5; i++) {
        assert_true(sw_monitor_look());
    }
    const pid_t child = fork();
    if (child == 0) {
        _exit(sw_monitor_look() ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(sw_monitor_look()); /* which brings it back */
    sw_monitor_stop();
    assert_false(sw_monitor_look());
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_count(&trace, 1u << SW_RECORD_LOOK), 8); /* first and last, too */
    ru_free(&trace);
}

static void sections_steps_and_phases(void **state)
{
    (void)state;
    fails = false;
    struct watching *watching = watch(&fake);
    sw_section *epoch = sw_section_get("epoch");
    sw_section *forward = sw_section_get("forward");
    at(watching, SW_LOOK_FIRST, 1, 0);
    sw_begin(epoch);
    at(watching, 0, 2, 10);
    sw_step_begin();
    sw_begin(forward);
    at(watching, 0, 4, 30);
    at(watching, 0, 6, 60);
    sw_end(forward);
    sw_step_end();
    at(watching, 0, 8, 100);
    sw_end(epoch);
    at(watching, SW_LOOK_LAST, 16, 150);
    seen(watching);
    const sw_monitor *monitor = watching->monitor;
    assert_int_equal(sw_monitor_section_count(monitor), 2);
    const sw_monitor_section *section = sw_monitor_get_section(monitor, 0);
    assert_int_equal(section->depth, 1);
    assert_string_equal(section->path[0], "epoch");
    assert_int_equal(section->looks, 4);
    section = sw_monitor_get_section(monitor, 1);
    assert_int_equal(section->depth, 2);
    assert_string_equal(section->path[1], "forward");
    sw_monitor_stats stats = sw_monitor_in_section(monitor, 0, 0);
    assert_int_equal(stats.samples, 4);
    assert_value(stats.mean, 5);
    stats = sw_monitor_in_section(monitor, 0, 1);
    assert_int_equal(stats.samples, 2);
    assert_value(stats.max, 6);
    stats = sw_monitor_in_section(monitor, 1, 0); /* 20 + 30 + 40 */
    assert_int_equal(stats.samples, 3);
    stats = sw_monitor_in_section(monitor, 1, 1); /* 30 alone */
    assert_int_equal(stats.samples, 1);
    assert_true(stats.min == stats.max);
    assert_int_equal(sw_monitor_in_section(monitor, 0, 7).samples, 0);
    const sw_monitor_series *gauge = series_of(watching, "level");
    assert_int_equal(gauge->steps.samples, 2);
    assert_value(gauge->steps.mean, 5);
    assert_int_equal(gauge->phase[SW_PHASE_FORWARD].samples, 2);
    assert_int_equal(gauge->phase[SW_PHASE_OTHER].samples, 0);
    const sw_monitor_series *total = series_of(watching, "amount");
    assert_int_equal(total->steps.samples, 1);
    assert_int_equal(total->phase[SW_PHASE_FORWARD].samples, 1);
    assert_true(total->per_step > 0);
    assert_true(isnan(gauge->per_step));
    forget(watching);
}

/* A source that is asked at every other look: what lies between is no time without growth. */
static unsigned slow_looks;
static int slow_sample(void *state, struct sw__look *look)
{
    (void)state;
    sw__look_put(look, "slow", "1", SW_SERIES_TOTAL, 10.0 * ++slow_looks);
    return SW_OK;
}

static void sources_with_periods(void **state)
{
    (void)state;
    static const struct sw__source slow = {
        .name = "slow", .period_s = 3600, .open = fake_open, .sample = slow_sample};
    slow_looks = 0;
    struct watching *watching = watch(&slow);
    sw__looker_look(watching->looker, SW_LOOK_FIRST, false, false);
    for (unsigned i = 0; i < 5; i++) {
        sw__looker_look(watching->looker, 0, false, false); /* not due */
    }
    assert_int_equal(slow_looks, 1);
    sw__os_sleep_ns(200000);
    sw__looker_look(watching->looker, SW_LOOK_LAST, false, true);
    assert_int_equal(slow_looks, 2);
    seen(watching);
    const sw_monitor_series *series = series_of(watching, "slow");
    assert_int_equal(series->all.samples, 1);
    assert_value(series->growth, 10);
    assert_true(series->all.min > 0); /* one stretch, not six of which five are 0 */
    forget(watching);
}

/* More looks than a sixteenth of the cap has room for: they thin out, statistics do not. */
static void a_long_run(void **state)
{
    (void)state;
    enum { LOOKS = 20000 };
    fails = false;
    ru_start((sw_config){.max_mb = 4});
    struct watching *watching = watch(&fake);
    for (unsigned i = 0; i < LOOKS; i++) {
        level = i;
        amount = i;
        look(watching, i == 0 ? SW_LOOK_FIRST : i == LOOKS - 1 ? SW_LOOK_LAST : 0);
    }
    seen(watching);
    const sw_monitor_totals *totals = sw_monitor_get_totals(watching->monitor);
    assert_int_equal(totals->looks, LOOKS);
    assert_true(totals->kept > 500 && totals->kept < LOOKS / 4);
    const sw_monitor_series *gauge = series_of(watching, "level");
    assert_int_equal(gauge->known, LOOKS);
    assert_value(gauge->all.mean, (LOOKS - 1) / 2.0);
    assert_value(gauge->first, 0);
    assert_value(gauge->last, LOOKS - 1);
    assert_value(series_of(watching, "amount")->growth, LOOKS - 1);
    assert_int_equal(watching->trace.info->steps_dropped, 0);
    forget(watching);
}

static void starting_and_stopping(void **state)
{
    (void)state;
    sw_error_info info = {0};
    assert_int_equal(sw_monitor_start(1, &info), SW_ESTATE);
    assert_non_null(strstr(info.message, "nothing is recorded"));
    sw_monitor_stop(); /* never started */
    ru_start((sw_config){0});
    assert_true(sw_monitor_interval() == 0);
    assert_int_equal(sw_monitor_start(0.001, &info), SW_EINVAL);
    assert_int_equal(sw_monitor_start(NAN, &info), SW_EINVAL);
    assert_int_equal(sw_monitor_start(-1, &info), SW_EINVAL);
    assert_int_equal(sw_monitor_start(1e6, &info), SW_EINVAL);
    assert_int_equal(sw_monitor_start(0, &info), SW_OK);
    assert_true(sw_monitor_interval() == 1);
    assert_int_equal(sw_monitor_start(0.5, &info), SW_OK); /* goes on as it is */
    assert_true(sw_monitor_interval() == 1);
    sw_monitor_stop();
    assert_true(sw_monitor_interval() == 0);
    sw_monitor_stop();
    assert_int_equal(sw_monitor_start(60, &info), SW_OK);
    struct ru_trace trace = ru_finish(); /* stops it */
    assert_true(sw_monitor_interval() == 0);
    sw_monitor *monitor;
    assert_int_equal(sw_monitor_of_trace(&monitor, trace.trace, &info), SW_OK);
    /* Two stretches, each with a look at its start and one at its end. */
    assert_int_equal(sw_monitor_get_totals(monitor)->looks, 4);
    assert_int_equal(ru_count(&trace, 1u << SW_RECORD_LOOK), 4);
    assert_int_equal(sw_monitor_find(monitor, "process.cpu_user")->all.samples, 2);
    assert_true(sw_monitor_find(monitor, "process.rss")->all.min > 0);
    sw_monitor_free(monitor);
    ru_free(&trace);
}

static void without_it_there_is_none(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    struct ru_trace trace = ru_finish();
    sw_monitor *monitor = (sw_monitor *)state;
    assert_int_equal(sw_monitor_of_trace(&monitor, trace.trace, NULL), SW_OK);
    assert_null(monitor);
    ru_free(&trace);
}

/* As many looks as periods fit, never more; fewer only where it was late, and then it says so. */
static void a_true_period(void **state)
{
    (void)state;
    ru_start((sw_config){.monitor_interval_s = 0.02});
    const uint64_t begin = sw__os_now_ns();
    while (sw__os_now_ns() - begin < 500000000u) {
        sw__os_sleep_ns(10000000u);
    }
    struct ru_trace trace = ru_finish();
    const double periods = (double)(sw__os_now_ns() - begin) / 0.02e9;
    sw_monitor *monitor;
    assert_int_equal(sw_monitor_of_trace(&monitor, trace.trace, NULL), SW_OK);
    const sw_monitor_totals *totals = sw_monitor_get_totals(monitor);
    assert_true((double)totals->looks <= periods + 3);
    assert_true((double)totals->looks >= 3);
    assert_true(totals->looks + totals->late * 20 >= 22);
    assert_value(totals->interval_s, 0.02);
    assert_true(totals->cpu_s > 0);
    sw_monitor_free(monitor);
    ru_free(&trace);
}

static unsigned own_threads(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *at_entry; (at_entry = readdir(folder));) {
        count += at_entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static unsigned own_descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *at_entry; (at_entry = readdir(folder));) {
        count += at_entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

/* Before a fork the thread is gone, the child has none and none of its files, and after the next step it is back. */
static void forks(void **state)
{
    (void)state;
    const unsigned before = own_descriptors();
    const unsigned threads = own_threads(); /* a sanitizer has one of its own */
    ru_start((sw_config){.monitor_interval_s = 0.05});
    const pid_t child = fork();
    if (child == 0) {
        bool good = own_threads() <= threads && sw_monitor_interval() == 0 &&
                    own_descriptors() <= before + 1;
        sw_step_begin(); /* its own recording */
        sw_step_end();
        good = good && sw_is_recording() && sw_monitor_interval() == 0;
#if !defined(__SANITIZE_THREAD__)
        /* It takes a lock that was made anew in the child for one that the parent holds. */
        sw_error_info info;
        good = good && sw_monitor_start(0.05, &info) == SW_OK;
#endif
        sw_shutdown();
        _exit(good ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(own_threads(), threads); /* what Python counts now */
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(sw_monitor_interval() == 0.05); /* it waits */
    sw_step_begin();
    sw_step_end();
    assert_int_equal(own_threads(), threads + 2);
    sw_shutdown();
    assert_int_equal(own_threads(), threads);
    assert_int_equal(own_descriptors(), before);
}

/* No step brings it back, and the end comes: there is a last look all the same. */
static void an_end_after_a_fork(void **state)
{
    (void)state;
    ru_start((sw_config){.monitor_interval_s = 60});
    while (sw_monitor_interval() == 0) {
        sw__os_sleep_ns(1000000);
    }
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_count(&trace, 1u << SW_RECORD_LOOK), 2);
    ru_free(&trace);
}

static void many_forks_and_threads(void **state)
{
    (void)state;
    ru_start((sw_config){.monitor_interval_s = 0.01});
    for (unsigned i = 0; i < 50; i++) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        sw_watch_resume();
        sw_step_begin();
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    sw_monitor *monitor;
    assert_int_equal(sw_monitor_of_trace(&monitor, trace.trace, NULL), SW_OK);
    /* No fork ends what is known, and none costs a chunk of its own. */
    const struct ru_records looks = ru_read(&trace, 1u << SW_RECORD_LOOK);
    assert_true(looks.count >= 2);
    for (size_t i = 0; i < looks.count; i++) {
        const unsigned edge = ((const sw_record_look *)looks.at[i].record)->edge;
        assert_int_equal(edge, i == 0                 ? SW_LOOK_FIRST
                               : i + 1 == looks.count ? SW_LOOK_LAST
                                                      : 0);
    }
    assert_true(sw_monitor_find(monitor, "process.faults_minor")->growth > 0);
    assert_true(trace.size < 1u << 20);
    struct ru_records copy = looks;
    ru_records_free(&copy);
    sw_monitor_free(monitor);
    ru_free(&trace);
}

static void *end_main(void *arg)
{
    (void)arg;
    return NULL;
}

/* Recordings one after the other, with threads that come and go. */
static void again_and_again(void **state)
{
    (void)state;
    const unsigned threads = own_threads();
    for (unsigned i = 0; i < 20; i++) {
        char out[96];
        snprintf(out, sizeof out, "%s/r%u", ru_folder, i);
        ru_start((sw_config){.monitor_interval_s = 0.01, .out = out});
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_main, NULL), 0);
        if (i % 2) {
            sw_monitor_stop();
        }
        pthread_join(thread, NULL);
        sw_shutdown();
    }
    assert_int_equal(own_threads(), threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(levels_and_sums),
        ru_test(unknown_is_not_zero),
        ru_test(series_that_come_later),
        ru_test(looks_that_are_asked_for),
        ru_test(sections_steps_and_phases),
        ru_test(sources_with_periods),
        ru_test(a_long_run),
        ru_test(starting_and_stopping),
        ru_test(without_it_there_is_none),
        ru_test(a_true_period),
        ru_test(forks),
        ru_test(an_end_after_a_fork),
        ru_test(many_forks_and_threads),
        ru_test(again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

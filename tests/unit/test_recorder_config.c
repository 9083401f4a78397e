/* Configuration end to end: who says what wins, and what off means. Every case is a process of its own,
 * for the environment is asked once. */
#include "recorder_util.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned threads_now(void)
{
    unsigned count = 0;
    DIR *list = opendir("/proc/self/task");
    ru_must(list != NULL);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(list);
    return count;
}

static bool folder_is_empty(const char *path)
{
    unsigned count = 0;
    DIR *list = opendir(path);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(list);
    return count == 0;
}

static void use_everything(void)
{
    sw_section *section = sw_section_get("x");
    sw_begin(section);
    sw_end(section);
    sw_end_error(section);
    sw_section_begin(section, 4);
    sw_section_end(section, 4, 0);
    SW_SECTION("y") {
        sw_mark("z");
    }
    sw_counter("c", 1);
    sw_step_begin();
    sw_update();
    sw_epoch(1);
    sw_step_end();
    sw_thread_name("t");
    (void)sw_name("n", 1);
    sw_record_put(&(sw_record_gc){.head = {.kind = SW_RECORD_GC, .units = 1}}.head);
    sw_domain *domain = sw_domain_get("d");
    sw_domain_step_begin(domain, 0);
    sw_domain_counter(domain, "c", 1, 1);
    sw_domain_step_end(domain);
}

static void record_disabled(void *arg)
{
    (void)arg;
    /* Off in the environment wins over on in the program. */
    setenv("STEPWATCH_ENABLED", "0", 1);
    ru_must(chdir(ru_folder) == 0);
    unsigned before = threads_now();
    sw_error_info info = {0};
    sw_config config = {.enabled = SW_ON, .out = "run"};
    ru_must(sw_init_info(&config, sizeof config, &info) == SW_EDISABLED);
    ru_must(info.message[0] != 0);
    ru_must(!sw_is_recording());
    use_everything();
    ru_must(!SW_GATE(sw_section_get("x")));
    ru_must(threads_now() == before);
    ru_must(sw_step_number() == -1);
}

static void test_off_by_environment(void **state)
{
    (void)state;
    ru_child(record_disabled, NULL);
    assert_true(folder_is_empty(ru_folder));
}

static void record_disabled_by_struct(void *arg)
{
    (void)arg;
    setenv("STEPWATCH_ENABLED", "1", 1);
    ru_must(chdir(ru_folder) == 0);
    ru_must(sw_init(&(sw_config){.enabled = SW_OFF}) == SW_EDISABLED);
    use_everything(); /* It was said off: the first record does not start it either. */
    ru_must(!sw_is_recording());
}

static void test_off_by_struct(void **state)
{
    (void)state;
    ru_child(record_disabled_by_struct, NULL);
    assert_true(folder_is_empty(ru_folder));
}

static void record_never(void *arg)
{
    (void)arg;
    ru_must(chdir(ru_folder) == 0);
    unsigned before = threads_now();
    use_everything();
    ru_must(!sw_is_recording());
    ru_must(threads_now() == before);
}

static void test_nothing_without_init(void **state)
{
    (void)state;
    ru_child(record_never, NULL);
    assert_true(folder_is_empty(ru_folder));
}

static void record_by_environment(void *arg)
{
    (void)arg;
    setenv("STEPWATCH_OUT", ru_path("from environment"), 1);
    setenv("STEPWATCH_MAX_MB", "7.5", 1);
    setenv("STEPWATCH_NAME", "named", 1);
    setenv("STEPWATCH_POLICY", "ring", 1);
    setenv("STEPWATCH_KEEP_FIRST", "11", 1);
    setenv("STEPWATCH_EVENTS", "off", 1);
    setenv("STEPWATCH_RUN_ID", "run 17", 1);
    setenv("STEPWATCH_QUIET", "1", 1);
    ru_must(sw_init(NULL) == 0);
    char path[1100];
    ru_must(sw_run_dir(path, sizeof path) < sizeof path);
    ru_must(strcmp(path, ru_path("from environment")) == 0);
    use_everything();
}

static void test_environment(void **state)
{
    (void)state;
    ru_child(record_by_environment, NULL);
    struct ru_trace trace = ru_open_run(ru_path("from environment"));
    assert_string_equal(trace.info->name, "named");
    assert_string_equal(trace.info->run_id, "run 17");
    assert_int_equal(trace.info->max_bytes, 7864320);
    assert_int_equal(trace.info->policy, SW_POLICY_RING);
    assert_int_equal(trace.info->keep_first, 11);
    assert_false(trace.info->events);
    assert_int_equal(trace.info->present, 0);
    struct stat facts;
    assert_int_equal(stat(trace.info->path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(stat(ru_path("from environment"), &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    ru_free(&trace);
}

static void record_by_both(void *arg)
{
    (void)arg;
    setenv("STEPWATCH_OUT", ru_path("environment"), 1);
    setenv("STEPWATCH_MAX_MB", "7", 1);
    setenv("STEPWATCH_POLICY", "drop", 1);
    setenv("STEPWATCH_KEEP_LAST", "9", 1);
    sw_config config = {.out = ru_path("struct"),
                        .max_mb = 5,
                        .policy = "stream",
                        .name = "mine",
                        .quiet = SW_ON};
    ru_must(sw_init(&config) == 0);
    use_everything();
}

static void test_struct_wins(void **state)
{
    (void)state;
    ru_child(record_by_both, NULL);
    struct ru_trace trace = ru_open_run(ru_path("struct"));
    assert_string_equal(trace.info->name, "mine");
    assert_int_equal(trace.info->max_bytes, 5 << 20);
    assert_int_equal(trace.info->policy, SW_POLICY_STREAM);
    assert_int_equal(trace.info->keep_last, 9); /* What the struct does not say. */
    assert_int_equal(trace.info->keep_first, 50);
    assert_int_equal(access(ru_path("environment"), F_OK), -1);
    ru_free(&trace);
}

static void record_as_older_caller(void *arg)
{
    size_t size = *(const size_t *)arg;
    sw_config config = {.out = ru_path("run"),
                        .name = "old",
                        .policy = "ring",
                        .max_mb = 3,
                        .quiet = SW_ON,
                        .keep_first = 1,
                        .keep_last = 2,
                        .keep_worst = 3};
    /* Bytes that the caller did not pass must not be looked at. */
    char *exact = malloc(size);
    ru_must(exact != NULL);
    memcpy(exact, &config, size);
    ru_must(sw_init_sized((const sw_config *)(void *)exact, size) == 0);
    free(exact);
    use_everything();
}

static void test_older_callers(void **state)
{
    (void)state;
    size_t size = offsetof(sw_config, keep_last);
    ru_child(record_as_older_caller, &size);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    assert_int_equal(trace.info->keep_first, 1);
    assert_int_equal(trace.info->keep_last, 50);
    assert_int_equal(trace.info->keep_worst, 20);
    assert_int_equal(trace.info->max_bytes, 3 << 20);
    ru_free(&trace);
    ru_teardown(NULL);
    ru_setup(NULL);
    size = offsetof(sw_config, schedule);
    ru_child(record_as_older_caller, &size);
    trace = ru_open_run(ru_path("run"));
    assert_string_equal(trace.info->name, "old");
    assert_int_equal(trace.info->policy, SW_POLICY_RING);
    assert_int_equal(trace.info->max_bytes, 256 << 20);
    ru_free(&trace);
}

static void record_lazily(void *arg)
{
    (void)arg;
    setenv("STEPWATCH_ENABLED", "1", 1);
    setenv("STEPWATCH_OUT", ru_path("lazy"), 1);
    sw_section *section = sw_section_get("first");
    ru_must(!sw_is_recording());
    ru_must(SW_GATE(section)); /* Its first use starts the recording. */
    sw_begin(section);
    ru_must(sw_is_recording());
    sw_end(section);
    sw_begin(section);
    sw_end(section);
    ru_must(sw_init(NULL) == SW_ESTATE);
}

static void test_lazy_start(void **state)
{
    (void)state;
    ru_child(record_lazily, NULL);
    struct ru_trace trace = ru_open_run(ru_path("lazy"));
    assert_int_equal(ru_calls(&trace, "first"), 2);
    assert_int_equal(trace.info->present, 2);
    assert_int_equal(trace.info->unmatched, 0);
    ru_free(&trace);
}

static void record_lazily_by_other_calls(void *arg)
{
    setenv("STEPWATCH_ENABLED", "1", 1);
    setenv("STEPWATCH_OUT", ru_path("run"), 1);
    switch (*(const int *)arg) {
    case 0:
        sw_counter("c", 1);
        break;
    case 1:
        sw_mark("m");
        break;
    case 2:
        sw_step_begin();
        break;
    case 3:
        sw_record_put(&(sw_record_gc){.head = {.kind = SW_RECORD_GC, .units = 1}}.head);
        break;
    case 4:
        (void)sw_name("n", 1);
        break;
    default:
        sw_section_begin(sw_section_get("s"), 3);
        sw_section_end(sw_section_get("s"), 3, 0);
        break;
    }
    ru_must(sw_is_recording());
}

static void test_lazy_start_by_any_call(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        ru_child(record_lazily_by_other_calls, &i);
        struct ru_trace trace = ru_open_run(ru_path("run"));
        assert_int_equal(trace.info->present, i != 2 && i != 4);
        assert_int_equal(ru_count(&trace, 1u << SW_RECORD_STEP), i == 2);
        ru_free(&trace);
        ru_teardown(NULL);
        ru_setup(NULL);
    }
}

static void test_start_twice(void **state)
{
    (void)state;
    ru_start((sw_config){.name = "first"});
    sw_error_info info = {0};
    sw_config second = {.out = ru_path("second"), .name = "second"};
    assert_int_equal(sw_init_info(&second, sizeof second, &info), SW_ESTATE);
    assert_int_equal(sw_init(&second), SW_ESTATE);
    assert_true(sw_is_recording());
    use_everything();
    struct ru_trace trace = ru_finish();
    assert_string_equal(trace.info->name, "first");
    assert_true(ru_calls(&trace, "x") > 0);
    assert_int_equal(access(ru_path("second"), F_OK), -1);
    ru_free(&trace);
    sw_shutdown(); /* Ending twice is nothing. */
    sw_shutdown();
}

static void test_bad_configuration(void **state)
{
    (void)state;
    const sw_config bad[] = {
        {.policy = "rign"}, {.max_mb = 0.5}, {.schedule = "every=x"},
        {.enabled = 7},     {.events = -1},  {.out = "/proc/none/such"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sw_config config = bad[i];
        sw_error_info info = {0};
        config.out = config.out ? config.out : ru_path("run");
        config.quiet = SW_ON;
        assert_true(sw_init_info(&config, sizeof config, &info) < 0);
        assert_true(info.message[0] != 0);
        assert_false(sw_is_recording());
        use_everything();
    }
    assert_int_equal(access(ru_path("run"), F_OK), -1);
    /* And the next one may be better. */
    ru_start((sw_config){0});
    struct ru_trace trace = ru_finish();
    ru_free(&trace);
}

static void record_by_default(void *arg)
{
    (void)arg;
    ru_must(chdir(ru_folder) == 0);
    sw_config config = {.name = "my run/../x", .quiet = SW_ON};
    ru_must(sw_init(&config) == 0);
    /* The program may go elsewhere; the trace does not. */
    ru_must(chdir("/") == 0);
    use_everything();
}

static void test_default_run_directory(void **state)
{
    (void)state;
    glob_t found;
    for (size_t i = 1; i <= 2; i++) {
        /* Two in one second get two folders. */
        ru_child(record_by_default, NULL);
        assert_int_equal(glob(ru_path("runs/profiling/"
                                      "[0-9][0-9][0-9][0-9][01][0-9][0-3][0-9]T"
                                      "[0-2][0-9][0-5][0-9][0-6][0-9]Z-my_run_.._x*"),
                              0, NULL, &found),
                         0);
        assert_int_equal(found.gl_pathc, i);
        globfree(&found);
    }
    assert_int_equal(glob(ru_path("runs/profiling/*/*.stepwatch"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    sw_run *run;
    assert_int_equal(sw_run_open(&run, found.gl_pathv[0], NULL), 0);
    assert_int_equal(sw_run_count(run), 1);
    sw_run_free(run);
    globfree(&found);
}

static void test_calibration(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    struct ru_trace trace = ru_finish();
    const sw_trace_info *info = trace.info;
    assert_true(info->cost_section_low_ns > 0);
    assert_true(info->cost_section_low_ns <= info->cost_section_ns);
    assert_true(info->cost_section_ns <= info->cost_section_high_ns);
    assert_true(info->cost_stats_ns > 0);
    /* Measuring leaves nothing behind. */
    assert_int_equal(ru_all_calls(&trace), 0);
    assert_int_equal(info->present, 0);
    assert_int_equal(info->reentrant, 0);
    assert_true(info->end_ns >= info->start_ns && info->start_ns > 0);
    assert_true(info->start_real_ns > UINT64_C(1600000000000000000));
    assert_int_equal(info->pid, getpid());
    assert_int_equal(info->ppid, getppid());
    ru_free(&trace);
}

static void test_facts(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "ring", .max_mb = 3});
    struct ru_trace trace = ru_finish();
    const char *const keys[] = {"command", "cwd", "host", "hot_memory"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = sw_trace_fact(trace.trace, keys[i]);
        assert_non_null(value);
        assert_true(value[0] != 0);
    }
    assert_null(sw_trace_fact(trace.trace, "no such fact"));
    ru_free(&trace);
}

static void record_child(void *arg)
{
    (void)arg;
    ru_start((sw_config){.out = ru_path("child")});
    sw_shutdown();
}

static void record_given_facts(void *arg)
{
    (void)arg;
    sw_fact("given.before", "1");
    sw_fact("given.changed", "old");
    sw_fact(NULL, "x");
    sw_fact("given.null", NULL);
    sw_fact("", "x");
    ru_start((sw_config){.out = ru_path("parent")});
    sw_fact("given.during", "2");
    sw_fact("given.changed", "new");
    ru_child(record_child, NULL);
    sw_shutdown();
    ru_start((sw_config){.out = ru_path("later")});
    for (int i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof key, "many.%d", i);
        sw_fact(key, "x");
    }
    sw_shutdown();
}

static void test_given_facts(void **state)
{
    (void)state;
    ru_child(record_given_facts, NULL);
    const char *const folders[] = {"parent", "child", "later"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        struct ru_trace trace = ru_open_run(ru_path(folders[i]));
        assert_string_equal(sw_trace_fact(trace.trace, "given.before"), "1");
        assert_string_equal(sw_trace_fact(trace.trace, "given.during"), "2");
        assert_string_equal(sw_trace_fact(trace.trace, "given.changed"), "new");
        assert_null(sw_trace_fact(trace.trace, "given.null"));
        bool later = strcmp(folders[i], "later") == 0;
        assert_int_equal(sw_trace_fact(trace.trace, "many.0") != NULL, later);
        assert_null(sw_trace_fact(trace.trace, "many.199")); /* too many */
        ru_free(&trace);
    }
}

static void test_values_in_force(void **state)
{
    (void)state;
    char value[64] = "x";
    assert_int_equal(sw_option_value("policy", value, sizeof value), 0);
    assert_string_equal(value, "");
    ru_start((sw_config){.policy = "ring", .sampler_hz = 12.5});
    assert_int_equal(sw_option_value("policy", value, sizeof value), 4);
    assert_string_equal(value, "ring");
    assert_int_equal(sw_option_value("sampler_hz", value, sizeof value), 4);
    assert_string_equal(value, "12.5");
    assert_int_equal(sw_option_value("no such option", value, sizeof value), 0);
    assert_string_equal(value, "");
    assert_int_equal(sw_option_value("policy", NULL, 0), 4);
    struct ru_trace trace = ru_finish();
    assert_string_equal(sw_trace_fact(trace.trace, "config.sampler_hz"), "12.5");
    ru_free(&trace);
    assert_int_equal(sw_option_value("policy", value, sizeof value), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_off_by_environment),
        ru_test(test_off_by_struct),
        ru_test(test_nothing_without_init),
        ru_test(test_environment),
        ru_test(test_struct_wins),
        ru_test(test_older_callers),
        ru_test(test_lazy_start),
        ru_test(test_lazy_start_by_any_call),
        ru_test(test_default_run_directory),
        ru_test(test_start_twice),
        ru_test(test_bad_configuration),
        ru_test(test_calibration),
        ru_test(test_facts),
        ru_test(test_given_facts),
        ru_test(test_values_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

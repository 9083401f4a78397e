/* Options and the settings that struct, environment and defaults make together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/config.h"
#include "record/options.h"

/* Warnings of the last load, one a line. */
static char warnings[16384];
static int warning_count;

static void remember(void *arg, const char *sentence)
{
    assert_ptr_equal(arg, warnings);
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", sentence);
    warning_count++;
}

static int load(struct sw__settings *out, const sw_config *config, sw_error_info *info)
{
    warnings[0] = '\0';
    warning_count = 0;
    memset(out, 0xAA, sizeof *out);
    return sw__settings_load(out, config, sizeof *config, remember, warnings, info);
}

static struct sw__settings loaded(const sw_config *config)
{
    struct sw__settings settings;
    sw_error_info info = {0};
    if (load(&settings, config, &info) != SW_OK) {
        fail_msg("%s", info.message);
    }
    return settings;
}

/* Every test begins without any variable of ours. */
static int clean_environment(void **state)
{
    (void)state;
    clearenv();
    return 0;
}

static void defaults_are_those_of_the_table(void **state)
{
    (void)state;
    struct sw__settings s = loaded(NULL);
    assert_true(s.enabled);
    assert_false(s.enabled_given);
    assert_true(s.events);
    assert_true(s.step_usage);
    assert_false(s.quiet);
    assert_int_equal(s.policy, SW_POLICY_AUTO);
    assert_int_equal(s.max_bytes, 256 << 20);
    assert_int_equal(s.keep_first, 50);
    assert_int_equal(s.keep_last, 50);
    assert_int_equal(s.keep_worst, 20);
    assert_int_equal(s.schedule.form, SW_SCHEDULE_ALWAYS);
    assert_string_equal(s.name, "test_record_settings");
    assert_string_equal(s.out, "");
    assert_string_equal(s.hot_dir, "");
    assert_string_equal(s.run_id, "");
    assert_int_equal(warning_count, 0);

    size_t count;
    const sw_option *options = sw_options(&count);
    assert_int_equal(count, 34);
    for (size_t i = 0; i < count; i++) {
        char value[256];
        assert_true(options[i].help[strlen(options[i].help) - 1] == '.');
        assert_int_equal(sw_option_check(options[i].name, options[i].default_value, NULL),
                         0);
        sw__option_show(&s, (int)i, value, sizeof value);
        if (strcmp(options[i].name, "name") != 0) {
            assert_string_equal(value, options[i].default_value);
        }
    }
}

static void the_environment_is_heard(void **state)
{
    (void)state;
    setenv("STEPWATCH_ENABLED", "Yes", 1);
    setenv("STEPWATCH_NAME", "resnet", 1);
    setenv("STEPWATCH_OUT", "/tmp/out", 1);
    setenv("STEPWATCH_POLICY", "ring", 1);
    setenv("STEPWATCH_MAX_MB", "2.5", 1);
    setenv("STEPWATCH_EVENTS", "OFF", 1);
    setenv("STEPWATCH_SCHEDULE", "every=7", 1);
    setenv("STEPWATCH_KEEP_FIRST", "0", 1);
    setenv("STEPWATCH_KEEP_LAST", "7", 1);
    setenv("STEPWATCH_KEEP_WORST", "8", 1);
    setenv("STEPWATCH_STEP_USAGE", "false", 1);
    setenv("STEPWATCH_SAMPLER_HZ", "62.5", 1);
    setenv("STEPWATCH_SUPERVISOR", "77", 1);
    setenv("STEPWATCH_LINES", "a:b", 1);
    setenv("STEPWATCH_HOT_DIR", "/hot", 1);
    setenv("STEPWATCH_CLOCK", "monotonic", 1);
    setenv("STEPWATCH_QUIET", "1", 1);
    setenv("STEPWATCH_RUN_ID", "abc-1", 1);
    setenv("OTHER_STEPWATCH_X", "1", 1);
    struct sw__settings s = loaded(NULL);
    assert_int_equal(warning_count, 0);
    assert_true(s.enabled && s.enabled_given && !s.events && !s.step_usage && s.quiet);
    assert_string_equal(s.name, "resnet");
    assert_string_equal(s.out, "/tmp/out");
    assert_string_equal(s.hot_dir, "/hot");
    assert_string_equal(s.run_id, "abc-1");
    assert_int_equal(s.policy, SW_POLICY_RING);
    assert_int_equal(s.max_bytes, 2621440);
    assert_int_equal(s.schedule.every, 7);
    assert_int_equal(s.keep_first, 0);
    assert_int_equal(s.keep_last, 7);
    assert_int_equal(s.keep_worst, 8);
    char value[64];
    sw__option_show(&s, sw__option_find("clock", 5), value, sizeof value);
    assert_string_equal(value, "monotonic");
    sw__option_show(&s, sw__option_find("max_mb", 6), value, sizeof value);
    assert_string_equal(value, "2.5");
    assert_true(s.sampler_hz == 62.5);
    sw__option_show(&s, sw__option_find("sampler_hz", 10), value, sizeof value);
    assert_string_equal(value, "62.5");
}

static void the_rate_of_the_sampler(void **state)
{
    (void)state;
    static const char *const bad[] = {"-1", "1000.1", "1e3", "nan", "often", "0x10"};
    static const struct {
        const char *variable;
        double field, expected;
    } table[] = {{NULL, 0, 0},   {"0", 0, 0},   {"1000", 0, 1000}, {"200", 100, 100},
                 {"200", -1, 0}, {NULL, -5, 0}, {NULL, 0.5, 0.5}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsetenv("STEPWATCH_SAMPLER_HZ");
        if (table[i].variable) {
            setenv("STEPWATCH_SAMPLER_HZ", table[i].variable, 1);
        }
        sw_config config = {.sampler_hz = table[i].field};
        struct sw__settings s = loaded(&config);
        assert_true(s.sampler_hz == table[i].expected);
        assert_int_equal(warning_count, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("STEPWATCH_SAMPLER_HZ", bad[i], 1);
        assert_true(loaded(NULL).sampler_hz == 0);
        assert_int_equal(warning_count, 1);
        assert_non_null(strstr(warnings, "a number from 0 to 1000"));
    }
}

static void the_struct_wins_over_the_environment(void **state)
{
    (void)state;
    setenv("STEPWATCH_NAME", "env", 1);
    setenv("STEPWATCH_OUT", "env", 1);
    setenv("STEPWATCH_POLICY", "ring", 1);
    setenv("STEPWATCH_MAX_MB", "10", 1);
    setenv("STEPWATCH_QUIET", "1", 1);
    setenv("STEPWATCH_EVENTS", "0", 1);
    setenv("STEPWATCH_KEEP_LAST", "9", 1);
    sw_config config = {
        .name = "code",
        .policy = "stream",
        .schedule = "every=3",
        .hot_dir = "/h",
        .max_mb = -1,
        .quiet = SW_OFF,
        .step_usage = SW_OFF,
        .keep_worst = 3,
    };
    struct sw__settings s = loaded(&config);
    assert_string_equal(s.name, "code");
    assert_string_equal(s.out, "env");
    assert_string_equal(s.hot_dir, "/h");
    assert_int_equal(s.policy, SW_POLICY_STREAM);
    assert_int_equal(s.schedule.form, SW_SCHEDULE_EVERY);
    assert_int_equal(s.max_bytes, 0);
    assert_false(s.quiet);
    assert_false(s.events);
    assert_false(s.step_usage);
    assert_int_equal(s.keep_last, 9);
    assert_int_equal(s.keep_worst, 3);
    assert_int_equal(s.keep_first, 50);
}

static void off_in_the_environment_wins_over_all(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        int field;
        bool enabled, given;
    } table[] = {
        {NULL, SW_DEFAULT, true, false}, {NULL, SW_ON, true, true},
        {NULL, SW_OFF, false, true},     {"1", SW_DEFAULT, true, true},
        {"1", SW_ON, true, true},        {"1", SW_OFF, false, true},
        {"0", SW_DEFAULT, false, true},  {"0", SW_ON, false, true},
        {"False", SW_ON, false, true},   {"", SW_DEFAULT, true, false},
        {"", SW_OFF, false, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsetenv("STEPWATCH_ENABLED");
        if (table[i].variable) {
            setenv("STEPWATCH_ENABLED", table[i].variable, 1);
        }
        sw_config config = {.enabled = table[i].field};
        struct sw__settings s = loaded(&config);
        assert_int_equal(s.enabled, table[i].enabled);
        assert_int_equal(s.enabled_given, table[i].given);
        assert_int_equal(warning_count, 0);
    }
}

static void older_callers_pass_a_smaller_struct(void **state)
{
    (void)state;
    sw_config config = {.name = "old", .out = "there", .policy = "no such policy"};
    struct sw__settings s;
    size_t known = offsetof(sw_config, policy);
    assert_int_equal(sw__settings_load(&s, &config, known, NULL, NULL, NULL), SW_OK);
    assert_string_equal(s.name, "old");
    assert_string_equal(s.out, "there");
    assert_int_equal(s.policy, SW_POLICY_AUTO);
    assert_int_equal(sw__settings_load(&s, &config, 0, NULL, NULL, NULL), SW_OK);
    assert_string_equal(s.out, "");
    struct {
        sw_config config;
        char of_a_newer_header[64];
    } newer = {.config = {.name = "new"}, .of_a_newer_header = "something"};
    assert_int_equal(sw__settings_load(&s, &newer.config, sizeof newer, NULL, NULL, NULL),
                     SW_OK);
    assert_string_equal(s.name, "new");
}

static void unknown_variables_are_named_once(void **state)
{
    (void)state;
    setenv("STEPWATCH_MAX_BM", "secret-value", 1);
    setenv("STEPWATCH_XYZZY_PLUGH", "1", 1);
    setenv("STEPWATCH_enabled", "0", 1);
    setenv("STEPWATCH_BAD\x1b[31m", "0", 1);
    struct sw__settings s = loaded(NULL);
    assert_true(s.enabled);
    assert_int_equal(warning_count, 4);
    assert_non_null(strstr(
        warnings,
        "STEPWATCH_MAX_BM is not a known setting; did you mean STEPWATCH_MAX_MB?\n"));
    assert_non_null(
        strstr(warnings,
               "STEPWATCH_XYZZY_PLUGH is not a known setting; did you mean STEPWATCH_"));
    assert_non_null(strstr(warnings, "did you mean STEPWATCH_ENABLED?"));
    assert_null(strstr(warnings, "secret-value"));
    assert_null(strchr(warnings, '\x1b'));
    /* Nobody has to listen. */
    assert_int_equal(sw__settings_load(&s, NULL, 0, NULL, NULL, NULL), SW_OK);
}

static void bad_values_in_the_environment_are_ignored(void **state)
{
    (void)state;
    setenv("STEPWATCH_ENABLED", "perhaps", 1);
    setenv("STEPWATCH_POLICY", "Ring", 1);
    setenv("STEPWATCH_MAX_MB", "1.5", 1);
    setenv("STEPWATCH_SCHEDULE", "aktiv=3", 1);
    setenv("STEPWATCH_KEEP_LAST", "-4", 1);
    setenv("STEPWATCH_CLOCK", "sundial", 1);
    struct sw__settings s = loaded(NULL);
    assert_int_equal(warning_count, 6);
    assert_true(s.enabled);
    assert_false(s.enabled_given);
    assert_int_equal(s.policy, SW_POLICY_AUTO);
    assert_int_equal(s.max_bytes, 256 << 20);
    assert_int_equal(s.schedule.form, SW_SCHEDULE_ALWAYS);
    assert_int_equal(s.keep_last, 50);
    assert_non_null(strstr(warnings,
                           "STEPWATCH_ENABLED is ignored: enabled is \"perhaps\" but "
                           "should be 1/0, true/false, yes/no or on/off\n"));
    assert_non_null(
        strstr(warnings, "STEPWATCH_SCHEDULE is ignored: schedule: \"aktiv\""));
    char value[64];
    sw__option_show(&s, sw__option_find("clock", 5), value, sizeof value);
    assert_string_equal(value, "auto");
}

static void bad_values_in_the_struct_are_errors(void **state)
{
    (void)state;
    char path[2000];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    const sw_config bad[] = {
        {.policy = "best"},   {.schedule = "active=0"}, {.max_mb = 1},
        {.max_mb = 1e30},     {.max_mb = NAN},          {.max_mb = INFINITY},
        {.enabled = 3},       {.events = -1},           {.step_usage = 7},
        {.quiet = 4},         {.keep_first = 1000001},  {.keep_last = 4294967295u},
        {.out = path},        {.hot_dir = path},        {.keep_worst = 2000000},
        {.sampler_hz = 1001}, {.sampler_hz = NAN},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct sw__settings s;
        sw_error_info info = {0};
        assert_int_equal(load(&s, &bad[i], &info), SW_EINVAL);
        assert_true(info.message[0] != '\0');
        assert_false(s.enabled);
        assert_int_equal(load(&s, &bad[i], NULL), SW_EINVAL);
    }
}

static void a_cycle_longer_than_its_period_is_said(void **state)
{
    (void)state;
    sw_config config = {.schedule = "wait=3,active=3,every=4"};
    struct sw__settings s = loaded(&config);
    assert_int_equal(warning_count, 1);
    assert_non_null(strstr(warnings, "longer than its period"));
    assert_int_equal(s.schedule.every, 6);
}

static void names_are_made_fit_for_a_folder(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"resnet50-v1.5_a", "resnet50-v1.5_a"},
        {"a/b\\c d\te:f*g?", "a_b_c_d_e_f_g_"},
        {"..", "_."},
        {"-rf", "_rf"},
        {".hidden", "_hidden"},
        {"größe", "größe"},
        {"$(x)`y`;z|&<>'\"", "__x__y__z______"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        sw_config config = {.name = table[i][0]};
        struct sw__settings s = loaded(&config);
        assert_string_equal(s.name, table[i][1]);
    }
    /* A long one is cut between characters. */
    char longest[300] = "x";
    for (int i = 0; i < 100; i++) {
        memcpy(longest + strlen(longest), "ö", sizeof "ö");
    }
    sw_config config = {.name = longest};
    struct sw__settings s = loaded(&config);
    assert_int_equal(strlen(s.name), 127);
    assert_memory_equal(s.name, longest, 127);
    memmove(longest, longest + 1, sizeof longest - 1);
    s = loaded(&config);
    assert_int_equal(strlen(s.name), 126);
}

static void values_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name, *good, *bad; /* separated by blanks */
    } table[] = {
        {"enabled", "1 0 true FALSE Yes no ON oFf", "2 maybe trueish onn 01 -"},
        {"max_mb", "2 2.0 2.25 256 1000000 -1 -0.5 none NONE +3",
         "0 1 1.9 abc 1e3 1e 0x10 nan inf 5MB 1,5 -- . + 1.2.3 1099511627777"},
        {"keep_first", "0 1 1000000", "-1 1000001 99999999999999999999 1.5 x +1"},
        {"monitor_interval_s", "0 0.01 .5 1 3600 +2", "0.009 3601 -1 1e2 nan s 1,5"},
        {"monitor_pss_s", "0 10", "0.001 -5 often"},
        {"io", "on 0 yes", "perhaps 2"},
        {"policy", "auto stream ring drop", "AUTO best"},
        {"clock", "auto tsc monotonic", "TSC cntvct"},
        {"schedule", "always every=3 active=1,every=5", "never active"},
        {"out", "runs/x /tmp", ""},
        {"name", "x", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (int good = 0; good < 2; good++) {
            char words[256];
            char *rest = NULL;
            snprintf(words, sizeof words, "%s", good ? table[i].good : table[i].bad);
            for (char *word = strtok_r(words, " ", &rest); word;
                 word = strtok_r(NULL, " ", &rest)) {
                sw_error_info info = {0};
                bool is_good = sw_option_check(table[i].name, word, &info) == SW_OK;
                if (is_good != (good != 0)) {
                    fail_msg("%s=%s: %s", table[i].name, word, info.message);
                }
                if (!is_good) {
                    assert_int_equal(info.code, SW_EINVAL);
                    assert_non_null(strstr(info.message, table[i].name));
                }
            }
        }
    }
    sw_error_info info;
    assert_int_equal(sw_option_check("enabled", "", &info), SW_EINVAL);
    assert_int_equal(sw_option_check("max_mb", NULL, &info), SW_EINVAL);
    assert_int_equal(sw_option_check("out", "", &info), SW_OK);
    assert_int_equal(sw_option_check("max_md", "3", &info), SW_ENOTFOUND);
    assert_non_null(strstr(info.message, "\"max_md\"; did you mean max_mb?"));
    assert_int_equal(sw_option_check(NULL, "3", &info), SW_ENOTFOUND);
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    /* Present on some machines only; the C locale passes trivially. */
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
        setlocale(LC_ALL, "tr_TR.UTF-8");
    }
    setenv("STEPWATCH_MAX_MB", "2.75", 1);
    setenv("STEPWATCH_KEEP_FIRST", "3", 1);
    struct sw__settings s = loaded(NULL);
    char value[32];
    sw__option_show(&s, sw__option_find("max_mb", 6), value, sizeof value);
    assert_string_equal(value, "2.75");
    assert_int_equal(s.keep_first, 3);
    setlocale(LC_ALL, "C");
}

static void misspelt_options_find_the_nearest(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"enable", "enabled"},      {"max-mb", "max_mb"},
        {"maxmb", "max_mb"},        {"MAX_MB", "max_mb"},
        {"polcy", "policy"},        {"naem", "name"},
        {"schedle", "schedule"},    {"keep_frist", "keep_first"},
        {"hotdir", "hot_dir"},      {"quite", "quiet"},
        {"event", "events"},        {"keep_wrost", "keep_worst"},
        {"step_use", "step_usage"}, {"out", "out"},
        {"output", "out"},          {"monitor", "monitor_interval_s"},
        {"sampler", "sampler_hz"},  {"schedules", "schedule"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *nearest = sw_option_nearest(table[i][0]);
        if (!nearest || strcmp(nearest, table[i][1]) != 0) {
            fail_msg("%s: %s", table[i][0], nearest ? nearest : "nothing");
        }
    }
    /* What is nothing like them is told the least unlike. */
    assert_non_null(sw_option_nearest("learning_rate"));
    assert_non_null(sw_option_nearest("zzz"));
    assert_null(sw_option_nearest(""));
    assert_null(sw_option_nearest(NULL));
    char longest[200];
    memset(longest, 'm', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_null(sw_option_nearest(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_those_of_the_table, clean_environment),
        cmocka_unit_test_setup(the_rate_of_the_sampler, clean_environment),
        cmocka_unit_test_setup(the_environment_is_heard, clean_environment),
        cmocka_unit_test_setup(the_struct_wins_over_the_environment, clean_environment),
        cmocka_unit_test_setup(off_in_the_environment_wins_over_all, clean_environment),
        cmocka_unit_test_setup(older_callers_pass_a_smaller_struct, clean_environment),
        cmocka_unit_test_setup(unknown_variables_are_named_once, clean_environment),
        cmocka_unit_test_setup(bad_values_in_the_environment_are_ignored,
                               clean_environment),
        cmocka_unit_test_setup(bad_values_in_the_struct_are_errors, clean_environment),
        cmocka_unit_test_setup(a_cycle_longer_than_its_period_is_said, clean_environment),
        cmocka_unit_test_setup(names_are_made_fit_for_a_folder, clean_environment),
        cmocka_unit_test_setup(values_are_checked, clean_environment),
        cmocka_unit_test_setup(the_locale_changes_nothing, clean_environment),
        cmocka_unit_test_setup(misspelt_options_find_the_nearest, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

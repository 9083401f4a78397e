/* Command line, environment and file: which of them counts, and how a file is handed to children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/config.h"
#include "record/given.h"
#include "record/options.h"

static char folder[64];

/* Every test begins in an empty folder, without any variable of ours. */
static int clean(void **state)
{
    (void)state;
    clearenv();
    strcpy(folder, "/tmp/stepwatch-given-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

static int leave(void **state)
{
    (void)state;
    static const char *const names[] = {"stepwatch.toml", "stepwatch.yaml", "other.toml"};
    for (size_t i = 0; i < 3; i++) {
        unlink(names[i]);
    }
    assert_int_equal(chdir("/"), 0);
    return rmdir(folder);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static sw_given *given_of(const char *file, const char *const *set)
{
    sw_given *given;
    sw_error_info info = {0};
    if (sw_given_read(&given, file, set, &info) != SW_OK) {
        fail_msg("%s", info.message);
    }
    return given;
}

static void expect(const sw_given *given, const char *name, const char *text,
                   enum sw_source source, const char *where)
{
    sw_given_value value;
    assert_int_equal(sw_given_get(given, name, &value), SW_OK);
    assert_string_equal(value.text, text);
    assert_int_equal(value.source, source);
    assert_string_equal(value.where, where);
}

static void a_later_source_wins(void **state)
{
    (void)state;
    static const char *const set[] = {"keep_last=31", "name=a=b\nc", "out=", NULL};
    write_file("stepwatch.toml",
               "max_mb = 11\nkeep_first = 12\nkeep_last = 13\nout = 'x'\n");
    setenv("STEPWATCH_KEEP_FIRST", "22", 1);
    setenv("STEPWATCH_KEEP_LAST", "23", 1);
    setenv("STEPWATCH_KEEP_WORST", "", 1);
    sw_given *given = given_of(NULL, set);
    assert_string_equal(sw_given_file(given), "stepwatch.toml");
    assert_null(sw_given_problem(given, 0));
    expect(given, "max_mb", "11", SW_SOURCE_FILE, "stepwatch.toml:1");
    expect(given, "keep_first", "22", SW_SOURCE_ENVIRONMENT, "STEPWATCH_KEEP_FIRST");
    expect(given, "keep_last", "31", SW_SOURCE_COMMAND, "--set");
    expect(given, "keep_worst", "20", SW_SOURCE_DEFAULT, "");
    expect(given, "name", "a=b\nc", SW_SOURCE_COMMAND, "--set");
    expect(given, "out", "", SW_SOURCE_COMMAND, "--set");
    sw_given_value value;
    assert_int_equal(sw_given_get(given, "max_bm", &value), SW_ENOTFOUND);
    assert_int_equal(sw_given_get(given, NULL, &value), SW_ENOTFOUND);
    sw_given_free(given);
    sw_given_free(NULL);
}

static void off_cannot_be_overruled(void **state)
{
    (void)state;
    static const char *const on[] = {"enabled=on", NULL};
    setenv("STEPWATCH_ENABLED", "no", 1);
    sw_given *given = given_of(NULL, on);
    assert_true(sw__given_off(given));
    expect(given, "enabled", "no", SW_SOURCE_ENVIRONMENT, "STEPWATCH_ENABLED");
    sw_given_free(given);
    setenv("STEPWATCH_ENABLED", "1", 1);
    given = given_of(NULL, on);
    assert_false(sw__given_off(given));
    sw_given_free(given);
    /* A file that says off is no such word. */
    unsetenv("STEPWATCH_ENABLED");
    write_file("stepwatch.toml", "enabled = false\n");
    given = given_of(NULL, NULL);
    assert_false(sw__given_off(given));
    sw_given_free(given);
    struct sw__settings settings;
    sw_config config = {.enabled = SW_DEFAULT};
    assert_int_equal(
        sw__settings_load(&settings, &config, sizeof config, NULL, NULL, NULL), SW_OK);
    assert_false(settings.enabled);
    config.enabled = SW_ON;
    assert_int_equal(
        sw__settings_load(&settings, &config, sizeof config, NULL, NULL, NULL), SW_OK);
    assert_true(settings.enabled);
}

static void mistakes_are_problems_or_errors(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"max_mb=1", NULL}, {"max_bm=3", NULL}, {"max_mb", NULL}, {"", NULL}};
    sw_given *given;
    for (size_t i = 0; i < 4; i++) {
        sw_error_info info = {0};
        assert_true(sw_given_read(&given, NULL, bad[i], &info) < 0);
        assert_null(given);
        assert_true(info.message[0] != '\0');
    }
    assert_true(sw_given_read(&given, "missing.toml", NULL, NULL) < 0);
    write_file("stepwatch.toml", "max_mb = 'lots'\nwrong = 1\npolicy = 'ring'\n");
    setenv("STEPWATCH_MAX_MB", "many", 1);
    setenv("STEPWATCH_CONFIG", "missing.toml", 1);
    given = given_of("stepwatch.toml", NULL);
    sw_given_value value;
    sw_given_get(given, "max_mb", &value);
    assert_string_equal(value.text, "256");
    assert_non_null(strstr(value.problem, "STEPWATCH_MAX_MB is ignored"));
    assert_non_null(strstr(sw_given_problem(given, 0), "stepwatch.toml:2"));
    assert_non_null(strstr(sw_given_problem(given, 1), "stepwatch.toml:1"));
    assert_non_null(sw_given_problem(given, 2));
    assert_null(sw_given_problem(given, 3));
    expect(given, "policy", "ring", SW_SOURCE_FILE, "stepwatch.toml:3");
    sw_given_free(given);
    given = given_of(NULL, NULL);
    assert_non_null(strstr(sw_given_problem(given, 0), "STEPWATCH_CONFIG is ignored"));
    sw_given_free(given);
}

static void what_a_file_said_is_handed_over(void **state)
{
    (void)state;
    char text[512];
    write_file("stepwatch.yaml", "profiling:\n"
                                 "  name: \"a\\nb\\\\n c\"\n"
                                 "  lines: [x:y, z:w]\n"
                                 "  schedule: {wait: 1, active: 2}\n"
                                 "  wrong: 1\n");
    sw_given *given = given_of(NULL, NULL);
    size_t length = sw_given_hand_over(given, NULL, 0);
    assert_int_equal(sw_given_hand_over(given, text, sizeof text), length);
    assert_int_equal(strlen(text), length);
    char cut[8];
    assert_int_equal(sw_given_hand_over(given, cut, sizeof cut), length);
    assert_memory_equal(cut, "stepwat", 8);
    sw_given_free(given);

    /* In a child: whatever files there are. */
    write_file("stepwatch.toml", "max_mb = 3\nwrong = 1\n");
    setenv("STEPWATCH_FROM_FILE", text, 1);
    setenv("STEPWATCH_POLCY", "x", 1);
    given = sw__given_gather(NULL, NULL);
    assert_string_equal(sw_given_file(given), "stepwatch.yaml");
    expect(given, "name", "a\nb\\n c", SW_SOURCE_FILE, "stepwatch.yaml:2");
    expect(given, "lines", "x:y,z:w", SW_SOURCE_FILE, "stepwatch.yaml:3");
    expect(given, "schedule", "wait=1,active=2", SW_SOURCE_FILE, "stepwatch.yaml:4");
    expect(given, "max_mb", "256", SW_SOURCE_DEFAULT, "");
    assert_null(sw_given_problem(given, 0));
    sw_given_free(given);
    /* What the child names itself nobody has read before. */
    given = sw__given_gather("stepwatch.toml", NULL);
    expect(given, "max_mb", "3", SW_SOURCE_FILE, "stepwatch.toml:1");
    assert_non_null(strstr(sw_given_problem(given, 0), "stepwatch.toml:2"));
    assert_null(sw_given_problem(given, 1));
    sw_given_free(given);

    static const char *const odd[] = {"none",
                                      "\n",
                                      "\n\n\n",
                                      "x",
                                      "x\n",
                                      "x\n1",
                                      "x\n1 max_mb",
                                      "x\n1 max_mb lots",
                                      "x\n99999999999999999999 max_mb 4",
                                      "x\n1 wrong 3",
                                      "\\",
                                      "x\n1 name \\"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        setenv("STEPWATCH_FROM_FILE", odd[i], 1);
        given = sw__given_gather(NULL, NULL);
        assert_non_null(given);
        assert_null(sw_given_problem(given, 0));
        sw_given_free(given);
    }
    setenv("STEPWATCH_FROM_FILE", "none", 1);
    given = given_of(NULL, NULL);
    assert_string_equal(sw_given_file(given), "");
    assert_int_equal(sw_given_hand_over(given, text, sizeof text), 4);
    assert_string_equal(text, "none");
    sw_given_free(given);
}

static void presets_take_the_place_of_a_file(void **state)
{
    (void)state;
    static const char *const presets[] = {"max_mb=12",     "schedule.wait=1",
                                          "keep_last=3",   "schedule.active=2",
                                          "trainer.x=1",   "trainer.y=2",
                                          "keep_first=-1", "policy",
                                          "name=",         NULL};
    static const char *const set[] = {"max_mb=13", "keep_worst=0", NULL};
    write_file("stepwatch.toml", "quiet = true\n");
    setenv("STEPWATCH_KEEP_LAST", "4", 1);
    sw_given *given = sw__given_gather(NULL, presets);
    expect(given, "max_mb", "12", SW_SOURCE_FILE, "config");
    expect(given, "schedule", "wait=1,active=2", SW_SOURCE_FILE, "config");
    expect(given, "keep_last", "4", SW_SOURCE_ENVIRONMENT, "STEPWATCH_KEEP_LAST");
    expect(given, "quiet", "off", SW_SOURCE_DEFAULT, "");
    expect(given, "policy", "auto", SW_SOURCE_DEFAULT, "");
    assert_string_equal(sw_given_problem(given, 0),
                        "config: there is no option \"trainer\"; did you mean loader?");
    assert_non_null(strstr(sw_given_problem(given, 1), "keep_first is \"-1\""));
    assert_null(sw_given_problem(given, 2));
    sw_given_free(given);
    struct sw__settings s;
    sw_config config = {.presets = presets, .set = set, .max_mb = 14};
    assert_int_equal(sw__settings_load(&s, &config, sizeof config, NULL, NULL, NULL),
                     SW_OK);
    assert_int_equal(s.max_bytes, 13 << 20);
    assert_int_equal(s.keep_worst, 0);
    assert_int_equal(s.keep_last, 4);
    static const char *const wrong[][2] = {
        {"max_bm=3", NULL}, {"max_mb=1", NULL}, {"x", NULL}};
    for (size_t i = 0; i < 3; i++) {
        sw_error_info info = {0};
        config = (sw_config){.set = wrong[i]};
        assert_int_equal(sw__settings_load(&s, &config, sizeof config, NULL, NULL, &info),
                         SW_EINVAL);
        assert_true(info.message[0] != '\0');
    }
}

static void the_struct_names_a_file(void **state)
{
    (void)state;
    struct sw__settings s;
    write_file("stepwatch.toml", "max_mb = 3\n");
    write_file("other.toml", "max_mb = 4\nruns_dir = ''\n");
    sw_config config = {.config = "other.toml"};
    setenv("STEPWATCH_CONFIG", "stepwatch.toml", 1);
    assert_int_equal(sw__settings_load(&s, &config, sizeof config, NULL, NULL, NULL),
                     SW_OK);
    assert_int_equal(s.max_bytes, 4 << 20);
    assert_string_equal(s.runs_dir, "runs/profiling");
    config.config = "none";
    config.runs_dir = "mine";
    assert_int_equal(sw__settings_load(&s, &config, sizeof config, NULL, NULL, NULL),
                     SW_OK);
    assert_int_equal(s.max_bytes, 256 << 20);
    assert_string_equal(s.runs_dir, "mine");
    config.config = "";
    assert_int_equal(sw__settings_load(&s, &config, sizeof config, NULL, NULL, NULL),
                     SW_OK);
    assert_int_equal(s.max_bytes, 3 << 20);
}

static void a_folder_that_is_gone(void **state)
{
    (void)state;
    char gone[80];
    snprintf(gone, sizeof gone, "%s/gone", folder);
    assert_int_equal(mkdir(gone, 0700), 0);
    assert_int_equal(chdir(gone), 0);
    assert_int_equal(rmdir(gone), 0);
    sw_given *given = given_of(NULL, NULL);
    assert_null(sw_given_problem(given, 0));
    sw_given_free(given);
    assert_int_equal(chdir(folder), 0);
}

/* Where the runs of a place lie. */
static void places(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        const char *place;
    } cases[] = {{NULL, "runs/profiling"},  {"runs_dir=elsewhere/", "elsewhere/"},
                 {"out=run", "."},          {"out=a/b/run", "a/b"},
                 {"out=a/b/run///", "a/b"}, {"out=/run", "/"},
                 {"out=/a//run", "/a"},     {"out=../run", ".."}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const set[] = {cases[i].set, NULL};
        char place[64];
        sw_given *given = given_of("none", set);
        sw_given_place(given, place, sizeof place);
        assert_string_equal(place, cases[i].place);
        sw_given_free(given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_later_source_wins, clean, leave),
        cmocka_unit_test_setup_teardown(places, clean, leave),
        cmocka_unit_test_setup_teardown(off_cannot_be_overruled, clean, leave),
        cmocka_unit_test_setup_teardown(mistakes_are_problems_or_errors, clean, leave),
        cmocka_unit_test_setup_teardown(what_a_file_said_is_handed_over, clean, leave),
        cmocka_unit_test_setup_teardown(presets_take_the_place_of_a_file, clean, leave),
        cmocka_unit_test_setup_teardown(the_struct_names_a_file, clean, leave),
        cmocka_unit_test_setup_teardown(a_folder_that_is_gone, clean, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

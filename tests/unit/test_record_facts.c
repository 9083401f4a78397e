/* Facts of a trace: what is there, and that nothing secret is.
 *
 * The command line of a process cannot be changed from within, so this program starts itself again
 * with the arguments in question; FACTS_CHILD says what it then has to print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stepwatch/version.h>

#include "record/config.h"

struct facts {
    size_t count;
    char keys[160][64];
    char values[160][8192];
};
static struct facts facts;

static void collect(void *arg, const char *key, const char *value)
{
    struct facts *to = arg;
    assert_true(to->count < 160);
    snprintf(to->keys[to->count], sizeof to->keys[0], "%s", key);
    snprintf(to->values[to->count], sizeof to->values[0], "%s", value);
    to->count++;
}

static const char *value_of(const char *key)
{
    for (size_t i = 0; i < facts.count; i++) {
        if (strcmp(facts.keys[i], key) == 0) {
            return facts.values[i];
        }
    }
    return NULL;
}

static void collect_all(const sw_config *config)
{
    struct sw__settings settings;
    facts.count = 0;
    assert_int_equal(
        sw__settings_load(&settings, config, sizeof *config, NULL, NULL, NULL), SW_OK);
    sw__facts_collect(&settings, false, collect, &facts);
}

static char output[100000];

/* Runs `program` with the arguments and returns what it printed. */
static const char *child(const char *program, const char *what, char *const arguments[])
{
    if (getenv("TEST_EMULATED")) {
        skip(); /* the kernel cannot start such a program */
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("FACTS_CHILD", what, 1);
        execv(program, arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t part;
    while ((part = read(ends[0], output + used, sizeof output - 1 - used)) > 0) {
        used += (size_t)part;
    }
    output[used] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return output;
}

#define COMMAND(...)                                                                     \
    child("/proc/self/exe", "command", (char *[]){"train", __VA_ARGS__, NULL})

static void the_usual_facts_are_there(void **state)
{
    (void)state;
    setenv("OMP_NUM_THREADS", "3", 1);
    setenv("RANK", "1", 1);
    setenv("XLA_FLAGS", "--a=b --token=abc", 1);
    setenv("LD_PRELOAD_TOKEN", "hush", 1);
    setenv("WANDB_API_KEY", "hush", 1);
    setenv("MASTER_ADDR", "hush", 1);
    sw_config config = {.name = "n", .schedule = "every=5", .max_mb = 2.5};
    collect_all(&config);
    static const char *const keys[] = {
        "pid",          "ppid",           "command",
        "cwd",          "executable",     "host",
        "kernel",       "cpu_model",      "cpus_online",
        "cpus_usable",  "clock",          "memory_bytes",
        "clock_why",    "started_utc",    "stepwatch_version",
        "uid",          "config.policy",  "config.events",
        "config.name",  "format_version", "config.quiet",
        "config.clock",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!value_of(keys[i])) {
            fail_msg("%s is missing", keys[i]);
        }
    }
    char text[64];
    snprintf(text, sizeof text, "%d", (int)getpid());
    assert_string_equal(value_of("pid"), text);
    assert_string_equal(value_of("stepwatch_version"), SW_VERSION_STRING);
    assert_string_equal(value_of("config.name"), "n");
    assert_string_equal(value_of("config.schedule"), "every=5");
    assert_string_equal(value_of("config.max_mb"), "2.5");
    assert_string_equal(value_of("config.events"), "on");
    assert_null(value_of("config.out"));
    assert_string_equal(value_of("env.OMP_NUM_THREADS"), "3");
    assert_string_equal(value_of("env.RANK"), "1");
    assert_string_equal(value_of("env.XLA_FLAGS"), "--a=b --token=***");
    /* 2031-12-24T01:02:03.456Z */
    const char *form = "dddd-dd-ddTdd:dd:dd.dddZ";
    const char *started = value_of("started_utc");
    assert_int_equal(strlen(started), strlen(form));
    for (size_t i = 0; form[i]; i++) {
        bool digit = started[i] >= '0' && started[i] <= '9';
        assert_true(form[i] == 'd' ? digit : started[i] == form[i]);
    }
    assert_true(strtod(value_of("cpus_usable"), NULL) > 0);
    assert_int_equal(value_of("command")[0], '[');
    for (size_t i = 0; i < facts.count; i++) {
        assert_null(strstr(facts.values[i], "hush"));
        assert_true(facts.values[i][0] != '\0');
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(facts.keys[i], facts.keys[j]);
        }
    }
}

static void secrets_of_the_command_line_are_hidden(void **state)
{
    (void)state;
    static const char *const table[][3] = {
        /* argument, the one after it, both as they are shown */
        {"--password", "hush", "\"--password\",\"***\""},
        {"-password", "hush", "\"-password\",\"***\""},
        {"--api-key=hush", "x", "\"--api-key=***\",\"x\""},
        {"--apiKey", "hush", "\"--apiKey\",\"***\""},
        {"--api_key", "--verbose", "\"--api_key\",\"--verbose\""},
        {"token=hush,hush", "x", "\"token=***\",\"x\""},
        {"--hf_token", "hush", "\"--hf_token\",\"***\""},
        {"+logger.wandb.api_key=hush", "x", "\"+logger.wandb.api_key=***\",\"x\""},
        {"AWS_SECRET_ACCESS_KEY=hush", "x", "\"AWS_SECRET_ACCESS_KEY=***\",\"x\""},
        {"AKIAIOSFODNN7EXA3P1E", "x", "\"***\",\"x\""},
        {"--id", "AKIAIOSFODNN7EXA3P1E", "\"--id\",\"***\""},
        {"ghp_a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8", "x", "\"***\",\"x\""},
        {"--key", "a1b2c3d4e5f6a7b8c9", "\"--key\",\"***\""},
        {"key=a1b2c3d4e5f6a7b8c9", "x", "\"key=***\",\"x\""},
        {"https://me:hush@host/x", "x", "\"https://***@host/x\",\"x\""},
        {"--db=postgres://me:hu@sh@host/x", "x", "\"--db=postgres://***@host/x\",\"x\""},
        {"https://h/?a=1&token=hush&b=2", "x", "\"https://h/?a=1&token=***&b=2\",\"x\""},
        {"-H", "Authorization: Bearer hush", "\"-H\",\"Authorization: Bearer ***\""},
        {"{\"secret\": \"hush\", \"b\": 1}", "x",
         "\"{\\\"secret\\\": \\\"***\\\", \\\"b\\\": 1}\",\"x\""},
        {"-c", "password = 'hush hush'; x = 1", "\"-c\",\"password = '***'; x = 1\""},
        {"-c", "mysql --password hush -x", "\"-c\",\"mysql --password *** -x\""},
        {"--db-pass", "hush", "\"--db-pass\",\"***\""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char expected[512];
        snprintf(expected, sizeof expected, "[\"train\",%s]", table[i][2]);
        assert_string_equal(COMMAND((char *)table[i][0], (char *)table[i][1]), expected);
        assert_null(strstr(output, "hush"));
    }
}

static void other_arguments_are_left_alone(void **state)
{
    (void)state;
    static char *const arguments[] = {
        "--tokenizer",
        "gpt2",
        "--max-tokens=512",
        "--pad_token",
        "<pad>",
        "--epochs",
        "3",
        "model.key=value",
        "--sort-key",
        "name",
        "--forward-pass",
        "fused",
        "git@host:x/y.git",
        "http://h:80/x@y",
        "ssh://git@host/x",
        "--monkey=banana",
        "lr=1e-3",
        "--commit",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "",
    };
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "[\"train\",\"%s\"]", arguments[i]);
        assert_string_equal(COMMAND(arguments[i]), expected);
    }
    assert_string_equal(
        COMMAND("--tokenizer", "gpt2", "--pad-token", "x", "--key", "val"),
        "[\"train\",\"--tokenizer\",\"gpt2\",\"--pad-token\",\"x\",\"--key\","
        "\"val\"]");
}

static void any_command_line_is_json(void **state)
{
    (void)state;
    assert_string_equal(
        COMMAND("a\"b\\c\n\x01", "\xff\xfe", "größe"),
        "[\"train\",\"a\\\"b\\\\c\\n\\u0001\",\"\xEF\xBF\xBD\xEF\xBF\xBD\","
        "\"größe\"]");

    /* Very long arguments, then very many. */
    static char wide[50000];
    memset(wide, 'w', sizeof wide - 1);
    COMMAND(wide, "end");
    assert_true(strlen(output) < 5000);
    assert_non_null(strstr(output, "w\xE2\x80\xA6\",\"end\"]"));

    static char *many[5002] = {"train"};
    for (size_t i = 1; i < 5001; i++) {
        many[i] = "argument-of-twenty-b";
    }
    child("/proc/self/exe", "command", many);
    assert_true(strlen(output) < 17000);
    assert_non_null(strstr(output, ",\"\xE2\x80\xA6\"]"));
}

static void the_program_is_named_after_what_runs(void **state)
{
    (void)state;
    assert_string_equal(child("/proc/self/exe", "name", (char *[]){"zzz", "x.py", NULL}),
                        "test_record_facts");

    /* A copy of this program that looks like an interpreter. */
    char folder[] = "/tmp/stepwatch-facts-XXXXXX";
    char python[64];
    assert_non_null(mkdtemp(folder));
    snprintf(python, sizeof python, "%s/python3.12", folder);
    int from = open("/proc/self/exe", O_RDONLY);
    int to = open(python, O_WRONLY | O_CREAT | O_EXCL, 0700);
    struct stat about;
    assert_int_equal(fstat(from, &about), 0);
    for (off_t done = 0; done < about.st_size;) {
        assert_true(sendfile(to, from, &done, (size_t)(about.st_size - done)) > 0);
    }
    close(from);
    close(to);
    static char *const table[][8] = {
        /* the name, then the arguments */
        {"train.py", "python", "/home/me/train.py", "--epochs", "3"},
        {"train.py", "python", "-u", "train.py"},
        {"train.py", "python", "-X", "dev", "-W", "error", "train.py"},
        {"train.py", "python", "-Xdev", "-Werror", "-OO", "./train.py"},
        {"train.py", "python", "--check-hash-based-pycs", "always", "train.py"},
        {"pkg.train", "python", "-m", "pkg.train", "x.py"},
        {"pkg.train", "python", "-um", "pkg.train"},
        {"pkg.train", "python", "-mpkg.train"},
        {"folder", "python", "some/folder/"},
        {"python3.12", "python", "-c", "import x", "x.py"},
        {"python3.12", "python", "-", "x.py"},
        {"python3.12", "python"},
        {"python3.12", "python", "-m"},
        {"python3.12", "python", "-W"},
        {"python3.12", "python", "--check-hash-based-pycs"},
        {"python3.12", "python", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_string_equal(child(python, "name", table[i] + 1), table[i][0]);
    }
    unlink(python);
    rmdir(folder);
}

static void print_command(void *arg, const char *key, const char *value)
{
    (void)arg;
    if (strcmp(key, "command") == 0) {
        fputs(value, stdout);
    }
}

static int as_child(const char *what)
{
    if (strcmp(what, "name") == 0) {
        char name[128];
        sw__program_name(name, sizeof name);
        fputs(name, stdout);
    } else {
        const struct sw__settings settings = {0};
        sw__facts_collect(&settings, false, print_command, NULL);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_facts_are_there),
        cmocka_unit_test(secrets_of_the_command_line_are_hidden),
        cmocka_unit_test(other_arguments_are_left_alone),
        cmocka_unit_test(any_command_line_is_json),
        cmocka_unit_test(the_program_is_named_after_what_runs),
    };
    const char *what = getenv("FACTS_CHILD");
    return what ? as_child(what) : cmocka_run_group_tests(tests, NULL, NULL);
}

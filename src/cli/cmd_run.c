/* stepwatch run: a program under the recorder. The program's streams, signals and exit code stay its
 * own; everything of ours goes to stderr after its end, and nothing of ours can change its code. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/record.h>
#include <stepwatch/redact.h>
#include <stepwatch/version.h>

#include "cli/cli.h"
#include "cli/option_parser.h"
#include "cli/run_dir.h"
#include "cli/supervise.h"

enum { OUT, NAME, SET, NO_REPORT, MODULE, OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [OUT] = {"out", 'o', "DIR", "run directory; else runs/profiling/<UTC time>-<name>"},
    [NAME] = {"name", 0, "NAME", "name of the run; else that of the program"},
    [SET] = {"set", 0, "KEY=VALUE", "an option of the recorder; may be repeated"},
    [NO_REPORT] = {"no-report", 0, NULL, "leave the native files only"},
    [MODULE] = {"module", 'm', "MODULE", "(not in this version)"},
};

/* The contract has them; this version has not. */
static const char *const later[] = {"config", "functions", "lines",
                                    "memory", "io",        "operators"};

static const struct command command = {
    .name = "run",
    .usage = "[options] -- PROGRAM [ARGS ...]",
    .purpose =
        "Runs PROGRAM, which is linked with the library, under the recorder, and "
        "reports\n"
        "to stderr. Exits with the program's own code, 128 + n when signal n killed it.",
    .options = options,
    .option_count = MODULE, /* the rest is understood, but not shown */
    .epilogue = "'stepwatch doctor' lists the options that --set takes.",
};
/* As above, with what is understood only to be refused in words. */
static const struct command full_command = {
    .name = "run", .options = options, .option_count = OPTIONS};

#define SETTINGS_MOST 64
#define SETTING_NAME 64

struct request {
    const char *out, *name;
    bool report, disabled;
    char key[SETTINGS_MOST][SETTING_NAME];
    const char *value[SETTINGS_MOST];
    size_t settings;
    char **program;
};

/* --- arguments --- */

static bool is_off(const char *value)
{
    static const char *const words[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_setting(struct request *request, const char *text)
{
    const char *equals = strchr(text, '=');
    char key[SETTING_NAME];
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof key) {
        cli_complain("run: --set takes KEY=VALUE, not '%.100s'", text);
        return false;
    }
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    sw_error_info info = {0};
    int error = sw_option_check(key, equals + 1, &info);
    if (error == SW_ENOTFOUND) {
        const char *near = sw_option_nearest(key);
        cli_complain(
            near ? "run: unknown option '%s' in --set; did you mean '%s'?"
                 : "run: unknown option '%s' in --set; 'stepwatch doctor' lists them.",
            key, near);
        return false;
    }
    if (error) {
        cli_complain("run: --set %.60s: %s", key,
                     info.message[0] ? info.message : sw_error_text(error));
        return false;
    }
    if (strcmp(key, "out") == 0) {
        request->out = equals + 1;
    } else if (strcmp(key, "name") == 0) {
        request->name = equals + 1;
    } else if (strcmp(key, "enabled") == 0) {
        request->disabled = is_off(equals + 1);
    } else if (request->settings < SETTINGS_MOST) {
        memcpy(request->key[request->settings], key, sizeof key);
        request->value[request->settings++] = equals + 1;
    }
    return true;
}

static bool is_later(const char *word)
{
    if (strncmp(word, "--", 2) != 0) {
        return false;
    }
    size_t length = strcspn(word + 2, "=");
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strlen(later[i]) == length && strncmp(word + 2, later[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static void refuse_script(const char *word)
{
    const char *dot = strrchr(word, '.');
    bool python = dot && strcmp(dot, ".py") == 0;
    cli_complain("run: this version runs programs only: stepwatch run -- %s%.200s",
                 python ? "python3 " : "", word);
}

/* True when there is something to run; else `*code` is what to exit with. */
static bool parse(struct request *request, int argc, char **argv, int *code)
{
    struct option_parser parser = option_parser_start(&full_command, argc, argv, true);
    const char *value;
    *code = CLI_USAGE;
    request->report = true;
    for (;;) {
        if (!parser.letters || !*parser.letters) {
            const char *word = parser.index < argc ? argv[parser.index] : "";
            if (is_later(word)) {
                cli_complain("run: '%.60s' is not in this version", word);
                return false;
            }
        }
        int option = option_next(&parser, &value);
        if (option == OPTION_END) {
            break;
        }
        switch (option) {
        case OPTION_HELP:
            command_help(&command);
            *code = CLI_GOOD;
            return false;
        case OUT:
            request->out = value;
            break;
        case NAME:
            request->name = value;
            break;
        case NO_REPORT:
            request->report = false;
            break;
        case SET:
            if (!add_setting(request, value)) {
                return false;
            }
            break;
        case MODULE:
            cli_complain(
                "run: this version runs programs only: stepwatch run -- python3 -m "
                "%.200s",
                value);
            return false;
        default:
            return false;
        }
    }
    if (parser.index >= argc) {
        cli_complain("run: which program? See 'stepwatch run --help'.");
        return false;
    }
    if (!parser.saw_dashes) {
        refuse_script(argv[parser.index]);
        return false;
    }
    request->program = argv + parser.index;
    return true;
}

/* --- environment --- */

static const char *given(const char *asked, const char *variable)
{
    const char *value = asked ? asked : getenv(variable);
    return value && *value ? value : NULL;
}

/* What --set said, as variables. */
static void set_options(const struct request *request)
{
    for (size_t i = 0; i < request->settings; i++) {
        char variable[96];
        int used = snprintf(variable, sizeof variable, "STEPWATCH_%s", request->key[i]);
        for (int k = 0; k < used; k++) {
            variable[k] = (char)toupper((unsigned char)variable[k]);
        }
        setenv(variable, request->value[i], 1);
    }
}

/* Puts what the recorder in the program needs into its environment. */
static void set_environment(const struct request *request, const struct run_dir *dir,
                            const char *name)
{
    setenv("STEPWATCH_ENABLED", "1", 1);
    setenv("STEPWATCH_OUT", dir->path, 1);
    setenv("STEPWATCH_NAME", name, 1);
    setenv("STEPWATCH_RUN_ID", dir->id, 1);
    set_options(request);
}

/* --- what is left behind --- */

static int create_private(const struct run_dir *dir, const char *file)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", dir->path, file);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void put_number(sw_writer *w, const char *key, int value, int unknown)
{
    sw_json_key(w, key);
    if (value == unknown) {
        sw_json_null(w);
    } else {
        sw_json_int(w, value);
    }
}

static void put_text(sw_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_string(w, text);
}

static void put_run_json(sw_writer *w, const struct request *request,
                         const struct run_dir *dir, const char *name,
                         const struct outcome *outcome)
{
    char text[4096];
    time_t seconds = (time_t)(outcome->started_real_ns / 1000000000u);
    struct tm parts;
    sw_json_start(w, true);
    sw_json_object_begin(w);
    put_text(w, "schema", "stepwatch.run/1");
    put_text(w, "id", dir->id);
    put_text(w, "name", name);
    sw_json_key(w, "command");
    sw_json_array_begin(w);
    int flag = 0;
    for (char **word = request->program; *word; word++) {
        sw_redact_argument(text, sizeof text, *word, strlen(*word), &flag);
        sw_json_string(w, text);
    }
    sw_json_array_end(w);
    gmtime_r(&seconds, &parts);
    size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, sizeof text - used, ".%03uZ",
             (unsigned)(outcome->started_real_ns % 1000000000u / 1000000u));
    put_text(w, "started_utc", text);
    sw_json_key(w, "started_unix_s");
    uint64_t microseconds = outcome->started_real_ns / 1000;
    sw_json_double(w, (double)microseconds / 1e6);
    sw_json_key(w, "started_monotonic_ns");
    sw_json_uint(w, outcome->started_mono_ns);
    sw_json_key(w, "duration_s");
    sw_json_double(w, (double)outcome->duration_ns / 1e9);
    sw_json_key(w, "exit");
    sw_json_object_begin(w);
    put_number(w, "code", outcome->code, -1);
    put_number(w, "signal", outcome->signal, 0);
    sw_json_object_end(w);
    if (gethostname(text, sizeof text) != 0) {
        text[0] = '\0';
    }
    text[sizeof text - 1] = '\0';
    put_text(w, "host", text[0] ? text : NULL);
    put_text(w, "version", SW_VERSION_STRING);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}

/* Writes a file of the run directory by `fill`. */
static void write_file(const struct run_dir *dir, const char *file, sw_writer **writer,
                       int *fd)
{
    *fd = create_private(dir, file);
    *writer = *fd >= 0 ? sw_writer_to_fd(*fd) : NULL;
    if (!*writer) {
        cli_complain("%s could not be written: %s", file,
                     *fd < 0 ? strerror(errno) : sw_error_text(SW_ENOMEM));
    }
}

static void finish_file(const char *file, sw_writer *writer, int fd)
{
    sw_error_info info = {0};
    int error = writer ? sw_writer_close(writer, &info) : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (error) {
        cli_complain("%s could not be written: %s", file,
                     info.message[0] ? info.message : sw_error_text(error));
    }
}

static void leave_run_json(const struct request *request, const struct run_dir *dir,
                           const char *name, const struct outcome *outcome)
{
    sw_writer *writer;
    int fd;
    write_file(dir, "run.json", &writer, &fd);
    if (writer) {
        put_run_json(writer, request, dir, name, outcome);
    }
    finish_file("run.json", writer, fd);
}

static void leave_report(const struct run_dir *dir)
{
    sw_run *run;
    sw_summary *summary;
    sw_error_info info = {0};
    int error = cli_summarise(dir->path, &run, &summary, &info);
    if (error) {
        cli_complain("no report could be made: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return;
    }
    sw_writer *writer;
    int fd;
    write_file(dir, "report.json", &writer, &fd);
    if (writer) {
        sw_export_report_json(writer, summary);
    }
    finish_file("report.json", writer, fd);

    sw_text_options look =
        cli_text_options(STDERR_FILENO, 0, "auto", CLI_CHARACTERS_AUTO, 0);
    writer = sw_writer_to_fd(STDERR_FILENO);
    if (writer) {
        sw_write_text(writer, "\n");
        sw_export_report_text(writer, summary, &look);
    }
    sw_writer_close(writer, NULL);
    sw_summary_free(summary);
    sw_run_free(run);
}

static void leave_results(const struct request *request, const struct run_dir *dir,
                          const char *name, const struct outcome *outcome)
{
    leave_run_json(request, dir, name, outcome);
    if (!run_dir_has_traces(dir->path)) {
        cli_complain(
            "%.100s recorded nothing; link it with the library (pkg-config --cflags "
            "--libs stepwatch) and call sw_init, or open a section.",
            request->program[0]);
    } else if (request->report) {
        leave_report(dir);
    } else {
        struct cli_sentences problems = {0};
        cli_fold_run(dir->path, &problems);
        for (size_t i = 0; i < problems.count; i++) {
            cli_complain("%s", problems.text[i]);
        }
        cli_sentences_free(&problems);
    }
    fprintf(stderr, "%s\n", dir->path);
}

static void complain_start(const char *program, int error)
{
    if (error == ENOENT && !strchr(program, '/')) {
        cli_complain("run: program '%.200s' was not found", program);
    } else {
        cli_complain("run: program '%.200s' cannot be started: %s", program,
                     strerror(error));
    }
}

/* Within another `stepwatch run` the outer one records and reports, so nothing stands between it and the
 * program. */
static int run_nested(const struct request *request)
{
    set_options(request);
    if (request->disabled) {
        setenv("STEPWATCH_ENABLED", "0", 1);
    }
    execvp(request->program[0], request->program);
    struct outcome outcome = {.start_error = errno};
    complain_start(request->program[0], outcome.start_error);
    return outcome_code(&outcome);
}

int cmd_run(int argc, char **argv)
{
    struct request request = {0};
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    if (getenv("STEPWATCH_RUN_ID") && getenv("STEPWATCH_OUT") && !request.out) {
        return run_nested(&request);
    }
    const char *enabled = getenv("STEPWATCH_ENABLED");
    bool recorded = !request.disabled && !(enabled && is_off(enabled));
    struct run_dir dir;
    const char *name = given(request.name, "STEPWATCH_NAME");
    if (!name) {
        const char *slash = strrchr(request.program[0], '/');
        name = slash && slash[1] ? slash + 1 : request.program[0];
    }
    if (recorded) {
        sw_error_info info = {0};
        if (run_dir_create(&dir, given(request.out, "STEPWATCH_OUT"), name, &info)) {
            cli_complain("run: %s", info.message);
            return CLI_USAGE;
        }
        set_environment(&request, &dir, name);
    } else {
        setenv("STEPWATCH_ENABLED", "0", 1);
    }
    struct outcome outcome;
    supervise(request.program, &outcome);
    if (outcome.start_error) {
        complain_start(request.program[0], outcome.start_error);
        if (recorded) {
            run_dir_discard(&dir);
        }
    } else if (recorded) {
        leave_results(&request, &dir, name, &outcome);
    }
    return outcome_code(&outcome);
}

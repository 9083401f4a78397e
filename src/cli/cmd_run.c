/* stepwatch run: a script or a program under the recorder. Its streams, signals and exit code stay its
 * own; everything of ours goes to stderr after its end, and nothing of ours can change its code.
 *
 * A script is started as `PYTHON SCRIPT ARGS`, with nothing in between: what the program sees of itself, and its
 * tracebacks, are as ever. The recorder comes in by PYTHONPATH, in this Python and in those that it starts. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/config.h>
#include <stepwatch/record.h>

#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/option_parser.h"
#include "cli/progress.h"
#include "cli/python.h"
#include "cli/run_dir.h"
#include "cli/run_origin.h"
#include "cli/run_results.h"
#include "cli/supervise.h"

#define SAMPLER_HZ "100" /* where nobody says otherwise */
/* Seconds between looks of the monitor: an hour of them is a megabyte or two, and costs less than 0.05 % of a core. */
#define MONITOR_INTERVAL_S "1"

enum {
    OUT,
    NAME,
    CONFIG,
    SET,
    FUNCTIONS,
    LINES,
    OPERATORS,
    MEMORY,
    IO,
    NO_REPORT,
    MODULE,
    OPTIONS
};

static const struct option_spec options[OPTIONS] = {
    [OUT] = {"out", 'o', "DIR", "run directory; else runs/profiling/<UTC time>-<name>"},
    [NAME] = {"name", 0, "NAME", "name of the run; else that of the program"},
    [CONFIG] = {"config", 0, "FILE",
                "configuration file; else the one found from here up"},
    [SET] = {"set", 0, "KEY=VALUE", "an option of the recorder; may be repeated"},
    [FUNCTIONS] = {"functions", 0, NULL,
                   "profile every Python function: functions.stats"},
    [LINES] = {"lines", 0, "MOD:FUNC", "time each line of a function; may be repeated"},
    [OPERATORS] = {"operators", 0, NULL,
                   "record torch operators in the steps of the schedule"},
    [MEMORY] = {"memory", 0, NULL, "count allocations, by section and line"},
    [IO] = {"io", 0, NULL, "watch calls on files and sockets, by path and section"},
    [NO_REPORT] = {"no-report", 0, NULL, "leave the native files only"},
    [MODULE] = {"module", 'm', "MODULE", "run a module, as python -m does"},
};

static const struct command command = {
    .name = "run",
    .usage = "[options] (SCRIPT | -m MODULE | -- PROGRAM) [ARGS ...]",
    .purpose =
        "Runs a Python script or module, or any program, under the recorder, and\n"
        "reports to stderr. Exits with the program's own code, 128 + n when signal n\n"
        "killed it. What follows SCRIPT or MODULE is for them.",
    .options = options,
    .option_count = OPTIONS,
    .epilogue =
        "A PROGRAM is recorded when it is linked with the library, and in every Python\n"
        "that it starts. SCRIPT runs in the Python beside this command, else in the\n"
        "python3 of PATH; STEPWATCH_PYTHON names another.\n"
        "'stepwatch doctor' lists the options that --set takes.",
};

#define SETTINGS_MOST 64

struct request {
    const char *config;
    char *set[SETTINGS_MOST + 1]; /* "key=value" of the command line, ends with NULL */
    size_t settings;
    char lines[4096];            /* MOD:FUNC,MOD:FUNC */
    sw_given *given;             /* what command line, environment and file say */
    const char *script, *module; /* what Python is to run; NULL: it is a program */
    char **program;              /* what is to be started, ends with NULL */
    struct python python;        /* the package, and the Python of a script or module */
};

/* --- arguments --- */

/* Takes a value that is known to be good. One that was given before is forgotten. */
static bool set(struct request *request, const char *key, size_t length,
                const char *value)
{
    size_t at = 0;
    while (at < request->settings && (strncmp(request->set[at], key, length) != 0 ||
                                      request->set[at][length] != '=')) {
        at++;
    }
    char *text = at < SETTINGS_MOST ? malloc(length + strlen(value) + 2) : NULL;
    if (!text) {
        cli_complain("run: %s", sw_error_text(SW_ENOMEM));
        return false;
    }
    memcpy(text, key, length);
    text[length] = '=';
    memcpy(text + length + 1, value, strlen(value) + 1);
    free(request->set[at]);
    request->set[at] = text;
    request->settings += at == request->settings;
    return true;
}

/* An option of the command line as one of the recorder: `option` is how the user wrote it. */
static bool set_checked(struct request *request, const char *option, const char *key,
                        const char *value)
{
    sw_error_info info = {0};
    if (sw_option_check(key, value, &info) != SW_OK) {
        cli_complain("run: %s: %s", option, info.message);
        return false;
    }
    return set(request, key, strlen(key), value);
}

static bool add_setting(struct request *request, const char *text)
{
    const char *equals = strchr(text, '=');
    char key[64];
    char option[80];
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof key) {
        cli_complain("run: --set takes KEY=VALUE, not '%.100s'", text);
        return false;
    }
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    if (sw_option_check(key, equals + 1, NULL) == SW_ENOTFOUND) {
        const char *near = sw_option_nearest(key);
        cli_complain(
            near ? "run: unknown option '%s' in --set; did you mean '%s'? 'stepwatch "
                   "doctor' lists all."
                 : "run: unknown option '%s' in --set; 'stepwatch doctor' lists them.",
            key, near);
        return false;
    }
    snprintf(option, sizeof option, "--set %s", key);
    return set_checked(request, option, key, equals + 1);
}

static bool add_lines(struct request *request, const char *text)
{
    const char *colon = strchr(text, ':');
    size_t used = strlen(request->lines);
    if (!colon || colon == text || !colon[1] || strchr(colon + 1, ':') ||
        text[strcspn(text, ", \t\n")]) {
        cli_complain("run: --lines takes MODULE:FUNCTION, not '%.100s'", text);
        return false;
    }
    if (used + strlen(text) + 2 > sizeof request->lines) {
        cli_complain("run: --lines names too many functions");
        return false;
    }
    snprintf(request->lines + used, sizeof request->lines - used, "%s%s", used ? "," : "",
             text);
    return set_checked(request, "--lines", "lines", request->lines);
}

/* What is to be started, with the words that follow. The words are not copied. */
static bool set_program(struct request *request, const char *flag, const char *what,
                        char **arguments)
{
    size_t count = 0;
    while (arguments[count]) {
        count++;
    }
    char **words = calloc(count + 4, sizeof *words);
    if (!words) {
        cli_complain("run: %s", sw_error_text(SW_ENOMEM));
        return false;
    }
    size_t used = 0;
    words[used++] = request->python.program;
    if (flag) {
        words[used++] = (char *)(uintptr_t)flag;
    }
    words[used++] = (char *)(uintptr_t)what;
    memcpy(words + used, arguments, count * sizeof *words);
    request->program = words; /* for as long as this process lives */
    return true;
}

/* The operands: a script, the rest of -m, or a program after `--`. */
static bool set_operands(struct request *request, char **words, bool dashes)
{
    if (request->module) {
        if (!*request->module) {
            cli_complain("run: which module? See 'stepwatch run --help'.");
            return false;
        }
        python_find(&request->python);
        return set_program(request, "-m", request->module, words);
    }
    if (!*words) {
        cli_complain("run: which program? See 'stepwatch run --help'.");
        return false;
    }
    if (dashes) {
        request->program = words;
        python_find_package(&request->python, *words);
        return true;
    }
    request->script = *words;
    if (!python_check_script(request->script)) {
        return false;
    }
    python_find(&request->python);
    return set_program(request, NULL, request->script, words + 1);
}

/* True when there is something to run; else `*code` is what to exit with. */
static bool parse(struct request *request, int argc, char **argv, int *code)
{
    struct option_parser parser = option_parser_start(&command, argc, argv, true);
    const char *value;
    *code = CLI_USAGE;
    while (!request->module) {
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
            if (!set_checked(request, "--out", "out", value)) {
                return false;
            }
            break;
        case NAME:
            if (!set_checked(request, "--name", "name", value)) {
                return false;
            }
            break;
        case CONFIG:
            request->config = value;
            break;
        case SET:
            if (!add_setting(request, value)) {
                return false;
            }
            break;
        case FUNCTIONS:
        case OPERATORS:
        case MEMORY:
        case IO:
        case NO_REPORT: {
            const char *key = option == FUNCTIONS   ? "functions"
                              : option == OPERATORS ? "operators"
                              : option == MEMORY    ? "memory"
                              : option == IO        ? "io"
                                                    : "report";
            if (!set(request, key, strlen(key), option == NO_REPORT ? "off" : "on")) {
                return false;
            }
            break;
        }
        case LINES:
            if (!add_lines(request, value)) {
                return false;
            }
            break;
        case MODULE: /* which, as in Python, ends the options */
            request->module = value;
            break;
        default:
            return false;
        }
    }
    return set_operands(request, argv + parser.index, parser.saw_dashes);
}

/* --- names --- */

/* The last part of a path, without what says that it is Python. */
static void stem_of(const char *path, char *out, size_t size)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    const char *slash = memrchr(path, '/', length > 1 ? length - 1 : 0);
    const char *part = slash ? slash + 1 : path;
    snprintf(out, size, "%.*s", (int)(length - (size_t)(part - path)), part);
    char *dot = strrchr(out, '.');
    static const char *const ends[] = {".py", ".pyw", ".pyc", ".pyz", ".zip"};
    for (size_t i = 0; dot && dot > out && i < sizeof ends / sizeof ends[0]; i++) {
        if (strcmp(dot, ends[i]) == 0) {
            *dot = '\0';
            break;
        }
    }
}

/* What is run: of a Python the script or module, of a launcher or a wrapper (torchrun, accelerate, uv) the script that it is
 * given, else the program. */
static const char *find_operand(const struct request *request)
{
    char *const *program = request->program;
    const char *operand = request->module ? request->module : request->script;
    if (!operand && python_is_name(program[0])) {
        operand = python_operand(program + 1);
    }
    bool launches = operand ? python_is_launcher(operand) : !python_is_name(program[0]);
    const char *launched = launches ? python_launched(program + 1) : NULL;
    operand = launched ? launched : operand;
    return operand ? operand : program[0];
}

/* What the run is called when nobody says. */
static void name_run(const struct request *request, char *out, size_t size)
{
    const char *operand = find_operand(request);
    if (strcmp(operand, "-") == 0) {
        snprintf(out, size, "stdin");
    } else if (operand == request->program[0] || operand == request->module) {
        const char *slash = strrchr(operand, '/');
        snprintf(out, size, "%s", slash && slash[1] ? slash + 1 : operand);
    } else {
        stem_of(operand, out, size);
    }
}

/* The functions whose lines are timed. Those of the script or module that is run are in __main__ there. */
static void set_lines(const struct request *request, const char *lines)
{
    char stem[256] = "";
    char text[sizeof request->lines + 1024] = "";
    if (request->script) {
        stem_of(request->script, stem, sizeof stem);
    }
    for (const char *at = lines; *at;) {
        size_t length = strcspn(at, ",");
        size_t module = strcspn(at, ":");
        size_t used = strlen(text);
        bool is_script =
            *stem && module >= strlen(stem) && strncmp(at, stem, strlen(stem)) == 0 &&
            (module == strlen(stem) ||
             (module == strlen(stem) + 3 && strncmp(at + strlen(stem), ".py", 3) == 0));
        bool is_module = request->module && strlen(request->module) == module &&
                         strncmp(at, request->module, module) == 0;
        if (is_script || is_module) {
            snprintf(text + used, sizeof text - used, "%s__main__%.*s", used ? "," : "",
                     (int)(length - module), at + module);
        } else {
            snprintf(text + used, sizeof text - used, "%s%.*s", used ? "," : "",
                     (int)length, at);
        }
        at += length + (at[length] == ',');
    }
    setenv("STEPWATCH_LINES", text, 1);
}

/* --- environment --- */

/* The value of an option, the default where nobody has said anything. */
static const char *value_of(const struct request *request, const char *key)
{
    sw_given_value value = {.text = ""};
    sw_given_get(request->given, key, &value);
    return value.text;
}

static enum sw_source source_of(const struct request *request, const char *key)
{
    sw_given_value value = {.text = ""};
    sw_given_get(request->given, key, &value);
    return value.source;
}

/* What the command line said, as variables; and what the file said, in one of its own, so that a variable of the
 * user's still wins over the file. */
static void set_options(const struct request *request)
{
    for (size_t i = 0; i < request->settings; i++) {
        char variable[96];
        size_t length = strcspn(request->set[i], "=");
        int used = snprintf(variable, sizeof variable, "STEPWATCH_%.*s", (int)length,
                            request->set[i]);
        for (int k = 0; k < used; k++) {
            variable[k] = (char)toupper((unsigned char)variable[k]);
        }
        setenv(variable, request->set[i] + length + 1, 1);
    }
    size_t length = sw_given_hand_over(request->given, NULL, 0);
    char *text = malloc(length + 1);
    if (text) {
        sw_given_hand_over(request->given, text, length + 1);
        setenv("STEPWATCH_FROM_FILE", text, 1);
        free(text);
    }
}

/* Puts what the recorder in the program needs into its environment. */
static void set_environment(const struct request *request, const struct run_dir *dir,
                            const char *name, const struct launch *launch)
{
    set_options(request);
    setenv("STEPWATCH_ENABLED", "1", 1);
    setenv("STEPWATCH_OUT", dir->path, 1);
    setenv("STEPWATCH_NAME", name, 1);
    setenv("STEPWATCH_RUN_ID", dir->id, 1);
    char text[32];
    /* What is ours alone to say and to name, one of several ranks says and names. */
    snprintf(text, sizeof text, "%ld",
             launch->shared && !launch->leads ? 0l : (long)getpid());
    setenv("STEPWATCH_SUPERVISOR", text, 1);
    if (source_of(request, "sampler_hz") == SW_SOURCE_DEFAULT) {
        setenv("STEPWATCH_SAMPLER_HZ", SAMPLER_HZ, 1);
    }
    if (source_of(request, "monitor_interval_s") == SW_SOURCE_DEFAULT) {
        setenv("STEPWATCH_MONITOR_INTERVAL_S", MONITOR_INTERVAL_S, 1);
    }
}

/* … and what the recorder in a Python needs, if there is a package. */
static void set_python_environment(const struct request *request)
{
    const char *lines = value_of(request, "lines");
    if (*lines) {
        set_lines(request, lines);
    }
    if (*request->python.package) {
        python_set_path(request->python.package);
    }
}

/* Reads what environment and file say, with the command line on top. False: the file that was named cannot be read. */
static bool gather(struct request *request)
{
    sw_error_info info = {0};
    const char *sentence;
    if (sw_given_read(&request->given, request->config, (const char *const *)request->set,
                      &info) != SW_OK) {
        cli_complain("run: %s", info.message);
        return false;
    }
    /* Within another run the outer one has said it. */
    bool told = getenv("STEPWATCH_FROM_FILE") && !request->config;
    for (size_t i = 0; (sentence = sw_given_problem(request->given, i)) != NULL; i++) {
        if (!told) {
            cli_complain("%s", sentence);
        }
    }
    return true;
}

/* Whether what is started is certainly a Python. */
static bool runs_python(const struct request *request)
{
    return request->script || request->module || python_is_name(request->program[0]);
}

/* What the user calls it. */
static const char *shown_name(const struct request *request)
{
    return request->script   ? request->script
           : request->module ? request->module
                             : request->program[0];
}

static void complain_start(const char *program, int error)
{
    size_t length = strlen(program);
    if (length > 3 && strcmp(program + length - 3, ".py") == 0) {
        cli_complain("run: '%.200s' is not a program; to run a script: stepwatch run "
                     "%.200s",
                     program, program);
    } else if (error == ENOENT && !strchr(program, '/')) {
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
    if (cli_is_off(value_of(request, "enabled"))) {
        setenv("STEPWATCH_ENABLED", "0", 1);
    } else {
        set_python_environment(request);
    }
    execvp(request->program[0], request->program);
    struct outcome outcome = {.start_error = errno};
    complain_start(request->program[0], outcome.start_error);
    return outcome_code(&outcome);
}

/* Whether the program is recorded. A file that says no is easily forgotten, so that is said. */
static bool is_recorded(const struct request *request)
{
    sw_given_value value = {.text = ""};
    sw_given_get(request->given, "enabled", &value);
    if (cli_is_off(value.text) && value.source == SW_SOURCE_FILE) {
        cli_complain("run: %.200s is not recorded: %.200s says enabled = %s; --set "
                     "enabled=true records it",
                     shown_name(request), value.where, value.text);
    }
    return !cli_is_off(value.text);
}

int cmd_run(int argc, char **argv)
{
    static struct request request;
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    if (!gather(&request)) {
        return CLI_USAGE;
    }
    if (getenv("STEPWATCH_RUN_ID") && getenv("STEPWATCH_OUT") &&
        source_of(&request, "out") != SW_SOURCE_COMMAND) {
        return run_nested(&request);
    }
    bool recorded = is_recorded(&request);
    struct run_dir dir;
    char usual_name[256];
    const char *name = value_of(&request, "name");
    if (!*name) {
        name_run(&request, usual_name, sizeof usual_name);
        name = usual_name;
    }
    bool unseen = runs_python(&request) && !*request.python.package;
    struct launch launch = {.fd = -1};
    struct progress *progress = NULL;
    if (recorded) {
        sw_error_info info = {0};
        const char *out = value_of(&request, "out");
        const char *folder = value_of(&request, "runs_dir");
        launch_find(&launch);
        if (launch.shared ? launch_join(&launch, &dir, out, folder, name, &info)
                          : run_dir_create(&dir, out, folder, name, &info)) {
            cli_complain("run: %s", info.message);
            return CLI_USAGE;
        }
        set_environment(&request, &dir, name, &launch);
        set_python_environment(&request);
        if (unseen) {
            cli_complain("run: %.200s is not recorded: this Python has no package "
                         "'stepwatch'; install it there, or name another Python by "
                         "STEPWATCH_PYTHON",
                         shown_name(&request));
        }
    } else {
        set_options(&request);
        setenv("STEPWATCH_ENABLED", "0", 1);
    }
    struct run_origin origin = {.given = request.given};
    if (recorded) {
        run_origin_find(&origin, request.program, find_operand(&request), request.given);
    }
    struct outcome outcome;
    if (recorded && (!launch.shared || launch.leads) &&
        !cli_is_off(value_of(&request, "progress"))) {
        progress = progress_start(dir.path);
    }
    supervise(request.program, progress, &outcome);
    progress_free(progress);
    const int final = outcome_code(&outcome);
    if (outcome.start_error) {
        complain_start(request.program[0], outcome.start_error);
        if (recorded) {
            run_dir_discard(&dir);
        }
    } else if (recorded && (!launch.shared || launch_leave(&launch, &outcome))) {
        run_results_leave(&(struct run_results){
            .dir = &dir,
            .outcome = &outcome,
            .origin = &origin,
            .name = name,
            .command = request.program,
            .shown_name = shown_name(&request),
            .python = runs_python(&request),
            .told = unseen,
            .report = !cli_is_off(value_of(&request, "report")),
            .history = !cli_is_off(value_of(&request, "history")),
            .functions = !cli_is_off(value_of(&request, "functions"))});
    }
    return final;
}

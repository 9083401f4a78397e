/* stepwatch stats: prints a function profile. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/option_parser.h"

enum { JSON, SORT, TOP, WIDTH, OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [JSON] = {"json", 0, NULL, "one JSON document, schema stepwatch.functions/1"},
    [SORT] = {"sort", 0, "BY", "cumulative, self, calls, pcalls, errors, name or file"},
    [TOP] = {"top", 0, "N", "functions shown, all unless told"},
    [WIDTH] = {"width", 0, "N", "columns; else the terminal's, no limit for files"},
};

static const struct command command = {
    .name = "stats",
    .usage = "FILE [options]",
    .purpose =
        "Prints a function profile. FILE is what cProfile, pstats or "
        "stepwatch.functions\n"
        "saved (*.stats, *.prof), or a run directory or native file with profiles in it.",
    .options = options,
    .option_count = OPTIONS,
};

struct request {
    const char *path;
    bool json;
    sw_functions_text_options look;
};

/* True when the arguments make sense; else `*code` is what to exit with. */
static bool parse(struct request *request, int argc, char **argv, int *code)
{
    struct option_parser parser = option_parser_start(&command, argc, argv, false);
    const char *value;
    *code = CLI_USAGE;
    for (int option; (option = option_next(&parser, &value)) != OPTION_END;) {
        switch (option) {
        case OPTION_HELP:
            command_help(&command);
            *code = CLI_GOOD;
            return false;
        case OPTION_OPERAND:
            if (request->path) {
                cli_complain("stats: one file at a time, not '%.100s' too.", value);
                return false;
            }
            request->path = value;
            break;
        case JSON:
            request->json = true;
            break;
        case SORT:
            if (sw_functions_sort_of(value, &request->look.sort) != SW_OK) {
                cli_complain("stats: --sort takes cumulative, self, calls, pcalls, "
                             "errors, name or file, not '%.60s'.",
                             value);
                return false;
            }
            break;
        case TOP:
            if (strcmp(value, "all") == 0) {
                request->look.limit = 0;
            } else if (!option_count(&command, "top", value, 1, 1000000,
                                     &request->look.limit)) {
                return false;
            }
            break;
        case WIDTH:
            if (!option_count(&command, "width", value, 1, 1000000,
                              &request->look.columns)) {
                return false;
            }
            break;
        default:
            return false;
        }
    }
    if (!request->path) {
        cli_complain("stats: which file? See 'stepwatch stats --help'.");
        return false;
    }
    return true;
}

static bool is_run(const char *path)
{
    static const char suffix[] = ".stepwatch";
    struct stat status;
    const size_t length = strlen(path);
    return (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) ||
           (length >= sizeof suffix &&
            strcmp(path + length - (sizeof suffix - 1), suffix) == 0);
}

static int open_run(sw_functions **functions, const char *path, sw_error_info *info)
{
    struct cli_sentences problems = {0};
    sw_run *run;
    cli_fold_run(path, &problems);
    int error = sw_run_open(&run, path, info);
    if (!error) {
        error = sw_functions_of_run(functions, run, info);
        sw_run_free(run);
    }
    if (!error && sw_functions_count(*functions) == 0) {
        sw_functions_free(*functions);
        error = sw_error_set(info, SW_ENOTFOUND, "%s has no function profile", path);
    }
    for (size_t i = 0; !error && i < problems.count; i++) {
        cli_complain("%s", problems.text[i]);
    }
    cli_sentences_free(&problems);
    return error;
}

int cmd_stats(int argc, char **argv)
{
    struct request request = {0};
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    sw_functions *functions;
    sw_error_info info = {0};
    int error = is_run(request.path)
                    ? open_run(&functions, request.path, &info)
                    : sw_functions_open_pstats(&functions, request.path, &info);
    if (error) {
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    signal(SIGPIPE, SIG_IGN); /* a reader who has seen enough is no error */
    sw_writer *writer = sw_writer_to_fd(STDOUT_FILENO);
    if (writer && request.json) {
        sw_export_functions_json(writer, functions, &request.look);
    } else if (writer) {
        if (!request.look.columns && isatty(STDOUT_FILENO)) {
            request.look.columns =
                cli_text_options(STDOUT_FILENO, 0, "never", CLI_CHARACTERS_AUTO, 0)
                    .columns;
        }
        sw_export_functions_text(writer, functions, &request.look);
    }
    info = (sw_error_info){0};
    error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    sw_functions_free(functions);
    if (error && info.os_errno != EPIPE) {
        cli_complain("the profile could not be written: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}

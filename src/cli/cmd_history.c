/* stepwatch history: earlier runs of a place. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/config.h>
#include <stepwatch/history.h>

#include "cli/cli.h"
#include "cli/look.h"
#include "cli/option_parser.h"

enum { JSON, LIMIT, PROGRAM, REBUILD, LOOK, OPTIONS = LOOK + LOOK_OPTIONS };

#define LIMIT_USUAL 20

static const struct option_spec options[OPTIONS] = {
    [JSON] = {"json", 0, NULL, "one JSON document, schema stepwatch.history/1"},
    [LIMIT] = {"limit", 0, "N", "newest runs only, 20 unless told; 'all' shows all"},
    [PROGRAM] = {"program", 0, "TEXT", "runs whose program or name contains the text"},
    [REBUILD] = {"rebuild", 0, NULL, "read every run directory again before"},
    LOOK_SPECS,
};

static const struct command command = {
    .name = "history",
    .usage = "[options] [FOLDER]",
    .purpose =
        "Lists earlier runs, newest first. FOLDER is where they lie: the folder in\n"
        "which 'stepwatch run' makes run directories here (runs/profiling) unless told.",
    .options = options,
    .option_count = OPTIONS,
    .epilogue = "Colour is used on terminals, unless NO_COLOR is set.",
};

struct request {
    const char *folder; /* NULL: that of the configuration */
    const char *program;
    bool json, rebuild;
    struct look look;
    size_t limit;
};

static bool parse_option(struct request *request, int option, const char *value)
{
    switch (option) {
    case OPTION_OPERAND:
        if (request->folder) {
            cli_complain("history: one folder at a time, not '%.100s' too.", value);
            return false;
        }
        request->folder = value;
        return true;
    case JSON:
        request->json = true;
        return true;
    case REBUILD:
        request->rebuild = true;
        return true;
    case PROGRAM:
        request->program = value;
        return true;
    case LIMIT:
        return look_rows(&command, "limit", value, &request->limit);
    default:
        return look_option(&request->look, &command, option - LOOK, value);
    }
}

/* True when the arguments make sense; else `*code` is what to exit with. */
static bool parse(struct request *request, int argc, char **argv, int *code)
{
    struct option_parser parser = option_parser_start(&command, argc, argv, false);
    const char *value;
    *code = CLI_USAGE;
    for (int option; (option = option_next(&parser, &value)) != OPTION_END;) {
        if (option == OPTION_HELP) {
            command_help(&command);
            *code = CLI_GOOD;
            return false;
        }
        if (!parse_option(request, option, value)) {
            return false;
        }
    }
    return true;
}

/* Reads the history. A place in which nothing was ever run is one without runs, not a mistake. */
static int read_history(sw_history **out, const struct request *request)
{
    char usual[PATH_MAX];
    sw_error_info info = {0};
    const char *folder = request->folder;
    *out = NULL;
    if (!folder) {
        sw_given *given = NULL;
        if (sw_given_read(&given, NULL, NULL, &info) != SW_OK) {
            cli_complain("history: %s", info.message);
            return CLI_USAGE;
        }
        sw_given_place(given, usual, sizeof usual);
        sw_given_free(given);
        folder = usual;
        if (access(folder, F_OK) != 0 && errno == ENOENT) {
            return CLI_GOOD;
        }
    }
    int error = request->rebuild ? sw_history_rebuild(folder, NULL, &info) : SW_OK;
    if (!error && info.message[0]) {
        cli_complain("%s", info.message);
    }
    if (!error) {
        error = sw_history_read(out, folder, request->program, &info);
    }
    if (error) {
        cli_complain("history: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}

static int write_history(const sw_history *history, const struct request *request)
{
    sw_error_info info = {0};
    signal(SIGPIPE, SIG_IGN); /* a reader who has seen enough is no error */
    sw_writer *writer = sw_writer_to_fd(STDOUT_FILENO);
    if (writer && request->json) {
        sw_history_write_json(writer, history,
                              request->limit == SW_TEXT_ALL ? 0 : request->limit);
    } else if (writer) {
        const sw_text_options look =
            look_on(&request->look, STDOUT_FILENO, request->limit);
        if (sw_history_count(history) == 0) {
            sw_write_text(
                writer, request->program
                            ? "There is no run of such a program here.\n"
                            : "There are no runs here yet; 'stepwatch run' makes one.\n");
        }
        sw_history_write_text(writer, history, &look);
    }
    const int error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    if (error && info.os_errno != EPIPE) {
        cli_complain("the history could not be written: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}

int cmd_history(int argc, char **argv)
{
    struct request request = {.limit = LIMIT_USUAL};
    sw_history *history = NULL;
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    code = read_history(&history, &request);
    if (code == CLI_GOOD) {
        code = write_history(history, &request);
    }
    sw_history_free(history);
    return code;
}

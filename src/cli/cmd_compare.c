/* stepwatch compare: what changed from one run to others. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/compare.h>

#include "cli/cli.h"
#include "cli/look.h"
#include "cli/option_parser.h"

enum { JSON, THRESHOLD, TOP, LOOK, OPTIONS = LOOK + LOOK_OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [JSON] = {"json", 0, NULL, "one JSON document, schema stepwatch.compare/1"},
    [THRESHOLD] = {"threshold", 0, "PCT", "a run slower by more is a regression; 5"},
    [TOP] = {"top", 0, "N", "rows of each table, 20 unless told; 'all' shows all"},
    LOOK_SPECS,
};

static const struct command command = {
    .name = "compare",
    .usage = "A B... [options]",
    .purpose =
        "Says what changed from A, the baseline, to B and each further one. They are "
        "run\n"
        "directories, native files (*.stepwatch), reports (report.json) and traces\n"
        "(*.json), or else function profiles (*.stats, *.prof).",
    .options = options,
    .option_count = OPTIONS,
    .epilogue = "Exit code 1: a run is slower than A by more than the threshold.\n"
                "Colour is used on terminals, unless NO_COLOR is set.",
};

struct request {
    const char **paths;
    size_t path_count;
    bool json;
    sw_compare_options compare;
    struct look look;
    size_t top;
};

static bool parse_threshold(const char *value, double *out)
{
    char *end;
    errno = 0;
    const double percent = strtod(value, &end);
    const char *rest = *end == '%' ? end + 1 : end;
    if (end == value || *rest || errno || !(percent >= 0) || percent > 1e6) {
        cli_complain(
            "compare: --threshold takes a percentage of at least 0, not '%.60s'.", value);
        return false;
    }
    *out = percent;
    return true;
}

static bool parse_option(struct request *request, int option, const char *value)
{
    switch (option) {
    case JSON:
        request->json = true;
        return true;
    case THRESHOLD:
        return parse_threshold(value, &request->compare.threshold_percent);
    case TOP:
        return look_rows(&command, "top", value, &request->top);
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
        if (option == OPTION_OPERAND) {
            request->paths[request->path_count++] = value;
        } else if (!parse_option(request, option, value)) {
            return false;
        }
    }
    if (request->path_count < 2) {
        cli_complain(request->path_count
                         ? "compare: '%.100s' with what? Name another run."
                         : "compare: which runs? See 'stepwatch compare "
                           "--help'.",
                     request->path_count ? request->paths[0] : "");
        return false;
    }
    return true;
}

static int open_input(sw_compare_input **input, const char *path, sw_error_info *info)
{
    struct cli_sentences problems = {0};
    cli_fold_run(path, &problems);
    const int error = sw_compare_input_open(input, path, info);
    for (size_t i = 0; !error && i < problems.count; i++) {
        cli_complain("%s", problems.text[i]);
    }
    cli_sentences_free(&problems);
    return error;
}

static int write_result(const struct request *request, const sw_comparison *comparison)
{
    signal(SIGPIPE, SIG_IGN); /* a reader who has seen enough is no error */
    sw_writer *writer = sw_writer_to_fd(STDOUT_FILENO);
    sw_error_info info = {0};
    if (writer && request->json) {
        sw_export_compare_json(writer, comparison);
    } else if (writer) {
        const sw_text_options look = look_on(&request->look, STDOUT_FILENO, request->top);
        sw_export_compare_text(writer, comparison, &look);
    }
    const int error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    if (error && info.os_errno != EPIPE) {
        cli_complain("the comparison could not be written: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return sw_comparison_regression(comparison) ? CLI_NO : CLI_GOOD;
}

static int compare(const struct request *request, sw_compare_input **inputs)
{
    sw_error_info info = {0};
    int error = SW_OK;
    for (size_t i = 0; i < request->path_count; i++) {
        error = open_input(&inputs[i], request->paths[i], &info);
        if (error) {
            cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
            return CLI_UNREADABLE;
        }
    }
    sw_comparison *comparison;
    error = sw_compare_inputs(&comparison, (const sw_compare_input *const *)inputs,
                              request->path_count, &request->compare, &info);
    if (error) {
        cli_complain("compare: %s", info.message);
        return error == SW_EINVAL ? CLI_USAGE : CLI_UNREADABLE;
    }
    const int code = write_result(request, comparison);
    sw_comparison_free(comparison);
    return code;
}

int cmd_compare(int argc, char **argv)
{
    struct request request = {.compare = {.threshold_percent = SW_COMPARE_THRESHOLD}};
    sw_compare_input **inputs = calloc((size_t)argc + 1, sizeof *inputs);
    int code = CLI_UNREADABLE;
    request.paths = calloc((size_t)argc + 1, sizeof *request.paths);
    if (!inputs || !request.paths) {
        cli_complain("%s", sw_error_text(SW_ENOMEM));
    } else if (parse(&request, argc, argv, &code)) {
        code = compare(&request, inputs);
    }
    for (size_t i = 0; inputs && i < request.path_count; i++) {
        sw_compare_input_free(inputs[i]);
    }
    free(inputs);
    free(request.paths);
    return code;
}

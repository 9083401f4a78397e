/* stepwatch report: the verdict on a run. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/look.h"
#include "cli/option_parser.h"
#include "cli/out_file.h"
#include "cli/report_files.h"

enum { JSON, MARKDOWN, HTML, CSV, OUT, TOP, LOOK, OPTIONS = LOOK + LOOK_OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [JSON] = {"json", 0, NULL, "one JSON document, schema stepwatch.report/1"},
    [MARKDOWN] = {"markdown", 0, NULL, "Markdown, for a pull request"},
    [HTML] = {"html", 0, "FILE", "write a page as well: one file, no script"},
    [CSV] = {"csv", 0, "DIR", "write tables as well: DIR/steps.csv and others"},
    [OUT] = {"out", 'o', "FILE", "write there instead of stdout; replaces FILE"},
    [TOP] = {"top", 0, "N", "the tables too, N rows of each; 'all' shows all"},
    LOOK_SPECS,
};

static const struct command command = {
    .name = "report",
    .usage = "RUN [options]",
    .purpose =
        "Reports on RUN, a run directory or a native file (*.stepwatch): the verdict,\n"
        "where a step's time goes, and what to change.",
    .options = options,
    .option_count = OPTIONS,
    .epilogue = "Colour is used on terminals, unless NO_COLOR is set.",
};

struct request {
    const char *path, *html, *csv, *out;
    bool json, markdown;
    struct look look;
    size_t top;
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
                cli_complain("report: one run at a time, not '%.100s' too.", value);
                return false;
            }
            request->path = value;
            break;
        case JSON:
            request->json = true;
            break;
        case MARKDOWN:
            request->markdown = true;
            break;
        case HTML:
            request->html = value;
            break;
        case CSV:
            request->csv = value;
            break;
        case OUT:
            request->out = value;
            break;
        case TOP:
            if (!look_rows(&command, "top", value, &request->top)) {
                return false;
            }
            break;
        default:
            if (!look_option(&request->look, &command, option - LOOK, value)) {
                return false;
            }
            break;
        }
    }
    if (!request->path) {
        cli_complain("report: which run? See 'stepwatch report --help'.");
        return false;
    }
    if (request->json && request->markdown) {
        cli_complain("report: --json and --markdown both go to stdout; choose one.");
        return false;
    }
    return true;
}

/* The report itself, to stdout or where --out says. */
static int write_report(const struct request *request, const struct cli_case *it)
{
    struct out_file file;
    sw_error_info info = {0};
    if (out_file_open(&file, request->out, &info) != SW_OK) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    sw_writer *writer = sw_writer_to_fd(file.fd);
    if (writer && request->json) {
        sw_export_report_json(writer, it->summary, it->findings);
    } else if (writer && request->markdown) {
        sw_export_report_markdown(writer, it->summary, it->findings);
    } else if (writer) {
        sw_text_options look = look_on(&request->look, file.fd, request->top);
        sw_export_report_text(writer, it->summary, it->findings, &look);
        if (request->top == 0) {
            sw_write_text(writer,
                          "More  --top 20 shows tables, --html FILE writes a page\n");
        }
    }
    int error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    if (error) {
        out_file_discard(&file);
        if (info.os_errno == EPIPE) { /* a reader who has seen enough is no error */
            return CLI_GOOD;
        }
        cli_complain("the report could not be written: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    if (out_file_close(&file, &info) != SW_OK) {
        cli_complain("%s", info.message);
        return CLI_UNREADABLE;
    }
    return CLI_GOOD;
}

int cmd_report(int argc, char **argv)
{
    struct request request = {0};
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    struct cli_case it;
    sw_error_info info = {0};
    int error = cli_case_open(&it, request.path, &info);
    if (error) {
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    signal(SIGPIPE, SIG_IGN);
    code = CLI_GOOD;
    if (request.html) {
        code = report_write_html(&it, request.html);
    }
    if (code == CLI_GOOD && request.csv) {
        code = report_write_csv(&it, request.csv);
    }
    /* A page on stdout is all that there is room for. */
    if (code == CLI_GOOD && !(request.html && strcmp(request.html, "-") == 0)) {
        code = write_report(&request, &it);
    }
    cli_case_free(&it);
    return code;
}

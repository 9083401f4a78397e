#include "cli/export_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/out_file.h"

static bool step_number(const char **text, uint64_t *out)
{
    char *end;
    errno = 0;
    const bool digit = **text >= '0' && **text <= '9';
    *out = digit ? strtoull(*text, &end, 10) : 0;
    if (!digit || errno) {
        return false;
    }
    *text = end;
    return true;
}

bool export_steps(const char *text, sw_trace_options *options)
{
    const char *at = text;
    bool good = step_number(&at, &options->first_step);
    options->last_step = options->first_step;
    if (good && *at == '-') {
        at++;
        good = step_number(&at, &options->last_step);
    }
    options->some_steps = true;
    if (!good || *at) {
        cli_complain(
            "export: --steps takes a number or two such as 100-110, not '%.60s'.", text);
        return false;
    }
    if (options->last_step < options->first_step) {
        cli_complain("export: the steps %.60s end before they begin.", text);
        return false;
    }
    return true;
}

struct trace {
    const sw_run *run;
    const sw_trace_options *options;
};

static int write_trace(sw_writer *writer, const void *context, sw_error_info *info)
{
    const struct trace *trace = context;
    return sw_export_trace(writer, trace->run, trace->options, info);
}

static int write_file(const sw_run *run, const sw_trace_options *options,
                      const char *path)
{
    return out_file_write(path, write_trace, &(struct trace){run, options});
}

/* A folder with a file for each rank. */
static int write_folder(const sw_run *run, sw_trace_options *options, const char *folder)
{
    const size_t parts = sw_export_trace_parts(run, NULL, 0);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        cli_complain("the folder %.300s cannot be made: %s.", folder, strerror(errno));
        return CLI_UNREADABLE;
    }
    for (size_t i = 0; i < parts; i++) {
        char name[SW_TRACE_FILE_NAME], path[PATH_MAX];
        sw_error_info info = {0};
        options->part = i + 1;
        const int error = sw_export_trace_file_name(name, run, options, &info);
        if (error) {
            cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
            return CLI_UNREADABLE;
        }
        const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (length < 0 || (size_t)length >= sizeof path) {
            cli_complain("%.300s cannot be written: %s.", folder, strerror(ENAMETOOLONG));
            return CLI_UNREADABLE;
        }
        options->name = name;
        const int code = write_file(run, options, path);
        if (code != CLI_GOOD) {
            return code;
        }
    }
    return CLI_GOOD;
}

static bool is_file_name(const char *out)
{
    const size_t length = strlen(out);
    return strcmp(out, "-") == 0 ||
           (length > 5 && strcmp(out + length - 5, ".json") == 0);
}

static int write_kineto(const sw_run *run, sw_trace_options *options, const char *out)
{
    struct stat status;
    const bool there = out && stat(out, &status) == 0;
    const bool file = !out || is_file_name(out) || (there && !S_ISDIR(status.st_mode));
    if (!file || (there && S_ISDIR(status.st_mode))) {
        return write_folder(run, options, out);
    }
    const size_t parts = sw_export_trace_parts(run, NULL, 0);
    if (parts > 1) {
        cli_complain("export: the run has %zu ranks, and each makes a file; name a "
                     "folder with -o.",
                     parts);
        return CLI_USAGE;
    }
    options->part = 1;
    const char *slash = out ? strrchr(out, '/') : NULL;
    options->name = out && strcmp(out, "-") != 0 ? slash ? slash + 1 : out : NULL;
    return write_file(run, options, out);
}

int export_trace(const char *path, sw_trace_options *options, const char *out)
{
    struct cli_sentences problems = {0};
    sw_error_info info = {0};
    sw_run *run;
    cli_fold_run(path, &problems);
    cli_sentences_free(&problems);
    const int error = sw_run_open(&run, path, &info);
    if (error) {
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    const int code = options->format == SW_TRACE_KINETO ? write_kineto(run, options, out)
                                                        : write_file(run, options, out);
    sw_run_free(run);
    return code;
}

/* stepwatch export: what a run holds, as files of other tools. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/tensorboard.h>

#include "cli/cli.h"
#include "cli/export_trace.h"
#include "cli/option_parser.h"
#include "cli/out_file.h"

enum { TO, OUT, WAITING, LINES, THREADS, SECTIONS, MEMORY, STEPS, SAMPLES, OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [TO] = {"to", 0, "FORMAT", "one of those below"},
    [OUT] = {"out", 'o', "FILE", "write there instead of stdout; replaces FILE"},
    [WAITING] = {"waiting", 0, NULL, "samples of waiting threads too"},
    [LINES] = {"lines", 0, NULL, "tell lines of a function apart"},
    [THREADS] = {"threads", 0, NULL, "the thread as first frame (collapsed)"},
    [SECTIONS] = {"sections", 0, NULL, "the innermost section as a frame"},
    [MEMORY] = {"memory", 0, "VIEW", "bytes, not samples: peak, live or allocated"},
    [STEPS] = {"steps", 0, "A-B", "these steps alone (chrome, kineto)"},
    [SAMPLES] = {"samples", 0, NULL, "looks of the sampler too (chrome, kineto)"},
};

static const struct command command = {
    .name = "export",
    .usage = "RUN --to FORMAT [-o FILE] [options]",
    .purpose = "Writes RUN, a run directory or a native file, as other tools read it.",
    .options = options,
    .option_count = OPTIONS,
    .epilogue =
        "Formats:\n"
        "  chrome      single events, for chrome://tracing and Perfetto\n"
        "  collapsed   sampled stacks, one a line, for flame graphs\n"
        "  json        the report, schema stepwatch.report/1\n"
        "  kineto      single events as torch.profiler writes them; FILE may be a "
        "folder\n"
        "  pstats      exact calls of functions, for python -m pstats and snakeviz\n"
        "  speedscope  sampled stacks, for speedscope\n"
        "  tensorboard steps, charts and the report for TensorBoard; FILE is a folder",
};

struct request {
    const char *path, *to, *out;
    bool given[OPTIONS];
    sw_stack_options stacks;
    enum sw_memory_view view;
    sw_trace_options trace;
};

/* Each returns 0 or, when the run has nothing of the kind, an error with a sentence. */
static int write_json(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                      const struct request *request, sw_error_info *info);
static int write_stacks(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                        const struct request *request, sw_error_info *info);

static int write_pstats(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                        const struct request *request, sw_error_info *info);

static const struct format {
    const char *name;
    int (*write)(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                 const struct request *request, sw_error_info *info);
    bool takes[OPTIONS]; /* options that mean something here */
    bool binary;         /* not for terminals */
    int trace;           /* a trace: 1 + enum sw_trace_format; needs no summary */
    bool folder;         /* -o names one, and is needed */
} formats[] = {
    {"chrome",
     NULL,
     {[STEPS] = true, [SAMPLES] = true},
     false,
     1 + SW_TRACE_CHROME,
     false},
    {"collapsed",
     write_stacks,
     {[WAITING] = true,
      [LINES] = true,
      [THREADS] = true,
      [SECTIONS] = true,
      [MEMORY] = true},
     false,
     0,
     false},
    {"json", write_json, {false}, false, 0, false},
    {"kineto",
     NULL,
     {[STEPS] = true, [SAMPLES] = true},
     false,
     1 + SW_TRACE_KINETO,
     false},
    {"pstats", write_pstats, {false}, true, 0, false},
    {"speedscope",
     write_stacks,
     {[WAITING] = true, [LINES] = true, [SECTIONS] = true, [MEMORY] = true},
     false,
     0,
     false},
    {"tensorboard", NULL, {false}, false, 0, true},
};
#define FORMATS (sizeof formats / sizeof formats[0])

static int write_json(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                      const struct request *request, sw_error_info *info)
{
    (void)run;
    (void)request;
    sw_findings *findings;
    int error = sw_findings_of_summary(&findings, summary, info);
    if (!error) {
        sw_export_report_json(writer, summary, findings);
        sw_findings_free(findings);
    }
    return error;
}

static void write_view(sw_writer *writer, const sw_summary *summary,
                       const struct request *request, const sw_stacks *stacks)
{
    sw_stack_options look = request->stacks;
    look.name = sw_summary_get_run(summary)->name;
    if (strcmp(request->to, "speedscope") == 0) {
        sw_export_speedscope(writer, stacks, &look);
    } else {
        sw_export_collapsed(writer, stacks, &look);
    }
}

/* Allocations in place of samples. */
static int write_memory(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                        const struct request *request, sw_error_info *info)
{
    sw_stacks *stacks;
    const int error =
        sw_memory_stacks(&stacks, sw_summary_memory(summary), request->view);
    if (error) {
        return sw_error_set(info, error, "%s", sw_error_text(error));
    }
    const bool any = sw_stacks_count(stacks, NULL).running > 0;
    if (any) {
        write_view(writer, summary, request, stacks);
    }
    sw_stacks_free(stacks);
    return any ? SW_OK
               : sw_error_set(info, SW_ENOTFOUND,
                              "%.300s holds no sampled allocations; record them with "
                              "'stepwatch run --memory'.",
                              sw_run_path(run));
}

static int write_stacks(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                        const struct request *request, sw_error_info *info)
{
    if (request->given[MEMORY]) {
        return write_memory(writer, run, summary, request, info);
    }
    const sw_stacks *stacks = sw_summary_stacks(summary);
    const sw_stack_counts counts =
        stacks ? sw_stacks_count(stacks, NULL) : (sw_stack_counts){0};
    if (counts.running == 0 && counts.waiting == 0) {
        return sw_error_set(info, SW_ENOTFOUND,
                            "%.300s holds no samples; run the program under 'stepwatch "
                            "run' with sampler_hz above 0, or call stepwatch.sample().",
                            sw_run_path(run));
    }
    if (counts.running == 0 && !request->stacks.waiting) {
        return sw_error_set(info, SW_ENOTFOUND,
                            "no thread was running in any sample of %.300s; --waiting "
                            "writes those that waited.",
                            sw_run_path(run));
    }
    write_view(writer, summary, request, stacks);
    return SW_OK;
}

static int write_pstats(sw_writer *writer, const sw_run *run, const sw_summary *summary,
                        const struct request *request, sw_error_info *info)
{
    (void)request;
    const sw_functions *functions = sw_summary_functions(summary);
    if (!functions) {
        return sw_error_set(
            info, SW_ENOTFOUND,
            "%.300s holds no function profile; record one with 'stepwatch "
            "run --functions' or stepwatch.functions().",
            sw_run_path(run));
    }
    sw_export_stats_file(writer, functions, NULL);
    return SW_OK;
}

static const struct format *find_format(const char *name)
{
    char list[256] = "";
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            return &formats[i];
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i == 0            ? ""
                 : i + 1 < FORMATS ? ", "
                                   : " and ",
                 formats[i].name);
    }
    cli_complain("export: there is no format '%.60s'; there are %s.", name, list);
    return NULL;
}

static bool view_of(const char *text, enum sw_memory_view *view)
{
    static const char *const names[] = {[SW_MEMORY_PEAK] = "peak",
                                        [SW_MEMORY_LIVE] = "live",
                                        [SW_MEMORY_ALLOCATED] = "allocated"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *view = (enum sw_memory_view)i;
            return true;
        }
    }
    cli_complain("export: --memory takes peak, live or allocated, not '%.60s'.", text);
    return false;
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
        if (option == OPTION_OPERAND && request->path) {
            cli_complain("export: one run at a time, not '%.100s' too.", value);
            return false;
        }
        if (option == OPTION_OPERAND) {
            request->path = value;
            continue;
        }
        if (option < 0) {
            return false;
        }
        request->given[option] = true;
        request->to = option == TO ? value : request->to;
        request->out = option == OUT ? value : request->out;
        if (option == MEMORY && !view_of(value, &request->view)) {
            return false;
        }
        if (option == STEPS && !export_steps(value, &request->trace)) {
            return false;
        }
    }
    request->stacks = (sw_stack_options){.waiting = request->given[WAITING],
                                         .lines = request->given[LINES],
                                         .threads = request->given[THREADS],
                                         .sections = request->given[SECTIONS]};
    if (!request->path) {
        cli_complain("export: which run? See 'stepwatch export --help'.");
        return false;
    }
    if (!request->to) {
        cli_complain("export: which format? --to takes it; see 'stepwatch export "
                     "--help'.");
        return false;
    }
    return true;
}

static bool check_format(const struct request *request, const struct format *format)
{
    for (int i = WAITING; i < OPTIONS; i++) {
        if (request->given[i] && !format->takes[i]) {
            cli_complain("export: --%s means nothing for the format %s.", options[i].name,
                         format->name);
            return false;
        }
    }
    if (format->folder && (!request->out || strcmp(request->out, "-") == 0)) {
        cli_complain("export: %s is a folder of files; name it with -o.", format->name);
        return false;
    }
    if (format->binary && !request->out && isatty(STDOUT_FILENO)) {
        cli_complain("export: %s is not for terminals; name a file with -o.",
                     format->name);
        return false;
    }
    return true;
}

/* What a format writes of a run. */
struct result {
    const struct request *request;
    const struct format *format;
    const sw_run *run;
    const sw_summary *summary;
};

static int write_result(sw_writer *writer, const void *context, sw_error_info *info)
{
    const struct result *it = context;
    return it->format->write(writer, it->run, it->summary, it->request, info);
}

/* An event file in a folder. */
static int write_events(const struct request *request, const sw_summary *summary)
{
    sw_error_info info = {0};
    sw_findings *findings = NULL;
    int error = sw_findings_of_summary(&findings, summary, &info);
    if (!error) {
        error = sw_export_tensorboard(request->out, summary, findings, &info);
    }
    sw_findings_free(findings);
    if (error) {
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
    }
    return error ? CLI_UNREADABLE : CLI_GOOD;
}

int cmd_export(int argc, char **argv)
{
    struct request request = {0};
    int code;
    if (!parse(&request, argc, argv, &code)) {
        return code;
    }
    const struct format *format = find_format(request.to);
    if (!format || !check_format(&request, format)) {
        return CLI_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    if (format->trace) {
        request.trace.samples = request.given[SAMPLES];
        request.trace.format = (enum sw_trace_format)(format->trace - 1);
        return export_trace(request.path, &request.trace, request.out);
    }
    sw_run *run;
    sw_summary *summary;
    sw_error_info info = {0};
    int error = cli_summarise(request.path, &run, &summary, &info);
    if (error) {
        cli_complain("%s", info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    code = format->folder
               ? write_events(&request, summary)
               : out_file_write(request.out, write_result,
                                &(struct result){&request, format, run, summary});
    sw_summary_free(summary);
    sw_run_free(run);
    return code;
}

/* Reports of a summary, for machines (JSON) and for people (text), and files for other tools. */
#ifndef STEPWATCH_EXPORT_H
#define STEPWATCH_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/analyze.h>
#include <stepwatch/chart.h>
#include <stepwatch/compare.h>
#include <stepwatch/error.h>
#include <stepwatch/findings.h>
#include <stepwatch/functions.h>
#include <stepwatch/lines.h>
#include <stepwatch/trace.h>
#include <stepwatch/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One JSON document, schema stepwatch.report/1, and a newline. What a run does not hold is null or
 * {"recorded": false, "why": "…"}. Errors stick to the writer. Here and below, `findings` are those of the summary; NULL:
 * nobody looked for any, and the report says so. */
SW_API void sw_export_report_json(sw_writer *writer, const sw_summary *summary,
                                  const sw_findings *findings);

/* How a text report looks. All zero: one screen of 80 columns, no colour, ASCII. */
typedef struct sw_text_options {
    size_t columns; /* no line is wider; held within 60…200 */
    bool colour;    /* ANSI sequences */
    bool unicode;   /* box characters and bars; false: ASCII only, also in names */
    size_t top;     /* rows of each table; 0: the first screen only, SW_TEXT_ALL: all */
} sw_text_options;
#define SW_TEXT_ALL ((size_t)-1)
#define SW_TEXT_COLUMNS_MIN 60
#define SW_TEXT_COLUMNS_MAX 200

SW_API void sw_export_report_text(sw_writer *writer, const sw_summary *summary,
                                  const sw_findings *findings,
                                  const sw_text_options *options);

/* One page of HTML that needs nothing else: no script, no other file, no network. */
SW_API void sw_export_report_html(sw_writer *writer, const sw_summary *summary,
                                  const sw_findings *findings);

/* The verdict, the figures and what to change as Markdown, for the description of a pull request. */
SW_API void sw_export_report_markdown(sw_writer *writer, const sw_summary *summary,
                                      const sw_findings *findings);

/* Charts of a run. Where it does not hold what one needs, the chart says so. The caller frees it with sw_chart_free. */
enum sw_run_chart {
    SW_RUN_CHART_STEPS,  /* how long steps took, as a histogram */
    SW_RUN_CHART_PHASES, /* the phases of each step, stacked */
    SW_RUN_CHART_MEMORY, /* over the time of the run, here and below */
    SW_RUN_CHART_CPU,
    SW_RUN_CHART_GPU,
    SW_RUN_CHARTS
};
SW_API const char *sw_run_chart_name(enum sw_run_chart which); /* "steps" */
SW_API int sw_run_chart(sw_chart **out, enum sw_run_chart which,
                        const sw_summary *summary, sw_error_info *info);

/* Tables as CSV (RFC 4180). Names of columns carry the unit; what is not known is empty. A path has its names from the top,
 * with a slash between them, and a backslash before a slash or backslash in a name. */
enum sw_csv_table {
    SW_CSV_STEPS, /* one row a step, the phases in ns, what the thread used */
    SW_CSV_PHASES,
    SW_CSV_SECTIONS,
    SW_CSV_MODULES,
    SW_CSV_FINDINGS,
    SW_CSV_TABLES
};
SW_API const char *sw_csv_table_name(enum sw_csv_table table); /* "steps" */
/* 0, or SW_ENOMEM where steps could not be read; errors of writing stick to the writer. */
SW_API int sw_export_csv(sw_writer *writer, enum sw_csv_table table,
                         const sw_summary *summary, const sw_findings *findings);

/* A comparison: one JSON document, schema stepwatch.compare/1, and a newline; or text. */
SW_API void sw_export_compare_json(sw_writer *writer, const sw_comparison *comparison);
SW_API void sw_export_compare_text(sw_writer *writer, const sw_comparison *comparison,
                                   const sw_text_options *options);

/* How sampled stacks are written. All zero: running samples only, functions without lines. */
typedef struct sw_stack_options {
    bool waiting;  /* waiting samples too, each below its stack as a leaf "(waiting)" */
    bool lines;    /* frames of one function at different lines are different */
    bool threads;  /* collapsed: the name of the thread is the first frame */
    bool sections; /* the innermost section is a frame before the others */
    const char *name; /* speedscope: of the whole; NULL: none */
} sw_stack_options;

/* One line a stack: "root;child;leaf N", N samples. A frame is "name (file)", with lines "name (file:line)"; bytes that
 * would break a line appear as \xNN, newlines as \n. Errors stick to the writer, here and below. */
SW_API void sw_export_collapsed(sw_writer *writer, const sw_stacks *stacks,
                                const sw_stack_options *options);
/* One JSON document for speedscope: a profile of kind "sampled" for each thread of each process, busiest first. Weights
 * are seconds, or samples where the period is not known. */
SW_API void sw_export_speedscope(sw_writer *writer, const sw_stacks *stacks,
                                 const sw_stack_options *options);

/* Traces: single events on a timeline, for viewers. */
enum sw_trace_format {
    SW_TRACE_CHROME = 0, /* chrome://tracing, Perfetto */
    SW_TRACE_KINETO =
        1 /* what torch.profiler writes: TensorBoard's plug-in, HTA; also the two above */
};

/* Processes whose events make one file of Kineto's: a rank and the workers of its loaders, or the whole run where there are
 * no ranks. Strings live as long as the run. */
typedef struct sw_trace_part {
    long rank, world_size; /* -1: unknown */
    uint32_t pid;          /* of the process that trains */
    const char *host;      /* "" unknown */
    uint64_t start_real_ns;
} sw_trace_part;
/* How many there are, at least 1; fills in up to `room` of them, by rank. */
SW_API size_t sw_export_trace_parts(const sw_run *run, sw_trace_part *parts, size_t room);

typedef struct sw_trace_steps {
    uint64_t first, last;
} sw_trace_steps;

/* All zero: everything, in Chrome's format. */
typedef struct sw_trace_options {
    enum sw_trace_format format;
    size_t part; /* 0: all processes; n: those of part n - 1 */
    /* Steps first_step … last_step alone, and what happened within their time. */
    bool some_steps;
    uint64_t first_step, last_step;
    /* Of these, those of some stretches alone, in ascending order; 0: all of them. */
    const sw_trace_steps *stretches;
    size_t stretch_count;
    /* Only what lies within these moments of CLOCK_MONOTONIC; end_ns 0: no limit. */
    uint64_t begin_ns, end_ns;
    bool samples;     /* looks of the sampler too, each a moment of its thread */
    const char *name; /* "traceName"; NULL: none */
} sw_trace_options;

/* One JSON document, written while the records are read: memory does not grow with them. Slices of one track nest, times are
 * microseconds with three decimals since the start of the run, text is valid UTF-8, and no number is NaN. The member
 * "stepwatch" says what is not in it. Returns 0; SW_ENOTFOUND with a sentence where the run has no such steps, or nothing
 * that could be shown: then nothing was written. Errors of writing stick to the writer. */
SW_API int sw_export_trace(sw_writer *writer, const sw_run *run,
                           const sw_trace_options *options, sw_error_info *info);

/* The name that a file of Kineto's has by custom, by which tools know host, process and time:
 * "{host}_{pid}.{ms}.pt.trace.json", where ms is when the first of the chosen steps began, or the recording. 0 or an error as
 * above. */
#define SW_TRACE_FILE_NAME 256
SW_API int sw_export_trace_file_name(char out[SW_TRACE_FILE_NAME], const sw_run *run,
                                     const sw_trace_options *options,
                                     sw_error_info *info);

/* Function profiles. Largest first, or by name. */
enum sw_functions_sort {
    SW_FUNCTIONS_BY_TOTAL = 0,
    SW_FUNCTIONS_BY_SELF,
    SW_FUNCTIONS_BY_CALLS,
    SW_FUNCTIONS_BY_PRIMITIVE_CALLS,
    SW_FUNCTIONS_BY_ERRORS,
    SW_FUNCTIONS_BY_NAME,
    SW_FUNCTIONS_BY_FILE /* file, line, name */
};
/* The order that a word of pstats or ours names ("cumulative", "tottime", "calls", …); SW_ENOTFOUND. */
SW_API int sw_functions_sort_of(const char *word, enum sw_functions_sort *sort);

typedef struct sw_functions_text_options {
    enum sw_functions_sort sort;
    size_t limit;   /* functions shown, 0: all */
    size_t columns; /* no line is wider as far as names can be cut, 0: no limit */
} sw_functions_text_options;

/* The dictionary that `python -m pstats` and snakeviz load, marshalled. They read one object and ignore what follows, so a
 * text may come after it in the same file. */
SW_API void sw_export_pstats(sw_writer *writer, const sw_functions *functions);
/* The table that pstats prints. NULL: by cumulative time, all of it. */
SW_API void sw_export_functions_text(sw_writer *writer, const sw_functions *functions,
                                     const sw_functions_text_options *options);
/* What a .stats file holds: the dictionary, then the table as text, so that pstats, snakeviz and `cat` all have their part. */
SW_API void sw_export_stats_file(sw_writer *writer, const sw_functions *functions,
                                 const sw_functions_text_options *options);
/* One JSON document, schema stepwatch.functions/1, and a newline; with callers. */
SW_API void sw_export_functions_json(sw_writer *writer, const sw_functions *functions,
                                     const sw_functions_text_options *options);

/* A line profile as one JSON document, schema stepwatch.lines/1, and a newline: lines that ran, with their source. */
SW_API void sw_export_lines_json(sw_writer *writer, sw_lines *lines);

/* How the text of a line profile looks. All zero: ASCII, source lines are not cut. */
typedef struct sw_lines_text_options {
    size_t columns; /* source lines are cut to this width; 0: never */
    bool unicode;   /* false: ASCII only */
} sw_lines_text_options;
/* A table for each function: line, hits, time, time per hit, share of the function's time, source. */
SW_API void sw_export_lines_text(sw_writer *writer, sw_lines *lines,
                                 const sw_lines_text_options *options);

#ifdef __cplusplus
}
#endif
#endif

/* Parts of the reports that have files of their own. */
#ifndef SW_EXPORT_REPORT_PARTS_H
#define SW_EXPORT_REPORT_PARTS_H

#include <stepwatch/analyze.h>
#include <stepwatch/findings.h>
#include <stepwatch/write.h>

#include "export/text_page.h"

/* Members "functions", "lines" and "sampler" of report.json. */
void sw__json_functions(sw_writer *w, const sw_summary *summary);
void sw__json_lines(sw_writer *w, const sw_summary *summary);
void sw__json_sampler(sw_writer *w, const sw_summary *summary);
/* "modules" and "loader", and the members of training that the contract does not name. */
void sw__json_modules(sw_writer *w, const sw_summary *summary);
void sw__json_loader(sw_writer *w, const sw_summary *summary);
void sw__json_training(sw_writer *w, const sw_summary *summary);
void sw__json_monitor(sw_writer *w, const sw_summary *summary);
void sw__json_gpu(sw_writer *w, const sw_summary *summary);

/* "io": calls on files and sockets. */
void sw__json_io(sw_writer *w, const sw_summary *summary);
void sw__json_memory(sw_writer *w, const sw_summary *summary);

/* "findings", and what goes with them: "bound" and "checked". NULL: nobody looked. */
void sw__json_findings(sw_writer *w, const sw_findings *findings);
void sw__json_checks(sw_writer *w, const sw_findings *findings);

/* --- the verdict, for every kind of report --- */

#define SW__GAIN 64
/* "1.55× faster (1.40 to 1.75)"; empty where nothing is predicted. */
void sw__gain_text(char out[SW__GAIN], const sw_finding *finding);
enum sw__verdict { SW__VERDICT_GOOD, SW__VERDICT_CHANGE, SW__VERDICT_UNKNOWN };
/* The verdict as one sentence without a full stop; it may hold any bytes. */
enum sw__verdict sw__put_verdict(sw_writer *w, const sw_summary *summary,
                                 const sw_findings *findings);
/* How many kinds could be looked for, and why the first of the others could not (NULL: all could). */
size_t sw__checked_count(const sw_findings *findings, const char **first_why);

/* A phase that took time, and its share of a step in tenths of a percent; those of all phases sum to 1000. */
struct sw__phase_line {
    unsigned phase;
    uint64_t total_ns;
    double mean_ns;
    unsigned tenths;
};
/* Phases that took time, most first; returns how many. */
size_t sw__phase_lines(const sw_summary_steps *steps,
                       struct sw__phase_line out[SW_PHASE_COUNT]);
/* A sentence on steps that were watched in brief; false: there were none. */
#define SW__PHASES_NOTE 256
bool sw__phases_note(const sw_summary_steps *steps, char *out, size_t size);
/* Time of a phase in one step; SW_UNKNOWN: it was watched in brief, and not this phase. */
static inline uint64_t sw__phase_ns(const sw_summary_step *step, unsigned phase)
{
    return step->brief && !(SW_PHASES_ALWAYS >> phase & 1) ? SW_UNKNOWN
                                                           : step->phase_ns[phase];
}

/* --- parts of the text report --- */

void sw__report_verdict(const struct sw__page *page, const sw_summary *summary,
                        const sw_findings *findings);
/* What to change; `everything`: all of it, else what fits on a screen. */
void sw__report_findings(const struct sw__page *page, const sw_findings *findings,
                         bool everything);
void sw__report_checks(const struct sw__page *page, const sw_findings *findings,
                       bool everything);
/* The tree of sections alone; with names by self time; series of values. */
void sw__report_sections(const struct sw__page *page, const sw_summary *summary,
                         size_t top);
void sw__report_section_tables(const struct sw__page *page, const sw_summary *summary,
                               size_t top);
void sw__report_counters(const struct sw__page *page, const sw_summary *summary,
                         size_t top);
/* Where Python was, as the sampler saw it: at most `top` rows a table. Nothing without samples. */
void sw__report_samples(const struct sw__page *page, const sw_summary *summary,
                        size_t top);
/* What the exact profiles counted: functions by self time, and the hottest lines. Nothing without them. */
void sw__report_profiles(const struct sw__page *page, const sw_summary *summary,
                         size_t top);

/* The loader, the slowest modules, recompilations and waits; nothing of what was not recorded. */
void sw__report_training(const struct sw__page *page, const sw_summary *summary,
                         size_t top);

/* Memory of the training process, what the monitor saw, and how a GPU did, in a line each; empty where nothing is known. */
#define SW__LINE 512
void sw__memory_line(char *out, size_t size, const sw_summary *summary);
void sw__monitor_line(char *out, size_t size, const sw_summary *summary);
void sw__gpu_line(char *out, size_t size, const sw_gpu *gpu, bool unicode);
/* Whether a report has room for it: the program sees it, and it is no part of another. */
bool sw__gpu_is_shown(const sw_gpu *gpu);

/* What the monitor saw, in one line; nothing without it. */
void sw__report_monitor(const struct sw__page *page, const sw_summary *summary);
void sw__report_gpus(const struct sw__page *page, const sw_summary *summary);
/* Calls on files and sockets: sums, and at most `top` files and peers. Nothing where they were not watched. */
void sw__report_io(const struct sw__page *page, const sw_summary *summary, size_t top);

/* Text of a program for a cell: harmless, and short enough in bytes too. */
void sw__report_cell(const struct sw__page *page, char *out, size_t size,
                     const char *bytes);
/* "file.py:12", the folders left out; "-" where nothing is known. */
void sw__report_where(const struct sw__page *page, char out[SW__CELL], const char *file,
                      uint32_t line);

#endif

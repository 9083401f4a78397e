/* The parts of report.html. Each writes its part of the page, or nothing where there is nothing to show. */
#ifndef SW_EXPORT_REPORT_HTML_H
#define SW_EXPORT_REPORT_HTML_H

#include <stepwatch/analyze.h>
#include <stepwatch/export.h>
#include <stepwatch/findings.h>
#include <stepwatch/write.h>

struct sw__html_report {
    sw_writer *w;
    const sw_summary *summary;
    const sw_findings *findings; /* NULL: nobody looked */
};

void sw__html_phases(const struct sw__html_report *it);
void sw__html_steps(const struct sw__html_report *it);
void sw__html_findings(const struct sw__html_report *it);
void sw__html_checks(const struct sw__html_report *it);
void sw__html_loader(const struct sw__html_report *it);
void sw__html_modules(const struct sw__html_report *it);
void sw__html_sections(const struct sw__html_report *it);
void sw__html_functions(const struct sw__html_report *it);
void sw__html_lines(const struct sw__html_report *it);
void sw__html_waits(const struct sw__html_report *it);
void sw__html_compilations(const struct sw__html_report *it);
void sw__html_samples(const struct sw__html_report *it);
void sw__html_counters(const struct sw__html_report *it);
void sw__html_memory(const struct sw__html_report *it);
void sw__html_monitor(const struct sw__html_report *it);
void sw__html_gpus(const struct sw__html_report *it);
void sw__html_io(const struct sw__html_report *it);

/* A chart of the run, in the colours of the page. */
void sw__html_chart(const struct sw__html_report *it, enum sw_run_chart which);

#endif

/* Parts of the reports that have files of their own. */
#ifndef SW_EXPORT_REPORT_PARTS_H
#define SW_EXPORT_REPORT_PARTS_H

#include <stepwatch/analyze.h>
#include <stepwatch/write.h>

#include "export/text_page.h"

/* Members "functions", "lines" and "sampler" of report.json. */
void sw__json_functions(sw_writer *w, const sw_summary *summary);
void sw__json_lines(sw_writer *w, const sw_summary *summary);
void sw__json_sampler(sw_writer *w, const sw_summary *summary);

/* Where Python was, as the sampler saw it: at most `top` rows a table. Nothing without samples. */
void sw__report_samples(const struct sw__page *page, const sw_summary *summary,
                        size_t top);

#endif

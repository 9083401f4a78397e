/* Reports that go to files: each is there whole, or not at all. */
#ifndef SW_CLI_REPORT_FILES_H
#define SW_CLI_REPORT_FILES_H

#include "cli/cli.h"

/* Writes the page; "-" is stdout. What went wrong has been complained of; the result is what to exit with. */
int report_write_html(const struct cli_case *it, const char *path);
/* Writes the tables as DIR/steps.csv and so on, makes the folder where there is none. Either all of them are new or none is. */
int report_write_csv(const struct cli_case *it, const char *folder);

#endif

/* Reading the texts of /proc and /sys. All of it takes any text: what is damaged is unknown. Unknown numbers are
 * SW__UNKNOWN. */
#ifndef SW_WATCH_PROC_PARSE_H
#define SW_WATCH_PROC_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW__UNKNOWN UINT64_MAX

/* A decimal number at `*at`, blanks before it skipped; `*at` moves behind it. False: there is none, or it does not fit. */
bool sw__proc_number(const char **at, uint64_t *out);
/* The number after `key` at the beginning of a line ("VmSwap:", "nr_throttled"). */
uint64_t sw__proc_field(const char *text, const char *key);
/* The `index`th blank-separated number of a text, from 0. */
uint64_t sw__proc_nth(const char *text, unsigned index);
/* The beginning of the next line; NULL: there is none. */
const char *sw__proc_next_line(const char *at);
/* NaN for SW__UNKNOWN, else the number times `scale`. */
double sw__proc_value(uint64_t number, double scale);

#endif

/* The table of options: how a value given as text becomes a setting, and back. */
#ifndef SW_RECORD_OPTIONS_H
#define SW_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "record/config.h"

/* More than there are options. */
#define SW__OPTIONS_MOST 64
/* Smallest cap on a trace; below it not even the statistics of a few threads fit. */
#define SW__MAX_MB_LEAST 2
/* Shortest and longest period of the monitor. */
#define SW__SECONDS_LEAST 0.01
#define SW__SECONDS_MOST 3600.0
/* Most samples a second; beyond it a sampler measures itself. */
#define SW__HERTZ_MOST 1000

/* Index of an option in the table, or -1. */
int sw__option_find(const char *name, size_t length);
/* Sets option `index` of `out` from text. SW_EINVAL with a sentence when it makes no sense; then
 * `out` is as it was. */
int sw__option_apply(struct sw__settings *out, int index, const char *value,
                     sw_error_info *info);
/* Writes the value in force; returns the length that the whole text has, as snprintf does. */
size_t sw__option_show(const struct sw__settings *settings, int index, char *out,
                       size_t size);
/* The variable of an option, "STEPWATCH_MAX_MB". */
void sw__option_variable(const char *name, char *out, size_t size);
/* Turns mebibytes into a cap in bytes; negative is 0, no cap. */
int sw__option_megabytes(double megabytes, uint64_t *bytes, sw_error_info *info);
/* Checks a rate of samples; negative is 0, none. */
int sw__option_hertz(double hertz, double *out, sw_error_info *info);
/* Checks a period; negative is 0, none. */
int sw__option_seconds(const char *name, double seconds, double *out,
                       sw_error_info *info);

#endif

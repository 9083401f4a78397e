/* What data sets and models keep, told from a program's own source. */
#ifndef SW_ANALYZE_SOURCE_SAMPLES_H
#define SW_ANALYZE_SOURCE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a data set of that class gives the same each time it is asked for the same sample: its `__getitem__` draws nothing, has
 * no transform that may, and calls only what is in this file and draws nothing either. False also where the class is not here. */
bool sw__source_same_samples(const char *text, size_t length, const char *type);

/* Whether a line of the file may give a model the parameters of another one from step to step, as averages and copies of one that
 * learns do. */
bool sw__source_moves_parameters(const char *text, size_t length);

/* Whether a line puts models into the mode in which they leave nothing to chance. */
bool sw__source_evaluates(const char *text, size_t length);

#endif

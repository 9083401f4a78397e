/* What was said about the options outside of the program. */
#ifndef SW_RECORD_GIVEN_H
#define SW_RECORD_GIVEN_H

#include <stdbool.h>
#include <stepwatch/config.h>

/* As sw_given_read, for the recorder: `presets` take the place of a file, and a `file` that cannot be read is a problem
 * like others. NULL: out of memory. */
sw_given *sw__given_gather(const char *file, const char *const *presets);
/* Whether STEPWATCH_ENABLED says off, which nothing can overrule. */
bool sw__given_off(const sw_given *given);

#endif

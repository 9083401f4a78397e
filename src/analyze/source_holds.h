/* Whether a call is given nothing but what an object has had since it was built, told from the source. */
#ifndef SW_ANALYZE_SOURCE_HOLDS_H
#define SW_ANALYZE_SOURCE_HOLDS_H

#include "analyze/source_calls.h"

/* Looks at the names in a call's brackets, of which there is one or more. Each is an attribute (`self.table`) that nothing but a
 * method that builds gives a value, or a constant in capitals; of what learns, and of what a loop goes through, that is not known.
 * A guess: names are all that is known. */
bool sw__source_call_holds(const char *text, size_t length,
                           const struct sw__source_call *call);

#endif

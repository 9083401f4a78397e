/* Whether a call is given nothing but what an object has had since it was built, or nothing at all, told from the source. */
#ifndef SW_ANALYZE_SOURCE_HOLDS_H
#define SW_ANALYZE_SOURCE_HOLDS_H

#include "analyze/source_calls.h"

/* Looks at the names in a call's brackets, of which there is one or more. Each is an attribute (`self.table`) that nothing but a
 * method that builds gives a value, or a constant in capitals; of what learns, and of what a loop goes through, that is not known.
 * A guess: names are all that is known. */
bool sw__source_call_holds(const char *text, size_t length,
                           const struct sw__source_call *call);

/* Where a class calls one of its parts: the line, and the method that it is in. */
struct sw__source_part {
    uint32_t line;
    const char *method;
    size_t method_length;
};

/* Whether the class of that name calls `self.ATTRIBUTE(…)`, and each time with nothing but what its objects have had since they were
 * built, as in sw__source_call_holds; keywords and numbers may be among it, and names that the method gives a value once, made of
 * nothing else: `mask = (self.prompts > 0).long()`. `*out` is the first of these calls; those where it
 * builds do not count. */
bool sw__source_part_holds(const char *text, size_t length, const char *type,
                           const char *attribute, struct sw__source_part *out);

/* Whether the method that begins at `first` is given nothing but its object. */
bool sw__source_given_nothing(const char *text, size_t length, uint32_t first);
/* Whether it may change something of its object: assigns an attribute, or calls a method that changes what it is called for. Also where
 * it cannot be read. */
bool sw__source_changes_self(const char *text, size_t length, uint32_t first);
/* Whether what it names of its object is changed by nobody in the file but a method that builds. */
bool sw__source_self_stays(const char *text, size_t length, uint32_t first);

#endif

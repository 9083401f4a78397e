/* Names and statements in a program's own source: what can be told without a grammar. */
#ifndef SW_ANALYZE_SOURCE_NAMES_H
#define SW_ANALYZE_SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/source_loops.h"

/* Longer statements and lists of names are not understood. */
enum { SW__STATEMENT_LINES = 12, SW__NAMES_MOST = 64 };

/* Names as they stand in the source; `self.x` is one. */
struct sw__names {
    struct sw__name {
        const char *text;
        size_t length;
    } list[SW__NAMES_MOST];
    size_t count;
    bool full;
};

bool sw__source_in_name(char c);
bool sw__source_is_code(const struct sw__source_line *at);
bool sw__source_starts(const struct sw__source_line *at, const char *word);
/* The end of a string that begins here. */
const char *sw__source_past_string(const char *at, const char *end);

bool sw__name_is(const struct sw__name *name, const char *word);
bool sw__name_is_one_of(const struct sw__name *name, const char *const *words,
                        size_t count);
#define SW__NAME_IS_ONE_OF(name, list)                                                   \
    sw__name_is_one_of(name, list, sizeof list / sizeof list[0])
void sw__names_add(struct sw__names *names, struct sw__name name);
/* True of every name where there were more than fit. */
bool sw__names_has(const struct sw__names *names, const struct sw__name *name);

/* Names that a piece of source uses, and plain functions that it calls (NULL: nobody wants to know). `impure`: objects of which
 * it calls methods that may give something else each time. */
void sw__names_scan(const char *at, const char *end, struct sw__names *used,
                    struct sw__names *called, struct sw__names *impure);
/* Where the value of an assignment begins; NULL: the statement assigns nothing. `*adds`: it is `+=` or the like. */
const char *sw__source_value(const char *at, const char *end, bool *adds);
/* The statement with the lines that it goes on in; false: it is none, or too long. */
bool sw__source_statement(const char *text, size_t length, uint32_t number,
                          const char **begin, const char **end);

/* The head of the function that begins at `first`, past its decorators: `*head` is all of it, `*last` its last line. False: this is
 * no function. */
bool sw__source_head(const char *text, size_t length, uint32_t first,
                     struct sw__source_line *head, uint32_t *last);

/* The line from `from` on, of `most`, that defines a class or a function (`what`: "class " or "def "), inside of what is indented by more
 * than `indent`, -1 the whole file; 0: there is none. */
uint32_t sw__source_find(const char *text, size_t length, uint32_t from, uint32_t most,
                         const char *what, const char *name, size_t name_length,
                         long indent, struct sw__source_line *out);

#endif

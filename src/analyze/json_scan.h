/* A small JSON reader for small files that stepwatch wrote itself: it pulls one value after the
 * other out of a text in memory. The first mistake in the text sticks; every later call fails too. */
#ifndef SW_ANALYZE_JSON_SCAN_H
#define SW_ANALYZE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW__SCAN_DEPTH 64

enum sw__scan_kind {
    SW__SCAN_BAD,
    SW__SCAN_NULL,
    SW__SCAN_BOOL,
    SW__SCAN_NUMBER,
    SW__SCAN_STRING,
    SW__SCAN_ARRAY,
    SW__SCAN_OBJECT
};

struct sw__scan {
    const char *at, *end;
    bool bad;
};

/* What stands next, without taking it. */
enum sw__scan_kind sw__scan_peek(struct sw__scan *json);
/* Take `{` or `[`; then sw__scan_member or sw__scan_element before each value, until they say false, which
 * takes the closing bracket. Set `*first` to true before the first call. */
bool sw__scan_enter(struct sw__scan *json, enum sw__scan_kind kind);
bool sw__scan_member(struct sw__scan *json, bool *first, char *key, size_t size);
bool sw__scan_element(struct sw__scan *json, bool *first);
/* Take a value. A string is written NUL-terminated, cut to `size` bytes; its NULs become '?'. The
 * result is the length it would have, or -1. */
long sw__scan_string(struct sw__scan *json, char *out, size_t size);
bool sw__scan_number(struct sw__scan *json, double *out);
bool sw__scan_skip(struct sw__scan *json); /* any value */

#endif

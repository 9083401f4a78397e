/* Attributes that stay as they were built. */
#include "analyze/source_holds.h"

#include <ctype.h>
#include <string.h>

#include "analyze/source_loops.h"
#include "analyze/source_names.h"

enum { LINES_MOST = 20000 };

typedef struct sw__source_line line;

/* Where `.name` stands between `at` and `end`, past it; NULL: nowhere. */
static const char *past_attribute(const char *at, const char *end, struct sw__name name)
{
    for (const char *dot = at; dot && dot < end; dot++) {
        dot = memchr(dot, '.', (size_t)(end - dot));
        if (!dot) {
            return NULL;
        }
        const char *after = dot + 1 + name.length;
        if (after <= end && memcmp(dot + 1, name.text, name.length) == 0 &&
            (after == end || !sw__source_in_name(*after))) {
            return after;
        }
    }
    return NULL;
}

/* Whether a line may change an attribute: assigns it or a part of it, calls a method that changes what it is called for, or gives it
 * to somebody who does. */
static bool changes(const line *at, struct sw__name name)
{
    static const char *const words[] = {"_(",      "append(",  "extend(", "update(",
                                        "insert(", "shuffle(", ".sort(",  ".pop(",
                                        ".add(",   ".remove(", ".clear("};
    const char *end = at->text + at->length;
    bool adds;
    const char *value = sw__source_value(at->text, end, &adds);
    if (!past_attribute(at->text, end, name)) {
        return false;
    }
    bool does =
        sw__source_is_loop(at) || (value && past_attribute(at->text, value, name));
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !does; i++) {
        does = memmem(at->text, at->length, words[i], strlen(words[i])) != NULL;
    }
    return does;
}

static bool builds(const line *at)
{
    return sw__source_starts(at, "def __init__") ||
           sw__source_starts(at, "def __post_init__");
}

static bool stays(const char *text, size_t length, struct sw__name name)
{
    static const char *const learns[] = {"weight", "param", "layer", "theta",
                                         "coef",   "bias",  "model", "state"};
    line at;
    bool building = false;
    for (size_t i = 0; i < sizeof learns / sizeof learns[0]; i++) {
        if (memmem(name.text, name.length, learns[i], strlen(learns[i]))) {
            return false;
        }
    }
    for (uint32_t i = 1; sw__source_line_get(text, length, i, &at); i++) {
        if (sw__source_starts(&at, "def ")) {
            building = builds(&at);
        }
        if (i > LINES_MOST || (!building && changes(&at, name))) {
            return false;
        }
    }
    return true;
}

static bool is_constant(struct sw__name name)
{
    bool letters = false;
    for (size_t i = 0; i < name.length; i++) {
        if (islower((unsigned char)name.text[i]) || name.text[i] == '.') {
            return false;
        }
        letters = letters || isupper((unsigned char)name.text[i]);
    }
    return letters;
}

bool sw__source_call_holds(const char *text, size_t length,
                           const struct sw__source_call *call)
{
    const char *at = call->inside, *end = call->inside + call->inside_length;
    size_t count = 0;
    while (at < end) {
        const char *from = at;
        while (at < end && (sw__source_in_name(*at) || *at == '.')) {
            at++;
        }
        struct sw__name name = {from, (size_t)(at - from)};
        if (name.length > 5 && memcmp(from, "self.", 5) == 0 &&
            !memchr(from + 5, '.', name.length - 5)) {
            name = (struct sw__name){from + 5, name.length - 5};
            if (!stays(text, length, name)) {
                return false;
            }
            count++;
        } else if (name.length > 0 && !is_constant(name)) {
            return false;
        } else {
            count += name.length > 0;
        }
        while (at < end && !sw__source_in_name(*at)) {
            at++;
        }
    }
    return count > 0;
}

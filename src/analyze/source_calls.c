/* Calls with plain names. */
#include "analyze/source_calls.h"

#include <string.h>

#include "analyze/source_loops.h"
#include "analyze/source_names.h"

enum { ARGUMENTS_MOST = 24, LINES_MOST = 400 };

typedef struct sw__source_line line;

static bool same(struct sw__name a, struct sw__name b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Where the brackets that open at `at` close again, if nothing but names is in them; NULL otherwise. */
static const char *close_of_names(const char *at, const char *end)
{
    for (at++; at < end && *at != ')'; at++) {
        if (!sw__source_in_name(*at) && *at != ',' && *at != ' ' && *at != '.') {
            return NULL;
        }
    }
    return at < end ? at : NULL;
}

bool sw__source_call_get(const char *text, size_t length, uint32_t number,
                         const char *wanted, struct sw__source_call *out)
{
    line at;
    size_t found = 0;
    if (!sw__source_line_get(text, length, number, &at) ||
        (at.length > 4 && memcmp(at.text, "def ", 4) == 0)) {
        return false;
    }
    const char *end = at.text + at.length;
    for (const char *c = at.text; c < end && *c != '#'; c++) {
        const char *close = *c == '(' ? close_of_names(c, end) : NULL;
        const char *name = c;
        while (name > at.text && sw__source_in_name(name[-1])) {
            name--;
        }
        /* A method is called for what it does to its object, unless somebody asks for it; parts of the object's own are parts. */
        const bool own = name - at.text >= 5 && memcmp(name - 5, "self.", 5) == 0;
        const bool method = name > at.text && name[-1] == '.' && !own;
        if (!close || name == c || close == c + 1 || (method && !wanted)) {
            continue;
        }
        const size_t name_length = (size_t)(c - name);
        if (wanted &&
            (strlen(wanted) != name_length || memcmp(wanted, name, name_length) != 0)) {
            continue;
        }
        *out = (struct sw__source_call){.name = own ? name - 5 : name,
                                        .name_length = name_length + (own ? 5 : 0),
                                        .inside = c + 1,
                                        .inside_length = (size_t)(close - c - 1)};
        found++;
    }
    return found == 1;
}

bool sw__source_call_same(const struct sw__source_call *a,
                          const struct sw__source_call *b)
{
    return same((struct sw__name){a->name, a->name_length},
                (struct sw__name){b->name, b->name_length}) &&
           same((struct sw__name){a->inside, a->inside_length},
                (struct sw__name){b->inside, b->inside_length});
}

/* The next name from `*at` on, without its attributes; false: there is none. */
static bool next_name(const char **at, const char *end, struct sw__name *out)
{
    const char *c = *at;
    while (c < end && !sw__source_in_name(*c)) {
        c++;
    }
    *out = (struct sw__name){c, 0};
    while (c < end && sw__source_in_name(*c)) {
        c++;
    }
    out->length = (size_t)(c - out->text);
    while (c < end && (sw__source_in_name(*c) || *c == '.')) {
        c++;
    }
    *at = c;
    return out->length > 0;
}

static bool names(const struct sw__source_call *call, struct sw__name name)
{
    const char *at = call->name;
    const char *end = call->inside + call->inside_length;
    struct sw__name here;
    while (next_name(&at, end, &here)) {
        if (same(here, name) && !same(here, (struct sw__name){"self", 4})) {
            return true;
        }
    }
    return false;
}

/* Whether a line gives one of the call's names another value: names to the left of a `=` outside brackets, or after `for`. */
static bool assigns(const line *at, const struct sw__source_call *call)
{
    const char *end = at->text + at->length, *target = NULL;
    int depth = 0;
    for (const char *c = at->text; c < end && *c != '#'; c++) {
        depth += *c == '(' || *c == '[' || *c == '{';
        depth -= *c == ')' || *c == ']' || *c == '}';
        const bool compares = (c + 1 < end && c[1] == '=') ||
                              (c > at->text && strchr("=<>!", c[-1]) != NULL);
        target = *c == '=' && depth == 0 && !compares ? c : target;
    }
    if (sw__source_is_loop(at)) {
        target = memmem(at->text, at->length, " in ", 4);
    }
    const char *from = at->text;
    struct sw__name name;
    while (target && from < target && next_name(&from, target, &name)) {
        if (names(call, name)) {
            return true;
        }
    }
    return false;
}

static bool has(const line *at, const char *word)
{
    return memmem(at->text, at->length, word, strlen(word)) != NULL;
}

bool sw__source_call_keeps(const char *text, size_t length, uint32_t from, uint32_t to,
                           const struct sw__source_call *call, bool metric)
{
    line at;
    for (uint32_t i = from; i < to; i++) {
        if (i - from > LINES_MOST || !sw__source_line_get(text, length, i, &at) ||
            assigns(&at, call)) {
            return false;
        }
        const bool updates = has(&at, "backward(") || has(&at, ".step(");
        const bool in_place = has(&at, "_(") && !(metric && has(&at, "clip_grad"));
        if ((updates && !metric) || in_place || has(&at, ".update(") ||
            has(&at, ".eval(") || has(&at, ".train(")) {
            return false;
        }
    }
    return true;
}

/* The arguments of the function that begins at `first`, which all stand in one line. */
static size_t arguments(const char *text, size_t length, uint32_t first,
                        struct sw__name list[ARGUMENTS_MOST])
{
    line at;
    size_t count = 0;
    if (!sw__source_line_get(text, length, first, &at)) {
        return 0;
    }
    const char *c = memchr(at.text, '(', at.length);
    const char *end = at.text + at.length;
    const char *close = memrchr(at.text, ')', at.length);
    if (at.length < 4 || memcmp(at.text, "def ", 4) != 0 || !c || !close) {
        return 0;
    }
    end = close;
    while (c < end && count < ARGUMENTS_MOST && next_name(&c, end, &list[count])) {
        count++;
        while (c < end && *c != ',') {
            c++;
        }
    }
    return count;
}

bool sw__source_call_given(const char *text, size_t length, uint32_t first,
                           uint32_t second, const struct sw__source_call *call)
{
    struct sw__name one[ARGUMENTS_MOST], other[ARGUMENTS_MOST], name;
    const size_t count = arguments(text, length, first, one);
    const size_t others = arguments(text, length, second, other);
    const char *at = call->name;
    const char *end = call->inside + call->inside_length;
    while (next_name(&at, end, &name)) {
        size_t i = 0;
        while (i < count && !same(one[i], name)) {
            i++;
        }
        if (i == count || i >= others || !same(other[i], name)) {
            return false;
        }
    }
    return true;
}

/* The next name from `*at` on, with its attributes; false: there is none. */
static bool next_path(const char **at, const char *end, struct sw__name *out)
{
    if (!next_name(at, end, out)) {
        return false;
    }
    out->length = (size_t)(*at - out->text);
    return true;
}

/* The name that stands at place `index` of a call's brackets. */
static bool argument_at(const struct sw__source_call *call, size_t index,
                        struct sw__name *out)
{
    const char *at = call->inside, *end = call->inside + call->inside_length;
    bool there = next_path(&at, end, out);
    for (size_t i = 0; i < index && there; i++) {
        there = next_path(&at, end, out);
    }
    return there;
}

/* What a name inside a function is called where the function is called; `own`: as a method of the same object. */
static bool name_outside(const struct sw__name *arguments, size_t count, bool own,
                         const struct sw__source_call *call, struct sw__name name,
                         struct sw__name *out)
{
    size_t i = 0;
    while (i < count && !same(arguments[i], name)) {
        i++;
    }
    if (own && i == 0) {
        *out = name;
        return true;
    }
    return i < count && argument_at(call, i - (own ? 1 : 0), out);
}

bool sw__source_call_passed(const char *text, size_t length, uint32_t first,
                            const struct sw__source_call *inner,
                            const struct sw__source_call *call,
                            const struct sw__source_call *outer)
{
    struct sw__name list[ARGUMENTS_MOST], here, there, given;
    const size_t count = arguments(text, length, first, list);
    const bool own = count > 0 && same(list[0], (struct sw__name){"self", 4}) &&
                     call->name_length > 5 && memcmp(call->name, "self.", 5) == 0;
    const char *at = inner->name, *end = inner->inside + inner->inside_length;
    const char *other = outer->name, *stop = outer->inside + outer->inside_length;
    while (next_path(&at, end, &here)) {
        const char *dot = memchr(here.text, '.', here.length);
        const size_t root = dot ? (size_t)(dot - here.text) : here.length;
        const size_t rest = here.length - root;
        if (!next_path(&other, stop, &there) ||
            !name_outside(list, count, own, call, (struct sw__name){here.text, root},
                          &given) ||
            there.length != given.length + rest ||
            memcmp(there.text, given.text, given.length) != 0 ||
            memcmp(there.text + given.length, here.text + root, rest) != 0) {
            return false;
        }
    }
    return !next_path(&other, stop, &there);
}

bool sw__source_without_grad(const char *text, size_t length, uint32_t first,
                             uint32_t number)
{
    line at;
    if (first == 0 || number < first || number - first > LINES_MOST ||
        !sw__source_line_get(text, length, number, &at)) {
        return false;
    }
    bool without = has(&at, ").detach()") || has(&at, ").argmax(");
    size_t indent = at.indent;
    while (!without && number-- > first &&
           sw__source_line_get(text, length, number, &at)) {
        const bool around = sw__source_is_code(&at) && at.indent < indent;
        const bool decorates = sw__source_starts(&at, "@");
        without =
            (around || decorates) && (has(&at, "no_grad") || has(&at, "inference_mode"));
        indent = around ? at.indent : indent;
    }
    return without;
}

/* Whether one of the lines of the function that begins at `first` has one of these words; also where it cannot be read. */
static bool function_has(const char *text, size_t length, uint32_t first,
                         const char *const *words, size_t count)
{
    line head, at;
    if (!sw__source_line_get(text, length, first, &head)) {
        return true;
    }
    while (head.length > 0 && head.text[0] == '@') { /* decorators are part of it */
        if (!sw__source_line_get(text, length, ++first, &head)) {
            return true;
        }
    }
    for (uint32_t i = first + 1;
         i < first + LINES_MOST && sw__source_line_get(text, length, i, &at) &&
         (at.length == 0 || at.indent > head.indent || at.text[0] == ')');
         i++) {
        for (size_t k = 0; k < count; k++) {
            if (memmem(at.text, at.length, words[k], strlen(words[k]))) {
                return true;
            }
        }
    }
    return false;
}

bool sw__source_has_chance(const char *text, size_t length, uint32_t first)
{
    static const char *const words[] = {"rand",  "drop",      "noise",
                                        "sampl", "bernoulli", "gumbel"};
    return function_has(text, length, first, words, sizeof words / sizeof words[0]);
}

bool sw__source_trains(const char *text, size_t length, uint32_t first)
{
    static const char *const words[] = {"backward(", ".step("};
    return function_has(text, length, first, words, sizeof words / sizeof words[0]);
}

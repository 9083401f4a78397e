/* What a statement is computed from. */
#include "analyze/source_inputs.h"

#include <string.h>

#include "analyze/source_names.h"

/* Longer loops are not understood. */
enum { LINES_MOST = 400 };

typedef struct sw__source_line line;

static bool in_capitals(const struct sw__name *name)
{
    for (size_t i = 0; i < name->length; i++) {
        if (name->text[i] >= 'a' && name->text[i] <= 'z') {
            return false;
        }
    }
    return name->length > 1;
}

/* What a line of the body names, and so may change. */
static void scan_changes(const line *at, struct sw__names *changed,
                         struct sw__names *called)
{
    const char *end = at->text + at->length;
    struct sw__names used = {.count = 0};
    sw__names_scan(at->text, end, &used, called, NULL);
    /* An object that is used elsewhere may be changed there; constants in capitals are not. */
    for (size_t k = 0; k < used.count; k++) {
        if (!in_capitals(&used.list[k])) {
            sw__names_add(changed, used.list[k]);
        }
    }
}

/* Names that are never the same for long. */
static bool flows(const struct sw__name *name)
{
    static const char *const words[] = {
        "rand", "rng",    "gen",    "iter",   "load",   "queue",  "stream", "sampl",
        "env",  "time",   "clock",  "file",   "batch",  "param",  "weight", "model",
        "game", "world",  "agent",  "polic",  "player", "source", "feed",   "reader",
        "buff", "memory", "replay", "pool",   "sock",   "conn",   "cursor", "state",
        "next", "net",    "opt",    "critic", "actor",  "client"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (memmem(name->text, name->length, words[i], strlen(words[i]))) {
            return true;
        }
    }
    return false;
}

/* Arguments of the function at `first`; `*last` gets the last line of its head. */
static bool scan_arguments(const char *text, size_t length, uint32_t first,
                           struct sw__names *changed, uint32_t *last)
{
    line head;
    if (!sw__source_head(text, length, first, &head, last)) {
        return false;
    }
    const char *begin = memchr(head.text, '(', head.length);
    if (begin) {
        sw__names_scan(begin + 1, head.text + head.length, changed, NULL, NULL);
    }
    return begin != NULL;
}

/* A statement of a loop, and what the rest of the loop names. */
struct statement {
    const char *begin, *end;
    struct sw__names elsewhere; /* that may change there */
    struct sw__names called;    /* as functions, there */
};

/* False: it cannot be read. */
static bool read_statement(const char *text, size_t length, uint32_t first,
                           uint32_t number, struct statement *it)
{
    line head, at;
    it->elsewhere.count = it->called.count = 0;
    it->elsewhere.full = it->called.full = false;
    if (number == 0 ||
        !sw__source_statement(text, length, number, &it->begin, &it->end)) {
        return false;
    }
    uint32_t from = sw__source_loop(text, length, first, number);
    if (from == number) {
        return false; /* a comprehension: what it goes through is not looked at */
    }
    if (!sw__source_line_get(text, length, from > 0 ? from : first, &head)) {
        return false;
    }
    if (from > 0) {
        scan_changes(&head, &it->elsewhere, &it->called);
    } else if (!scan_arguments(text, length, first, &it->elsewhere, &from)) {
        return false;
    }
    for (uint32_t i = from + 1;
         i < from + LINES_MOST && sw__source_line_get(text, length, i, &at); i++) {
        if (!sw__source_is_code(&at)) {
            continue;
        }
        if (at.indent <= head.indent) {
            break;
        }
        if (at.text < it->begin || at.text >= it->end) {
            scan_changes(&at, &it->elsewhere, &it->called);
        }
    }
    return true;
}

bool sw__source_same_inputs(const char *text, size_t length, uint32_t first,
                            uint32_t number)
{
    struct statement it;
    if (!read_statement(text, length, first, number, &it)) {
        return false;
    }
    bool adds;
    const char *value = sw__source_value(it.begin, it.end, &adds);
    if (!value || adds) {
        return false; /* called for what it does, not for what it gives */
    }
    struct sw__names used = {.count = 0}, impure = {.count = 0};
    sw__names_scan(it.begin, value - 1, &it.elsewhere, NULL, NULL);
    sw__names_scan(value, it.end, &used, NULL, &impure);
    if (used.count == 0 || used.full || impure.count > 0) {
        return false;
    }
    for (size_t i = 0; i < used.count; i++) {
        if (sw__names_has(&it.elsewhere, &used.list[i]) ||
            sw__names_has(&it.called, &used.list[i]) || flows(&used.list[i])) {
            return false;
        }
    }
    /* Chance in the call itself. */
    static const char *const chance[] = {"rand",   "sample(", "next(", "shuffle",
                                         "choice", "recv",    "read(", "dropout"};
    for (size_t i = 0; i < sizeof chance / sizeof chance[0]; i++) {
        if (memmem(it.begin, (size_t)(it.end - it.begin), chance[i], strlen(chance[i]))) {
            return false;
        }
    }
    return true;
}

bool sw__source_uses_model(const char *text, size_t length, uint32_t first,
                           uint32_t number)
{
    struct statement it;
    if (!read_statement(text, length, first, number, &it)) {
        return false;
    }
    bool adds;
    const char *value = sw__source_value(it.begin, it.end, &adds);
    struct sw__names used = {.count = 0};
    sw__names_scan(value ? value : it.begin, it.end, &used, NULL, NULL);
    for (size_t i = 0; i < used.count && !it.called.full; i++) {
        if (sw__names_has(&it.called, &used.list[i])) {
            return true;
        }
    }
    return false;
}

static bool uses_one_of(const char *begin, const char *end, const struct sw__names *names)
{
    struct sw__names used = {.count = 0};
    sw__names_scan(begin, end, &used, NULL, NULL);
    for (size_t i = 0; i < used.count && !names->full; i++) {
        if (sw__names_has(names, &used.list[i])) {
            return true;
        }
    }
    return false;
}

bool sw__source_follows(const char *text, size_t length, uint32_t first, uint32_t from,
                        uint32_t number)
{
    const char *begin, *end, *value;
    struct sw__names made = {.count = 0};
    bool adds;
    line head, at;
    const uint32_t loop = sw__source_loop(text, length, first, number);
    if (loop == 0 || loop != sw__source_loop(text, length, first, from) ||
        !sw__source_line_get(text, length, loop, &head) ||
        !sw__source_statement(text, length, from, &begin, &end) ||
        !(value = sw__source_value(begin, end, &adds))) {
        return false;
    }
    sw__names_scan(begin, value - 1, &made, NULL, NULL);
    /* Twice: what the end of one round makes, the next may begin with. */
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = loop + 1;
             i < loop + LINES_MOST && sw__source_line_get(text, length, i, &at); i++) {
            if (!sw__source_is_code(&at)) {
                continue;
            }
            if (at.indent <= head.indent) {
                break;
            }
            if (i != number && sw__source_statement(text, length, i, &begin, &end) &&
                (value = sw__source_value(begin, end, &adds)) &&
                uses_one_of(value, end, &made)) {
                sw__names_scan(begin, value - 1, &made, NULL, NULL);
            }
        }
    }
    if (!sw__source_statement(text, length, number, &begin, &end)) {
        return false;
    }
    value = sw__source_value(begin, end, &adds);
    return uses_one_of(value ? value : begin, end, &made);
}

/* --- loops that go on --- */

/* What an assignment gives a value to, without what it is put at: `done` of `done[t]`. */
static void scan_targets(const char *at, const char *end, struct sw__names *names)
{
    while (at < end) {
        const char *stop = at;
        while (stop < end && *stop != '[') {
            stop++;
        }
        sw__names_scan(at, stop, names, NULL, NULL);
        size_t depth = 0;
        while (stop < end) {
            depth += *stop == '[';
            depth -= *stop == ']';
            stop++;
            if (depth == 0) {
                break;
            }
        }
        at = stop;
    }
}

/* The number of a loop that counts, `for t in range(…)`; no text: `while`. False: it goes through something. */
static bool counter_of(const line *head, struct sw__name *counter)
{
    *counter = (struct sw__name){0};
    if (sw__source_starts(head, "while ")) {
        return true;
    }
    if (!sw__source_starts(head, "for ")) {
        return false;
    }
    const char *begin = head->text + 4;
    const char *const end = head->text + head->length;
    const char *at = begin;
    while (at < end && sw__source_in_name(*at)) {
        at++;
    }
    *counter = (struct sw__name){begin, (size_t)(at - begin)};
    static const char range[] = " in range(";
    return at > begin && (size_t)(end - at) >= sizeof range - 1 &&
           memcmp(at, range, sizeof range - 1) == 0;
}

/* Whether a line uses the number of a round only to pick from what the loop makes. */
static bool picks_own(const line *at, const struct sw__name *counter,
                      const struct sw__names *made)
{
    const char *const end = at->text + at->length;
    const char *from = at->text;
    while (counter->length > 0 && from < end) {
        const char *hit =
            memmem(from, (size_t)(end - from), counter->text, counter->length);
        if (!hit) {
            break;
        }
        from = hit + counter->length;
        if ((hit > at->text && (sw__source_in_name(hit[-1]) || hit[-1] == '.')) ||
            (from < end && sw__source_in_name(*from))) {
            continue; /* part of another name */
        }
        if (hit == at->text || hit[-1] != '[') {
            return false;
        }
        const char *base = hit - 1;
        while (base > at->text && (sw__source_in_name(base[-1]) || base[-1] == '.')) {
            base--;
        }
        const struct sw__name name = {base, (size_t)(hit - 1 - base)};
        if (name.length == 0 || made->full || !sw__names_has(made, &name)) {
            return false;
        }
    }
    return true;
}

bool sw__source_goes_on(const char *text, size_t length, uint32_t first, uint32_t number)
{
    const char *begin, *end, *value;
    struct sw__names made = {.count = 0}, own = {.count = 0};
    struct sw__name counter;
    bool adds;
    line head, at;
    const uint32_t loop = sw__source_loop(text, length, first, number);
    if (loop == 0 || loop == number || !sw__source_line_get(text, length, loop, &head) ||
        !counter_of(&head, &counter) ||
        !sw__source_statement(text, length, number, &begin, &end) ||
        !(value = sw__source_value(begin, end, &adds)) || adds) {
        return false;
    }
    scan_targets(begin, value - 1, &own);
    /* First what the loop makes, then what it makes of what the statement gave, twice: what the end of one round makes, the next
     * may begin with; at last what its number picks. */
    enum { MAKES, FOLLOWS, FOLLOWS_AGAIN, PICKS, PASSES };
    for (unsigned pass = MAKES; pass < PASSES; pass++) {
        for (uint32_t i = loop + 1; sw__source_line_get(text, length, i, &at); i++) {
            if (!sw__source_is_code(&at)) {
                continue;
            }
            if (at.indent <= head.indent) {
                break;
            }
            if (i >= loop + LINES_MOST || sw__source_is_loop(&at) ||
                (pass == PICKS && !picks_own(&at, &counter, &made))) {
                return false; /* it goes through something, or picks from it */
            }
            if (pass == PICKS || !sw__source_statement(text, length, i, &begin, &end) ||
                !(value = sw__source_value(begin, end, &adds))) {
                continue;
            }
            if (pass == MAKES) {
                scan_targets(begin, value - 1, &made);
            } else if (i != number && uses_one_of(value, end, &own)) {
                scan_targets(begin, value - 1, &own);
            }
        }
    }
    return sw__source_statement(text, length, number, &begin, &end) &&
           (value = sw__source_value(begin, end, &adds)) && uses_one_of(value, end, &own);
}

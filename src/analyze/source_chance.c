/* Words of chance in the source of functions. */
#include "analyze/source_chance.h"

#include <string.h>
#include <strings.h>

#include "analyze/source_names.h"

/* Longer functions are not understood. */
enum { LINES_MOST = 300 };

typedef struct sw__source_line line;

static const char *const words[] = {
    "rand",    "rng",     "choice",  "shuffle",     "jitter",   "noise", "augment",
    "perturb", "uniform", "normal(", "permutation", "albument", "time()"};

static bool holds_chance(const char *begin, const char *end)
{
    for (const char *at = begin; at < end; at++) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            const size_t length = strlen(words[i]);
            if ((size_t)(end - at) >= length && strncasecmp(at, words[i], length) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool sw__named_by_chance(const char *name)
{
    return holds_chance(name, name + strlen(name));
}

/* The code of a line, without its comment. */
static const char *code_end(const line *at)
{
    const char *const end = at->text + at->length;
    for (const char *c = at->text; c < end; c++) {
        if (*c == '"' || *c == '\'') {
            c = sw__source_past_string(c, end) - 1;
        } else if (*c == '#') {
            return c;
        }
    }
    return end;
}

/* Line `number` of the function, if it is still of it and code; NULL text: none, `*over`: it has ended. */
static line line_of(const char *text, size_t length, uint32_t number, size_t indent,
                    bool *over)
{
    line at = {0};
    if (!sw__source_line_get(text, length, number, &at)) {
        *over = true;
        return (line){0};
    }
    if (!sw__source_is_code(&at)) {
        return (line){0};
    }
    *over = at.indent <= indent;
    return *over ? (line){0} : at;
}

bool sw__source_by_chance(const char *text, size_t length, uint32_t first)
{
    line head;
    uint32_t last;
    bool over = false;
    if (!sw__source_head(text, length, first, &head, &last) ||
        holds_chance(head.text, head.text + head.length)) {
        return true;
    }
    for (uint32_t i = last + 1; i < last + LINES_MOST; i++) {
        const line at = line_of(text, length, i, head.indent, &over);
        if (over) {
            return false;
        }
        if (at.text && holds_chance(at.text, code_end(&at))) {
            return true;
        }
    }
    return true;
}

static bool uses_any(const char *begin, const char *end, const struct sw__names *drawn)
{
    struct sw__names used = {.count = 0};
    sw__names_scan(begin, end, &used, NULL, NULL);
    bool any = used.full || drawn->full;
    for (size_t i = 0; i < used.count && drawn->count > 0; i++) {
        any = any || sw__names_has(drawn, &used.list[i]);
    }
    return any;
}

bool sw__source_uses_chance(const char *text, size_t length, uint32_t first,
                            uint32_t number)
{
    line head;
    uint32_t last;
    bool over = false;
    struct sw__names drawn = {.count = 0};
    const char *begin, *end;
    if (!sw__source_head(text, length, first, &head, &last) || number <= last ||
        number > last + LINES_MOST ||
        !sw__source_statement(text, length, number, &begin, &end)) {
        return true;
    }
    size_t decided = SIZE_MAX; /* the indentation of what chance decides on */
    for (uint32_t i = last + 1; i < number; i++) {
        const line at = line_of(text, length, i, head.indent, &over);
        if (!at.text) {
            continue;
        }
        const char *const stop = code_end(&at);
        bool adds;
        decided = at.indent > decided ? decided : SIZE_MAX;
        if (decided != SIZE_MAX || holds_chance(at.text, stop) ||
            uses_any(at.text, stop, &drawn)) {
            const char *value = sw__source_value(at.text, stop, &adds);
            if (value) {
                sw__names_scan(at.text, value, &drawn, NULL, NULL);
            } else if (decided == SIZE_MAX) {
                decided = at.indent;
            }
        }
    }
    while (begin < end) {
        const char *stop = memchr(begin, '\n', (size_t)(end - begin));
        stop = stop ? stop : end;
        const line at = {.text = begin, .length = (size_t)(stop - begin)};
        const char *const code = code_end(&at);
        if (holds_chance(begin, code) || uses_any(begin, code, &drawn)) {
            return true;
        }
        begin = stop + 1;
    }
    return false;
}

/* Of what a call gives only a part is used. */
#include "analyze/source_picks.h"

#include <string.h>

#include "analyze/source_names.h"

/* Longer functions are looked at so far; an index has no more dimensions. */
enum { LINES_MOST = 200, PARTS_MOST = 4 };

typedef struct sw__source_line line;

/* The end of what a bracket at `at` opens, past its counterpart; NULL: it is not there. */
static const char *past_bracket(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"' || *at == '\'') {
            at = sw__source_past_string(at, end);
            continue;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        at++;
        if (depth == 0) {
            return at;
        }
    }
    return NULL;
}

static bool holds(struct sw__name part, const char *word)
{
    return memmem(part.text, part.length, word, strlen(word)) != NULL;
}

static struct sw__name trimmed(const char *begin, const char *end)
{
    while (begin < end && (*begin == ' ' || *begin == '\n')) {
        begin++;
    }
    while (end > begin && (end[-1] == ' ' || end[-1] == '\n')) {
        end--;
    }
    return (struct sw__name){begin, (size_t)(end - begin)};
}

/* Whether something true or false is said of each row, and of few the one that is asked for. Masks of padding leave the rows in
 * that have something in them, which are most. */
static bool is_mask(struct sw__name part)
{
    static const char *const others[] = {"None", "where(", " if ",  "pad",
                                         "PAD",  "atten",  "valid", "key"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (holds(part, others[i])) {
            return false;
        }
    }
    return holds(part, " == ") || holds(part, " != -100") ||
           (holds(part, "mask") && !holds(part, "!=") && part.text[0] != '~');
}

/* Whether an index, what stands between its brackets, leaves most rows out. */
static bool leaves_out(const char *at, const char *end)
{
    struct sw__name parts[PARTS_MOST];
    size_t count = 0;
    const char *begin = at;
    while (at < end) {
        const bool opens = *at == '(' || *at == '[' || *at == '{';
        const char *past = opens ? past_bracket(at, end) : at + 1;
        if (!past || count == PARTS_MOST) {
            return false;
        }
        if (*at == ',') {
            parts[count++] = trimmed(begin, at);
            begin = past;
        }
        at = past;
    }
    if (count == PARTS_MOST) {
        return false;
    }
    parts[count++] = trimmed(begin, end);
    if (is_mask(parts[0])) {
        return true;
    }
    /* `[:, 0]` is as well the only column of a model that gives one number. */
    return count > 1 && sw__name_is(&parts[0], ":") &&
           (sw__name_is(&parts[1], "-1") ||
            (sw__name_is(&parts[1], "0") && count > 2 && sw__name_is(&parts[2], ":")) ||
            is_mask(parts[1]));
}

/* Whether a value that ends here is indexed so; other shapes of it may come first. */
static bool is_indexed(const char *at, const char *end)
{
    static const char *const shapes[] = {".view(", ".reshape(", ".flatten("};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t length = strlen(shapes[i]);
        if ((size_t)(end - at) > length && memcmp(at, shapes[i], length) == 0) {
            at = past_bracket(at + length - 1, end);
            return at && is_indexed(at, end);
        }
    }
    if (at >= end || *at != '[') {
        return false;
    }
    const char *past = past_bracket(at, end);
    return past && leaves_out(at + 1, past - 1);
}

/* Where `….name(…)` ends in a piece of source; NULL: it is not called there. */
static const char *past_call(const char *at, const char *end, const char *name)
{
    const size_t length = strlen(name);
    for (; (size_t)(end - at) > length + 1; at++) {
        if (*at == '.' && memcmp(at + 1, name, length) == 0 && at[1 + length] == '(') {
            return past_bracket(at + 1 + length, end);
        }
    }
    return NULL;
}

/* Whether all uses of a variable, in the lines of its block from `number` on, are such; `*some`: there are any. A line that makes
 * it anew is the last one. */
static bool only_indexed(const char *text, size_t length, uint32_t number, size_t indent,
                         struct sw__name name)
{
    line at;
    bool some = false;
    for (uint32_t i = number;
         i < number + LINES_MOST && sw__source_line_get(text, length, i, &at); i++) {
        if (!sw__source_is_code(&at)) {
            continue;
        }
        if (at.indent < indent) {
            break;
        }
        bool anew = false;
        const char *const end = at.text + at.length;
        for (const char *c = at.text; c < end && *c != '#';) {
            if (*c == '"' || *c == '\'') {
                c = sw__source_past_string(c, end);
                continue;
            }
            if (!sw__source_in_name(*c) || (c > at.text && c[-1] == '.')) {
                c++;
                continue;
            }
            const char *word = c;
            while (c < end && sw__source_in_name(*c)) {
                c++;
            }
            if ((size_t)(c - word) != name.length ||
                memcmp(word, name.text, name.length) != 0) {
                continue;
            }
            if (word == at.text && end - c > 3 && memcmp(c, " = ", 3) == 0) {
                anew = true;
            } else if (is_indexed(c, end)) {
                some = true;
            } else {
                return false;
            }
        }
        if (anew) {
            break;
        }
    }
    return some;
}

bool sw__source_picks(const char *text, size_t length, uint32_t number, const char *name)
{
    line at;
    const char *begin, *end;
    if (number == 0 || !sw__source_line_get(text, length, number, &at) ||
        !sw__source_statement(text, length, number, &begin, &end)) {
        return false;
    }
    const char *past = past_call(begin, end, name);
    if (!past) {
        return false;
    }
    if (is_indexed(past, end)) {
        return true;
    }
    /* `x = self.name(…)`, and nothing else. */
    const char *c = begin;
    while (c < end && sw__source_in_name(*c)) {
        c++;
    }
    const struct sw__name made = {begin, (size_t)(c - begin)};
    const struct sw__name rest = trimmed(past, end);
    bool adds;
    const char *value = sw__source_value(begin, end, &adds);
    if (!value || adds || made.length == 0 || value > end || value - 2 != c ||
        (rest.length > 0 && rest.text[0] != '#')) {
        return false;
    }
    uint32_t next = number + 1;
    for (; begin < end; begin++) {
        next += *begin == '\n';
    }
    return only_indexed(text, length, next, at.indent, made);
}

/* Names and statements in a program's own source. */
#include "analyze/source_names.h"

#include <string.h>

typedef struct sw__source_line line;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

bool sw__source_in_name(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

bool sw__name_is(const struct sw__name *name, const char *word)
{
    return name->length == strlen(word) && memcmp(name->text, word, name->length) == 0;
}

bool sw__name_is_one_of(const struct sw__name *name, const char *const *words,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sw__name_is(name, words[i])) {
            return true;
        }
    }
    return false;
}

void sw__names_add(struct sw__names *names, struct sw__name name)
{
    if (names->count < SW__NAMES_MOST) {
        names->list[names->count++] = name;
    } else {
        names->full = true;
    }
}

bool sw__names_has(const struct sw__names *names, const struct sw__name *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->list[i].length == name->length &&
            memcmp(names->list[i].text, name->text, name->length) == 0) {
            return true;
        }
    }
    return names->full;
}

const char *sw__source_past_string(const char *at, const char *end)
{
    const char quote = *at++;
    while (at < end && *at != quote && *at != '\n') {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at < end ? at + 1 : end;
}

/* What a chain of attributes stands for: `self.x` of `self.x.y`, else the first name. */
static struct sw__name unit_of(const char *text, const char *end, bool called)
{
    const char *dot = memchr(text, '.', (size_t)(end - text));
    if (called) { /* the last attribute is a method */
        const char *last = end;
        while (last > text && *last != '.') {
            last--;
        }
        end = last > text ? last : text;
    }
    if (!dot || dot >= end) {
        return (struct sw__name){text, (size_t)(end - text)};
    }
    const struct sw__name first = {text, (size_t)(dot - text)};
    if (!sw__name_is(&first, "self")) {
        return first;
    }
    const char *stop = dot + 1;
    while (stop < end && sw__source_in_name(*stop)) {
        stop++;
    }
    return (struct sw__name){text, (size_t)(stop - text)};
}

/* Whether a method gives the same again, as those of arrays and tables do; others may go on from where they were. */
static bool is_pure(const char *begin, const char *end)
{
    static const char *const methods[] = {"mean",
                                          "std",
                                          "sum",
                                          "var",
                                          "min",
                                          "max",
                                          "T",
                                          "t",
                                          "dot",
                                          "matmul",
                                          "mm",
                                          "norm",
                                          "sort",
                                          "argsort",
                                          "cumsum",
                                          "abs",
                                          "pow",
                                          "sqrt",
                                          "exp",
                                          "log",
                                          "reshape",
                                          "view",
                                          "transpose",
                                          "float",
                                          "double",
                                          "inverse",
                                          "pinverse",
                                          "clone",
                                          "copy",
                                          "numpy",
                                          "tolist",
                                          "to",
                                          "cpu",
                                          "softmax",
                                          "unique",
                                          "split",
                                          "lower",
                                          "upper",
                                          "items",
                                          "keys",
                                          "values",
                                          "median",
                                          "astype",
                                          "flatten",
                                          "encode",
                                          "matrix_power",
                                          "unsqueeze",
                                          "squeeze",
                                          "expand",
                                          "gather",
                                          "index_select",
                                          "masked_fill",
                                          "masked_select",
                                          "diagonal",
                                          "argmax",
                                          "argmin",
                                          "any",
                                          "all",
                                          "size",
                                          "clamp",
                                          "permute",
                                          "contiguous"};
    const char *last = end;
    while (last > begin && last[-1] != '.') {
        last--;
    }
    const struct sw__name method = {last, (size_t)(end - last)};
    return last == begin || SW__NAME_IS_ONE_OF(&method, methods);
}

/* `self.net(…)`: a part that is called, or a method. */
static bool is_own_part(const char *begin, const char *end)
{
    return end - begin > 5 && memcmp(begin, "self.", 5) == 0 &&
           !memchr(begin + 5, '.', (size_t)(end - begin - 5));
}

void sw__names_scan(const char *at, const char *end, struct sw__names *used,
                    struct sw__names *called, struct sw__names *impure)
{
    static const char *const words[] = {
        "if",   "else",  "for", "in",    "not",  "and",   "or",    "lambda",
        "True", "None",  "is",  "False", "self", "await", "yield", "return",
        "with", "as",    "cls", "torch", "np",   "numpy", "F",     "nn",
        "math", "jnp",   "jax", "tf",    "os",   "re",    "json",  "pd",
        "elif", "while", "len", "range", "int",  "float", "list",  "dict"};
    int depth = 0;
    while (at < end && *at != '#') {
        if (*at == '"' || *at == '\'') {
            at = sw__source_past_string(at, end);
            continue;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (!is_letter(*at)) {
            /* Numbers, and attributes of what was called. */
            const bool skip = sw__source_in_name(*at) || *at == '.';
            at++;
            while (skip && at < end && sw__source_in_name(*at)) {
                at++;
            }
            continue;
        }
        const char *begin = at;
        while (at < end && (sw__source_in_name(*at) ||
                            (*at == '.' && at + 1 < end && is_letter(at[1])))) {
            at++;
        }
        const char *next = at;
        while (next < end && *next == ' ') {
            next++;
        }
        const bool calls = next < end && *next == '(';
        const bool keyword =
            depth > 0 && next + 1 < end && *next == '=' && next[1] != '=';
        const struct sw__name unit = unit_of(begin, at, calls);
        if (impure && calls && unit.length && !SW__NAME_IS_ONE_OF(&unit, words)) {
            if (!is_pure(begin, at)) {
                sw__names_add(impure, unit);
            }
        }
        const bool plain = calls && !memchr(begin, '.', (size_t)(at - begin));
        if (called && calls && (plain || is_own_part(begin, at))) {
            sw__names_add(called, (struct sw__name){begin, (size_t)(at - begin)});
        }
        if (unit.length && !keyword && !SW__NAME_IS_ONE_OF(&unit, words)) {
            sw__names_add(used, unit);
        }
    }
}

const char *sw__source_value(const char *at, const char *end, bool *adds)
{
    int depth = 0;
    const char *found = NULL;
    *adds = false;
    for (const char *begin = at; at < end && *at != '#'; at++) {
        if (*at == '"' || *at == '\'') {
            at = sw__source_past_string(at, end) - 1;
            continue;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (*at != '=' || depth != 0 || at == begin) {
            continue;
        }
        if (at + 1 < end && at[1] == '=') {
            at++;
            continue;
        }
        if (strchr("<>!", at[-1])) {
            continue;
        }
        *adds |= strchr("+-*/%&|^@:", at[-1]) != NULL;
        found = at + 1;
    }
    return found;
}

bool sw__source_is_code(const line *at)
{
    return at->length > 0 && at->text[0] != '#' && at->text[0] != '\r';
}

bool sw__source_starts(const line *at, const char *word)
{
    const size_t length = strlen(word);
    return at->length >= length && memcmp(at->text, word, length) == 0;
}

bool sw__source_statement(const char *text, size_t length, uint32_t number,
                          const char **begin, const char **end)
{
    line at;
    if (!sw__source_line_get(text, length, number, &at) || !sw__source_is_code(&at) ||
        sw__source_is_loop(&at)) {
        return false;
    }
    *begin = at.text;
    int depth = 0;
    for (uint32_t i = 0; i < SW__STATEMENT_LINES; i++) {
        for (const char *c = at.text; c < at.text + at.length && *c != '#'; c++) {
            if (*c == '"' || *c == '\'') {
                c = sw__source_past_string(c, at.text + at.length) - 1;
                continue;
            }
            depth += *c == '(' || *c == '[' || *c == '{';
            depth -= *c == ')' || *c == ']' || *c == '}';
        }
        *end = at.text + at.length;
        if (depth <= 0) {
            return depth == 0; /* below: it began further up */
        }
        if (!sw__source_line_get(text, length, number + i + 1, &at)) {
            return false;
        }
    }
    return false;
}

bool sw__source_head(const char *text, size_t length, uint32_t first,
                     struct sw__source_line *head, uint32_t *last)
{
    for (uint32_t i = first; i < first + SW__STATEMENT_LINES; i++) {
        const char *begin, *end;
        if (!sw__source_line_get(text, length, i, head)) {
            return false;
        }
        if (head->length && head->text[0] == '@') {
            continue;
        }
        if ((!sw__source_starts(head, "def ") &&
             !sw__source_starts(head, "async def ")) ||
            !sw__source_statement(text, length, i, &begin, &end)) {
            return false;
        }
        *last = i;
        for (const char *c = begin; c < end; c++) {
            *last += *c == '\n';
        }
        head->length = (size_t)(end - head->text);
        return true;
    }
    return false;
}

/* Whether a line is the head of that class or function. */
static bool defines(const line *at, const char *what, const char *name, size_t length)
{
    const size_t skip = strlen(what);
    return at->length > skip + length && memcmp(at->text, what, skip) == 0 &&
           memcmp(at->text + skip, name, length) == 0 &&
           (at->text[skip + length] == '(' || at->text[skip + length] == ':');
}

uint32_t sw__source_find(const char *text, size_t length, uint32_t from, uint32_t most,
                         const char *what, const char *name, size_t name_length,
                         long indent, line *out)
{
    for (uint32_t i = from; i < from + most && sw__source_line_get(text, length, i, out);
         i++) {
        if (sw__source_is_code(out) && (long)out->indent <= indent) {
            return 0;
        }
        if (defines(out, what, name, name_length)) {
            return i;
        }
    }
    return 0;
}

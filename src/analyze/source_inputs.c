/* What a statement is computed from. */
#include "analyze/source_inputs.h"

#include <string.h>

#include "analyze/source_loops.h"

/* Longer loops, statements and lists of names are not understood. */
enum { LINES_MOST = 400, STATEMENT_LINES = 12, NAMES_MOST = 64 };

typedef struct sw__source_line line;

/* Names as they stand in the source; `self.x` is one. */
struct names {
    struct name {
        const char *text;
        size_t length;
    } list[NAMES_MOST];
    size_t count;
    bool full;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool in_name(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static bool is_word(const struct name *name, const char *word)
{
    return name->length == strlen(word) && memcmp(name->text, word, name->length) == 0;
}

static bool is_one_of(const struct name *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_word(name, words[i])) {
            return true;
        }
    }
    return false;
}
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof list / sizeof list[0])

static void add(struct names *names, struct name name)
{
    if (names->count < NAMES_MOST) {
        names->list[names->count++] = name;
    } else {
        names->full = true;
    }
}

static bool has(const struct names *names, const struct name *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->list[i].length == name->length &&
            memcmp(names->list[i].text, name->text, name->length) == 0) {
            return true;
        }
    }
    return names->full;
}

/* The end of a string that begins here. */
static const char *past_string(const char *at, const char *end)
{
    const char quote = *at++;
    while (at < end && *at != quote && *at != '\n') {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at < end ? at + 1 : end;
}

/* What a chain of attributes stands for: `self.x` of `self.x.y`, else the first name. */
static struct name unit_of(const char *text, const char *end, bool called)
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
        return (struct name){text, (size_t)(end - text)};
    }
    const struct name first = {text, (size_t)(dot - text)};
    if (!is_word(&first, "self")) {
        return first;
    }
    const char *stop = dot + 1;
    while (stop < end && in_name(*stop)) {
        stop++;
    }
    return (struct name){text, (size_t)(stop - text)};
}

/* Whether a method gives the same again, as those of arrays and tables do; others may go on from where they were. */
static bool is_pure(const char *begin, const char *end)
{
    static const char *const methods[] = {
        "mean",   "std",       "sum",    "var",         "min",     "max",      "T",
        "t",      "dot",       "matmul", "mm",          "norm",    "sort",     "argsort",
        "cumsum", "abs",       "pow",    "sqrt",        "exp",     "log",      "reshape",
        "view",   "transpose", "float",  "double",      "inverse", "pinverse", "clone",
        "copy",   "numpy",     "tolist", "to",          "cpu",     "softmax",  "unique",
        "split",  "lower",     "upper",  "items",       "keys",    "values",   "median",
        "astype", "flatten",   "encode", "matrix_power"};
    const char *last = end;
    while (last > begin && last[-1] != '.') {
        last--;
    }
    const struct name method = {last, (size_t)(end - last)};
    return last == begin || IS_ONE_OF(&method, methods);
}

/* `self.net(…)`: a part that is called, or a method. */
static bool is_own_part(const char *begin, const char *end)
{
    return end - begin > 5 && memcmp(begin, "self.", 5) == 0 &&
           !memchr(begin + 5, '.', (size_t)(end - begin - 5));
}

/* Names that a piece of source uses, and plain functions that it calls (NULL: nobody wants to know). `*impure`: it calls
 * methods that may give something else each time. */
static void scan(const char *at, const char *end, struct names *used,
                 struct names *called, bool *impure)
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
            at = past_string(at, end);
            continue;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (!is_letter(*at)) {
            /* Numbers, and attributes of what was called. */
            const bool skip = in_name(*at) || *at == '.';
            at++;
            while (skip && at < end && in_name(*at)) {
                at++;
            }
            continue;
        }
        const char *begin = at;
        while (at < end &&
               (in_name(*at) || (*at == '.' && at + 1 < end && is_letter(at[1])))) {
            at++;
        }
        const char *next = at;
        while (next < end && *next == ' ') {
            next++;
        }
        const bool calls = next < end && *next == '(';
        const bool keyword =
            depth > 0 && next + 1 < end && *next == '=' && next[1] != '=';
        const struct name unit = unit_of(begin, at, calls);
        if (impure && calls && unit.length && !IS_ONE_OF(&unit, words)) {
            *impure |= !is_pure(begin, at);
        }
        const bool plain = calls && !memchr(begin, '.', (size_t)(at - begin));
        if (called && calls && (plain || is_own_part(begin, at))) {
            add(called, (struct name){begin, (size_t)(at - begin)});
        }
        if (unit.length && !keyword && !IS_ONE_OF(&unit, words)) {
            add(used, unit);
        }
    }
}

/* Where the value of an assignment begins; NULL: the statement assigns nothing. `*adds`: it is `+=` or the like. */
static const char *value_of(const char *at, const char *end, bool *adds)
{
    int depth = 0;
    const char *found = NULL;
    *adds = false;
    for (const char *begin = at; at < end && *at != '#'; at++) {
        if (*at == '"' || *at == '\'') {
            at = past_string(at, end) - 1;
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

static bool is_code(const line *at)
{
    return at->length > 0 && at->text[0] != '#' && at->text[0] != '\r';
}

static bool starts(const line *at, const char *word)
{
    const size_t length = strlen(word);
    return at->length >= length && memcmp(at->text, word, length) == 0;
}

static bool in_capitals(const struct name *name)
{
    for (size_t i = 0; i < name->length; i++) {
        if (name->text[i] >= 'a' && name->text[i] <= 'z') {
            return false;
        }
    }
    return name->length > 1;
}

/* What a line of the body names, and so may change. */
static void scan_changes(const line *at, struct names *changed, struct names *called)
{
    const char *end = at->text + at->length;
    struct names used = {.count = 0};
    scan(at->text, end, &used, called, NULL);
    /* An object that is used elsewhere may be changed there; constants in capitals are not. */
    for (size_t k = 0; k < used.count; k++) {
        if (!in_capitals(&used.list[k])) {
            add(changed, used.list[k]);
        }
    }
}

/* Names that are never the same for long. */
static bool flows(const struct name *name)
{
    static const char *const words[] = {
        "rand", "rng",   "gen",    "iter",   "load",   "queue",  "stream", "sampl",
        "env",  "time",  "clock",  "file",   "batch",  "param",  "weight", "model",
        "game", "world", "agent",  "polic",  "player", "source", "feed",   "reader",
        "buff", "memor", "replay", "pool",   "sock",   "conn",   "cursor", "state",
        "next", "net",   "opt",    "critic", "actor",  "client"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (memmem(name->text, name->length, words[i], strlen(words[i]))) {
            return true;
        }
    }
    return false;
}

/* The statement with the lines that it goes on in; false: it is none, or too long. */
static bool whole_statement(const char *text, size_t length, uint32_t number,
                            const char **begin, const char **end)
{
    line at;
    if (!sw__source_line_get(text, length, number, &at) || !is_code(&at) ||
        sw__source_is_loop(&at)) {
        return false;
    }
    *begin = at.text;
    int depth = 0;
    for (uint32_t i = 0; i < STATEMENT_LINES; i++) {
        for (const char *c = at.text; c < at.text + at.length && *c != '#'; c++) {
            if (*c == '"' || *c == '\'') {
                c = past_string(c, at.text + at.length) - 1;
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

/* Arguments of the function at `first`; `*line_out` gets the last line of its head. */
static bool scan_arguments(const char *text, size_t length, uint32_t first,
                           struct names *changed, uint32_t *last)
{
    line at;
    for (uint32_t i = first; i < first + STATEMENT_LINES; i++) {
        if (!sw__source_line_get(text, length, i, &at)) {
            return false;
        }
        if (at.length && at.text[0] == '@') {
            continue;
        }
        const char *begin = memchr(at.text, '(', at.length);
        if ((!starts(&at, "def ") && !starts(&at, "async def ")) || !begin) {
            return false;
        }
        const char *from, *end;
        if (!whole_statement(text, length, i, &from, &end)) {
            return false;
        }
        scan(begin + 1, end, changed, NULL, NULL);
        *last = i;
        for (const char *c = from; c < end; c++) {
            *last += *c == '\n';
        }
        return true;
    }
    return false;
}

/* A statement of a loop, and what the rest of the loop names. */
struct statement {
    const char *begin, *end;
    struct names elsewhere; /* that may change there */
    struct names called;    /* as functions, there */
};

/* False: it cannot be read. */
static bool read_statement(const char *text, size_t length, uint32_t first,
                           uint32_t number, struct statement *it)
{
    line head, at;
    it->elsewhere.count = it->called.count = 0;
    it->elsewhere.full = it->called.full = false;
    if (number == 0 || !whole_statement(text, length, number, &it->begin, &it->end)) {
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
        if (!is_code(&at)) {
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
    bool adds, impure = false;
    const char *value = value_of(it.begin, it.end, &adds);
    if (!value || adds) {
        return false; /* called for what it does, not for what it gives */
    }
    struct names used = {.count = 0};
    scan(it.begin, value - 1, &it.elsewhere, NULL, NULL);
    scan(value, it.end, &used, NULL, &impure);
    if (used.count == 0 || used.full || impure) {
        return false;
    }
    for (size_t i = 0; i < used.count; i++) {
        if (has(&it.elsewhere, &used.list[i]) || has(&it.called, &used.list[i]) ||
            flows(&used.list[i])) {
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
    const char *value = value_of(it.begin, it.end, &adds);
    struct names used = {.count = 0};
    scan(value ? value : it.begin, it.end, &used, NULL, NULL);
    for (size_t i = 0; i < used.count && !it.called.full; i++) {
        if (has(&it.called, &used.list[i])) {
            return true;
        }
    }
    return false;
}

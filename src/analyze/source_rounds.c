/* Rounds of a loop that know nothing of each other. */
#include "analyze/source_rounds.h"

#include <string.h>

#include "analyze/source_names.h"

/* Longer loops are not understood. */
enum { LINES_MOST = 200 };

typedef struct sw__source_line line;

struct rounds {
    const char *text;
    size_t length;
    uint32_t asks;          /* the line that calls a model; 0: none is known to */
    bool asking;            /* this is it */
    bool look;              /* false: `made` and `grown` are still being gathered */
    struct sw__names made;  /* by the body, anew in each round as far as is known */
    struct sw__names grown; /* what rounds add to */
    struct sw__names now;   /* made in this round already … */
    size_t indent[SW__NAMES_MOST]; /* … in a block of this indentation */
};

static bool holds_word(const line *at, const struct sw__name *name)
{
    const char *from = at->text;
    const char *const end = at->text + at->length;
    while (from < end) {
        const char *hit = memmem(from, (size_t)(end - from), name->text, name->length);
        if (!hit) {
            return false;
        }
        const char *after = hit + name->length;
        if ((hit == at->text || !sw__source_in_name(hit[-1])) &&
            (after == end || !sw__source_in_name(*after))) {
            return true;
        }
        from = hit + 1;
    }
    return false;
}

/* A function that the file defines or imports, or a package: nothing that a loop was given, which may keep a state. */
static bool is_global(const struct rounds *of, const struct sw__name *name)
{
    static const char *const builtin[] = {
        "len", "range",  "zip",      "enumerate", "min",  "max",   "sum",
        "abs", "float",  "int",      "bool",      "list", "tuple", "dict",
        "set", "sorted", "reversed", "slice",     "pow",  "round", "isinstance"};
    if (SW__NAME_IS_ONE_OF(name, builtin)) {
        return true;
    }
    const char *at = of->text;
    const char *const end = of->text + of->length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const line here = {.text = at, .length = (size_t)(stop - at)};
        if (sw__source_starts(&here, "def ") && here.length > 4 + name->length &&
            memcmp(here.text + 4, name->text, name->length) == 0 &&
            here.text[4 + name->length] == '(') {
            return true;
        }
        if ((sw__source_starts(&here, "import ") || sw__source_starts(&here, "from ")) &&
            holds_word(&here, name)) {
            return true;
        }
        at = stop + 1;
    }
    return false;
}

static void make(struct rounds *of, struct sw__name name, size_t indent)
{
    if (!of->look) {
        sw__names_add(&of->made, name);
    } else if (of->now.count < SW__NAMES_MOST) {
        of->indent[of->now.count] = indent;
        sw__names_add(&of->now, name);
    }
}

/* What a block made may not be there after it. */
static void leave_blocks(struct rounds *of, size_t indent)
{
    size_t kept = 0;
    for (size_t i = 0; i < of->now.count; i++) {
        if (of->indent[i] <= indent) {
            of->indent[kept] = of->indent[i];
            of->now.list[kept++] = of->now.list[i];
        }
    }
    of->now.count = kept;
}

/* Names of what is often changed by whoever is given it. */
static bool goes_on(const struct sw__name *name)
{
    static const char *const words[] = {"state", "memory", "cache", "buff", "env"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (memmem(name->text, name->length, words[i], strlen(words[i]))) {
            return true;
        }
    }
    return false;
}

/* Whether an expression uses nothing of another round. */
static bool reads(const struct rounds *of, const char *begin, const char *end)
{
    struct sw__names used = {.count = 0}, called = {.count = 0}, impure = {.count = 0};
    sw__names_scan(begin, end, &used, &called, &impure);
    if (!of->look) {
        return true;
    }
    if (used.full || called.full || impure.full || of->made.full || of->grown.full) {
        return false;
    }
    for (size_t i = 0; i < used.count; i++) {
        const struct sw__name *name = &used.list[i];
        if (sw__names_has(&of->grown, name) ||
            (!sw__names_has(&of->now, name) &&
             (sw__names_has(&of->made, name) || goes_on(name)))) {
            return false;
        }
    }
    size_t unknown = 0;
    for (size_t i = 0; i < called.count; i++) {
        unknown += !is_global(of, &called.list[i]);
    }
    if (unknown > (of->asking ? 1 : 0)) {
        return false;
    }
    for (size_t i = 0; i < impure.count; i++) {
        if (!sw__names_has(&of->now, &impure.list[i]) &&
            !is_global(of, &impure.list[i])) {
            return false;
        }
    }
    return true;
}

/* Whether all of a statement was understood: a head of a block ends with its colon, and nothing is assigned on the way. */
static bool is_plain(const char *begin, const char *end, bool head)
{
    char last = 0;
    for (const char *at = begin; at < end && *at != '#'; at++) {
        if (*at == '"' || *at == '\'') {
            at = sw__source_past_string(at, end) - 1;
            last = '"';
            continue;
        }
        if (*at == ';' || (last == ':' && *at == '=')) {
            return false;
        }
        last = *at == ' ' || *at == '\r' || *at == '\n' ? last : *at;
    }
    return (last == ':') == head;
}

/* Names that are assigned; false: something else than plain names. */
static bool make_all(struct rounds *of, const char *begin, const char *end, size_t indent)
{
    struct sw__names names = {.count = 0};
    sw__names_scan(begin, end, &names, NULL, NULL);
    for (size_t i = 0; i < names.count; i++) {
        /* What is kept in an object is meant for later. */
        if (memchr(names.list[i].text, '.', names.list[i].length)) {
            return false;
        }
        make(of, names.list[i], indent);
    }
    return names.count > 0 && !names.full && !memchr(begin, '.', (size_t)(end - begin));
}

/* `for a, b in …:`, whose names are new in each round. */
static bool read_for(struct rounds *of, const char *begin, const char *end, size_t indent)
{
    const char *in = memmem(begin + 4, (size_t)(end - begin - 4), " in ", 4);
    return in && is_plain(begin, end, true) && reads(of, in + 4, end) &&
           make_all(of, begin + 4, in, indent);
}

/* How long the plain name is that a statement begins with. */
static size_t first_name(const char *begin, const char *end)
{
    const char *at = begin;
    while (at < end && sw__source_in_name(*at)) {
        at++;
    }
    return (size_t)(at - begin);
}

static bool read_assignment(struct rounds *of, const char *begin, const char *end,
                            const char *value, bool adds, size_t indent)
{
    const size_t word = first_name(begin, end);
    const struct sw__name name = {begin, word};
    const char *after = begin + word;
    /* `sum = sum + …` is `sum += …`. */
    const char *from = value;
    while (from < end && *from == ' ') {
        from++;
    }
    if (!adds && word > 0 && (size_t)(end - from) > word + 3 &&
        memcmp(from, begin, word) == 0 &&
        (memcmp(from + word, " + ", 3) == 0 || memcmp(from + word, " - ", 3) == 0)) {
        adds = true;
        value = from + word + 3;
    }
    if (!reads(of, value, end)) {
        return false;
    }
    if (word > 0 && (adds || *after == '[')) {
        if (*after == '.') {
            return false;
        }
        if (!of->look) {
            sw__names_add(&of->grown, name);
        }
        /* What it is put at. */
        return *after != '[' || reads(of, after, value);
    }
    return make_all(of, begin, value - 1, indent);
}

static bool read_statement(struct rounds *of, const line *at, const char *end)
{
    static const char *const ends[] = {"return", "break", "yield", "global", "nonlocal",
                                       "del ",   "await", "def ",  "class "};
    static const char *const heads[] = {
        "if ", "elif ", "else:", "try:", "with ", "pass", "continue", "assert "};
    enum { BLOCKS = 5 }; /* the first of them */
    static const char *const adding[] = {".append(", ".extend(", ".add("};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sw__source_starts(at, ends[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (sw__source_starts(at, heads[i])) {
            return is_plain(at->text, end, i < BLOCKS) && reads(of, at->text, end);
        }
    }
    if (!is_plain(at->text, end, false)) {
        return false;
    }
    const size_t word = first_name(at->text, end);
    for (size_t i = 0; i < sizeof adding / sizeof adding[0]; i++) {
        const size_t length = strlen(adding[i]);
        const char *call = at->text + word;
        if (word > 0 && (size_t)(end - call) > length &&
            memcmp(call, adding[i], length) == 0) {
            if (!of->look) {
                sw__names_add(&of->grown, (struct sw__name){at->text, word});
            }
            return reads(of, call + length, end);
        }
    }
    bool adds;
    const char *value = sw__source_value(at->text, end, &adds);
    /* Without a value it is called for what it does. */
    return value && read_assignment(of, at->text, end, value, adds, at->indent);
}

static bool read_body(struct rounds *of, uint32_t loop)
{
    line head, at;
    if (!sw__source_line_get(of->text, of->length, loop, &head) ||
        !sw__source_starts(&head, "for ") ||
        !read_for(of, head.text, head.text + head.length, head.indent)) {
        return false;
    }
    size_t statements = 0;
    for (uint32_t i = loop + 1;
         i < loop + LINES_MOST && sw__source_line_get(of->text, of->length, i, &at);
         i++) {
        const char *begin, *end;
        if (!sw__source_is_code(&at)) {
            continue;
        }
        if (at.indent <= head.indent) {
            return statements > 0;
        }
        leave_blocks(of, at.indent);
        statements++;
        if (sw__source_is_loop(&at)) {
            if (!sw__source_starts(&at, "for ") ||
                !read_for(of, at.text, at.text + at.length, at.indent + 1)) {
                return false;
            }
            continue;
        }
        if (!sw__source_statement(of->text, of->length, i, &begin, &end)) {
            return false;
        }
        uint32_t last = i;
        for (const char *c = begin; c < end; c++) {
            last += *c == '\n';
        }
        of->asking = i <= of->asks && of->asks <= last;
        if (!read_statement(of, &at, end)) {
            return false;
        }
        i = last;
    }
    return statements > 0 &&
           !sw__source_line_get(of->text, of->length, loop + LINES_MOST, &at);
}

/* The bracket around a place in a statement: where it opens, or where it closes; NULL: there is none. */
static const char *bracket_before(const char *begin, const char *at)
{
    size_t depth = 0;
    while (at-- > begin) {
        if (*at == ')' || *at == ']' || *at == '}') {
            depth++;
        } else if ((*at == '(' || *at == '[' || *at == '{') && depth-- == 0) {
            return at;
        }
    }
    return NULL;
}

static const char *bracket_after(const char *at, const char *end)
{
    size_t depth = 0;
    for (; at < end; at++) {
        if (*at == '(' || *at == '[' || *at == '{') {
            depth++;
        } else if ((*at == ')' || *at == ']' || *at == '}') && depth-- == 0) {
            return at;
        }
    }
    return NULL;
}

/* The first comprehension of the statement. Each of its rounds begins with new names; what it calls must not go on from where it
 * was. Statements with strings in them are not looked at: brackets and words in them are none. */
static bool read_comprehension(const char *text, size_t length, uint32_t number,
                               bool asking)
{
    struct rounds of = {.text = text, .length = length, .look = true, .asking = asking};
    const char *begin, *end;
    if (!sw__source_statement(text, length, number, &begin, &end) ||
        memchr(begin, '"', (size_t)(end - begin)) ||
        memchr(begin, '\'', (size_t)(end - begin)) ||
        memchr(begin, '#', (size_t)(end - begin)) || !is_plain(begin, end, false)) {
        return false;
    }
    const char *loop = memmem(begin, (size_t)(end - begin), " for ", 5);
    const char *open = loop ? bracket_before(begin, loop) : NULL;
    const char *close = loop ? bracket_after(loop, end) : NULL;
    const char *in =
        open && close ? memmem(loop + 5, (size_t)(close - loop - 5), " in ", 4) : NULL;
    return in && make_all(&of, loop + 5, in, 0) && reads(&of, open + 1, loop) &&
           reads(&of, in + 4, close);
}

static bool rounds_apart(const char *text, size_t length, uint32_t first, uint32_t number,
                         bool asking)
{
    line at;
    if (number == 0 || !sw__source_line_get(text, length, number, &at)) {
        return false;
    }
    const uint32_t loop = sw__source_is_loop(&at)
                              ? number
                              : sw__source_loop_around(text, length, first, number);
    struct rounds rounds = {.text = text, .length = length, .asks = asking ? number : 0};
    if (loop > 0 && read_body(&rounds, loop)) {
        rounds.look = true;
        if (read_body(&rounds, loop)) {
            return true;
        }
    }
    return read_comprehension(text, length, number, asking);
}

bool sw__source_rounds_apart(const char *text, size_t length, uint32_t first,
                             uint32_t number)
{
    return rounds_apart(text, length, first, number, false);
}

bool sw__source_asks_apart(const char *text, size_t length, uint32_t first,
                           uint32_t number)
{
    return rounds_apart(text, length, first, number, true);
}

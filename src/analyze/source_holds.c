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

/* Whether a line calls a method that changes what it is called for, or gives something to somebody who does. */
static bool calls_change(const line *at)
{
    static const char *const words[] = {"_(",      "append(",  "extend(", "update(",
                                        "insert(", "shuffle(", ".sort(",  ".pop(",
                                        ".add(",   ".remove(", ".clear("};
    bool does = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !does; i++) {
        does = memmem(at->text, at->length, words[i], strlen(words[i])) != NULL;
    }
    return does;
}

/* Whether `.name` stands outside of brackets, where something is assigned: `rows[self.first] = …` changes `rows`. */
static bool is_target(const char *at, const char *end, struct sw__name name)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (depth == 0 && *at == '.' && (size_t)(end - at) > name.length &&
            memcmp(at + 1, name.text, name.length) == 0 &&
            !sw__source_in_name(at[1 + name.length])) {
            return true;
        }
    }
    return false;
}

/* Whether a line may change an attribute: assigns it or a part of it, or calls what does. */
static bool changes(const line *at, struct sw__name name)
{
    const char *end = at->text + at->length;
    bool adds;
    const char *value = sw__source_value(at->text, end, &adds);
    return past_attribute(at->text, end, name) &&
           ((value && is_target(at->text, value, name)) || calls_change(at));
}

static bool builds(const line *at)
{
    return sw__source_starts(at, "def __init__") ||
           sw__source_starts(at, "def __post_init__");
}

/* Whether nothing but a method that builds changes an attribute, in the whole file; `loops`: nor goes through it. */
static bool stays(const char *text, size_t length, struct sw__name name, bool loops)
{
    line at;
    bool building = false;
    for (uint32_t i = 1; sw__source_line_get(text, length, i, &at); i++) {
        if (sw__source_starts(&at, "def ")) {
            building = builds(&at);
        }
        const bool through = loops && sw__source_is_loop(&at) &&
                             past_attribute(at.text, at.text + at.length, name);
        if (i > LINES_MOST || (!building && (through || changes(&at, name)))) {
            return false;
        }
    }
    return true;
}

static bool may_learn(struct sw__name name)
{
    static const char *const learns[] = {"weight", "param", "layer", "theta",
                                         "coef",   "bias",  "model", "state"};
    for (size_t i = 0; i < sizeof learns / sizeof learns[0]; i++) {
        if (memmem(name.text, name.length, learns[i], strlen(learns[i]))) {
            return true;
        }
    }
    return false;
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

/* A number, or a word of Python's for a value. */
static bool is_value(struct sw__name name)
{
    static const char *const words[] = {"True", "False", "None"};
    return isdigit((unsigned char)name.text[0]) || SW__NAME_IS_ONE_OF(&name, words);
}

/* Whether a name in brackets is that of an argument: `mask=`. */
static bool is_keyword(const char *at, const char *end)
{
    while (at < end && *at == ' ') {
        at++;
    }
    return at < end && *at == '=' && !(at + 1 < end && at[1] == '=');
}

/* The method that a statement is in, whose names it may use. NULL text: they are not looked for. */
struct scope {
    line head;
    uint32_t last;   /* line of its head */
    uint32_t number; /* of the statement */
    unsigned depth;  /* of names that are made of others */
};

/* The next line of code of a function with this head, after `*number`; false: it ends. */
static bool next_line(const char *text, size_t length, const line *head, uint32_t *number,
                      line *out)
{
    while (sw__source_line_get(text, length, ++*number, out)) {
        if (sw__source_is_code(out)) {
            return out->indent > head->indent;
        }
    }
    return false;
}

static bool names_plain(const char *at, const char *end, struct sw__name name)
{
    for (const char *c = at; c < end; c++) {
        if (!sw__source_in_name(*c)) {
            continue;
        }
        const char *from = c;
        while (c < end && sw__source_in_name(*c)) {
            c++;
        }
        if ((size_t)(c - from) == name.length &&
            memcmp(from, name.text, name.length) == 0 &&
            !(from > at && from[-1] == '.')) {
            return true;
        }
    }
    return false;
}

/* What a function gives that differs each time. */
static bool draws(const char *begin, const char *end)
{
    static const char *const words[] = {"rand", "rng",     "choice", "drop",  "noise",
                                        "samp", "shuffle", "normal", "unif",  "berno",
                                        "mult", "gumbel",  "time",   "empty", "next("};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (memmem(begin, (size_t)(end - begin), words[i], strlen(words[i]))) {
            return true;
        }
    }
    return false;
}

static bool local_holds(const char *text, size_t length, struct scope scope,
                        struct sw__name name);

/* What is asked of a tensor and changes nothing of it: `shape`, `long(…)`. */
static bool is_asked(struct sw__name name)
{
    static const char *const words[] = {
        "shape",     "device",  "dtype",  "ndim",       "T",      "size",      "long",
        "int",       "float",   "bool",   "to",         "eq",     "ne",        "gt",
        "lt",        "ge",      "le",     "sum",        "any",    "all",       "numel",
        "unsqueeze", "squeeze", "view",   "reshape",    "expand", "t",         "dim",
        "type_as",   "clone",   "detach", "contiguous", "repeat", "transpose", "permute",
        "flatten",   "max",     "min",    "argmax"};
    return SW__NAME_IS_ONE_OF(&name, words);
}

/* Of `.shape` or `.T.long` each. */
static bool are_asked(const char *at, const char *end)
{
    while (at < end) {
        const char *from = ++at; /* past the dot */
        while (at < end && *at != '.') {
            at++;
        }
        if (!is_asked((struct sw__name){from, (size_t)(at - from)})) {
            return false;
        }
    }
    return true;
}

/* Whether what a name stands for is the same each time; `calls`: brackets follow. */
static bool name_holds(const char *text, size_t length, const struct scope *scope,
                       struct sw__name name, bool calls)
{
    static const char *const plain[] = {"len", "int", "float", "tuple", "bool"};
    static const char *const words[] = {"and", "or", "not"};
    const char *const end = name.text + name.length;
    const bool own = name.length > 5 && memcmp(name.text, "self.", 5) == 0;
    const char *from = name.text + (own ? 5 : 0);
    const char *dot = memchr(from, '.', (size_t)(end - from));
    const struct sw__name first = {from, (size_t)((dot ? dot : end) - from)};
    if ((name.length > 6 && memcmp(name.text, "torch.", 6) == 0) || is_value(name)) {
        return true;
    }
    if (calls && !dot) {
        return !own && SW__NAME_IS_ONE_OF(&name, plain);
    }
    if (dot && !are_asked(dot, end)) {
        return false;
    }
    return own ? !may_learn(first) && stays(text, length, first, true)
               : SW__NAME_IS_ONE_OF(&name, words) || is_constant(first) ||
                     local_holds(text, length, *scope, first);
}

/* Whether an expression of the scope is made of nothing but what stays. */
static bool value_holds(const char *text, size_t length, const struct scope *scope,
                        const char *at, const char *end)
{
    if (draws(at, end)) {
        return false;
    }
    while (at < end) {
        const char *from = at;
        while (at < end && (sw__source_in_name(*at) || *at == '.')) {
            at++;
        }
        const struct sw__name name = {from, (size_t)(at - from)};
        if (at < end && (*at == '"' || *at == '\'' || *at == '#')) {
            return false;
        }
        const bool method = name.length > 0 && from[0] == '.'; /* of what is before it */
        const bool holds =
            method ? are_asked(from, at)
                   : name.length == 0 || is_keyword(at, end) ||
                         name_holds(text, length, scope, name, at < end && *at == '(');
        if (!holds) {
            return false;
        }
        at += at < end && name.length == 0;
    }
    return true;
}

/* Whether a name of a method is given a value once, before the scope's statement, and that is made of nothing but what stays. */
static bool local_holds(const char *text, size_t length, struct scope scope,
                        struct sw__name name)
{
    enum { DEPTH_MOST = 3 };
    line at;
    uint32_t number = scope.last;
    size_t given = 0;
    if (!scope.head.text || scope.depth >= DEPTH_MOST || name.length == 0 ||
        names_plain(scope.head.text, scope.head.text + scope.head.length, name)) {
        return false;
    }
    while (next_line(text, length, &scope.head, &number, &at)) {
        const char *const stop = at.text + at.length;
        const char *begin, *end;
        bool adds = false;
        if (!names_plain(at.text, stop, name)) {
            continue;
        }
        const char *value = sw__source_value(at.text, stop, &adds);
        const bool others = sw__source_is_loop(&at) || calls_change(&at) ||
                            memmem(at.text, at.length, ":=", 2) ||
                            sw__source_starts(&at, "with ");
        if (others) {
            return false;
        }
        if (!value || !names_plain(at.text, value, name)) {
            continue; /* it is used */
        }
        const char *past = at.text + name.length;
        while (past < value && *past == ' ') {
            past++;
        }
        struct scope here = scope;
        here.number = number;
        here.depth++;
        if (adds || past + 1 != value || memcmp(at.text, name.text, name.length) != 0 ||
            number >= scope.number || given++ > 0 ||
            !sw__source_statement(text, length, number, &begin, &end) ||
            !value_holds(text, length, &here, value, end)) {
            return false;
        }
    }
    return given == 1;
}

static bool call_holds(const char *text, size_t length,
                       const struct sw__source_call *call, const struct scope *scope)
{
    const char *at = call->inside, *end = call->inside + call->inside_length;
    size_t count = 0;
    while (at < end) {
        const char *from = at;
        while (at < end && (sw__source_in_name(*at) || *at == '.')) {
            at++;
        }
        struct sw__name name = {from, (size_t)(at - from)};
        if (name.length > 0 && (is_keyword(at, end) || is_value(name))) {
            /* not what it is given */
        } else if (name.length > 5 && memcmp(from, "self.", 5) == 0 &&
                   !memchr(from + 5, '.', name.length - 5)) {
            name = (struct sw__name){from + 5, name.length - 5};
            if (may_learn(name) || !stays(text, length, name, true)) {
                return false;
            }
            count++;
        } else if (name.length > 0 && !is_constant(name) &&
                   (memchr(from, '.', name.length) || (at < end && *at == '(') ||
                    !local_holds(text, length, *scope, name))) {
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

bool sw__source_call_holds(const char *text, size_t length,
                           const struct sw__source_call *call)
{
    return call_holds(text, length, call, &(struct scope){.number = 0});
}

/* Past the next `self.NAME(` in a line, from `from` on; NULL: there is none. */
static const char *past_call_of_part(const line *at, const char *from, const char *name)
{
    const size_t length = strlen(name);
    const char *const end = at->text + at->length;
    for (const char *c = from; (size_t)(end - c) > 5 + length; c++) {
        if (memcmp(c, "self.", 5) == 0 && memcmp(c + 5, name, length) == 0 &&
            c[5 + length] == '(' && !(c > at->text && sw__source_in_name(c[-1]))) {
            return c + 6 + length;
        }
    }
    return NULL;
}

/* The brackets that end before `end`, from `begin` on; NULL: they do not end there. */
static const char *past_brackets(const char *begin, const char *end)
{
    int depth = 1;
    for (const char *at = begin; at < end; at++) {
        if (*at == '"' || *at == '\'') {
            return NULL; /* What a text names is not known. */
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (depth == 0) {
            return at;
        }
    }
    return NULL;
}

bool sw__source_part_holds(const char *text, size_t length, const char *type,
                           const char *attribute, struct sw__source_part *out)
{
    line head, at;
    uint32_t number = sw__source_find(text, length, 1, LINES_MOST, "class ", type,
                                      strlen(type), -1, &head);
    size_t methods = 0; /* by how much they are indented */
    bool building = false;
    struct sw__name method = {"", 0};
    struct scope scope = {.number = 0};
    *out = (struct sw__source_part){.line = 0};
    while (number > 0 && number < LINES_MOST &&
           next_line(text, length, &head, &number, &at)) {
        if (sw__source_starts(&at, "def ") && (!methods || at.indent <= methods)) {
            methods = at.indent;
            building = builds(&at);
            method = (struct sw__name){at.text + 4, 0};
            while (method.text + method.length < at.text + at.length &&
                   sw__source_in_name(method.text[method.length])) {
                method.length++;
            }
            if (!sw__source_head(text, length, number, &scope.head, &scope.last)) {
                scope.head.text = NULL;
            }
        }
        const char *inside = building ? NULL : past_call_of_part(&at, at.text, attribute);
        for (; inside; inside = past_call_of_part(&at, inside, attribute)) {
            const char *begin, *end;
            const char *close =
                sw__source_statement(text, length, number, &begin, &end) && inside <= end
                    ? past_brackets(inside, end)
                    : NULL;
            const struct sw__source_call call = {
                .inside = inside, .inside_length = close ? (size_t)(close - inside) : 0};
            scope.number = number;
            if (!close || !call_holds(text, length, &call, &scope)) {
                return false;
            }
            if (out->line == 0) {
                *out = (struct sw__source_part){number, method.text, method.length};
            }
        }
    }
    return out->line > 0;
}

bool sw__source_given_nothing(const char *text, size_t length, uint32_t first)
{
    line head;
    uint32_t last;
    if (!sw__source_head(text, length, first, &head, &last)) {
        return false;
    }
    const char *const end = head.text + head.length;
    const char *at = memchr(head.text, '(', head.length);
    if (!at || end - at < 6 || memcmp(at + 1, "self", 4) != 0) {
        return false;
    }
    at += 5;
    while (at < end && (*at == ' ' || *at == ',' || *at == '\n' || *at == '\r')) {
        at++;
    }
    return at < end && *at == ')';
}

/* Whether an attribute of `self` stands outside of brackets, where something is assigned. */
static bool names_self(const char *at, const char *end)
{
    int depth = 0;
    for (; end - at >= 5; at++) {
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (depth == 0 && memcmp(at, "self.", 5) == 0) {
            return true;
        }
    }
    return false;
}

bool sw__source_changes_self(const char *text, size_t length, uint32_t first)
{
    line head, at;
    uint32_t number;
    if (!sw__source_head(text, length, first, &head, &number)) {
        return true;
    }
    while (next_line(text, length, &head, &number, &at)) {
        bool adds;
        const char *value = sw__source_value(at.text, at.text + at.length, &adds);
        const bool goes = memmem(at.text, at.length, "next(", 5) || calls_change(&at);
        if ((value && names_self(at.text, value)) ||
            (goes && memmem(at.text, at.length, "self.", 5))) {
            return true;
        }
    }
    return false;
}

bool sw__source_self_stays(const char *text, size_t length, uint32_t first)
{
    line head, at;
    uint32_t number;
    struct sw__names used = {.count = 0};
    if (!sw__source_head(text, length, first, &head, &number)) {
        return false;
    }
    while (next_line(text, length, &head, &number, &at)) {
        sw__names_scan(at.text, at.text + at.length, &used, NULL, NULL);
    }
    for (size_t i = 0; i < used.count; i++) {
        const struct sw__name name = used.list[i];
        if (name.length > 5 && memcmp(name.text, "self.", 5) == 0 &&
            !stays(text, length, (struct sw__name){name.text + 5, name.length - 5},
                   false)) {
            return false;
        }
    }
    return !used.full;
}

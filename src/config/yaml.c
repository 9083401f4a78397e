/* YAML as far as one mapping of options needs it: block and flow mappings, lists of texts, plain and quoted values,
 * comments. Anything else may stand elsewhere in the file and is stepped over; within our mapping it is complained of,
 * for a value that is half understood is worse than none. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/reader.h"

#define DEPTH_MOST 8

struct reader {
    const char *at, *end;
    const char *begin; /* of the line */
    unsigned line;
    const struct sw__config_sink *sink;
    char value[SW__CONFIG_VALUE];
    size_t length; /* of the value */
    bool fits;     /* … which is there as a whole */
};

/* The keys that lead to a value, joined by '.'. */
struct path {
    char text[SW__CONFIG_KEY];
    bool fits;
};

static bool read_flow(struct reader *r, const struct path *path, int depth, bool element);

/* --- characters --- */

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static int peek_at(const struct reader *r, size_t ahead)
{
    return (size_t)(r->end - r->at) > ahead ? (unsigned char)r->at[ahead] : -1;
}

static void advance(struct reader *r)
{
    if (*r->at++ == '\n') {
        r->line++;
        r->begin = r->at;
    }
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A blank, the end of the line or that of the file. */
static bool is_gap(int c)
{
    return c == -1 || c == '\n' || is_blank(c);
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(peek(r))) {
        r->at++;
    }
}

/* To the end of the line, before its '\n'. */
static void skip_rest(struct reader *r)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = end ? end : r->end;
}

static void skip_line(struct reader *r)
{
    skip_rest(r);
    if (r->at < r->end) {
        advance(r);
    }
}

/* Whether nothing but a comment follows on this line. A comment begins after a blank. */
static bool at_end_of_line(const struct reader *r)
{
    int c = peek(r);
    return c == -1 || c == '\n' ||
           (c == '#' && (r->at == r->begin || is_blank((unsigned char)r->at[-1])));
}

static unsigned column(const struct reader *r)
{
    return (unsigned)(r->at - r->begin);
}

/* `---` or `...` at the beginning of a line. */
static bool at_document_mark(const struct reader *r)
{
    return column(r) == 0 && (peek(r) == '-' || peek(r) == '.') &&
           peek_at(r, 1) == peek(r) && peek_at(r, 2) == peek(r) && is_gap(peek_at(r, 3));
}

/* --- mistakes --- */

static void complain(const struct reader *r, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(const struct reader *r, unsigned line, const char *format, ...)
{
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    r->sink->complain(r->sink->arg, line, sentence);
}

static bool fail(const struct reader *r, const char *sentence)
{
    complain(r, r->line, "%s", sentence);
    return false;
}

/* --- stepping over --- */

static void skip_quoted(struct reader *r)
{
    int quote = peek(r);
    advance(r);
    while (r->at < r->end) {
        int c = peek(r);
        advance(r);
        if (c == '\\' && quote == '"' && r->at < r->end) {
            advance(r);
        } else if (c == quote) {
            if (quote == '\'' && peek(r) == quote) {
                advance(r);
            } else {
                return;
            }
        }
    }
}

/* {…} or […] with all that is in it. Quotes count only where a value may begin: [it's, so]. */
static void skip_flow(struct reader *r)
{
    size_t depth = 0;
    bool fresh = true;
    while (r->at < r->end) {
        int c = peek(r);
        if (fresh && (c == '"' || c == '\'')) {
            skip_quoted(r);
            fresh = false;
            continue;
        }
        if (c == '#' && (r->at == r->begin || is_blank((unsigned char)r->at[-1]))) {
            skip_rest(r);
            continue;
        }
        advance(r);
        if (c == '{' || c == '[') {
            depth++;
            fresh = true;
        } else if (c == '}' || c == ']') {
            if (--depth == 0) {
                return;
            }
            fresh = false;
        } else if (c == ',' || c == ':') {
            fresh = true;
        } else if (!is_blank(c) && c != '\n') {
            fresh = false;
        }
    }
}

/* Lines that are empty or indented by more than `indent`. */
static void skip_indented(struct reader *r, unsigned indent)
{
    while (r->at < r->end) {
        const char *line = r->at;
        while (peek(r) == ' ') {
            r->at++;
        }
        unsigned depth = column(r);
        skip_blanks(r);
        bool inside = peek(r) == '\n' || depth > indent;
        if (!inside || r->at >= r->end) {
            r->at = inside ? r->end : line;
            return;
        }
        skip_line(r);
    }
}

/* Anchors and tags in front of a value. Whether there was a tag. */
static bool skip_properties(struct reader *r)
{
    bool tagged = false;
    for (;;) {
        skip_blanks(r);
        if (peek(r) != '&' && peek(r) != '!') {
            return tagged;
        }
        tagged = tagged || peek(r) == '!';
        while (!is_gap(peek(r))) {
            r->at++;
        }
    }
}

/* The value of an entry whose line is indented by `indent`, and the rest of its line. */
static void skip_value(struct reader *r, unsigned indent)
{
    skip_properties(r);
    int c = peek(r);
    if (c == '"' || c == '\'') {
        skip_quoted(r);
    } else if (c == '{' || c == '[') {
        skip_flow(r);
    }
    skip_line(r);
    if (c == '|' || c == '>') {
        skip_indented(r, indent);
    }
}

/* An entry from its first character on; what is indented below it follows as entries of their own. */
static void skip_entry(struct reader *r, unsigned indent)
{
    while ((peek(r) == '-' || peek(r) == '?') && is_gap(peek_at(r, 1)) &&
           peek_at(r, 1) != '\n') {
        r->at++;
        skip_properties(r);
    }
    int c = peek(r);
    if (c == '"' || c == '\'') {
        skip_quoted(r);
        skip_blanks(r);
    } else if (c == '{' || c == '[') {
        skip_flow(r);
        skip_blanks(r);
    } else if (c == '|' || c == '>') {
        skip_value(r, indent);
        return;
    } else {
        while (!at_end_of_line(r) && !(peek(r) == ':' && is_gap(peek_at(r, 1)))) {
            r->at++;
        }
    }
    if (peek(r) == ':') {
        r->at++;
        skip_value(r, indent);
    } else {
        skip_line(r);
    }
}

/* --- values --- */

static void put_byte(struct reader *r, char c)
{
    if (r->length + 1 < sizeof r->value && c) {
        r->value[r->length++] = c;
    } else {
        r->fits = false;
    }
}

/* Text in quotes, on one line. */
static bool read_quoted(struct reader *r)
{
    static const char from[] = "0abtnvfre\"/\\ ";
    static const char to[] = "\0\a\b\t\n\v\f\r\033\"/\\ ";
    int quote = peek(r);
    r->length = 0;
    r->fits = true;
    r->at++;
    while (r->at < r->end && *r->at != '\n') {
        int c = (unsigned char)*r->at++;
        if (c == quote && !(quote == '\'' && peek(r) == quote)) {
            return true;
        }
        if (c == quote) {
            r->at++;
        } else if (c == '\\' && quote == '"') {
            const char *known = peek(r) > 0 ? strchr(from, peek(r)) : NULL;
            if (!known) {
                return fail(r, "a backslash is followed by something that is not read "
                               "here");
            }
            c = to[known - from];
            r->at++;
        }
        put_byte(r, (char)c);
    }
    return fail(r, "a text in quotes does not end on its line");
}

/* Text without quotes; in a flow also up to what ends an entry there. */
static bool read_plain(struct reader *r, bool flow)
{
    r->length = 0;
    r->fits = true;
    int first = peek(r);
    if (first == '*') {
        return fail(r, "an alias is not read here; write the value itself");
    }
    if (first > 0 && strchr("|>", first)) {
        return fail(r, "a text of several lines is not read here; write it in quotes, on "
                       "one line");
    }
    if (first > 0 &&
        (strchr("@`%?,]}", first) || (first == '-' && is_gap(peek_at(r, 1))))) {
        return fail(r, "this is no value; a text that begins so needs quotes");
    }
    while (!at_end_of_line(r)) {
        int c = peek(r);
        if (c == '$' && peek_at(r, 1) == '{') {
            return fail(r, "${…} is resolved by OmegaConf, not here; hand the resolved "
                           "object to stepwatch.start(config=…)");
        }
        if (flow && strchr(",[]{}", c)) {
            break;
        }
        if (c == ':' && (is_gap(peek_at(r, 1)) ||
                         (flow && peek_at(r, 1) > 0 && strchr(",[]{}", peek_at(r, 1))))) {
            break;
        }
        put_byte(r, (char)c);
        r->at++;
    }
    while (r->length > 0 && is_blank((unsigned char)r->value[r->length - 1])) {
        r->length--;
    }
    return true;
}

static bool is_null(const char *text, size_t length)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) {
            return true;
        }
    }
    return false;
}

static void emit(struct reader *r, const struct path *path, unsigned line,
                 enum sw__config_kind kind, bool element)
{
    if (!path->fits) {
        complain(r, line, "the key is too long");
        return;
    }
    if (kind == SW__CONFIG_SCALAR && !r->fits) {
        complain(r, line, "the value is too long, or has a NUL byte");
        return;
    }
    r->value[kind == SW__CONFIG_SCALAR ? r->length : 0] = '\0';
    r->sink->put(r->sink->arg, &(struct sw__config_entry){.line = line,
                                                          .key = path->text,
                                                          .value = r->value,
                                                          .kind = kind,
                                                          .element = element});
}

/* The key that has just been read, below `outer`. */
static struct path path_below(const struct path *outer, const struct reader *r)
{
    struct path path = *outer;
    size_t used = strlen(path.text);
    path.fits = path.fits && r->fits && used + 1 + r->length < sizeof path.text;
    if (path.fits) {
        snprintf(path.text + used, sizeof path.text - used, "%s%.*s", used ? "." : "",
                 (int)r->length, r->value);
    }
    return path;
}

/* A value without structure. */
static bool read_scalar(struct reader *r, const struct path *path, bool flow,
                        bool element)
{
    unsigned line = r->line;
    bool quoted = peek(r) == '"' || peek(r) == '\'';
    if (!(quoted ? read_quoted(r) : read_plain(r, flow))) {
        return false;
    }
    bool null = !quoted && is_null(r->value, r->length);
    emit(r, path, line, null ? SW__CONFIG_NULL : SW__CONFIG_SCALAR, element);
    return true;
}

/* --- flow --- */

static void skip_flow_space(struct reader *r)
{
    for (;;) {
        if (is_blank(peek(r)) || peek(r) == '\n') {
            advance(r);
        } else if (peek(r) == '#' && at_end_of_line(r)) {
            skip_rest(r);
        } else {
            return;
        }
    }
}

/* A value within a flow. */
static bool read_flow_value(struct reader *r, const struct path *path, int depth,
                            bool element)
{
    if (peek(r) == '&' || peek(r) == '!') {
        return fail(r, "anchors and tags are not read here");
    }
    if (peek(r) == '{' || peek(r) == '[') {
        return read_flow(r, path, depth + 1, element);
    }
    return read_scalar(r, path, true, element);
}

static bool read_flow_pair(struct reader *r, const struct path *path, int depth)
{
    bool quoted = peek(r) == '"' || peek(r) == '\'';
    unsigned line = r->line;
    if (!(quoted ? read_quoted(r) : read_plain(r, true))) {
        return false;
    }
    struct path inner = path_below(path, r);
    skip_flow_space(r);
    if (peek(r) != ':') {
        emit(r, &inner, line, SW__CONFIG_NULL, false);
        return true;
    }
    r->at++;
    skip_flow_space(r);
    if (peek(r) == ',' || peek(r) == '}') {
        emit(r, &inner, line, SW__CONFIG_NULL, false);
        return true;
    }
    return read_flow_value(r, &inner, depth, false);
}

static bool read_flow(struct reader *r, const struct path *path, int depth, bool element)
{
    unsigned begin = r->line;
    bool list = peek(r) == '[';
    int close = list ? ']' : '}';
    if (depth > DEPTH_MOST) {
        return fail(r, "this is nested too deeply");
    }
    if (element) {
        return fail(r, "a list of lists or mappings is not read here");
    }
    if (list) {
        emit(r, path, begin, SW__CONFIG_LIST, false);
    }
    r->at++;
    for (;;) {
        skip_flow_space(r);
        if (peek(r) == close) {
            r->at++;
            return true;
        }
        if (r->at >= r->end) {
            complain(r, begin, "%s does not end", list ? "a list" : "a mapping");
            return false;
        }
        if (!(list ? read_flow_value(r, path, depth, true)
                   : read_flow_pair(r, path, depth))) {
            return false;
        }
        skip_flow_space(r);
        if (peek(r) == ',') {
            r->at++;
        } else if (peek(r) != close) {
            return r->at < r->end ? fail(r, "values are separated by commas")
                                  : fail(r, "a bracket is not closed");
        }
    }
}

/* --- blocks --- */

/* Steps over empty lines and comments, to the first character of the next entry. False at the end of the document. */
static bool next_entry(struct reader *r)
{
    while (r->at < r->end) {
        if (at_document_mark(r)) {
            return false;
        }
        while (peek(r) == ' ') {
            r->at++;
        }
        unsigned indent = column(r);
        skip_blanks(r);
        if (at_end_of_line(r)) {
            skip_line(r);
            continue;
        }
        r->at = r->begin + indent;
        return true;
    }
    return false;
}

static bool at_dash(const struct reader *r)
{
    return peek(r) == '-' && is_gap(peek_at(r, 1));
}

/* After a value; what does not belong there is complained of. */
static void end_value(struct reader *r)
{
    skip_blanks(r);
    if (!at_end_of_line(r)) {
        complain(r, r->line,
                 peek(r) == ':' ? "a value with ': ' in it needs quotes"
                                : "there is something after the value");
    }
    skip_line(r);
}

static void read_block_list(struct reader *r, const struct path *path, unsigned indent)
{
    emit(r, path, r->line, SW__CONFIG_LIST, false);
    while (next_entry(r) && column(r) == indent && at_dash(r)) {
        r->at++;
        skip_blanks(r);
        if (at_end_of_line(r)) {
            skip_line(r);
        } else if (peek(r) == '{' || peek(r) == '[' || peek(r) == '&' || peek(r) == '!') {
            complain(r, r->line, "a list of anything but texts is not read here");
            skip_value(r, indent);
        } else if (read_scalar(r, path, false, true)) {
            end_value(r);
        } else {
            r->at = r->begin;
            skip_indented(r, indent);
            skip_line(r);
        }
    }
    r->at = r->at < r->end ? r->begin : r->at;
}

/* Steps over the entry that could not be read, from its key on. */
static void give_up_entry(struct reader *r, const char *entry, const char *line_begin,
                          unsigned line, unsigned indent)
{
    r->at = entry;
    r->begin = line_begin;
    r->line = line;
    skip_entry(r, indent);
    skip_indented(r, indent);
}

static void read_block(struct reader *r, const struct path *path, unsigned indent,
                       int depth);

/* The value of a key, whose entry is indented by `indent`. False: it could not be read. */
static bool read_block_value(struct reader *r, const struct path *path, unsigned indent,
                             int depth)
{
    unsigned line = r->line;
    if (skip_properties(r)) {
        return fail(r, "a tag is not read here; write the plain value");
    }
    if (peek(r) == '{' || peek(r) == '[') {
        if (!read_flow(r, path, depth + 1, false)) {
            return false;
        }
        end_value(r);
        return true;
    }
    if (!at_end_of_line(r)) {
        if (!read_scalar(r, path, false, false)) {
            return false;
        }
        end_value(r);
        return true;
    }
    skip_line(r);
    bool more = next_entry(r);
    unsigned inner = more ? column(r) : 0;
    if (more && at_dash(r) && inner >= indent) {
        read_block_list(r, path, inner);
    } else if (more && inner > indent) {
        r->at = r->begin;
        read_block(r, path, inner, depth + 1);
    } else {
        r->at = r->at < r->end ? r->begin : r->at;
        emit(r, path, line, SW__CONFIG_NULL, false);
    }
    return true;
}

static bool read_block_key(struct reader *r)
{
    if (peek(r) == '\t') {
        return fail(r, "a line is indented with a tab; YAML takes blanks");
    }
    if (at_dash(r) || (peek(r) == '?' && is_gap(peek_at(r, 1)))) {
        return fail(r, "options are given as KEY: VALUE");
    }
    if (peek(r) == '<' && peek_at(r, 1) == '<' && peek_at(r, 2) == ':') {
        return fail(r, "a merge key (<<) is not read here; write the options themselves");
    }
    bool quoted = peek(r) == '"' || peek(r) == '\'';
    if (!(quoted ? read_quoted(r) : read_plain(r, false))) {
        return false;
    }
    skip_blanks(r);
    if (peek(r) != ':' || r->length == 0) {
        return fail(r, "options are given as KEY: VALUE");
    }
    r->at++;
    return true;
}

/* The entries that are indented by `indent`. Ends at the beginning of a line. */
static void read_block(struct reader *r, const struct path *path, unsigned indent,
                       int depth)
{
    while (next_entry(r) && (column(r) >= indent || peek(r) == '\t')) {
        const char *entry = r->at;
        const char *line_begin = r->begin;
        unsigned line = r->line;
        unsigned here = column(r);
        bool good = depth <= DEPTH_MOST || fail(r, "this is nested too deeply");
        if (good && here > indent) {
            good = fail(r, "this is indented more than what it belongs to; a value that "
                           "goes over several lines is not read here");
        }
        if (good && read_block_key(r)) {
            struct path inner = path_below(path, r);
            good = read_block_value(r, &inner, indent, depth);
        } else {
            good = false;
        }
        if (!good) {
            give_up_entry(r, entry, line_begin, line, here > indent ? here : indent);
        }
    }
    r->at = r->at < r->end ? r->begin : r->at;
}

/* --- document --- */

/* Whether the entry at the beginning of this line has that key; then its value is next. */
static bool is_key(struct reader *r, const char *key)
{
    const char *at = r->at;
    size_t length = strlen(key);
    char quote = '\0';
    if (peek(r) == '"' || peek(r) == '\'') {
        quote = *at++;
    }
    if ((size_t)(r->end - at) < length || memcmp(at, key, length) != 0) {
        return false;
    }
    at += length;
    if (quote && (at >= r->end || *at++ != quote)) {
        return false;
    }
    while (at < r->end && is_blank((unsigned char)*at)) {
        at++;
    }
    if (at >= r->end || *at != ':' ||
        !is_gap(at + 1 < r->end ? (unsigned char)at[1] : -1)) {
        return false;
    }
    r->at = at + 1;
    return true;
}

static void read_ours(struct reader *r, const char *key)
{
    struct path path = {.fits = true};
    if (skip_properties(r)) {
        fail(r, "a tag is not read here");
        skip_value(r, 0);
    } else if (peek(r) == '{') {
        if (read_flow(r, &path, 0, false)) {
            end_value(r);
        } else {
            skip_line(r);
        }
    } else if (at_end_of_line(r)) {
        skip_line(r);
        if (next_entry(r) && column(r) > 0) {
            unsigned indent = column(r);
            r->at = r->begin;
            read_block(r, &path, indent, 0);
        } else if (r->at < r->end) {
            if (peek(r) == '\t') {
                fail(r, "a line is indented with a tab; YAML takes blanks");
            } else if (at_dash(r)) {
                complain(r, r->line, "%s should be a mapping of options, not a list",
                         key);
            }
            r->at = r->begin;
        }
    } else if (peek(r) == '*') {
        fail(r, "an alias is not read here; write the options themselves");
        skip_line(r);
    } else {
        read_plain(r, false);
        if (!is_null(r->value, r->length)) {
            complain(r, r->line, "%s should be a mapping of options", key);
        }
        skip_line(r);
    }
}

bool sw__yaml_read(const char *text, size_t length, const char *key,
                   const struct sw__config_sink *sink)
{
    struct reader reader = {
        .at = text, .end = text + length, .begin = text, .line = 1, .sink = sink};
    struct reader *r = &reader;
    bool begun = false;
    bool found = false;
    while (r->at < r->end) {
        if (at_document_mark(r)) {
            if (begun) {
                break;
            }
            /* A document may begin on the line of its mark. */
            r->at += 3;
            begun = true;
            skip_value(r, 0);
            continue;
        }
        if (peek(r) == '%' && !begun) {
            skip_line(r);
            continue;
        }
        while (peek(r) == ' ') {
            r->at++;
        }
        unsigned indent = column(r);
        skip_blanks(r);
        if (at_end_of_line(r)) {
            skip_line(r);
            continue;
        }
        begun = true;
        if (indent == 0 && column(r) == 0 && is_key(r, key)) {
            found = true;
            read_ours(r, key);
        } else {
            skip_entry(r, indent);
        }
    }
    return found;
}

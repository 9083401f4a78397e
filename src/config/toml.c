/* TOML 1.0 as far as one table of options needs it. All of the language is recognised, so that whatever a
 * pyproject.toml holds besides is stepped over; only our table is looked at.
 *
 * After a mistake the reader goes on at the next table header. A mistake outside our table is none of our business. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/reader.h"

/* Deeper nesting than this is no configuration, and must not take the stack. */
#define DEPTH_MOST 16
/* Ends each part of a path; no key that is a word contains it. */
#define PART_END '\x1f'

/* The names that lead to a value, "tool\x1fstepwatch\x1fmax_mb\x1f". */
struct path {
    char text[SW__CONFIG_KEY * 2];
    size_t length;
    bool fits; /* all of it is there */
};

struct reader {
    const char *at, *end;
    unsigned line;
    const struct sw__config_sink *sink;
    struct path wanted;
    bool loud; /* what is being read is ours, so mistakes matter */
    bool found;
    char value[SW__CONFIG_VALUE];
    size_t length; /* of the value */
    bool fits;     /* … which is there as a whole */
};

static bool read_value(struct reader *r, const struct path *path, int depth,
                       bool element);

/* --- paths --- */

static void path_add_byte(struct path *path, char c)
{
    if (path->length < sizeof path->text) {
        path->text[path->length++] = c;
    } else {
        path->fits = false;
    }
}

static void path_add(struct path *path, const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        /* A part with such a byte must not pass for two. */
        path_add_byte(path, (char)(part[i] == PART_END ? '?' : part[i]));
    }
    path_add_byte(path, PART_END);
}

static bool is_below(const struct path *path, const struct path *wanted)
{
    return path->length >= wanted->length &&
           memcmp(path->text, wanted->text, wanted->length) == 0;
}

/* --- mistakes --- */

static void complain(struct reader *r, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(struct reader *r, unsigned line, const char *format, ...)
{
    char sentence[256];
    va_list arguments;
    if (!r->loud) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    r->sink->complain(r->sink->arg, line, sentence);
}

static bool fail(struct reader *r, const char *sentence)
{
    complain(r, r->line, "%s", sentence);
    return false;
}

/* --- characters --- */

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static int peek_at(const struct reader *r, size_t ahead)
{
    return (size_t)(r->end - r->at) > ahead ? (unsigned char)r->at[ahead] : -1;
}

static void advance(struct reader *r, size_t count)
{
    for (; count > 0 && r->at < r->end; count--) {
        r->line += *r->at++ == '\n';
    }
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t') {
        r->at++;
    }
}

static void skip_comment(struct reader *r)
{
    while (r->at < r->end && *r->at != '\n') {
        r->at++;
    }
}

/* Blanks, comments and ends of lines. */
static void skip_space(struct reader *r)
{
    for (;;) {
        int c = peek(r);
        if (c == '#') {
            skip_comment(r);
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            advance(r, 1);
        } else {
            return;
        }
    }
}

/* Nothing but a comment may follow on this line. */
static bool end_line(struct reader *r)
{
    skip_blanks(r);
    if (peek(r) == '#') {
        skip_comment(r);
    }
    if (peek(r) == '\r') {
        r->at++;
    }
    if (r->at < r->end && *r->at != '\n') {
        return fail(r, "there is something after the value");
    }
    advance(r, 1);
    return true;
}

/* --- strings --- */

static void put_byte(struct reader *r, char c)
{
    if (r->length + 1 < sizeof r->value && c) {
        r->value[r->length++] = c;
    } else {
        r->fits = false;
    }
}

static void put_character(struct reader *r, uint32_t code)
{
    if (code < 0x80) {
        put_byte(r, (char)code);
        return;
    }
    if (code < 0x800) {
        put_byte(r, (char)(0xC0 | code >> 6));
    } else if (code < 0x10000) {
        put_byte(r, (char)(0xE0 | code >> 12));
        put_byte(r, (char)(0x80 | (code >> 6 & 0x3F)));
    } else {
        put_byte(r, (char)(0xF0 | code >> 18));
        put_byte(r, (char)(0x80 | (code >> 12 & 0x3F)));
        put_byte(r, (char)(0x80 | (code >> 6 & 0x3F)));
    }
    put_byte(r, (char)(0x80 | (code & 0x3F)));
}

static bool read_hex(struct reader *r, int digits)
{
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        int c = peek(r);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return fail(r, "a character given by its number lacks digits");
        }
        code = code << 4 | (uint32_t)digit;
        r->at++;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        return fail(r, "there is no character of that number");
    }
    put_character(r, code);
    return true;
}

/* After a backslash. `many`: in a text of several lines, where it may join two of them. */
static bool read_escape(struct reader *r, bool many)
{
    static const char from[] = "btnfre\"\\";
    static const char to[] = "\b\t\n\f\r\033\"\\";
    int c = peek(r);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (known) {
        put_byte(r, to[known - from]);
        r->at++;
        return true;
    }
    if (c == 'u' || c == 'U' || c == 'x') {
        r->at++;
        return read_hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    }
    if (many && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) {
        while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r' || peek(r) == '\n') {
            advance(r, 1);
        }
        return true;
    }
    return fail(r, "a backslash is followed by something that TOML does not know");
}

/* Text in three quotes; up to two quotes may stand right before those that end it. */
static bool read_long_string(struct reader *r, int quote)
{
    unsigned begin = r->line;
    advance(r, 3);
    if (peek(r) == '\r' && peek_at(r, 1) == '\n') {
        r->at++;
    }
    if (peek(r) == '\n') {
        advance(r, 1);
    }
    while (r->at < r->end) {
        int c = peek(r);
        if (c == quote && peek_at(r, 1) == quote && peek_at(r, 2) == quote) {
            advance(r, 3);
            for (int i = 0; i < 2 && peek(r) == quote; i++) {
                put_byte(r, (char)quote);
                r->at++;
            }
            return true;
        }
        advance(r, 1);
        if (c == '\\' && quote == '"') {
            if (!read_escape(r, true)) {
                return false;
            }
        } else {
            put_byte(r, (char)c);
        }
    }
    complain(r, begin, "a text in three quotes does not end");
    return false;
}

static bool read_string(struct reader *r)
{
    int quote = peek(r);
    r->length = 0;
    r->fits = true;
    if (peek_at(r, 1) == quote && peek_at(r, 2) == quote) {
        return read_long_string(r, quote);
    }
    r->at++;
    while (r->at < r->end && *r->at != '\n') {
        int c = (unsigned char)*r->at++;
        if (c == quote) {
            return true;
        }
        if (c == '\\' && quote == '"') {
            if (!read_escape(r, false)) {
                return false;
            }
        } else {
            put_byte(r, (char)c);
        }
    }
    return fail(r, "a text in quotes does not end on its line");
}

/* --- keys --- */

static bool is_key_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

/* a."b".c, added to the path. */
static bool read_key(struct reader *r, struct path *path)
{
    for (;;) {
        skip_blanks(r);
        if (peek(r) == '"' || peek(r) == '\'') {
            if (!read_string(r)) {
                return false;
            }
            path_add(path, r->value, r->length);
            path->fits = path->fits && r->fits;
        } else {
            const char *begin = r->at;
            while (is_key_byte(peek(r))) {
                r->at++;
            }
            if (r->at == begin) {
                return fail(r, "this is no KEY = VALUE");
            }
            path_add(path, begin, (size_t)(r->at - begin));
        }
        skip_blanks(r);
        if (peek(r) != '.') {
            return true;
        }
        r->at++;
    }
}

static bool read_equals(struct reader *r)
{
    skip_blanks(r);
    if (peek(r) != '=') {
        return fail(r, "a key needs = and a value");
    }
    r->at++;
    skip_blanks(r);
    return true;
}

/* --- values --- */

/* Tells of a value, if it is one of ours. */
static void emit(struct reader *r, const struct path *path, unsigned line,
                 enum sw__config_kind kind, bool element)
{
    char key[SW__CONFIG_KEY];
    size_t length = path->length - r->wanted.length;
    if (!r->loud) {
        return;
    }
    if (!path->fits || length > sizeof key) {
        complain(r, line, "the key is too long");
        return;
    }
    if (length == 0) {
        complain(r, line, "options are given as a table, not as one value");
        return;
    }
    if (kind == SW__CONFIG_SCALAR && !r->fits) {
        complain(r, line, "the value is too long, or has a NUL byte");
        return;
    }
    const char *from = path->text + r->wanted.length;
    for (size_t i = 0; i < length; i++) {
        key[i] = (char)(from[i] == PART_END ? '.' : from[i]);
    }
    key[length - 1] = '\0';
    r->value[kind == SW__CONFIG_SCALAR ? r->length : 0] = '\0';
    r->sink->put(r->sink->arg, &(struct sw__config_entry){.line = line,
                                                          .key = key,
                                                          .value = r->value,
                                                          .kind = kind,
                                                          .element = element});
}

static bool read_array(struct reader *r, const struct path *path, int depth, bool element)
{
    unsigned begin = r->line;
    r->at++;
    if (element && r->loud) {
        return fail(r, "a list within a list is not read here");
    }
    emit(r, path, begin, SW__CONFIG_LIST, false);
    for (;;) {
        skip_space(r);
        if (peek(r) == ']') {
            r->at++;
            return true;
        }
        if (r->at >= r->end) {
            complain(r, begin, "a list does not end");
            return false;
        }
        if (!read_value(r, path, depth + 1, true)) {
            return false;
        }
        skip_space(r);
        if (peek(r) == ',') {
            r->at++;
        } else if (peek(r) != ']') {
            return fail(r, "values of a list are separated by commas");
        }
    }
}

static bool read_inline_table(struct reader *r, const struct path *path, int depth,
                              bool element)
{
    unsigned begin = r->line;
    r->at++;
    if (element && r->loud) {
        return fail(r, "a table within a list is not read here");
    }
    for (;;) {
        /* TOML 1.1 lets inline tables go over several lines. */
        skip_space(r);
        if (peek(r) == '}') {
            r->at++;
            return true;
        }
        if (r->at >= r->end) {
            complain(r, begin, "an inline table does not end");
            return false;
        }
        /* Whether it is ours is told by the whole path: tool = {stepwatch = {…}}. */
        struct path inner = *path;
        bool outer = r->loud;
        if (!read_key(r, &inner)) {
            return false;
        }
        r->loud = is_below(&inner, &r->wanted);
        r->found = r->found || r->loud;
        bool good = read_equals(r) && read_value(r, &inner, depth + 1, false);
        if (!good) {
            return false;
        }
        r->loud = outer;
        skip_space(r);
        if (peek(r) == ',') {
            r->at++;
        } else if (peek(r) != '}') {
            return fail(r, "values of an inline table are separated by commas");
        }
    }
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Numbers, truths, dates: everything without quotes. Underscores between digits say nothing. */
static bool read_word(struct reader *r)
{
    r->length = 0;
    r->fits = true;
    const char *begin = r->at;
    for (;;) {
        int c = peek(r);
        bool date = c == ' ' && r->at - begin == 10 && begin[4] == '-' &&
                    begin[7] == '-' && is_digit(peek_at(r, 1));
        if (!is_key_byte(c) && c != '+' && c != '.' && c != ':' && !date) {
            break;
        }
        bool between = c == '_' && r->at > begin && is_digit((unsigned char)r->at[-1]) &&
                       is_digit(peek_at(r, 1));
        if (!between) {
            put_byte(r, (char)c);
        }
        r->at++;
    }
    return r->at > begin || fail(r, "a value is missing, or a text needs quotes");
}

static bool read_value(struct reader *r, const struct path *path, int depth, bool element)
{
    unsigned line = r->line;
    if (depth > DEPTH_MOST) {
        return fail(r, "this is nested too deeply");
    }
    switch (peek(r)) {
    case '[':
        return read_array(r, path, depth, element);
    case '{':
        return read_inline_table(r, path, depth, element);
    case '"':
    case '\'':
        if (!read_string(r)) {
            return false;
        }
        break;
    default:
        if (!read_word(r)) {
            return false;
        }
    }
    emit(r, path, line, SW__CONFIG_SCALAR, element);
    return true;
}

/* --- lines --- */

static bool read_header(struct reader *r, struct path *table)
{
    bool array = peek_at(r, 1) == '[';
    unsigned line = r->line;
    *table = (struct path){.fits = true};
    advance(r, array ? 2 : 1);
    r->loud = false;
    if (!read_key(r, table)) {
        return false;
    }
    r->loud = is_below(table, &r->wanted);
    r->found = r->found || r->loud;
    if (peek(r) != ']' || (array && peek_at(r, 1) != ']')) {
        return fail(r, "the name of a table does not end with ]");
    }
    r->at += array ? 2 : 1;
    if (array && r->loud) {
        complain(r, line, "an array of tables is not read here; write [%s]",
                 r->wanted.length ? "tool.stepwatch" : "name");
        return false;
    }
    return end_line(r);
}

static bool read_pair(struct reader *r, const struct path *table)
{
    struct path path = *table;
    r->loud = is_below(table, &r->wanted);
    if (!read_key(r, &path)) {
        return false;
    }
    r->loud = is_below(&path, &r->wanted);
    r->found = r->found || (r->loud && path.length > r->wanted.length);
    return read_equals(r) && read_value(r, &path, 0, false) && end_line(r);
}

static bool begins_pair(struct reader *r)
{
    const char *begin = r->at;
    while (is_key_byte(peek(r)) || peek(r) == '.') {
        r->at++;
    }
    bool named = r->at > begin;
    skip_blanks(r);
    bool pair = named && peek(r) == '=';
    r->at = begin;
    return pair;
}

/* After a mistake: to the next line that begins a table or, in our own table, looks like a pair. */
static void recover(struct reader *r, const struct path *table)
{
    bool ours = is_below(table, &r->wanted);
    r->loud = false;
    while (r->at < r->end) {
        skip_comment(r);
        advance(r, 1);
        skip_blanks(r);
        if (peek(r) == '[' || (ours && begins_pair(r))) {
            return;
        }
    }
}

bool sw__toml_read(const char *text, size_t length, const char *table,
                   const struct sw__config_sink *sink)
{
    struct reader reader = {.at = text,
                            .end = text + length,
                            .line = 1,
                            .sink = sink,
                            .wanted = {.fits = true}};
    struct reader *r = &reader;
    for (const char *part = table; *part;) {
        size_t part_length = strcspn(part, ".");
        path_add(&r->wanted, part, part_length);
        part += part_length + (part[part_length] == '.');
    }
    r->found = r->wanted.length == 0;
    struct path current = {.fits = true};
    bool lost = false;
    for (;;) {
        skip_space(r);
        if (r->at >= r->end) {
            return r->found;
        }
        if (peek(r) == '[') {
            lost = !read_header(r, &current);
        } else {
            lost = !read_pair(r, &current);
        }
        if (lost) {
            recover(r, &current);
        }
    }
}

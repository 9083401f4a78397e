/* JSON: the order of its parts is checked as it is written, so that a document that
 * closes without an error is a valid one. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/writer_internal.h"

static uint64_t bit(unsigned depth)
{
    return (uint64_t)1 << (depth - 1);
}

static bool in_object(const struct sw__json *json)
{
    return json->depth && (json->objects & bit(json->depth));
}

static void new_line(sw_writer *writer)
{
    if (writer->json.pretty) {
        sw_write_bytes(writer, "\n", 1);
        sw_write_repeat(writer, "  ", writer->json.depth);
    }
}

/* Comma and line break before a key or an element. */
static void separate(sw_writer *writer)
{
    struct sw__json *json = &writer->json;
    if (json->filled & bit(json->depth)) {
        sw_write_bytes(writer, ",", 1);
    }
    json->filled |= bit(json->depth);
    new_line(writer);
}

/* Prepares for a value; false where none may stand. */
static bool value_may_follow(sw_writer *writer)
{
    if (!sw__writer_is_good(writer)) {
        return false;
    }
    struct sw__json *json = &writer->json;
    if (json->complete || (in_object(json) && !json->after_key)) {
        sw__writer_fail(writer, SW_EINVAL, 0);
        return false;
    }
    if (json->depth && !json->after_key) {
        separate(writer);
    }
    json->after_key = false;
    json->complete = json->depth == 0;
    return true;
}

void sw_json_start(sw_writer *writer, bool pretty)
{
    if (writer) {
        writer->json = (struct sw__json){.pretty = pretty};
    }
}

static void begin(sw_writer *writer, bool object)
{
    if (!value_may_follow(writer)) {
        return;
    }
    struct sw__json *json = &writer->json;
    if (json->depth == SW__JSON_DEPTH) {
        sw__writer_fail(writer, SW_EINVAL, 0);
        return;
    }
    json->complete = false;
    json->depth++;
    json->objects &= ~bit(json->depth);
    json->filled &= ~bit(json->depth);
    if (object) {
        json->objects |= bit(json->depth);
    }
    sw_write_bytes(writer, object ? "{" : "[", 1);
}

static void end(sw_writer *writer, bool object)
{
    if (!sw__writer_is_good(writer)) {
        return;
    }
    struct sw__json *json = &writer->json;
    if (json->depth == 0 || in_object(json) != object || json->after_key) {
        sw__writer_fail(writer, SW_EINVAL, 0);
        return;
    }
    bool filled = json->filled & bit(json->depth);
    json->depth--;
    if (filled) {
        new_line(writer);
    }
    sw_write_bytes(writer, object ? "}" : "]", 1);
    json->complete = json->depth == 0;
}

void sw_json_object_begin(sw_writer *writer)
{
    begin(writer, true);
}

void sw_json_object_end(sw_writer *writer)
{
    end(writer, true);
}

void sw_json_array_begin(sw_writer *writer)
{
    begin(writer, false);
}

void sw_json_array_end(sw_writer *writer)
{
    end(writer, false);
}

/* Whether the byte at `at` stands for itself in a string wherever it is. */
static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\' && byte != '<';
}

/* Writes what is not plain at the start of `bytes` and returns how many bytes that
 * was. */
static size_t write_special(sw_writer *writer, const char *bytes, size_t length)
{
    static const char letters[] = "btn\0fr"; /* from 8 on; 11 has no letter */
    uint32_t code;
    size_t taken = sw__utf8_decode(bytes, length, &code);
    char escape[16] = {'\\'};
    if (code == SW__UTF8_INVALID) {
        sw_write_bytes(writer, "\xEF\xBF\xBD", 3); /* U+FFFD */
    } else if (code == '"' || code == '\\') {
        escape[1] = (char)code;
        sw_write_bytes(writer, escape, 2);
    } else if (code >= 8 && code <= 13 && letters[code - 8]) {
        escape[1] = letters[code - 8];
        sw_write_bytes(writer, escape, 2);
    } else if (code == '<' && length > 1 && bytes[1] == '/') {
        sw_write_bytes(writer, "<\\/", 3); /* "</script" would end the element */
        taken = 2;
    } else if (code < 0x20 || code == 0x7F || code == 0x2028 || code == 0x2029 ||
               (code == '<' && length > 1 && bytes[1] == '!')) {
        /* After "<!--<script" a script element would not end where it should. */
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code);
        sw_write_bytes(writer, escape, 6);
    } else {
        sw_write_bytes(writer, bytes, taken);
    }
    return taken;
}

/* The same where all is plain and there is room, as nearly always: true when it was. */
static bool write_plain(sw_writer *writer, const char *bytes, size_t length)
{
    if (length + 2 >= writer->capacity - writer->used) {
        return false;
    }
    char *out = writer->buffer + writer->used;
    *out++ = '"';
    for (size_t i = 0; i < length; i++) {
        if (!is_plain((unsigned char)bytes[i])) {
            return false;
        }
        *out++ = bytes[i];
    }
    *out = '"';
    writer->used += length + 2;
    return true;
}

static void write_quoted(sw_writer *writer, const char *bytes, size_t length)
{
    if (write_plain(writer, bytes, length)) {
        return;
    }
    sw_write_bytes(writer, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t run = at;
        while (run < length && is_plain((unsigned char)bytes[run])) {
            run++;
        }
        sw_write_bytes(writer, bytes + at, run - at);
        at = run < length ? run + write_special(writer, bytes + run, length - run) : run;
    }
    sw_write_bytes(writer, "\"", 1);
}

void sw_json_key(sw_writer *writer, const char *key)
{
    if (!sw__writer_is_good(writer)) {
        return;
    }
    struct sw__json *json = &writer->json;
    if (!key || !in_object(json) || json->after_key) {
        sw__writer_fail(writer, SW_EINVAL, 0);
        return;
    }
    separate(writer);
    write_quoted(writer, key, strlen(key));
    sw_write_bytes(writer, ": ", json->pretty ? 2 : 1);
    json->after_key = true;
}

void sw__json_raw(sw_writer *writer, const char *text, size_t length)
{
    if (value_may_follow(writer)) {
        sw_write_bytes(writer, text, length);
    }
}

void sw_json_string_n(sw_writer *writer, const char *bytes, size_t length)
{
    if (!bytes) {
        sw_json_null(writer);
    } else if (value_may_follow(writer)) {
        write_quoted(writer, bytes, length);
    }
}

void sw_json_string(sw_writer *writer, const char *text)
{
    sw_json_string_n(writer, text, text ? strlen(text) : 0);
}

void sw_json_int(sw_writer *writer, int64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    sw__json_raw(writer, digits, (size_t)length);
}

void sw_json_uint(sw_writer *writer, uint64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    do { /* by hand: traces have millions of numbers */
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    sw__json_raw(writer, digits + at, sizeof digits - at);
}

/* Makes printf's form JSON's, in place: whatever the locale has for a decimal point
 * becomes one, and an exponent loses its plus sign and leading zeros. Returns the
 * length. */
static size_t tidy_number(char *text)
{
    size_t used = 0;
    for (const char *at = text; *at;) {
        if ((*at >= '0' && *at <= '9') || *at == '-') {
            text[used++] = *at++;
        } else if (*at == 'e') {
            text[used++] = *at++;
            if (*at == '-') {
                text[used++] = '-';
            }
            at += strspn(at, "+-0");
        } else {
            text[used++] = '.';
            at += strcspn(at, "0123456789");
        }
    }
    text[used] = '\0';
    return used;
}

void sw_json_double(sw_writer *writer, double value)
{
    if (!isfinite(value)) {
        sw_json_null(writer);
        return;
    }
    /* 15 digits always survive being read back from text, 17 always suffice. Below the
     * normal numbers fewer digits carry information, so the search begins at one. */
    char text[40];
    int precision = fabs(value) < DBL_MIN ? 1 : 15;
    for (; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    if (precision == 17) {
        snprintf(text, sizeof text, "%.17g", value);
    }
    sw__json_raw(writer, text, tidy_number(text));
}

void sw_json_bool(sw_writer *writer, bool value)
{
    sw__json_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

void sw_json_null(sw_writer *writer)
{
    sw__json_raw(writer, "null", 4);
}

#include <math.h>
#include <string.h>

#include "analyze/json_scan.h"

static bool fail(struct sw__scan *json)
{
    json->bad = true;
    return false;
}

static int next_char(struct sw__scan *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' ||
                                    *json->at == '\r' || *json->at == '\n')) {
        json->at++;
    }
    return json->bad || json->at == json->end ? -1 : (unsigned char)*json->at;
}

static bool take_char(struct sw__scan *json, char wanted)
{
    if (next_char(json) != (unsigned char)wanted) {
        return fail(json);
    }
    json->at++;
    return true;
}

enum sw__scan_kind sw__scan_peek(struct sw__scan *json)
{
    int c = next_char(json);
    switch (c) {
    case '{':
        return SW__SCAN_OBJECT;
    case '[':
        return SW__SCAN_ARRAY;
    case '"':
        return SW__SCAN_STRING;
    case 't':
    case 'f':
        return SW__SCAN_BOOL;
    case 'n':
        return SW__SCAN_NULL;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? SW__SCAN_NUMBER : SW__SCAN_BAD;
    }
}

bool sw__scan_enter(struct sw__scan *json, enum sw__scan_kind kind)
{
    return take_char(json, kind == SW__SCAN_OBJECT ? '{' : '[');
}

/* Before an item: the closing bracket, or the comma that stands before all but the first. */
static bool next_item(struct sw__scan *json, bool *first, char closing)
{
    if (next_char(json) == (unsigned char)closing) {
        json->at++;
        return false;
    }
    if (!*first && !take_char(json, ',')) {
        return false;
    }
    *first = false;
    return !json->bad;
}

bool sw__scan_member(struct sw__scan *json, bool *first, char *key, size_t size)
{
    return next_item(json, first, '}') && sw__scan_string(json, key, size) >= 0 &&
           take_char(json, ':');
}

bool sw__scan_element(struct sw__scan *json, bool *first)
{
    return next_item(json, first, ']');
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(struct sw__scan *json, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, json->at++) {
        int digit = json->at < json->end ? hex_value(*json->at) : -1;
        if (digit < 0) {
            return fail(json);
        }
        *out = *out << 4 | (unsigned)digit;
    }
    return true;
}

static size_t encode(unsigned code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)(code ? code : '?');
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* What follows a backslash, as UTF-8. */
static size_t take_escape(struct sw__scan *json, char out[4])
{
    if (json->at == json->end) {
        return fail(json);
    }
    char c = *json->at++;
    const char *from = "\"\\/bfnrt";
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        out[0] = "\"\\/\b\f\n\r\t"[found - from];
        return 1;
    }
    unsigned code;
    if (c != 'u' || !take_hex(json, &code)) {
        return fail(json);
    }
    if (code >= 0xd800 && code < 0xdc00 && json->end - json->at >= 6 &&
        json->at[0] == '\\' && json->at[1] == 'u') {
        unsigned low;
        json->at += 2;
        if (!take_hex(json, &low)) {
            return 0;
        }
        code = low >= 0xdc00 && low < 0xe000
                   ? 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00))
                   : 0xfffd;
    }
    return encode(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
}

long sw__scan_string(struct sw__scan *json, char *out, size_t size)
{
    if (!take_char(json, '"')) {
        return -1;
    }
    size_t length = 0;
    while (json->at < json->end && *json->at != '"') {
        char bytes[4] = {*json->at++};
        size_t count = 1;
        if (bytes[0] == '\\') {
            count = take_escape(json, bytes);
        } else if ((unsigned char)bytes[0] < 0x20) {
            fail(json);
        }
        if (json->bad) {
            return -1;
        }
        if (length + count < size) {
            memcpy(out + length, bytes, count);
        } else if (length < size) {
            size = length + 1; /* characters are kept whole */
        }
        length += count;
    }
    if (!take_char(json, '"')) {
        return -1;
    }
    if (size > 0) {
        out[length < size ? length : size - 1] = '\0';
    }
    return (long)length;
}

/* Not strtod, which follows the locale of the program. Exact up to 15 digits, which is what
 * stepwatch writes. */
bool sw__scan_number(struct sw__scan *json, double *out)
{
    if (sw__scan_peek(json) != SW__SCAN_NUMBER) {
        return fail(json);
    }
    bool negative = *json->at == '-';
    json->at += negative;
    double value = 0;
    int scale = 0;
    bool fraction = false;
    const char *begin = json->at;
    for (; json->at < json->end; json->at++) {
        char c = *json->at;
        if (c == '.' && !fraction) {
            fraction = true;
        } else if (c >= '0' && c <= '9') {
            value = value * 10 + (c - '0');
            scale -= fraction;
        } else {
            break;
        }
    }
    if (json->at == begin) {
        return fail(json);
    }
    if (json->at < json->end && (*json->at | 0x20) == 'e') {
        json->at++;
        bool down = json->at < json->end && *json->at == '-';
        json->at += json->at < json->end && (*json->at == '-' || *json->at == '+');
        int exponent = 0;
        for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
            exponent = exponent < 1000 ? exponent * 10 + (*json->at - '0') : exponent;
        }
        scale += down ? -exponent : exponent;
    }
    value = scale < 0 ? value / pow(10, -scale) : value * pow(10, scale);
    *out = negative ? -value : value;
    return true;
}

static bool skip_word(struct sw__scan *json)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(json->end - json->at) >= length &&
            memcmp(json->at, words[i], length) == 0) {
            json->at += length;
            return true;
        }
    }
    return fail(json);
}

static bool skip_nested(struct sw__scan *json, unsigned depth)
{
    bool first = true;
    char key[1];
    double number;
    enum sw__scan_kind kind = sw__scan_peek(json);
    switch (kind) {
    case SW__SCAN_STRING:
        return sw__scan_string(json, key, sizeof key) >= 0;
    case SW__SCAN_NUMBER:
        return sw__scan_number(json, &number);
    case SW__SCAN_BOOL:
    case SW__SCAN_NULL:
        return skip_word(json);
    case SW__SCAN_ARRAY:
    case SW__SCAN_OBJECT:
        break;
    case SW__SCAN_BAD:
    default:
        return fail(json);
    }
    if (depth == SW__SCAN_DEPTH || !sw__scan_enter(json, kind)) {
        return fail(json);
    }
    while (kind == SW__SCAN_OBJECT ? sw__scan_member(json, &first, key, sizeof key)
                                   : sw__scan_element(json, &first)) {
        if (!skip_nested(json, depth + 1)) {
            return false;
        }
    }
    return !json->bad;
}

bool sw__scan_skip(struct sw__scan *json)
{
    return skip_nested(json, 0);
}

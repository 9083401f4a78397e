/* JSON: structure, strings of any bytes, numbers in any locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/write.h>

#include "base/utf8.h"

#define N(text) text, sizeof(text) - 1

static sw_writer *started(bool pretty)
{
    sw_writer *writer = sw_writer_to_memory();
    assert_non_null(writer);
    sw_json_start(writer, pretty);
    return writer;
}

static void finish(sw_writer *writer, const char *expected)
{
    assert_string_equal(sw_writer_text(writer, NULL), expected);
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
}

static void put_sample(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_key(writer, "a");
    sw_json_array_begin(writer);
    sw_json_int(writer, 1);
    sw_json_bool(writer, true);
    sw_json_bool(writer, false);
    sw_json_null(writer);
    sw_json_array_end(writer);
    sw_json_key(writer, "b");
    sw_json_object_begin(writer);
    sw_json_object_end(writer);
    sw_json_key(writer, "c");
    sw_json_array_begin(writer);
    sw_json_array_end(writer);
    sw_json_key(writer, "d");
    sw_json_object_begin(writer);
    sw_json_key(writer, "e");
    sw_json_string(writer, NULL);
    sw_json_object_end(writer);
    sw_json_object_end(writer);
}

static void structure_compact(void **state)
{
    (void)state;
    sw_writer *writer = started(false);
    put_sample(writer);
    finish(writer, "{\"a\":[1,true,false,null],\"b\":{},\"c\":[],\"d\":{\"e\":null}}");
}

static void structure_pretty(void **state)
{
    (void)state;
    sw_writer *writer = started(true);
    put_sample(writer);
    finish(writer, "{\n"
                   "  \"a\": [\n"
                   "    1,\n"
                   "    true,\n"
                   "    false,\n"
                   "    null\n"
                   "  ],\n"
                   "  \"b\": {},\n"
                   "  \"c\": [],\n"
                   "  \"d\": {\n"
                   "    \"e\": null\n"
                   "  }\n"
                   "}");
}

static void lines_of_documents(void **state)
{
    (void)state;
    sw_writer *writer = started(false);
    sw_json_int(writer, 1);
    sw_write_text(writer, "\n");
    sw_json_start(writer, false);
    sw_json_int(writer, 2);
    finish(writer, "1\n2");
}

static void check_string(const char *bytes, size_t length, const char *expected)
{
    sw_writer *writer = started(false);
    sw_json_string_n(writer, bytes, length);
    finish(writer, expected);
}

static void controls_are_escaped(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 0x20; i++) {
        char byte = (char)i;
        char expected[16];
        if (i < 8 || i == 11 || i > 13) {
            snprintf(expected, sizeof expected, "\"\\u%04x\"", i);
            check_string(&byte, 1, expected);
        }
    }
    check_string(N("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\"");
    check_string(N("\x7F"), "\"\\u007f\"");
    check_string(N("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    check_string(N(""), "\"\"");
    check_string(N("a\0b"), "\"a\\u0000b\"");
}

static void scripts_cannot_be_left(void **state)
{
    (void)state;
    check_string(N("</script>"), "\"<\\/script>\"");
    check_string(N("<!--<script>"), "\"\\u003c!--<script>\"");
    check_string(N("a<b <"), "\"a<b <\"");
    check_string(N("<</"), "\"<<\\/\"");
    check_string(N("\xE2\x80\xA8\xE2\x80\xA9"), "\"\\u2028\\u2029\"");
}

static void valid_utf8_is_kept(void **state)
{
    (void)state;
    check_string(N("é日\xF0\x9F\x98\x80"), "\"é日\xF0\x9F\x98\x80\"");
    check_string(N("\xC2\x80\xDF\xBF"), "\"\xC2\x80\xDF\xBF\"");
    check_string(N("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"),
                 "\"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\"");
    check_string(N("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"),
                 "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"");
}

#define BAD "\xEF\xBF\xBD"

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    check_string(N("\x80"), "\"" BAD "\"");
    check_string(N("\xFF\xFE"), "\"" BAD BAD "\"");
    check_string(N("\xC0\x80"), "\"" BAD BAD "\"");                 /* overlong NUL */
    check_string(N("\xC1\xBF"), "\"" BAD BAD "\"");                 /* overlong */
    check_string(N("\xE0\x9F\xBF"), "\"" BAD BAD BAD "\"");         /* overlong */
    check_string(N("\xF0\x8F\xBF\xBF"), "\"" BAD BAD BAD BAD "\""); /* overlong */
    check_string(N("\xED\xA0\x80"), "\"" BAD BAD BAD "\"");         /* surrogate */
    check_string(N("\xED\xBF\xBF"), "\"" BAD BAD BAD "\"");         /* surrogate */
    check_string(N("\xF4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\""); /* too large */
    check_string(N("\xF5\x80\x80\x80"), "\"" BAD BAD BAD BAD "\"");
    check_string(N("\xC3"), "\"" BAD "\""); /* cut at the end */
    check_string(N("\xE2\x82"), "\"" BAD "\"");
    check_string(N("\xF0\x9F\x98"), "\"" BAD "\"");
    check_string(N("\xE2\x82\"x"), "\"" BAD "\\\"x\""); /* cut in the middle */
    check_string(N("\xF0\x9F\xC3\xA9"), "\"" BAD "é\"");
    /* A character must not be completed by bytes beyond the given length. */
    check_string("\xE2\x82\xAC", 2, "\"" BAD "\"");
}

/* Whether a string is well-formed JSON made of well-formed UTF-8. */
static bool is_string(const char *text, size_t length)
{
    if (length < 2 || text[0] != '"' || text[length - 1] != '"') {
        return false;
    }
    for (size_t i = 1; i < length - 1;) {
        uint32_t code;
        size_t taken = sw__utf8_decode(text + i, length - 1 - i, &code);
        if (code < 0x20 || code == '"' || code == SW__UTF8_INVALID) {
            return false;
        }
        if (code == '\\') {
            if (i + 1 >= length - 1 || !strchr("\"\\/bfnrtu", text[i + 1])) {
                return false;
            }
            if (text[i + 1] == 'u' && strspn(text + i + 2, "0123456789abcdef") < 4) {
                return false;
            }
            taken = text[i + 1] == 'u' ? 6 : 2;
        }
        i += taken;
    }
    return !strstr(text, "</") && !strstr(text, "<!");
}

static void any_bytes_give_a_string(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 50000; round++) {
        char bytes[24];
        size_t length = (size_t)(rand() % 24);
        for (size_t i = 0; i < length; i++) {
            static const char nasty[] = "<!/\"\\\xE2\x80\xA8\xED\xA0\xF0\x9F\xC0\n";
            bytes[i] = (char)(rand() % 256);
            if (rand() % 2) {
                bytes[i] = nasty[(size_t)rand() % (sizeof nasty - 1)];
            }
        }
        sw_writer *writer = started(false);
        sw_json_string_n(writer, bytes, length);
        size_t written;
        const char *text = sw_writer_text(writer, &written);
        assert_true(is_string(text, written));
        sw_writer_close(writer, NULL);
    }
}

static void check_double(double value, const char *expected)
{
    sw_writer *writer = started(false);
    sw_json_double(writer, value);
    finish(writer, expected);
}

static void check_doubles(void)
{
    check_double(0, "0");
    check_double(-0.0, "-0");
    check_double(1, "1");
    check_double(0.1, "0.1");
    check_double(0.3, "0.3");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(-1.5, "-1.5");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(1e15, "1e15");
    check_double(123456789012345680.0, "1.2345678901234568e17");
    check_double(1e-7, "1e-7");
    check_double(1e100, "1e100");
    check_double(1.5e-300, "1.5e-300");
    check_double(5e-324, "5e-324");
    check_double(DBL_MAX, "1.7976931348623157e308");
    check_double(DBL_MIN, "2.2250738585072014e-308");
    check_double(NAN, "null");
    check_double(INFINITY, "null");
    check_double(-INFINITY, "null");
}

static void doubles_are_short(void **state)
{
    (void)state;
    check_doubles();
}

static void doubles_ignore_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                        "ps_AF.UTF-8", "fa_IR.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_ALL, names[i])) {
            found = true;
            check_doubles();
        }
    }
    setlocale(LC_ALL, "C");
    if (!found) {
        skip();
    }
}

static void doubles_survive(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        sw_writer *writer = started(false);
        sw_json_double(writer, value);
        const char *text = sw_writer_text(writer, NULL);
        assert_int_equal(strspn(text, "-.0123456789e"), strlen(text));
        assert_true(strtod(text, NULL) == value);
        sw_writer_close(writer, NULL);
    }
}

static void integers_are_whole(void **state)
{
    (void)state;
    sw_writer *writer = started(false);
    sw_json_array_begin(writer);
    sw_json_int(writer, INT64_MIN);
    sw_json_int(writer, INT64_MAX);
    sw_json_int(writer, -1);
    sw_json_uint(writer, 0);
    sw_json_uint(writer, UINT64_MAX);
    sw_json_array_end(writer);
    finish(writer,
           "[-9223372036854775808,9223372036854775807,-1,0,18446744073709551615]");
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (unsigned depth = 63; depth <= 65; depth++) {
        sw_writer *writer = started(false);
        for (unsigned i = 0; i < depth; i++) {
            if (i % 2) {
                sw_json_object_begin(writer);
                sw_json_key(writer, "k");
            } else {
                sw_json_array_begin(writer);
            }
        }
        for (unsigned i = depth; i-- > 0;) {
            if (i == depth - 1 && i % 2) {
                sw_json_null(writer);
            }
            if (i % 2) {
                sw_json_object_end(writer);
            } else {
                sw_json_array_end(writer);
            }
        }
        sw_error_info info;
        assert_int_equal(sw_writer_close(writer, &info), depth > 64 ? SW_EINVAL : SW_OK);
    }
}

static void value_without_key(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_int(writer, 1);
}
static void key_in_array(sw_writer *writer)
{
    sw_json_array_begin(writer);
    sw_json_key(writer, "k");
}
static void key_outside(sw_writer *writer)
{
    sw_json_key(writer, "k");
}
static void key_after_key(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_key(writer, "k");
    sw_json_key(writer, "k");
}
static void key_without_value(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_key(writer, "k");
    sw_json_object_end(writer);
}
static void wrong_end(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_array_end(writer);
}
static void end_of_nothing(sw_writer *writer)
{
    sw_json_array_end(writer);
}
static void two_values(sw_writer *writer)
{
    sw_json_int(writer, 1);
    sw_json_int(writer, 2);
}
static void value_after_object(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_object_end(writer);
    sw_json_array_begin(writer);
}
static void not_closed(sw_writer *writer)
{
    sw_json_array_begin(writer);
}
static void missing_key(sw_writer *writer)
{
    sw_json_object_begin(writer);
    sw_json_key(writer, NULL);
}

static void wrong_order_is_an_error(void **state)
{
    (void)state;
    static void (*const wrong[])(sw_writer *) = {
        value_without_key,  key_in_array, key_outside,    key_after_key,
        key_without_value,  wrong_end,    end_of_nothing, two_values,
        value_after_object, not_closed,   missing_key,
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sw_writer *writer = started(i % 2);
        sw_error_info info;
        wrong[i](writer);
        assert_int_equal(sw_writer_close(writer, &info), SW_EINVAL);
        assert_true(strlen(info.message) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure_compact),
        cmocka_unit_test(structure_pretty),
        cmocka_unit_test(lines_of_documents),
        cmocka_unit_test(controls_are_escaped),
        cmocka_unit_test(scripts_cannot_be_left),
        cmocka_unit_test(valid_utf8_is_kept),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(any_bytes_give_a_string),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(doubles_ignore_the_locale),
        cmocka_unit_test(doubles_survive),
        cmocka_unit_test(integers_are_whole),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(wrong_order_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

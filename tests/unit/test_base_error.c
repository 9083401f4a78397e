/* Codes, names, sentences and the caller-owned details. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <stepwatch/error.h>

static void every_code_has_a_name_and_a_sentence(void **state)
{
    (void)state;
#define CHECK(code, name, text)                                                          \
    assert_int_equal(name, code);                                                        \
    assert_string_equal(sw_error_name(code), #name);                                     \
    assert_string_equal(sw_error_text(code), text);
    SW_ERROR_TABLE(CHECK)
#undef CHECK
    assert_string_equal(sw_error_name(SW_OK), "SW_OK");
    assert_true(strlen(sw_error_text(SW_OK)) > 0);
}

static void unknown_codes_are_answered(void **state)
{
    (void)state;
    const int codes[] = {1, -17, -1000, 2147483647, -2147483647 - 1};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_non_null(sw_error_name(codes[i]));
        assert_true(strlen(sw_error_text(codes[i])) > 0);
    }
}

static void set_returns_the_code_and_accepts_null(void **state)
{
    (void)state;
    errno = EACCES;
    assert_int_equal(sw_error_set(NULL, SW_EOPEN, "no %s", "matter"), SW_EOPEN);
    assert_int_equal(errno, EACCES);
}

static void set_fills_details(void **state)
{
    (void)state;
    sw_error_info info;
    errno = EACCES;
    assert_int_equal(sw_error_set(&info, SW_EOPEN, "%s: %d\n", "file", 7), SW_EOPEN);
    assert_int_equal(info.code, SW_EOPEN);
    assert_int_equal(info.os_errno, EACCES);
    assert_string_equal(info.message, "file: 7");
    assert_int_equal(errno, EACCES);
}

static void stale_errno_is_not_reported(void **state)
{
    (void)state;
    sw_error_info info;
    errno = ENOENT;
    sw_error_set(&info, SW_EFORMAT, "not a trace");
    assert_int_equal(info.os_errno, 0);
}

static void success_clears_the_message(void **state)
{
    (void)state;
    sw_error_info info = {.code = SW_ENOMEM, .os_errno = 3, .message = "old"};
    assert_int_equal(sw_error_set(&info, SW_OK, "ignored"), SW_OK);
    assert_int_equal(info.code, SW_OK);
    assert_int_equal(info.os_errno, 0);
    assert_string_equal(info.message, "");
}

static void long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        char text[1200];
        sw_error_info info;
        memset(text, 'x', shift);
        size_t at = shift;
        while (at + 4 < sizeof text) {
            memcpy(text + at, "\xF0\x9F\x98\x80", 4);
            at += 4;
        }
        text[at] = '\0';
        sw_error_set(&info, SW_EINVAL, "%s", text);
        size_t length = strlen(info.message);
        assert_in_range(length, sizeof info.message - 4, sizeof info.message - 1);
        assert_int_equal((length - shift) % 4, 0);
        assert_memory_equal(info.message, text, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_sentence),
        cmocka_unit_test(unknown_codes_are_answered),
        cmocka_unit_test(set_returns_the_code_and_accepts_null),
        cmocka_unit_test(set_fills_details),
        cmocka_unit_test(stale_errno_is_not_reported),
        cmocka_unit_test(success_clears_the_message),
        cmocka_unit_test(long_messages_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

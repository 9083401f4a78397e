/* Sinks, errors that stick, text for a terminal, and units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stepwatch/write.h>

#include "base/utf8.h"

static void memory_grows(void **state)
{
    (void)state;
    sw_writer *writer = sw_writer_to_memory();
    size_t length;
    assert_string_equal(sw_writer_text(writer, &length), "");
    assert_int_equal(length, 0);
    for (int i = 0; i < 10000; i++) {
        sw_write_format(writer, "%04d", i);
    }
    sw_write_repeat(writer, "ab", 3);
    sw_write_repeat(writer, "", SIZE_MAX);
    const char *text = sw_writer_text(writer, &length);
    assert_int_equal(length, 40006);
    assert_int_equal(strlen(text), length);
    assert_memory_equal(text + 4 * 1234, "12341235", 8);
    assert_string_equal(text + 40000, "ababab");
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    assert_int_equal(sw_writer_close(NULL, NULL), SW_OK);
}

static void long_formats_are_whole(void **state)
{
    (void)state;
    static char filler[5000];
    memset(filler, 'x', sizeof filler - 1);
    for (size_t size = 500; size < 520; size++) {
        sw_writer *writer = sw_writer_to_memory();
        sw_write_format(writer, "%.*s|", (int)size, filler);
        size_t length;
        const char *text = sw_writer_text(writer, &length);
        assert_int_equal(length, size + 1);
        assert_int_equal(text[size], '|');
        sw_writer_close(writer, NULL);
    }
}

static void descriptor_gets_everything(void **state)
{
    (void)state;
    char path[] = "/tmp/stepwatch-writer-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    sw_writer *writer = sw_writer_to_fd(fd);
    static char block[100000];
    memset(block, 'b', sizeof block);
    sw_write_text(writer, "begin");
    assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* buffered */
    assert_int_equal(sw_writer_flush(writer), SW_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 5);
    sw_write_bytes(writer, block, sizeof block);
    for (int i = 0; i < 100000; i++) {
        sw_write_bytes(writer, "x", 1);
    }
    assert_string_equal(sw_writer_text(writer, NULL), "");
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 200005);
    assert_int_equal(close(fd), 0); /* it is still the caller's */
}

static void first_error_sticks(void **state)
{
    (void)state;
    sw_error_info info;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    sw_writer *writer = sw_writer_to_fd(fd);
    sw_write_text(writer, "lost");
    assert_int_equal(sw_writer_flush(writer), SW_ENOSPACE);
    sw_write_text(writer, "ignored");
    sw_json_null(writer);
    assert_int_equal(sw_writer_close(writer, &info), SW_ENOSPACE);
    assert_int_equal(info.os_errno, ENOSPC);
    assert_non_null(strstr(info.message, "No space left"));
    close(fd);

    writer = sw_writer_to_fd(-1);
    sw_write_text(writer, "lost");
    assert_int_equal(sw_writer_close(writer, &info), SW_EWRITE);
    assert_int_equal(info.os_errno, EBADF);
}

static void missing_writer_is_ignored(void **state)
{
    (void)state;
    sw_write_text(NULL, "x");
    sw_write_format(NULL, "%d", 1);
    sw_json_start(NULL, true);
    sw_json_object_begin(NULL);
    sw_json_object_end(NULL);
    sw_json_key(NULL, "k");
    assert_int_equal(sw_writer_flush(NULL), SW_OK);
    assert_int_equal(sw_write_visible(NULL, "abc", 3, 0, false), 3);
}

static int collect(void *arg, const char *bytes, size_t length)
{
    size_t *left = arg;
    (void)bytes;
    if (length > *left) {
        return SW_ELIMIT;
    }
    *left -= length;
    return 0;
}

static void callback_gets_everything(void **state)
{
    (void)state;
    size_t left = 150000;
    sw_writer *writer = sw_writer_to_callback(collect, &left);
    sw_write_repeat(writer, "0123456789", 15000);
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    assert_int_equal(left, 0);
    writer = sw_writer_to_callback(collect, &left);
    sw_write_text(writer, "one more");
    assert_int_equal(sw_writer_close(writer, NULL), SW_ELIMIT);
}

static void pipe_that_does_not_block_is_waited_for(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        sw_writer *writer = sw_writer_to_fd(ends[1]);
        sw_write_repeat(writer, "0123456789", 100000);
        _exit(sw_writer_close(writer, NULL) != SW_OK);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, 0);
    size_t total = 0;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
        total += (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(total, 1000000);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define N(text) text, sizeof(text) - 1

static void check_visible(const char *bytes, size_t length, size_t columns, bool ascii,
                          const char *expected, size_t used)
{
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_write_visible(writer, bytes, length, columns, ascii), used);
    assert_string_equal(sw_writer_text(writer, NULL), expected);
    sw_writer_close(writer, NULL);
    if (columns == 0) {
        assert_int_equal(sw_text_columns(bytes, length), used);
    } else {
        assert_true(used <= columns);
    }
}

static void controls_are_shown(void **state)
{
    (void)state;
    check_visible(N("plain text"), 0, false, "plain text", 10);
    check_visible(N(""), 0, false, "", 0);
    check_visible(N("a\nb"), 0, false, "a\\nb", 4);
    check_visible(N("\x1B[31m"), 0, false, "\\x1b[31m", 8);
    check_visible(N("a\0b\t\x7F"), 0, false, "a\\x00b\\x09\\x7f", 14);
    check_visible(N("\xC2\x9B"), 0, false, "\\xc2\\x9b", 8);           /* C1: CSI */
    check_visible(N("\xE2\x80\xAE"), 0, false, "\\xe2\\x80\\xae", 12); /* right to left */
    check_visible(N("\xE2\x80\xA8"), 0, false, "\\xe2\\x80\\xa8", 12); /* U+2028 */
    check_visible(N("C:\\x"), 0, false, "C:\\x", 4);
}

static void invalid_utf8_is_shown(void **state)
{
    (void)state;
    check_visible(N("\xFF"), 0, false, "\\xff", 4);
    check_visible(N("a\x80z"), 0, false, "a\\x80z", 6);
    check_visible(N("\xC0\xAF"), 0, false, "\\xc0\\xaf", 8);
    check_visible(N("\xED\xA0\x80"), 0, false, "\\xed\\xa0\\x80", 12);
    check_visible(N("\xF4\x90\x80\x80"), 0, false, "\\xf4\\x90\\x80\\x80", 16);
    check_visible(N("\xE2\x82"), 0, false, "\\xe2\\x82", 8); /* cut short */
    check_visible(N("\xE2\x82x"), 0, false, "\\xe2\\x82x", 9);
}

static void columns_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(sw_text_columns(N("é")), 1);
    assert_int_equal(sw_text_columns(N("e\xCC\x81")), 1); /* e and an accent */
    assert_int_equal(sw_text_columns(N("日本語")), 6);
    assert_int_equal(sw_text_columns(N("한국")), 4);
    assert_int_equal(sw_text_columns(N("\xF0\x9F\x98\x80")), 2); /* emoji */
    assert_int_equal(sw_text_columns(N("µ…–")), 3);
    assert_int_equal(sw_text_columns(N("Ｆ")), 2);
    assert_int_equal(sw_text_columns(N("\xE2\x80\x8D")), 0); /* joiner */
    assert_int_equal(sw_text_columns(N("\xF0\xA0\x80\x80")), 2);
    assert_int_equal(sw_text_columns(N("\xF4\x8F\xBF\xBF")), 1);
}

static void long_text_is_cut(void **state)
{
    (void)state;
    check_visible(N("abcdef"), 6, false, "abcdef", 6);
    check_visible(N("abcdefg"), 6, false, "abcde…", 6);
    check_visible(N("abcdefg"), 6, true, "abc...", 6);
    check_visible(N("abcdefg"), 1, false, "…", 1);
    check_visible(N("abcdefg"), 3, true, "...", 3);
    check_visible(N("abcdefg"), 2, true, "..", 2);
    check_visible(N("日本語"), 6, false, "日本語", 6);
    check_visible(N("日本語"), 5, false, "日本…", 5);
    check_visible(N("日本語"), 4, false, "日…", 3);
    check_visible(N("ab\x01zz"), 6, false, "ab…", 3); /* no half escapes */
    check_visible(N("e\xCC\x81xyz"), 2, false, "e\xCC\x81…", 2);
}

static void every_cut_fits(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char bytes[32];
        size_t length = (size_t)(rand() % 32);
        for (size_t i = 0; i < length; i++) {
            static const char mostly[] = "ab\xE6\x97\xA5\xCC\x81\n\x1B\xF0\x9F\x98\x80";
            bytes[i] = (char)(rand() % 256);
            if (rand() % 4) {
                bytes[i] = mostly[(size_t)rand() % (sizeof mostly - 1)];
            }
        }
        size_t columns = (size_t)(rand() % 40);
        sw_writer *writer = sw_writer_to_memory();
        size_t used = sw_write_visible(writer, bytes, length, columns, round % 2);
        size_t written;
        const char *text = sw_writer_text(writer, &written);
        assert_int_equal(sw_text_columns(text, written), used);
        assert_true(columns == 0 || used <= columns);
        for (size_t i = 0; i < written;) {
            uint32_t code;
            i += sw__utf8_decode(text + i, written - i, &code);
            assert_true(code >= 0x20 && code != SW__UTF8_INVALID);
        }
        sw_writer_close(writer, NULL);
    }
}

static void check_duration(double ns, const char *expected)
{
    char out[24];
    sw_text_duration(out, ns, false);
    assert_string_equal(out, expected);
}

static void durations(void **state)
{
    (void)state;
    check_duration(0, "0 ns");
    check_duration(812, "812 ns");
    check_duration(5, "5 ns");
    check_duration(5.25, "5.25 ns");
    check_duration(999.4, "999 ns");
    check_duration(999.6, "1.00 µs");
    check_duration(3410, "3.41 µs");
    check_duration(9994, "9.99 µs");
    check_duration(9996, "10.0 µs");
    check_duration(99960, "100 µs");
    check_duration(999600, "1.00 ms");
    check_duration(12.3e6, "12.3 ms");
    check_duration(2.04e9, "2.04 s");
    check_duration(59.9e9, "59.9 s");
    check_duration(59.96e9, "1 min 00 s");
    check_duration(63e9, "1 min 03 s");
    check_duration(3599.7e9, "1 h 00 min");
    check_duration(3780e9, "1 h 03 min");
    check_duration(3600e9 * 99.5, "99 h 30 min");
    check_duration(3600e9 * 100, "4 d 04 h");
    check_duration(86400e9 * 9999, "9999 d 00 h");
    check_duration(-86400e9 * 9999, "-9999 d 00 h");
    check_duration(1e300, "> 9999 d");
    check_duration(INFINITY, "> 9999 d");
    check_duration(-INFINITY, "< -9999 d");
    check_duration(NAN, "n/a");
    check_duration(-3410, "-3.41 µs");
    char out[24];
    sw_text_duration(out, 3410, true);
    assert_string_equal(out, "3.41 us");
    for (double ns = 0.001; ns < 1e30; ns *= 1.01) {
        sw_text_duration(out, -ns, false);
        assert_true(sw_text_columns(out, strlen(out)) <= 12);
    }
}

static void counts_and_bytes(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *count;
        const char *bytes;
    } cases[] = {
        {0, "0", "0 B"},
        {999, "999", "999 B"},
        {1000, "1,000", "1000 B"},
        {1023, "1,023", "1023 B"},
        {1024, "1,024", "1 KiB"},
        {1025, "1,025", "1.0 KiB"},
        {1572864, "1,572,864", "1.5 MiB"},
        {1048575, "1,048,575", "1.0 MiB"},
        {1047552, "1,047,552", "1023 KiB"},
        {104857600, "104,857,600", "100 MiB"},
        {104857599, "104,857,599", "100 MiB"},
        {104805172, "104,805,172", "100 MiB"},
        {104700000, "104,700,000", "99.8 MiB"},
        {UINT64_MAX, "18,446,744,073,709,551,615", "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[32];
        sw_text_count(out, cases[i].value);
        assert_string_equal(out, cases[i].count);
        sw_text_bytes(out, cases[i].value);
        assert_string_equal(out, cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_grows),
        cmocka_unit_test(long_formats_are_whole),
        cmocka_unit_test(descriptor_gets_everything),
        cmocka_unit_test(first_error_sticks),
        cmocka_unit_test(missing_writer_is_ignored),
        cmocka_unit_test(callback_gets_everything),
        cmocka_unit_test(pipe_that_does_not_block_is_waited_for),
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(invalid_utf8_is_shown),
        cmocka_unit_test(columns_are_those_of_a_terminal),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(every_cut_fits),
        cmocka_unit_test(durations),
        cmocka_unit_test(counts_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

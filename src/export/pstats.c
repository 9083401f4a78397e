/* pstats files: the dictionary of Python's pstats, marshalled. Only types that every marshal version since 2 reads the
 * same way are written, without references.
 *
 *   {(file, line, name): (primitive calls, calls, self, total, {caller: (calls, primitive calls, self, total)})}
 *
 * The two orders of the call counts are pstats' own. */
#include <string.h>

#include "base/utf8.h"
#include "base/writer_internal.h"
#include "export/function_order.h"

static void put_uint32(sw_writer *writer, uint32_t value)
{
    const char bytes[4] = {(char)(value & 255), (char)(value >> 8 & 255),
                           (char)(value >> 16 & 255), (char)(value >> 24)};
    sw_write_bytes(writer, bytes, sizeof bytes);
}

static void put_tuple(sw_writer *writer, uint32_t items)
{
    sw_write_bytes(writer, "(", 1);
    put_uint32(writer, items);
}

/* Integers past 31 bits are long ones: digits of 15 bits, the lowest first. */
static void put_count(sw_writer *writer, uint64_t value)
{
    if (value <= INT32_MAX) {
        sw_write_bytes(writer, "i", 1);
        put_uint32(writer, (uint32_t)value);
        return;
    }
    char digits[10];
    uint32_t count = 0;
    for (; value; value >>= 15, count++) {
        digits[2 * count] = (char)(value & 255);
        digits[2 * count + 1] = (char)(value >> 8 & 127);
    }
    sw_write_bytes(writer, "l", 1);
    put_uint32(writer, count);
    sw_write_bytes(writer, digits, 2 * (size_t)count);
}

static void put_seconds(sw_writer *writer, const sw_functions *functions, uint64_t time)
{
    const double seconds = (double)time * sw_functions_unit_ns(functions) / 1e9;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    sw_write_bytes(writer, "g", 1);
    put_uint32(writer, (uint32_t)bits);
    put_uint32(writer, (uint32_t)(bits >> 32));
}

/* Text must be UTF-8, or the whole file is unreadable: other bytes are written as \xNN. Without a writer, only the
 * length is found. */
static size_t put_valid(sw_writer *writer, const char *bytes, size_t length)
{
    size_t written = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code;
        const size_t taken = sw__utf8_decode(bytes + at, length - at, &code);
        if (code != SW__UTF8_INVALID) {
            if (writer) {
                sw_write_bytes(writer, bytes + at, taken);
            }
            written += taken;
        } else {
            for (size_t i = 0; i < taken; i++) {
                if (writer) {
                    sw_write_format(writer, "\\x%02x", (unsigned char)bytes[at + i]);
                }
                written += 4;
            }
        }
        at += taken;
    }
    return written;
}

static void put_text(sw_writer *writer, const char *bytes, size_t length)
{
    sw_write_bytes(writer, "u", 1);
    put_uint32(writer, (uint32_t)put_valid(NULL, bytes, length));
    put_valid(writer, bytes, length);
}

static void put_key(sw_writer *writer, const sw_function *function)
{
    put_tuple(writer, 3);
    put_text(writer, function->file, function->file_length);
    put_count(writer, function->line);
    put_text(writer, function->name, function->name_length);
}

void sw_export_pstats(sw_writer *writer, const sw_functions *functions)
{
    struct sw__callers callers = {0};
    if (!sw__writer_is_good(writer)) {
        return;
    }
    if (sw__callers_find(&callers, functions) != SW_OK) {
        sw__writer_fail(writer, SW_ENOMEM, 0);
    }
    sw_write_bytes(writer, "{", 1);
    const size_t count = sw__writer_is_good(writer) ? sw_functions_count(functions) : 0;
    for (size_t i = 0; i < count; i++) {
        const sw_function *function = sw_functions_get(functions, i);
        put_key(writer, function);
        put_tuple(writer, 5);
        put_count(writer, function->totals.primitive_calls);
        put_count(writer, function->totals.calls);
        put_seconds(writer, functions, function->totals.self);
        put_seconds(writer, functions, function->totals.total);
        sw_write_bytes(writer, "{", 1);
        for (size_t at = callers.first[i]; at < callers.first[i + 1]; at++) {
            const sw_function_call *call =
                sw_functions_get_call(functions, callers.order[at]);
            put_key(writer, sw_functions_get(functions, call->caller));
            put_tuple(writer, 4);
            put_count(writer, call->totals.calls);
            put_count(writer, call->totals.primitive_calls);
            put_seconds(writer, functions, call->totals.self);
            put_seconds(writer, functions, call->totals.total);
        }
        sw_write_bytes(writer, "0", 1);
    }
    sw_write_bytes(writer, "0", 1);
    sw__callers_free(&callers);
}

void sw_export_stats_file(sw_writer *writer, const sw_functions *functions,
                          const sw_functions_text_options *options)
{
    sw_export_pstats(writer, functions);
    sw_write_text(writer, "\n");
    sw_export_functions_text(writer, functions, options);
}

/* Names and sentences of the error codes, and filling the caller's sw_error_info. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/error.h>

const char *sw_error_name(int code)
{
    switch (code) {
    case SW_OK:
        return "SW_OK";
#define SW_ERROR_NAME_CASE(number, name, text)                                           \
    case number:                                                                         \
        return #name;
        SW_ERROR_TABLE(SW_ERROR_NAME_CASE)
#undef SW_ERROR_NAME_CASE
    default:
        return "SW_EUNKNOWN";
    }
}

const char *sw_error_text(int code)
{
    switch (code) {
    case SW_OK:
        return "no error";
#define SW_ERROR_TEXT_CASE(number, name, text)                                           \
    case number:                                                                         \
        return text;
        SW_ERROR_TABLE(SW_ERROR_TEXT_CASE)
#undef SW_ERROR_TEXT_CASE
    default:
        return "an unknown error";
    }
}

/* The codes that follow a system call. For all others errno is left over from something
 * else and would only mislead. */
static bool comes_from_system(int code)
{
    return code == SW_ESYS || code == SW_EOPEN || code == SW_EREAD || code == SW_EWRITE ||
           code == SW_ENOSPACE || code == SW_ELIMIT;
}

/* Removes the beginning of a character whose end did not fit into the message. */
static void drop_cut_character(char *message, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 4) {
        unsigned char byte = (unsigned char)message[--start];
        if (byte < 0x80) {
            return;
        }
        if (byte >= 0xC0) {
            size_t need = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
            if (length - start < need) {
                message[start] = '\0';
            }
            return;
        }
    }
}

int sw_error_set(sw_error_info *info, int code, const char *format, ...)
{
    if (!info) {
        return code;
    }
    int saved = errno;
    info->code = code;
    info->os_errno = comes_from_system(code) ? saved : 0;
    info->message[0] = '\0';
    if (code != SW_OK) {
        va_list args;
        va_start(args, format);
        int length = vsnprintf(info->message, sizeof info->message, format, args);
        va_end(args);
        if (length < 0) {
            snprintf(info->message, sizeof info->message, "%s", sw_error_text(code));
        } else if ((size_t)length >= sizeof info->message) {
            drop_cut_character(info->message, sizeof info->message - 1);
        }
        size_t end = strlen(info->message);
        while (end > 0 && info->message[end - 1] == '\n') {
            info->message[--end] = '\0';
        }
    }
    errno = saved;
    return code;
}

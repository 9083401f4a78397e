/* Text from a program, made safe and measured for a terminal. */
#include <stdbool.h>
#include <string.h>

#include <stepwatch/write.h>

#include "base/utf8.h"

/* The longest piece is a character of four bytes, each as \xNN. */
struct piece {
    size_t bytes;   /* of the input */
    size_t columns; /* on the screen */
    bool escaped;
};

/* What would not show as itself: controls of both sets, the separators that some
 * terminals take for newlines, and the marks that turn the direction of what follows
 * them. */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == SW__UTF8_INVALID ||
           (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0x061C;
}

static struct piece next_piece(const char *bytes, size_t length)
{
    uint32_t code;
    struct piece piece = {.bytes = sw__utf8_decode(bytes, length, &code)};
    piece.escaped = is_unsafe(code);
    if (code == '\n') {
        piece.columns = 2;
    } else if (piece.escaped) {
        piece.columns = 4 * piece.bytes;
    } else {
        piece.columns = sw__utf8_columns(code);
    }
    return piece;
}

static void write_piece(sw_writer *writer, const char *bytes, struct piece piece)
{
    static const char digits[] = "0123456789abcdef";
    if (!piece.escaped) {
        sw_write_bytes(writer, bytes, piece.bytes);
        return;
    }
    if (*bytes == '\n') {
        sw_write_bytes(writer, "\\n", 2);
        return;
    }
    for (size_t i = 0; i < piece.bytes; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escape[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        sw_write_bytes(writer, escape, sizeof escape);
    }
}

size_t sw_text_columns(const char *bytes, size_t length)
{
    size_t columns = 0;
    for (size_t at = 0; at < length;) {
        struct piece piece = next_piece(bytes + at, length - at);
        columns += piece.columns;
        at += piece.bytes;
    }
    return columns;
}

/* Whether all of it fits; stops looking as soon as that is answered, for texts may be
 * long. */
static bool fits(const char *bytes, size_t length, size_t columns)
{
    size_t used = 0;
    for (size_t at = 0; at < length && used <= columns;) {
        struct piece piece = next_piece(bytes + at, length - at);
        used += piece.columns;
        at += piece.bytes;
    }
    return used <= columns;
}

size_t sw_write_visible(sw_writer *writer, const char *bytes, size_t length,
                        size_t columns, bool ascii)
{
    bool cut = columns && !fits(bytes, length, columns);
    size_t ellipsis = ascii ? 3 : 1;
    ellipsis = ellipsis < columns ? ellipsis : columns;
    size_t most = cut ? columns - ellipsis : SIZE_MAX;
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        struct piece piece = next_piece(bytes + at, length - at);
        if (piece.columns > most - used) {
            break;
        }
        write_piece(writer, bytes + at, piece);
        used += piece.columns;
        at += piece.bytes;
    }
    if (cut) {
        sw_write_bytes(writer, ascii ? "..." : "…", ascii ? ellipsis : strlen("…"));
        used += ellipsis;
    }
    return used;
}

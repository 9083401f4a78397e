/* Decoding UTF-8 that nobody vouches for. */
#ifndef SW_BASE_UTF8_H
#define SW_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define SW__UTF8_INVALID UINT32_MAX

/* Decodes the character at the start of `length` > 0 bytes and returns how many it takes.
 * Where there is none, `*code` is SW__UTF8_INVALID and the result the length of the
 * ill-formed part, as Unicode recommends replacing it: the longest beginning of a
 * character, or one byte. */
size_t sw__utf8_decode(const char *bytes, size_t length, uint32_t *code);
/* Display columns of a printable character: 0 (combining), 1 or 2 (wide). */
unsigned sw__utf8_columns(uint32_t code);

#endif

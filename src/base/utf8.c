/* Decoding UTF-8: the table of well-formed byte sequences of the Unicode standard (3-7),
 * which leaves no room for overlong forms, surrogates and what lies beyond U+10FFFF. */
#include "base/utf8.h"

size_t sw__utf8_decode(const char *bytes, size_t length, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)bytes;
    unsigned first = at[0];
    if (first < 0x80) {
        *code = first;
        return 1;
    }
    *code = SW__UTF8_INVALID;
    if (first < 0xC2 || first > 0xF4) {
        return 1;
    }
    size_t need = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    /* Only the second byte's range depends on the first. */
    unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    uint32_t value = first & (0x7Fu >> need);
    for (size_t i = 1; i < need; i++) {
        if (i >= length || at[i] < low || at[i] > high) {
            return i;
        }
        value = value << 6 | (at[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *code = value;
    return need;
}

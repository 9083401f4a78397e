#include "base/crc.h"

/* Four bits at a time: a table of sixteen is made faster than it is missed. */
uint32_t sw__crc(uint32_t polynomial, uint32_t sum, const void *bytes, size_t length)
{
    uint32_t table[16];
    const unsigned char *at = bytes;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 4; bit++) {
            value = value & 1 ? value >> 1 ^ polynomial : value >> 1;
        }
        table[i] = value;
    }
    sum = ~sum;
    for (size_t i = 0; i < length; i++) {
        sum ^= at[i];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}

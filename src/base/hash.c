/* The hash of the intern tables: folded 64×64 multiplications over eight bytes at a time.
 * It is for tables in memory only; no file holds it. */
#include <string.h>

#include "base/intern.h"

#define ODD_1 0x9E3779B97F4A7C15u /* 2^64 / golden ratio */
#define ODD_2 0xD1B54A32D192ED03u
#define ODD_3 0x8CB92BA72F3D8DD7u

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The seed takes part in every multiplication: names from a hostile file cannot be chosen
 * to collide without knowing it. */
uint64_t sw__hash_seeded(const void *bytes, size_t length, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t state = fold(seed ^ ODD_1, (uint64_t)length ^ ODD_2);
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        state = fold(state ^ word, seed ^ ODD_3) + ODD_1;
    }
    uint64_t tail = 0;
    if (length) {
        memcpy(&tail, at, length);
    }
    return fold(state ^ tail, ODD_2 ^ (seed >> 32)) ^ fold(state, ODD_3);
}

uint64_t sw__hash_bytes(const void *bytes, size_t length)
{
    return sw__hash_seeded(bytes, length, 0);
}

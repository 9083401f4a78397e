/* A reader of PNG files, as small as can be: what we write ourselves has to be read by somebody else. */
#ifndef SW_TEST_PNG_READER_H
#define SW_TEST_PNG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"

struct inflate {
    const uint8_t *in;
    size_t length, at;
    uint32_t bits;
    unsigned bit_count;
    uint8_t *out;
    size_t used, room;
    bool failed;
};

static inline uint32_t inflate_bits(struct inflate *it, unsigned count)
{
    while (it->bit_count < count) {
        if (it->at == it->length) {
            it->failed = true;
            return 0;
        }
        it->bits |= (uint32_t)it->in[it->at++] << it->bit_count;
        it->bit_count += 8;
    }
    const uint32_t value = it->bits & (count ? (1u << count) - 1 : 0);
    it->bits >>= count;
    it->bit_count -= count;
    return value;
}

struct inflate_code {
    uint16_t count[16], symbol[288];
};

static inline void inflate_make(struct inflate_code *code, const uint8_t *length,
                                size_t count)
{
    uint16_t offset[16] = {0};
    memset(code, 0, sizeof *code);
    for (size_t i = 0; i < count; i++) {
        code->count[length[i]]++;
    }
    code->count[0] = 0;
    for (size_t i = 1; i < 15; i++) {
        offset[i + 1] = (uint16_t)(offset[i] + code->count[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (length[i]) {
            code->symbol[offset[length[i]]++] = (uint16_t)i;
        }
    }
}

static inline unsigned inflate_symbol(struct inflate *it, const struct inflate_code *code)
{
    int word = 0, first = 0, index = 0;
    for (unsigned bits = 1; bits < 16; bits++) {
        word |= (int)inflate_bits(it, 1);
        const int count = code->count[bits];
        if (word - count < first) {
            return code->symbol[index + (word - first)];
        }
        index += count;
        first = (first + count) << 1;
        word <<= 1;
    }
    it->failed = true;
    return 256;
}

static inline void inflate_put(struct inflate *it, uint8_t byte)
{
    if (it->used == it->room) {
        it->room = it->room ? 2 * it->room : 4096;
        it->out = realloc(it->out, it->room);
    }
    it->out[it->used++] = byte;
}

/* One block with a code of its own; returns whether it was the last one. */
static inline bool inflate_block(struct inflate *it)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    static const uint16_t length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                             15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                             67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                            2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t far_base[30] = {
        1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
        33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t far_bits[30] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                         4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                         9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    uint8_t lengths[320] = {0};
    struct inflate_code literals, distances, packed;
    const bool last = inflate_bits(it, 1);
    if (inflate_bits(it, 2) != 2) {
        it->failed = true;
        return true;
    }
    const size_t literal_count = inflate_bits(it, 5) + 257;
    const size_t far_count = inflate_bits(it, 5) + 1;
    const size_t packed_count = inflate_bits(it, 4) + 4;
    for (size_t i = 0; i < packed_count; i++) {
        lengths[order[i]] = (uint8_t)inflate_bits(it, 3);
    }
    inflate_make(&packed, lengths, 19);
    memset(lengths, 0, sizeof lengths);
    for (size_t i = 0; i < literal_count + far_count && !it->failed;) {
        const unsigned symbol = inflate_symbol(it, &packed);
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        const uint8_t value = symbol == 16 && i ? lengths[i - 1] : 0;
        size_t times = symbol == 16   ? 3 + inflate_bits(it, 2)
                       : symbol == 17 ? 3 + inflate_bits(it, 3)
                                      : 11 + inflate_bits(it, 7);
        while (times-- > 0 && i < literal_count + far_count) {
            lengths[i++] = value;
        }
    }
    inflate_make(&literals, lengths, literal_count);
    inflate_make(&distances, lengths + literal_count, far_count);
    for (unsigned symbol;
         !it->failed && (symbol = inflate_symbol(it, &literals)) != 256;) {
        if (symbol < 256) {
            inflate_put(it, (uint8_t)symbol);
            continue;
        }
        const size_t length =
            length_base[symbol - 257] + inflate_bits(it, length_bits[symbol - 257]);
        const unsigned code = inflate_symbol(it, &distances);
        const size_t distance =
            code < 30 ? far_base[code] + inflate_bits(it, far_bits[code]) : SIZE_MAX;
        if (distance > it->used) {
            it->failed = true;
            break;
        }
        for (size_t i = 0; i < length; i++) {
            inflate_put(it, it->out[it->used - distance]);
        }
    }
    return last;
}

/* What a zlib stream holds, which the caller frees; NULL where it is wrong. */
static inline uint8_t *inflate_zlib(const void *bytes, size_t length, size_t *out_length)
{
    struct inflate it = {.in = bytes, .length = length, .at = 2};
    uint32_t a = 1, b = 0;
    inflate_put(&it, 0);
    it.used = 0;
    while (!it.failed && !inflate_block(&it)) {
    }
    for (size_t i = 0; i < it.used; i++) {
        a = (a + it.out[i]) % 65521;
        b = (b + a) % 65521;
    }
    const uint8_t *sum = it.in + it.at;
    if (it.failed || it.at + 4 != length ||
        ((uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 |
         sum[3]) != (b << 16 | a)) {
        free(it.out);
        return NULL;
    }
    *out_length = it.used;
    return it.out;
}

struct png {
    size_t width, height;
    uint8_t *pixels; /* red, green, blue */
};

static inline uint32_t png_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Reads what our own writer makes: eight bits, three colours, no filter. False where anything is wrong. */
static inline bool png_read(struct png *png, const void *bytes, size_t length)
{
    const uint8_t *at = bytes, *end = at + length;
    size_t packed = 0;
    uint8_t *rows = NULL;
    *png = (struct png){0};
    if (length < 8 || memcmp(at, "\x89PNG\r\n\x1a\n", 8) != 0) {
        return false;
    }
    bool ended = false;
    for (at += 8; end - at >= 12 && !ended;) {
        const size_t size = png_number(at);
        if (size + 12 > (size_t)(end - at) ||
            sw__crc(SW__CRC32, 0, at + 4, size + 4) != png_number(at + 8 + size)) {
            break;
        }
        if (memcmp(at + 4, "IHDR", 4) == 0) {
            png->width = png_number(at + 8);
            png->height = png_number(at + 12);
        } else if (memcmp(at + 4, "IDAT", 4) == 0) {
            rows = inflate_zlib(at + 8, size, &packed);
        }
        ended = memcmp(at + 4, "IEND", 4) == 0;
        at += size + 12;
    }
    const size_t row = png->width * 3 + 1;
    if (!ended || at != end || !rows || packed != row * png->height) {
        free(rows);
        return false;
    }
    png->pixels = malloc(png->width * png->height * 3 + 1);
    for (size_t y = 0; y < png->height; y++) {
        if (rows[y * row] != 0) {
            ended = false;
        }
        memcpy(png->pixels + y * (row - 1), rows + y * row + 1, row - 1);
    }
    free(rows);
    return ended;
}

#endif

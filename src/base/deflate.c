/* LZ77 by hash chains and one Huffman code a block (RFC 1951). */
#include "base/deflate.h"

#include <string.h>

#include "base/memory.h"

#define WINDOW 32768u
#define HASHES 32768u
#define LONGEST 258u
#define SHORTEST 3u
#define CHAIN_MOST 24
#define BLOCK_SYMBOLS 32768u
#define LITERALS 286u
#define DISTANCES 30u
#define END_OF_BLOCK 256u
#define BITS_MOST 15u
#define ORDER_COUNT 19u

/* A literal where `distance` is 0, else a copy. */
struct symbol {
    uint16_t value; /* the literal, or the length */
    uint16_t distance;
};

struct deflate {
    sw_writer *writer;
    const uint8_t *data;
    size_t length;
    uint32_t *head;     /* by hash: position + 1 */
    uint32_t *previous; /* by position within the window */
    struct symbol *symbols;
    size_t count;
    uint64_t bits;
    unsigned bit_count;
};

/* A code: how often symbols occur, then how long their words are, then the words, first bit lowest. */
struct code {
    uint32_t often[LITERALS];
    uint8_t length[LITERALS];
    uint16_t word[LITERALS];
};

/* --- bits --- */

static void put_bits(struct deflate *it, uint32_t value, unsigned count)
{
    it->bits |= (uint64_t)value << it->bit_count;
    it->bit_count += count;
    while (it->bit_count >= 8) {
        const char byte = (char)(it->bits & 0xFF);
        sw_write_bytes(it->writer, &byte, 1);
        it->bits >>= 8;
        it->bit_count -= 8;
    }
}

/* --- codes --- */

/* Lengths of Huffman's code. The longest of them is returned. */
static unsigned huffman(const uint32_t *often, size_t count, uint8_t *length)
{
    uint64_t weight[2 * LITERALS];
    uint16_t parent[2 * LITERALS];
    bool open[2 * LITERALS] = {false};
    size_t nodes = count, left = 0;
    for (size_t i = 0; i < count; i++) {
        weight[i] = often[i];
        open[i] = often[i] > 0;
        left += open[i];
        length[i] = 0;
    }
    if (left == 1) {
        for (size_t i = 0; i < count; i++) {
            length[i] = often[i] > 0;
        }
        return 1;
    }
    for (; left > 1; left--) {
        size_t least[2] = {SIZE_MAX, SIZE_MAX};
        for (size_t i = 0; i < nodes; i++) {
            if (!open[i]) {
                continue;
            }
            if (least[0] == SIZE_MAX || weight[i] < weight[least[0]]) {
                least[1] = least[0];
                least[0] = i;
            } else if (least[1] == SIZE_MAX || weight[i] < weight[least[1]]) {
                least[1] = i;
            }
        }
        weight[nodes] = weight[least[0]] + weight[least[1]];
        open[nodes] = true;
        for (int i = 0; i < 2; i++) {
            open[least[i]] = false;
            parent[least[i]] = (uint16_t)nodes;
        }
        nodes++;
    }
    unsigned most = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned depth = 0;
        for (size_t at = i; often[i] > 0 && at + 1 < nodes; at = parent[at]) {
            depth++;
        }
        length[i] = (uint8_t)depth;
        most = depth > most ? depth : most;
    }
    return most;
}

/* Lengths of at most `limit` bits: rare symbols are taken to be less rare until it fits. */
static void code_make(struct code *code, size_t count, unsigned limit)
{
    while (huffman(code->often, count, code->length) > limit) {
        for (size_t i = 0; i < count; i++) {
            code->often[i] -= code->often[i] / 2; /* never to 0 */
        }
    }
    unsigned word = 0;
    for (unsigned bits = 1; bits <= limit; bits++) {
        for (size_t i = 0; i < count; i++) {
            if (code->length[i] != bits) {
                continue;
            }
            uint16_t turned = 0;
            for (unsigned bit = 0; bit < bits; bit++) {
                turned = (uint16_t)((unsigned)turned << 1 | (word >> bit & 1));
            }
            code->word[i] = turned;
            word++;
        }
        word <<= 1;
    }
}

static void put_word(struct deflate *it, const struct code *code, unsigned symbol)
{
    put_bits(it, code->word[symbol], code->length[symbol]);
}

/* --- symbols --- */

/* The bucket of a length or distance above its base: buckets double every `1 << fine`. */
static unsigned bucket(unsigned value, unsigned fine, unsigned *extra_bits)
{
    unsigned bits = 0;
    while (value >> bits >= 2u << fine) {
        bits++;
    }
    *extra_bits = bits;
    return (bits << fine) + (value >> bits);
}

static unsigned length_code(unsigned length, unsigned *extra_bits, unsigned *extra)
{
    if (length == LONGEST) {
        *extra_bits = *extra = 0;
        return 285;
    }
    const unsigned code = bucket(length - SHORTEST, 2, extra_bits);
    *extra = (length - SHORTEST) & ((1u << *extra_bits) - 1);
    return 257 + code;
}

static unsigned distance_code(unsigned distance, unsigned *extra_bits, unsigned *extra)
{
    const unsigned code = bucket(distance - 1, 1, extra_bits);
    *extra = (distance - 1) & ((1u << *extra_bits) - 1);
    return code;
}

/* --- blocks --- */

/* Lengths of words, with runs as RFC 1951 has them: 16 repeats the last one, 17 and 18 stand for zeros. */
struct lengths {
    uint8_t symbol[LITERALS + DISTANCES];
    uint8_t extra[LITERALS + DISTANCES];
    size_t count;
};

static void lengths_pack(struct lengths *out, const uint8_t *lengths, size_t count)
{
    out->count = 0;
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && lengths[i + run] == lengths[i]) {
            run++;
        }
        uint8_t symbol = lengths[i], extra = 0;
        if (lengths[i] == 0 && run >= 3) {
            run = run > 138 ? 138 : run;
            symbol = run > 10 ? 18 : 17;
            extra = (uint8_t)(run - (run > 10 ? 11 : 3));
        } else if (i > 0 && lengths[i] == lengths[i - 1] && run >= 3) {
            run = run > 6 ? 6 : run;
            symbol = 16;
            extra = (uint8_t)(run - 3);
        } else {
            run = 1;
        }
        out->symbol[out->count] = symbol;
        out->extra[out->count++] = extra;
        i += run;
    }
}

static void put_codes(struct deflate *it, const struct code *literals,
                      const struct code *distances)
{
    static const uint8_t order[ORDER_COUNT] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t all[LITERALS + DISTANCES];
    struct lengths packed;
    struct code code = {{0}, {0}, {0}};
    memcpy(all, literals->length, LITERALS);
    memcpy(all + LITERALS, distances->length, DISTANCES);
    lengths_pack(&packed, all, sizeof all);
    for (size_t i = 0; i < packed.count; i++) {
        code.often[packed.symbol[i]]++;
    }
    code_make(&code, ORDER_COUNT, 7);
    put_bits(it, LITERALS - 257, 5);
    put_bits(it, DISTANCES - 1, 5);
    put_bits(it, ORDER_COUNT - 4, 4);
    for (size_t i = 0; i < ORDER_COUNT; i++) {
        put_bits(it, code.length[order[i]], 3);
    }
    for (size_t i = 0; i < packed.count; i++) {
        const uint8_t symbol = packed.symbol[i];
        put_word(it, &code, symbol);
        if (symbol >= 16) {
            put_bits(it, packed.extra[i], symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
        }
    }
}

static void put_block(struct deflate *it, bool last)
{
    struct code literals = {{0}, {0}, {0}}, distances = {{0}, {0}, {0}};
    unsigned bits, extra;
    for (size_t i = 0; i < it->count; i++) {
        const struct symbol *symbol = &it->symbols[i];
        if (symbol->distance == 0) {
            literals.often[symbol->value]++;
        } else {
            literals.often[length_code(symbol->value, &bits, &extra)]++;
            distances.often[distance_code(symbol->distance, &bits, &extra)]++;
        }
    }
    literals.often[END_OF_BLOCK] = 1;
    distances.often[0] += 1; /* some readers want at least one */
    code_make(&literals, LITERALS, BITS_MOST);
    code_make(&distances, DISTANCES, BITS_MOST);
    put_bits(it, last, 1);
    put_bits(it, 2, 2);
    put_codes(it, &literals, &distances);
    for (size_t i = 0; i < it->count; i++) {
        const struct symbol *symbol = &it->symbols[i];
        if (symbol->distance == 0) {
            put_word(it, &literals, symbol->value);
            continue;
        }
        put_word(it, &literals, length_code(symbol->value, &bits, &extra));
        put_bits(it, extra, bits);
        put_word(it, &distances, distance_code(symbol->distance, &bits, &extra));
        put_bits(it, extra, bits);
    }
    put_word(it, &literals, END_OF_BLOCK);
    it->count = 0;
}

/* --- matches --- */

static uint32_t hash_at(const uint8_t *at)
{
    const uint32_t three = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    return three * 0x9E3779B1u >> 17;
}

static void remember(struct deflate *it, size_t at)
{
    if (at + SHORTEST <= it->length) {
        const uint32_t hash = hash_at(it->data + at);
        it->previous[at % WINDOW] = it->head[hash];
        it->head[hash] = (uint32_t)at + 1;
    }
}

/* The longest earlier occurrence of what stands at `at`; its length, 0 for none. */
static unsigned find(const struct deflate *it, size_t at, unsigned *distance)
{
    const size_t most = it->length - at < LONGEST ? it->length - at : LONGEST;
    unsigned best = SHORTEST - 1;
    if (most < SHORTEST) {
        return 0;
    }
    size_t next = it->head[hash_at(it->data + at)];
    for (int tries = 0; next > 0 && tries < CHAIN_MOST && best < most; tries++) {
        const size_t candidate = next - 1;
        if (at - candidate > WINDOW - 1) {
            break;
        }
        const uint8_t *a = it->data + candidate, *b = it->data + at;
        unsigned length = 0;
        while (length < most && a[length] == b[length]) {
            length++;
        }
        if (length > best) {
            best = length;
            *distance = (unsigned)(at - candidate);
        }
        const size_t before = it->previous[candidate % WINDOW];
        if (before >= next) { /* overwritten by a newer one */
            break;
        }
        next = before;
    }
    return best >= SHORTEST ? best : 0;
}

static void compress(struct deflate *it)
{
    size_t at = 0;
    while (at < it->length) {
        unsigned distance = 0;
        const unsigned length = find(it, at, &distance);
        it->symbols[it->count++] =
            length ? (struct symbol){(uint16_t)length, (uint16_t)distance}
                   : (struct symbol){it->data[at], 0};
        for (const size_t end = at + (length ? length : 1); at < end; at++) {
            remember(it, at);
        }
        if (it->count == BLOCK_SYMBOLS) {
            put_block(it, false);
        }
    }
    put_block(it, true);
}

static uint32_t adler32(const uint8_t *data, size_t length)
{
    uint32_t a = 1, b = 0;
    while (length > 0) {
        const size_t piece = length < 5552 ? length : 5552; /* before b overflows */
        for (size_t i = 0; i < piece; i++) {
            a += data[i];
            b += a;
        }
        a %= 65521;
        b %= 65521;
        data += piece;
        length -= piece;
    }
    return b << 16 | a;
}

int sw__deflate(sw_writer *writer, const uint8_t *data, size_t length)
{
    int error = SW_ENOMEM;
    struct deflate it = {.writer = writer, .data = data, .length = length};
    it.head = sw__alloc_zero(HASHES, sizeof *it.head);
    it.previous = sw__alloc_zero(WINDOW, sizeof *it.previous);
    it.symbols = sw__alloc_zero(BLOCK_SYMBOLS, sizeof *it.symbols);
    if (!it.head || !it.previous || !it.symbols || length > UINT32_MAX - 1) {
        goto out;
    }
    sw_write_bytes(writer, "\x78\x9C", 2);
    compress(&it);
    put_bits(&it, 0, (8 - it.bit_count % 8) % 8);
    const uint32_t sum = adler32(data, length);
    for (int shift = 24; shift >= 0; shift -= 8) {
        put_bits(&it, sum >> shift & 0xFF, 8);
    }
    error = SW_OK;
out:
    sw__free(it.head);
    sw__free(it.previous);
    sw__free(it.symbols);
    return error;
}

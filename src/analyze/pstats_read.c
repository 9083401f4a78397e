/* Reading what cProfile writes: Python's marshal format, as far as a table of pstats needs it.
 *
 * The whole object is parsed into values, because marshal refers back to strings and tuples by number. Every value takes
 * at least one byte of the file, so memory is bounded by its length. Back references to dictionaries, and to what holds them,
 * are refused: a table of pstats has none, and they could make a small file mean a huge table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/functions.h>

#include "analyze/file_load.h"
#include "base/memory.h"

#define DEPTH_MAX 16 /* a table needs 5 */
#define ITEMS_MAX 16 /* in a tuple; a table needs 5 */
#define FILE_MOST_MIB 256
#define FLAG_REF 0x80

enum kind { K_TEXT, K_NUMBER, K_TUPLE, K_DICT, K_OTHER, K_END };

struct value {
    enum kind kind;
    bool has_dict;  /* it is a dictionary, or a tuple with one inside */
    uint32_t count; /* items of a tuple; keys and values of a dictionary */
    double number;
    const char *text;
    size_t length;
    struct value **items;
};

struct reader {
    const unsigned char *at, *end;
    sw__arena *arena;
    struct value *
        *refs; /* values that can be referred to, in order; NULL: not finished */
    size_t ref_count, ref_room;
    const char *why; /* what is wrong with the file */
    bool no_memory;
};

static struct value *fail(struct reader *reader, const char *why)
{
    reader->why = reader->why ? reader->why : why;
    return NULL;
}

static struct value *fail_memory(struct reader *reader)
{
    reader->no_memory = true;
    return fail(reader, "out of memory");
}

static size_t left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static bool get_uint32(struct reader *reader, uint32_t *out)
{
    if (left(reader) < 4) {
        fail(reader, "it ends in the middle");
        return false;
    }
    const unsigned char *at = reader->at;
    *out = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
    reader->at += 4;
    return true;
}

static struct value *value_new(struct reader *reader, enum kind kind)
{
    struct value *value =
        sw__arena_take(reader->arena, sizeof *value, _Alignof(struct value));
    if (!value) {
        return fail_memory(reader);
    }
    memset(value, 0, sizeof *value);
    value->kind = kind;
    value->has_dict = kind == K_DICT;
    return value;
}

static struct value *read_text(struct reader *reader, size_t length)
{
    if (length > left(reader)) {
        return fail(reader, "it ends in the middle");
    }
    struct value *value = value_new(reader, K_TEXT);
    if (value) {
        value->text = (const char *)reader->at;
        value->length = length;
        reader->at += length;
    }
    return value;
}

/* A string with its length before it, in one byte or four. */
static struct value *read_counted(struct reader *reader, bool is_short)
{
    uint32_t length = 0;
    if (!is_short) {
        return get_uint32(reader, &length) ? read_text(reader, length) : NULL;
    }
    if (left(reader) == 0) {
        return fail(reader, "it ends in the middle");
    }
    length = *reader->at++;
    return read_text(reader, length);
}

static struct value *number_new(struct reader *reader, double number)
{
    struct value *value = value_new(reader, K_NUMBER);
    if (value) {
        value->number = number;
    }
    return value;
}

static struct value *read_int(struct reader *reader)
{
    uint32_t bits;
    return get_uint32(reader, &bits) ? number_new(reader, (double)(int32_t)bits) : NULL;
}

/* Digits of 15 bits, the lowest first; a negative count means a negative number. */
static struct value *read_long(struct reader *reader)
{
    uint32_t bits;
    if (!get_uint32(reader, &bits)) {
        return NULL;
    }
    const int64_t signed_count = (int32_t)bits;
    const size_t count = (size_t)(signed_count < 0 ? -signed_count : signed_count);
    if (count > left(reader) / 2 || count > 64) {
        return fail(reader, "a number in it is too large");
    }
    double number = 0;
    for (size_t i = count; i-- > 0;) {
        number = number * 32768.0 + (reader->at[2 * i] | (reader->at[2 * i + 1] << 8));
    }
    reader->at += 2 * count;
    return number_new(reader, signed_count < 0 ? -number : number);
}

static struct value *read_binary_float(struct reader *reader)
{
    uint32_t low, high;
    if (!get_uint32(reader, &low) || !get_uint32(reader, &high)) {
        return NULL;
    }
    const uint64_t bits = (uint64_t)high << 32 | low;
    double number;
    memcpy(&number, &bits, sizeof number);
    return number_new(reader, number);
}

/* Marshal before version 2 wrote floats as text. */
static struct value *read_text_float(struct reader *reader)
{
    const struct value *text = read_counted(reader, true);
    char digits[64];
    if (!text) {
        return NULL;
    }
    if (text->length == 0 || text->length >= sizeof digits) {
        return fail(reader, "a number in it is too long");
    }
    memcpy(digits, text->text, text->length);
    digits[text->length] = '\0';
    return number_new(reader, strtod(digits, NULL));
}

static struct value *read_value(struct reader *reader, unsigned depth);

static struct value *read_tuple(struct reader *reader, struct value *tuple,
                                uint32_t count, unsigned depth)
{
    if (!tuple) {
        return NULL;
    }
    if (count > ITEMS_MAX) {
        return fail(reader, "a tuple in it is too long");
    }
    tuple->items =
        sw__arena_take(reader->arena, (count + (size_t)1) * sizeof(struct value *),
                       _Alignof(struct value *));
    if (!tuple->items) {
        return fail_memory(reader);
    }
    for (uint32_t i = 0; i < count; i++) {
        tuple->items[i] = read_value(reader, depth + 1);
        if (!tuple->items[i]) {
            return NULL;
        }
        if (tuple->items[i]->kind == K_END) {
            return fail(reader, "a tuple in it is too short");
        }
        tuple->has_dict |= tuple->items[i]->has_dict;
    }
    tuple->count = count;
    return tuple;
}

static struct value *read_tuple_counted(struct reader *reader, bool is_short,
                                        unsigned depth)
{
    uint32_t count = 0;
    if (is_short) {
        if (left(reader) == 0) {
            return fail(reader, "it ends in the middle");
        }
        count = *reader->at++;
    } else if (!get_uint32(reader, &count)) {
        return NULL;
    }
    return read_tuple(reader, value_new(reader, K_TUPLE), count, depth);
}

/* Keys and values in turn until the end mark. */
static struct value *read_dict(struct reader *reader, unsigned depth)
{
    struct value *dict = value_new(reader, K_DICT);
    size_t room = 0;
    struct value **items = NULL;
    while (dict) {
        struct value *item = read_value(reader, depth + 1);
        if (!item || (item->kind == K_END && dict->count % 2)) {
            dict = fail(reader, "a dictionary in it ends in the middle");
            break;
        }
        if (item->kind == K_END) {
            break;
        }
        if (dict->count == room) {
            room = room ? room * 2 : 8;
            struct value **more = sw__realloc(items, room, sizeof(struct value *));
            if (!more) {
                dict = fail_memory(reader);
                break;
            }
            items = more;
        }
        items[dict->count++] = item;
    }
    if (dict && dict->count) {
        dict->items = sw__arena_take(reader->arena, dict->count * sizeof(struct value *),
                                     _Alignof(struct value *));
        if (dict->items) {
            memcpy(dict->items, items, dict->count * sizeof(struct value *));
        } else {
            dict = fail_memory(reader);
        }
    }
    sw__free(items);
    return dict;
}

static struct value *read_ref(struct reader *reader)
{
    uint32_t number;
    if (!get_uint32(reader, &number)) {
        return NULL;
    }
    if (number >= reader->ref_count || !reader->refs[number]) {
        return fail(reader, "it refers to something that is not there");
    }
    if (reader->refs[number]->has_dict) {
        return fail(reader, "it refers back to a dictionary");
    }
    return reader->refs[number];
}

static bool reserve_ref(struct reader *reader, size_t *place)
{
    if (reader->ref_count == reader->ref_room) {
        const size_t room = reader->ref_room ? reader->ref_room * 2 : 64;
        struct value **more = sw__realloc(reader->refs, room, sizeof(struct value *));
        if (!more) {
            fail_memory(reader);
            return false;
        }
        reader->refs = more;
        reader->ref_room = room;
    }
    *place = reader->ref_count++;
    reader->refs[*place] = NULL;
    return true;
}

static struct value *read_typed(struct reader *reader, int type, unsigned depth)
{
    switch (type) {
    case '0':
        return value_new(reader, K_END);
    case 'N':
    case 'F':
    case 'T':
        return value_new(reader, K_OTHER);
    case 'i':
        return read_int(reader);
    case 'l':
        return read_long(reader);
    case 'g':
        return read_binary_float(reader);
    case 'f':
        return read_text_float(reader);
    case 'u': /* unicode */
    case 't': /* interned */
    case 'a': /* ASCII */
    case 'A': /* ASCII, interned */
    case 's': /* bytes */
        return read_counted(reader, false);
    case 'z': /* short ASCII */
    case 'Z':
        return read_counted(reader, true);
    case '(':
        return read_tuple_counted(reader, false, depth);
    case ')':
        return read_tuple_counted(reader, true, depth);
    case '{':
        return read_dict(reader, depth);
    case 'r':
        return read_ref(reader);
    default:
        return fail(reader, "it holds something that a profile has not");
    }
}

static struct value *read_value(struct reader *reader, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        return fail(reader, "it is nested too deep");
    }
    if (left(reader) == 0) {
        return fail(reader, "it ends in the middle");
    }
    const int byte = *reader->at++;
    size_t place = 0;
    if ((byte & FLAG_REF) && !reserve_ref(reader, &place)) {
        return NULL;
    }
    struct value *value = read_typed(reader, byte & ~FLAG_REF, depth);
    if (value && (byte & FLAG_REF)) {
        reader->refs[place] = value;
    }
    return value;
}

/* --- From values to a table ----------------------------------------------------------- */

static bool to_count(const struct value *value, uint64_t *out)
{
    const bool good =
        value->kind == K_NUMBER && value->number >= 0 && value->number < 1e18;
    *out = good ? (uint64_t)value->number : 0;
    return good;
}

/* Seconds; clocks that were set back have left negative times in real files, which count as none. */
static bool to_ns(const struct value *value, uint64_t *out)
{
    if (value->kind != K_NUMBER || !isfinite(value->number) || value->number > 1e9) {
        return false;
    }
    *out = value->number > 0 ? (uint64_t)llround(value->number * 1e9) : 0;
    return true;
}

/* (file, line, name) */
static bool to_key(const struct value *value, sw_function *out)
{
    uint64_t line;
    if (value->kind != K_TUPLE || value->count != 3 || value->items[0]->kind != K_TEXT ||
        value->items[2]->kind != K_TEXT || !to_count(value->items[1], &line) ||
        line > UINT32_MAX) {
        return false;
    }
    *out = (sw_function){
        .file = value->items[0]->text,
        .file_length = value->items[0]->length,
        .name = value->items[2]->text,
        .name_length = value->items[2]->length,
        .qualname = value->items[2]->text,
        .qualname_length = value->items[2]->length,
        .line = (uint32_t)line,
        .native =
            line == 0 && value->items[0]->length == 1 && value->items[0]->text[0] == '~',
    };
    return true;
}

/* Four numbers from `items`; `swapped`: the primitive calls come first. */
static bool to_totals(struct value *const *items, bool swapped, sw_function_totals *out)
{
    *out = (sw_function_totals){0};
    return to_count(items[swapped ? 1 : 0], &out->calls) &&
           to_count(items[swapped ? 0 : 1], &out->primitive_calls) &&
           to_ns(items[2], &out->self) && to_ns(items[3], &out->total);
}

/* Callers are (calls, primitive calls, self, total), or a plain count in very old files. */
static int add_callers(sw_functions *into, uint32_t callee, const struct value *callers)
{
    for (uint32_t i = 0; i + 1 < callers->count; i += 2) {
        const struct value *numbers = callers->items[i + 1];
        sw_function caller;
        sw_function_call call = {.callee = callee};
        bool good = to_key(callers->items[i], &caller);
        if (numbers->kind == K_TUPLE && numbers->count == 4) {
            good = good && to_totals(numbers->items, false, &call.totals);
        } else {
            good = good && to_count(numbers, &call.totals.calls);
            call.totals.primitive_calls = call.totals.calls;
        }
        if (!good) {
            return SW_ECORRUPT;
        }
        int error = sw_functions_add(into, &caller, &call.caller);
        error = error ? error : sw_functions_add_call(into, &call);
        if (error) {
            return error;
        }
    }
    return SW_OK;
}

static int add_table(sw_functions *into, const struct value *table)
{
    for (uint32_t i = 0; i + 1 < table->count; i += 2) {
        const struct value *numbers = table->items[i + 1];
        sw_function function;
        sw_function_totals totals;
        uint32_t index;
        if (numbers->kind != K_TUPLE || numbers->count != 5 ||
            numbers->items[4]->kind != K_DICT || !to_key(table->items[i], &function) ||
            !to_totals(numbers->items, true, &totals)) {
            return SW_ECORRUPT;
        }
        function.totals = totals;
        int error = sw_functions_add(into, &function, &index);
        error = error ? error : add_callers(into, index, numbers->items[4]);
        if (error) {
            return error;
        }
    }
    return SW_OK;
}

int sw_functions_read_pstats(sw_functions **out, const void *bytes, size_t length,
                             sw_error_info *info)
{
    struct reader reader = {.at = bytes, .end = (const unsigned char *)bytes + length};
    *out = NULL;
    reader.arena = sw__arena_create(0);
    int error = reader.arena ? sw_functions_create(out) : SW_ENOMEM;
    const struct value *table = error ? NULL : read_value(&reader, 0);
    if (!error && (!table || table->kind != K_DICT)) {
        error = reader.no_memory ? SW_ENOMEM : SW_EFORMAT;
        reader.why = reader.why ? reader.why : "it is not a dictionary";
    }
    if (!error) {
        sw_functions_set_knows_errors(*out, false);
        error = add_table(*out, table);
        reader.why = "its entries are not those of a profile";
    }
    if (error) {
        sw_functions_free(*out);
        *out = NULL;
        error = sw_error_set(info, error, "not a table of pstats: %s",
                             error == SW_ENOMEM ? "out of memory" : reader.why);
    }
    sw__arena_free(reader.arena);
    sw__free(reader.refs);
    return error;
}

int sw_functions_open_pstats(sw_functions **out, const char *path, sw_error_info *info)
{
    char *bytes;
    size_t length;
    *out = NULL;
    int error = sw__file_load(path, FILE_MOST_MIB, &bytes, &length, info);
    if (!error) {
        sw_error_info inner = {0};
        error = sw_functions_read_pstats(out, bytes, length, &inner);
        if (error) {
            sw_error_set(info, error, "%s is %s", path, inner.message);
        }
    }
    sw__free(bytes);
    return error;
}

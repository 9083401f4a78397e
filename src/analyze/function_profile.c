/* The table of a function profile: functions by file, line and name, calls by caller and callee. */
#include <math.h>
#include <string.h>

#include <stepwatch/functions.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/os.h"

#define ROOM_FIRST 64

/* Places in an array by hash: open addressing, index + 1, 0 is free; room is a power of two or 0, and more than 4/3 of
 * what is in it. */
struct places {
    uint32_t *slot;
    size_t room;
};

struct sw_functions {
    sw__arena *texts;
    sw_function *functions;
    size_t count, room;
    struct places by_key;
    sw_function_call *calls;
    size_t call_count, call_room;
    struct places by_pair;
    uint64_t seed; /* the texts may come from a file that wants them to collide */
    double unit_ns;
    bool knows_errors;
};

int sw_functions_create(sw_functions **out)
{
    sw_functions *functions = sw__alloc_zero(1, sizeof *functions);
    *out = NULL;
    if (!functions) {
        return SW_ENOMEM;
    }
    functions->texts = sw__arena_create(0);
    if (!functions->texts) {
        sw__free(functions);
        return SW_ENOMEM;
    }
    uint8_t random[16];
    sw__os_random(random);
    memcpy(&functions->seed, random, sizeof functions->seed);
    functions->unit_ns = 1.0;
    functions->knows_errors = true;
    *out = functions;
    return SW_OK;
}

void sw_functions_free(sw_functions *functions)
{
    if (functions) {
        sw__arena_free(functions->texts);
        sw__free(functions->functions);
        sw__free(functions->calls);
        sw__free(functions->by_key.slot);
        sw__free(functions->by_pair.slot);
        sw__free(functions);
    }
}

double sw_functions_unit_ns(const sw_functions *functions)
{
    return functions->unit_ns;
}

void sw_functions_set_unit_ns(sw_functions *functions, double unit_ns)
{
    functions->unit_ns = unit_ns;
}

bool sw_functions_knows_errors(const sw_functions *functions)
{
    return functions->knows_errors;
}

void sw_functions_set_knows_errors(sw_functions *functions, bool known)
{
    functions->knows_errors = known;
}

static uint64_t hash_function(const sw_functions *functions, const sw_function *key)
{
    uint64_t hash = sw__hash_seeded(key->file, key->file_length, functions->seed);
    return sw__hash_seeded(key->name, key->name_length, hash ^ key->line);
}

static uint64_t hash_call(const sw_functions *functions, uint32_t caller, uint32_t callee)
{
    const uint32_t pair[2] = {caller, callee};
    return sw__hash_seeded(pair, sizeof pair, functions->seed);
}

static bool same_function(const sw_function *a, const sw_function *b)
{
    return a->line == b->line && a->file_length == b->file_length &&
           a->name_length == b->name_length &&
           memcmp(a->name, b->name, a->name_length) == 0 &&
           memcmp(a->file, b->file, a->file_length) == 0;
}

/* Where an array of one more has no room yet. */
static int reserve(void **array, size_t *room, size_t count, size_t size)
{
    if (count < *room) {
        return SW_OK;
    }
    if (count >= SW_FUNCTION_UNKNOWN - 1) {
        return SW_ELIMIT;
    }
    const size_t more = *room ? *room * 2 : ROOM_FIRST;
    void *larger = sw__realloc(*array, more, size);
    if (!larger) {
        return SW_ENOMEM;
    }
    *array = larger;
    *room = more;
    return SW_OK;
}

static void place(struct places *places, uint64_t hash, size_t index)
{
    size_t at = (size_t)hash & (places->room - 1);
    while (places->slot[at]) {
        at = (at + 1) & (places->room - 1);
    }
    places->slot[at] = (uint32_t)index + 1;
}

/* An empty, larger set of places once `count` fill the old one; the caller fills it again. */
static int places_grow(struct places *places, size_t count, bool *emptied)
{
    *emptied = false;
    if (count * 4 < places->room * 3) {
        return SW_OK;
    }
    const size_t room = places->room ? places->room * 2 : ROOM_FIRST * 2;
    uint32_t *slot = sw__alloc_zero(room, sizeof *slot);
    if (!slot) {
        return SW_ENOMEM;
    }
    sw__free(places->slot);
    places->slot = slot;
    places->room = room;
    *emptied = true;
    return SW_OK;
}

static void totals_add(sw_function_totals *into, const sw_function_totals *from)
{
    into->calls += from->calls;
    into->primitive_calls += from->primitive_calls;
    into->errors += from->errors;
    into->self += from->self;
    into->total += from->total;
}

static int append_function(sw_functions *functions, const sw_function *function)
{
    bool emptied;
    int error = reserve((void **)&functions->functions, &functions->room,
                        functions->count, sizeof *functions->functions);
    error = error ? error : places_grow(&functions->by_key, functions->count, &emptied);
    if (error) {
        return error;
    }
    for (size_t i = 0; emptied && i < functions->count; i++) {
        place(&functions->by_key, hash_function(functions, &functions->functions[i]), i);
    }
    sw_function *copy = &functions->functions[functions->count];
    *copy = *function;
    copy->file = sw__arena_copy(functions->texts, function->file, function->file_length);
    copy->name = sw__arena_copy(functions->texts, function->name, function->name_length);
    copy->qualname =
        sw__arena_copy(functions->texts, function->qualname, function->qualname_length);
    if (!copy->file || !copy->name || !copy->qualname) {
        return SW_ENOMEM;
    }
    place(&functions->by_key, hash_function(functions, copy), functions->count++);
    return SW_OK;
}

int sw_functions_add(sw_functions *functions, const sw_function *function,
                     uint32_t *index)
{
    if (functions->by_key.room) {
        size_t at =
            (size_t)hash_function(functions, function) & (functions->by_key.room - 1);
        for (uint32_t slot; (slot = functions->by_key.slot[at]) != 0;
             at = (at + 1) & (functions->by_key.room - 1)) {
            sw_function *known = &functions->functions[slot - 1];
            if (same_function(known, function)) {
                totals_add(&known->totals, &function->totals);
                if (index) {
                    *index = slot - 1;
                }
                return SW_OK;
            }
        }
    }
    if (index) {
        *index = (uint32_t)functions->count;
    }
    return append_function(functions, function);
}

static int append_call(sw_functions *functions, const sw_function_call *call)
{
    bool emptied;
    int error = reserve((void **)&functions->calls, &functions->call_room,
                        functions->call_count, sizeof *functions->calls);
    error =
        error ? error : places_grow(&functions->by_pair, functions->call_count, &emptied);
    if (error) {
        return error;
    }
    for (size_t i = 0; emptied && i < functions->call_count; i++) {
        const sw_function_call *old = &functions->calls[i];
        place(&functions->by_pair, hash_call(functions, old->caller, old->callee), i);
    }
    functions->calls[functions->call_count] = *call;
    place(&functions->by_pair, hash_call(functions, call->caller, call->callee),
          functions->call_count++);
    return SW_OK;
}

int sw_functions_add_call(sw_functions *functions, const sw_function_call *call)
{
    if (call->callee >= functions->count ||
        (call->caller >= functions->count && call->caller != SW_FUNCTION_UNKNOWN)) {
        return SW_EINVAL;
    }
    if (functions->by_pair.room) {
        size_t at = (size_t)hash_call(functions, call->caller, call->callee) &
                    (functions->by_pair.room - 1);
        for (uint32_t slot; (slot = functions->by_pair.slot[at]) != 0;
             at = (at + 1) & (functions->by_pair.room - 1)) {
            sw_function_call *known = &functions->calls[slot - 1];
            if (known->caller == call->caller && known->callee == call->callee) {
                totals_add(&known->totals, &call->totals);
                return SW_OK;
            }
        }
    }
    return append_call(functions, call);
}

/* Rates from a damaged file may be anything. */
static uint64_t scale(uint64_t time, double factor)
{
    const double scaled = (double)time * factor;
    return scaled >= 0 && scaled < 1e18 ? (uint64_t)llround(scaled) : 0;
}

static void totals_scale(sw_function_totals *totals, double factor)
{
    if (factor != 1.0) {
        totals->self = scale(totals->self, factor);
        totals->total = scale(totals->total, factor);
    }
}

int sw_functions_merge(sw_functions *into, const sw_functions *from)
{
    const double factor = from->unit_ns / into->unit_ns;
    uint32_t *index = sw__alloc_zero(from->count ? from->count : 1, sizeof *index);
    int error = index ? SW_OK : SW_ENOMEM;
    into->knows_errors = into->knows_errors && from->knows_errors;
    for (size_t i = 0; i < from->count && !error; i++) {
        sw_function function = from->functions[i];
        totals_scale(&function.totals, factor);
        error = sw_functions_add(into, &function, &index[i]);
    }
    for (size_t i = 0; i < from->call_count && !error; i++) {
        sw_function_call call = from->calls[i];
        totals_scale(&call.totals, factor);
        call.caller =
            call.caller == SW_FUNCTION_UNKNOWN ? call.caller : index[call.caller];
        call.callee = index[call.callee];
        error = sw_functions_add_call(into, &call);
    }
    sw__free(index);
    return error;
}

size_t sw_functions_count(const sw_functions *functions)
{
    return functions->count;
}

const sw_function *sw_functions_get(const sw_functions *functions, size_t index)
{
    return index < functions->count ? &functions->functions[index] : NULL;
}

size_t sw_functions_call_count(const sw_functions *functions)
{
    return functions->call_count;
}

const sw_function_call *sw_functions_get_call(const sw_functions *functions, size_t index)
{
    return index < functions->call_count ? &functions->calls[index] : NULL;
}

sw_function_totals sw_functions_sum(const sw_functions *functions)
{
    sw_function_totals sum = {0};
    for (size_t i = 0; i < functions->count; i++) {
        totals_add(&sum, &functions->functions[i].totals);
    }
    sum.total = sum.self;
    return sum;
}

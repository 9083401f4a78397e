/* Function profiles out of the tables of traces. Nothing in a file is trusted: a row that points nowhere is left out. */
#include <math.h>
#include <string.h>

#include <stepwatch/functions.h>

#include "base/memory.h"

#define NOWHERE UINT32_MAX
#define KIND_FUNCTIONS 1

/* What is kept while one trace is added. */
struct adding {
    const sw_trace *trace;
    sw_functions *into;
    double ns_per_tick;
    uint32_t *place; /* by CODE row: index of the function in `into`, or NOWHERE */
    size_t codes;
    bool *counts; /* by PROFILE row: whether it is added */
    size_t profiles;
};

static const sw_row *profile_row(const sw_trace *trace, size_t index)
{
    const sw_row *row = sw_trace_get_row(trace, SW_TABLE_PROFILE, index);
    return row && row->key[0] == KIND_FUNCTIONS ? row : NULL;
}

/* Whether profile `a` ran within profile `b` of the same process: all of its calls are counted there. */
static bool is_inside(const sw_row *a, size_t a_index, const sw_row *b, size_t b_index)
{
    const uint64_t a_end = a->value[0] + a->value[1];
    const uint64_t b_end = b->value[0] + b->value[1];
    if (a->value[0] == b->value[0] && a_end == b_end) {
        return b_index < a_index;
    }
    return a->value[0] >= b->value[0] && a_end <= b_end;
}

/* Profiles are few; past this many a file is only trying our patience, and all of them count. */
#define PROFILES_COMPARED 4096

static void choose_profiles(struct adding *adding)
{
    for (size_t i = 0; i < adding->profiles; i++) {
        const sw_row *row = profile_row(adding->trace, i);
        adding->counts[i] = row != NULL;
        for (size_t j = 0;
             row && adding->profiles <= PROFILES_COMPARED && j < adding->profiles; j++) {
            const sw_row *other = j == i ? NULL : profile_row(adding->trace, j);
            if (other && is_inside(row, i, other, j)) {
                adding->counts[i] = false;
                break;
            }
        }
    }
}

static uint64_t to_ns(const struct adding *adding, uint64_t ticks)
{
    const double ns = (double)ticks * adding->ns_per_tick;
    return ns >= 0 && ns < 1e18 ? (uint64_t)llround(ns) : 0;
}

static sw_function_totals totals_of(const struct adding *adding, const sw_row *row)
{
    return (sw_function_totals){
        .calls = row->value[0],
        .primitive_calls = row->value[1],
        .total = to_ns(adding, row->value[2]),
        .self = to_ns(adding, row->value[3]),
        .errors = row->value[4],
    };
}

static int add_function(struct adding *adding, const sw_row *row)
{
    const uint32_t code = row->key[1];
    const sw_row *what = sw_trace_get_row(adding->trace, SW_TABLE_CODE, code);
    if (row->key[0] >= adding->profiles || !adding->counts[row->key[0]] || !what) {
        return SW_OK;
    }
    const sw_trace_name *file = sw_trace_get_name(adding->trace, what->key[0]);
    const sw_trace_name *qualname = sw_trace_get_name(adding->trace, what->key[1]);
    const sw_trace_name *name = sw_trace_get_name(adding->trace, what->key[3]);
    if (!file || !name) {
        return SW_OK;
    }
    qualname = qualname ? qualname : name;
    const sw_function function = {
        .file = file->text,
        .file_length = file->length,
        .name = name->text,
        .name_length = name->length,
        .qualname = qualname->text,
        .qualname_length = qualname->length,
        .line = what->key[2],
        .native = (what->flags & SW_ROW_NATIVE) != 0,
        .totals = totals_of(adding, row),
    };
    return sw_functions_add(adding->into, &function, &adding->place[code]);
}

static int add_call(struct adding *adding, const sw_row *row)
{
    if (row->key[0] >= adding->profiles || !adding->counts[row->key[0]] ||
        row->key[2] >= adding->codes || adding->place[row->key[2]] == NOWHERE) {
        return SW_OK;
    }
    sw_function_call call = {
        .caller = SW_FUNCTION_UNKNOWN,
        .callee = adding->place[row->key[2]],
        .totals = totals_of(adding, row),
    };
    if (row->key[1] != SW_FUNCTION_UNKNOWN) {
        if (row->key[1] >= adding->codes || adding->place[row->key[1]] == NOWHERE) {
            return SW_OK;
        }
        call.caller = adding->place[row->key[1]];
    }
    return sw_functions_add_call(adding->into, &call);
}

static int add_rows(struct adding *adding, enum sw_table table,
                    int (*add)(struct adding *adding, const sw_row *row))
{
    int error = SW_OK;
    const size_t count = sw_trace_row_count(adding->trace, table);
    for (size_t i = 0; i < count && !error; i++) {
        const sw_row *row = sw_trace_get_row(adding->trace, table, i);
        error = row ? add(adding, row) : SW_OK;
    }
    return error;
}

static int add_trace(sw_functions *into, const sw_trace *trace)
{
    struct adding adding = {
        .trace = trace,
        .into = into,
        .ns_per_tick = sw_trace_ns_per_tick(trace),
        .codes = sw_trace_row_count(trace, SW_TABLE_CODE),
        .profiles = sw_trace_row_count(trace, SW_TABLE_PROFILE),
    };
    if (adding.codes == 0 || adding.profiles == 0) {
        return SW_OK;
    }
    adding.place = sw__alloc_zero(adding.codes, sizeof *adding.place);
    adding.counts = sw__alloc_zero(adding.profiles, sizeof *adding.counts);
    int error = adding.place && adding.counts ? SW_OK : SW_ENOMEM;
    if (!error) {
        memset(adding.place, 0xff, adding.codes * sizeof *adding.place);
        choose_profiles(&adding);
        error = add_rows(&adding, SW_TABLE_FUNCTION, add_function);
    }
    error = error ? error : add_rows(&adding, SW_TABLE_CALL, add_call);
    sw__free(adding.place);
    sw__free(adding.counts);
    return error;
}

int sw_functions_of_run(sw_functions **out, const sw_run *run, sw_error_info *info)
{
    int error = sw_functions_create(out);
    for (size_t i = 0; i < sw_run_count(run) && !error; i++) {
        error = add_trace(*out, sw_run_trace(run, i));
    }
    if (error) {
        sw_functions_free(*out);
        *out = NULL;
        return sw_error_set(info, error, "the function profiles: %s",
                            sw_error_text(error));
    }
    return SW_OK;
}

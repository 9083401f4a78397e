/* A function profile in the trace: rows of the tables PROFILE, CODE, FUNCTION and CALL (<stepwatch/records.h>). */
#include "code_rows.h"
#include "functions.h"
#include <stdlib.h>
#include <stepwatch/stepwatch.h>

#define KIND_FUNCTIONS 1

/* Handles of the rows that one recording has: by index of function and call in the profile's table, which only grows. */
struct functions_rows {
    uint32_t recording;
    uint32_t number; /* of the profile */
    uint64_t profile;
    uint64_t *function, *call;
    size_t functions, calls;
};

void functions_rows_free(struct functions_rows *rows)
{
    if (rows) {
        free(rows->function);
        free(rows->call);
        free(rows);
    }
}

static int grow(uint64_t **handles, size_t *count, size_t wanted)
{
    if (wanted > *count) {
        uint64_t *more = realloc(*handles, wanted * sizeof *more);
        if (!more) {
            return -1;
        }
        memset(more + *count, 0, (wanted - *count) * sizeof *more);
        *handles = more;
        *count = wanted;
    }
    return 0;
}

static struct functions_rows *rows_for(functions_profile *profile, uint32_t recording)
{
    struct functions_rows *rows = profile->rows;
    if (rows && rows->recording != recording) {
        functions_rows_free(rows);
        rows = profile->rows = NULL;
    }
    if (!rows) {
        rows = profile->rows = calloc(1, sizeof *rows);
    }
    if (!rows ||
        grow(&rows->function, &rows->functions, sw_functions_count(profile->ended)) !=
            0 ||
        grow(&rows->call, &rows->calls, sw_functions_call_count(profile->ended)) != 0) {
        return NULL;
    }
    rows->recording = recording;
    return rows;
}

static void write_profile(functions_profile *profile, struct functions_rows *rows)
{
    core_text name = {0};
    if (core_text_get(profile->name, "name", &name) != 0) {
        PyErr_Clear();
        return;
    }
    const sw_function_totals sum = sw_functions_sum(profile->ended);
    sw_row row = {
        .table = SW_TABLE_PROFILE,
        .key = {KIND_FUNCTIONS, sw_name(name.data, (size_t)name.length)},
        .value = {profile->first, profile->ran, sum.calls * 2, profile->lost},
    };
    rows->profile = sw_row_put(rows->profile, &row);
    rows->number = row.index;
    core_text_release(&name);
}

static void fill(sw_row *row, const sw_function_totals *totals)
{
    row->value[0] = totals->calls;
    row->value[1] = totals->primitive_calls;
    row->value[2] = totals->total;
    row->value[3] = totals->self;
    row->value[4] = totals->errors;
}

static void write_functions(const sw_functions *functions, struct functions_rows *rows,
                            uint32_t *code)
{
    for (size_t i = 0; i < rows->functions; i++) {
        const sw_function *function = sw_functions_get(functions, i);
        code[i] = core_code_row(function->file, function->file_length, function->qualname,
                                function->qualname_length, function->name,
                                function->name_length, function->line,
                                function->native ? SW_ROW_NATIVE : 0);
        sw_row row = {.table = SW_TABLE_FUNCTION, .key = {rows->number, code[i]}};
        fill(&row, &function->totals);
        if (code[i] != CORE_NO_CODE) {
            rows->function[i] = sw_row_put(rows->function[i], &row);
        }
    }
}

static void write_calls(const sw_functions *functions, struct functions_rows *rows,
                        const uint32_t *code)
{
    for (size_t i = 0; i < rows->calls; i++) {
        const sw_function_call *call = sw_functions_get_call(functions, i);
        const bool known = call->caller != SW_FUNCTION_UNKNOWN;
        sw_row row = {
            .table = SW_TABLE_CALL,
            .key = {rows->number, known ? code[call->caller] : SW_FUNCTION_UNKNOWN,
                    code[call->callee]},
        };
        fill(&row, &call->totals);
        if (code[call->callee] != CORE_NO_CODE) {
            rows->call[i] = sw_row_put(rows->call[i], &row);
        }
    }
}

void functions_rows_write(functions_profile *profile)
{
    /* Asking for a name makes a forked child open its own recording, so it comes before the number. */
    (void)sw_name("functions", 9);
    const uint32_t recording = sw_recording_number();
    struct functions_rows *rows = recording ? rows_for(profile, recording) : NULL;
    uint32_t *code = rows ? malloc((rows->functions + 1) * sizeof *code) : NULL;
    if (code) {
        write_profile(profile, rows);
        if (rows->profile) {
            write_functions(profile->ended, rows, code);
            write_calls(profile->ended, rows, code);
        }
    }
    free(code);
}

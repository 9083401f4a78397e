/* Line profiles in the trace: totals go into its tables, when a recording ends at the latest. */
#include "code_rows.h"
#include "line_table.h"
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

/* The PROFILE row of the recording `number`: one for the process, whatever Lines objects there are, so that no line counts
 * twice. */
static struct {
    uint32_t number;
    uint64_t handle;
    sw_row row;
} profile;

void core_lines_rebase(void)
{
    core_line_flush();
    for (line_code *table = core_line_codes; table; table = table->next) {
        memcpy(table->base, table->cells,
               ((size_t)table->count + 1) * sizeof *table->cells);
    }
}

static int profile_begin(uint32_t number)
{
    if (profile.number != number) {
        profile.row = (sw_row){.table = SW_TABLE_PROFILE};
        profile.row.key[0] = 2;
        profile.row.key[1] = sw_name("lines", 5);
        profile.row.value[0] = sw_now();
        profile.handle = 0;
        profile.number = number;
    }
    profile.row.value[1] = sw_now() - profile.row.value[0];
    profile.handle = sw_row_put(profile.handle, &profile.row);
    return profile.handle ? 0 : -1;
}

static uint32_t code_row(const line_code *table)
{
    const PyCodeObject *code = (PyCodeObject *)table->code;
    core_text file = {0}, qualname = {0}, name = {0};
    uint32_t index = CORE_NO_CODE;
    if (core_text_get(code->co_filename, "file", &file) == 0 &&
        core_text_get(table->name, "name", &qualname) == 0 &&
        core_text_get(code->co_name, "name", &name) == 0) {
        index = core_code_row(file.data, (size_t)file.length, qualname.data,
                              (size_t)qualname.length, name.data, (size_t)name.length,
                              (uint32_t)code->co_firstlineno, 0);
    }
    PyErr_Clear();
    core_text_release(&file);
    core_text_release(&qualname);
    core_text_release(&name);
    return index;
}

/* Returns how many arrivals the rows stand for. */
static uint64_t put_table(line_code *table, uint32_t number)
{
    uint64_t events = 0;
    uint32_t code = CORE_NO_CODE;
    if (!table->handles) {
        table->handles = calloc((size_t)table->count + 1, sizeof *table->handles);
        if (!table->handles) {
            return 0;
        }
    } else if (table->number != number) {
        memset(table->handles, 0, ((size_t)table->count + 1) * sizeof *table->handles);
    }
    table->number = number;
    for (uint32_t i = 0; i < table->count; i++) {
        const uint64_t hits = table->cells[i].hits - table->base[i].hits;
        const uint64_t ticks = table->cells[i].ticks - table->base[i].ticks;
        if (hits == 0 && ticks == 0) {
            continue;
        }
        if (code == CORE_NO_CODE) {
            code = code_row(table);
            if (code == CORE_NO_CODE) {
                return events;
            }
        }
        sw_row row = {.table = SW_TABLE_LINE,
                      .key = {profile.row.index, code, table->first + i},
                      .value = {hits, ticks}};
        table->handles[i] = sw_row_put(table->handles[i], &row);
        events += hits;
    }
    if (events) {
        /* The end of the function's text, so that reports show all of it. */
        sw_row row = {.table = SW_TABLE_LINE,
                      .key = {profile.row.index, code, table->last}};
        if (table->last - table->first >= table->count && !table->handles[table->count]) {
            table->handles[table->count] = sw_row_put(0, &row);
        }
    }
    return events;
}

void core_lines_sync(void)
{
    if (!core_line_codes || !sw_is_recording()) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    core_line_flush();
    const uint32_t number = sw_recording_number();
    if (number && profile_begin(number) == 0) {
        uint64_t events = 0;
        for (line_code *table = core_line_codes; table; table = table->next) {
            events += put_table(table, number);
        }
        profile.row.value[2] = events;
        profile.handle = sw_row_put(profile.handle, &profile.row);
    }
    PyErr_Restore(type, value, traceback);
}

uint64_t core_line_due;

void core_lines_keep(void)
{
    const uint64_t begin = core_ticks();
    if (core_line_due) { /* the first line of all has nothing to keep yet */
        core_lines_sync();
    }
    core_line_due = core_ticks_due(begin, core_ticks());
}

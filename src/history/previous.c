/* The run to compare a run with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "history/place.h"
#include "history/relations.h"
#include "history/run_files.h"
#include "history/small_file.h"

#define ARENA_MOST (256u << 20)

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static bool is_earlier(const sw_history_run *run, const sw_history_run *than)
{
    return isnan(than->started_s) || run->started_s < than->started_s;
}

/* Of sorted runs the first that fits, and is still there. */
static const sw_history_run *find(const struct sw__runs *runs, const char *place,
                                  const sw_history_run *of, bool same_arguments)
{
    for (size_t i = 0; i < runs->count; i++) {
        const sw_history_run *run = &runs->run[i];
        char path[PATH_MAX];
        if (same_text(run->program, of->program) && sw__run_counts(run) &&
            (!same_arguments || same_text(run->arguments, of->arguments)) &&
            is_earlier(run, of) && strcmp(run->directory, of->directory) != 0 &&
            sw__join_path(path, sizeof path, place, run->directory) &&
            sw__run_is_there(path)) {
            return run;
        }
    }
    return NULL;
}

/* What tells the program; the report is not needed for that. */
static int identify(sw_history_run *out, const char *directory, const char *place,
                    const char *name, sw__arena *arena, sw_error_info *info)
{
    sw__run_unknown(out);
    if (sw__run_json_read(out, directory, arena) == SW_OK && out->program) {
        out->directory = name;
        return SW_OK;
    }
    return sw__run_read(out, place, name, arena, info);
}

int sw_history_previous(const char *directory, sw_history_earlier *out,
                        sw_error_info *info)
{
    char place[PATH_MAX];
    char name[NAME_MAX + 1];
    sw_history_run of;
    struct sw__database database = {0};
    const struct sw__database_manner manner = {.read_only = true};
    struct sw__runs runs = {.arena = sw__arena_create(ARENA_MOST)};
    *out = (sw_history_earlier){.id = ""};
    int result =
        runs.arena ? sw__place_of(directory, place, sizeof place, name, sizeof name, info)
                   : sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    if (result == SW_OK) {
        result = identify(&of, directory, place, name, runs.arena, info);
    }
    if (result == SW_OK) {
        result = sw__database_open(&database, place, &manner, info);
    }
    if (result == SW_OK) {
        result = sw__database_read(&database, &runs, info);
        sw__database_close(&database);
    }
    if (result == SW_OK) {
        sw__runs_sort(&runs);
        const sw_history_run *found = find(&runs, place, &of, true);
        out->same_arguments = found != NULL;
        found = found ? found : find(&runs, place, &of, false);
        if (!found || !sw__join_path(out->directory, sizeof out->directory, place,
                                     found->directory)) {
            out->same_arguments = false;
            result = sw_error_set(info, SW_ENOTFOUND,
                                  "%.300s holds no earlier run of this program", place);
        } else {
            snprintf(out->id, sizeof out->id, "%s", found->id ? found->id : "");
        }
    }
    sw__runs_free(&runs);
    sw__arena_free(runs.arena);
    return result;
}

/* Reading the history of a place. What the database lacks is read from the run directories, and added to it where it can be
 * written; where it cannot, the reader gets all the same, and one sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "history/place.h"
#include "history/relations.h"
#include "history/run_files.h"
#include "history/small_file.h"

#define ARENA_MOST (1024u << 20)
#define NOTES_MOST 16

struct sw_history {
    sw__arena *arena;
    const char *folder;
    struct sw__runs runs;
    struct sw__trends trends;
    const char *note[NOTES_MOST];
    size_t note_count;
};

SW_PRINTF(2, 3) static void add_note(sw_history *history, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = sw__arena_copy(history->arena, text, strlen(text));
    if (copy && history->note_count < NOTES_MOST) {
        history->note[history->note_count++] = copy;
    }
}

/* --- the database of a reader --- */

/* A connection that is there, and whether it may be written to. */
struct session {
    struct sw__database database;
    bool tried, open, writable;
};

static bool is_damage(int result)
{
    return result == SW_ECORRUPT;
}

/* Opens the database, for writing where that can be. One that cannot be used at all is no error but a note: the run directories are
 * there. Only one of another program is. */
static int open_session(struct session *session, sw_history *history, sw_error_info *info)
{
    sw_error_info why = {0};
    const struct sw__database_manner write = {0};
    const struct sw__database_manner read = {.read_only = true};
    const char *folder = history->folder;
    int result = sw__database_open(&session->database, folder, &write, &why);
    session->tried = true;
    session->writable = result == SW_OK;
    if (result == SW_EFORMAT) {
        if (info) {
            *info = why;
        }
        return result;
    }
    if (result != SW_OK && !is_damage(result)) {
        add_note(history, "%s.", why.message);
        result = sw__database_open(&session->database, folder, &read, NULL);
    }
    session->open = result == SW_OK;
    return is_damage(result) ? result : SW_OK;
}

static void close_session(struct session *session)
{
    if (session->open) {
        sw__database_close(&session->database);
    }
    session->open = session->writable = false;
}

/* Opens the database and reads its rows. One that is damaged is moved aside, and a new one opened. */
static int open_and_read(struct session *session, sw_history *history,
                         sw_error_info *info)
{
    char moved[256];
    sw_error_info why = {0};
    int result = open_session(session, history, info);
    if (result == SW_OK && session->open) {
        result = sw__database_read(&session->database, &history->runs, &why);
    }
    if (!is_damage(result)) {
        if (result != SW_OK && result != SW_ENOMEM && session->open) {
            add_note(history, "%s.", why.message);
            history->runs.count = 0;
            close_session(session);
            result = SW_OK;
        }
        return result;
    }
    close_session(session);
    history->runs.count = 0;
    result = sw__database_set_aside(history->folder, moved, sizeof moved, &why);
    if (result != SW_OK) {
        add_note(history, "%s; the runs were read from their directories.", why.message);
        return SW_OK;
    }
    if (moved[0]) {
        add_note(history,
                 SW_HISTORY_FILE
                 " was damaged; it was moved to %s and made anew from the "
                 "run directories.",
                 moved);
    }
    result = open_session(session, history, info);
    if (result == SW_OK && session->open) {
        result = sw__database_read(&session->database, &history->runs, &why);
    }
    return result == SW_EFORMAT || result == SW_ENOMEM ? result : SW_OK;
}

/* --- runs that are missing in it --- */

static bool is_gone(const sw_history *history, const sw_history_run *run)
{
    char path[PATH_MAX];
    return !sw__join_path(path, sizeof path, history->folder, run->directory) ||
           access(path, F_OK) != 0;
}

/* A run whose directory was renamed has a row under the old name and one under the new: the old one goes. */
static void forget_renamed(sw_history *history, const struct session *session,
                           size_t known)
{
    struct sw__runs *runs = &history->runs;
    size_t kept = 0;
    for (size_t i = 0; i < runs->count; i++) {
        bool renamed = false;
        const sw_history_run *run = &runs->run[i];
        for (size_t k = known;
             i < known && run->gone && run->id && k < runs->count && !renamed; k++) {
            renamed = runs->run[k].id && strcmp(runs->run[k].id, run->id) == 0;
        }
        if (renamed && session->writable) {
            sw__database_forget(&session->database, run->directory, NULL);
        }
        if (!renamed) {
            runs->run[kept++] = *run;
        }
    }
    runs->count = kept;
}

static int add_missing(sw_history *history, struct session *session,
                       const struct sw__place *place, struct sw__passed *passed)
{
    struct sw__runs *runs = &history->runs;
    const size_t known = runs->count;
    sw_error_info why = {0};
    int result = sw__place_gather(place, history->folder, runs, known, 0, passed);
    if (result != SW_OK) {
        return result;
    }
    if (passed->unreadable) {
        add_note(history, "%zu run director%s could not be read.", passed->unreadable,
                 passed->unreadable == 1 ? "y" : "ies");
    }
    for (size_t i = 0; i < runs->count; i++) {
        runs->run[i].gone = is_gone(history, &runs->run[i]);
    }
    if (runs->count == known) {
        return SW_OK;
    }
    if (!session->tried) {
        result = open_session(session, history, &why);
    }
    if (result == SW_OK && session->writable) {
        result = sw__database_write(&session->database, runs->run + known,
                                    runs->count - known, false, &why);
        if (result != SW_OK) {
            add_note(history, "%s.", why.message);
        }
    }
    forget_renamed(history, session, known);
    return SW_OK;
}

/* --- what is asked for --- */

static bool contains(const char *text, const char *part)
{
    return text && strstr(text, part);
}

/* Keeps runs and trends of the programs that are asked for; what they are compared with may be another. */
static void choose(sw_history *history, const char *program)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->runs.count; i++) {
        const sw_history_run *run = &history->runs.run[i];
        if (contains(run->program, program) || contains(run->name, program)) {
            history->runs.run[kept++] = *run;
        }
    }
    history->runs.count = kept;
    kept = 0;
    for (size_t i = 0; i < history->trends.count; i++) {
        const sw_history_trend *trend = &history->trends.trend[i];
        if (contains(trend->program, program) || contains(trend->name, program)) {
            history->trends.trend[kept++] = *trend;
        }
    }
    history->trends.count = kept;
}

static int read_place(sw_history *history, const char *program, sw_error_info *info)
{
    char file[PATH_MAX];
    struct session session = {0};
    struct sw__place place;
    struct sw__passed passed = {0};
    int result = sw__place_list(&place, history->folder, info);
    if (result != SW_OK) {
        return result;
    }
    const bool there =
        sw__join_path(file, sizeof file, history->folder, SW_HISTORY_FILE) &&
        access(file, F_OK) == 0;
    if (there) {
        result = open_and_read(&session, history, info);
    }
    if (result == SW_OK) {
        result = add_missing(history, &session, &place, &passed);
    }
    if (result == SW_OK && !there && place.others &&
        history->runs.count + passed.unwanted + passed.unreadable == 0) {
        result = sw_error_set(info, SW_EFORMAT, "%.300s holds no runs of stepwatch",
                              history->folder);
    }
    if (result == SW_OK) {
        sw__runs_sort(&history->runs);
        result = sw__runs_relate(&history->runs, &history->trends);
    }
    if (result == SW_OK && program) {
        choose(history, program);
    }
    if (result == SW_ENOMEM) {
        sw_error_set(info, result, "%s", sw_error_text(result));
    }
    close_session(&session);
    sw__place_free(&place);
    return result;
}

int sw_history_read(sw_history **out, const char *folder, const char *program,
                    sw_error_info *info)
{
    struct sw__os_guard guard;
    *out = NULL;
    int result = sw__place_check(folder, info);
    if (result != SW_OK) {
        return result;
    }
    sw_history *history = sw__alloc_zero(1, sizeof *history);
    if (history) {
        history->arena = sw__arena_create(ARENA_MOST);
    }
    if (history && history->arena) {
        history->runs.arena = history->arena;
        history->folder = sw__arena_copy(history->arena, folder, strlen(folder));
    }
    if (!history || !history->folder) {
        sw_history_free(history);
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    sw__os_guard_begin(&guard);
    result = read_place(history, program, info);
    sw__os_guard_end(&guard, true);
    if (result != SW_OK) {
        sw_history_free(history);
        return result;
    }
    *out = history;
    return SW_OK;
}

void sw_history_free(sw_history *history)
{
    if (history) {
        sw__runs_free(&history->runs);
        sw__arena_free(history->arena);
        sw__free(history);
    }
}

const char *sw_history_folder(const sw_history *history)
{
    return history ? history->folder : NULL;
}

size_t sw_history_count(const sw_history *history)
{
    return history ? history->runs.count : 0;
}

const sw_history_run *sw_history_get(const sw_history *history, size_t index)
{
    return index < sw_history_count(history) ? &history->runs.run[index] : NULL;
}

size_t sw_history_trend_count(const sw_history *history)
{
    return history ? history->trends.count : 0;
}

const sw_history_trend *sw_history_get_trend(const sw_history *history, size_t index)
{
    return index < sw_history_trend_count(history) ? &history->trends.trend[index] : NULL;
}

const char *sw_history_note(const sw_history *history, size_t index)
{
    return history && index < history->note_count ? history->note[index] : NULL;
}

/* Adding runs to the history of their place. */
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "history/place.h"
#include "history/run_files.h"

#define TRIES_NS 3000000000u /* after which a run has waited long enough for others */
#define PAUSE_NS 10000000u
#define GATHER_NS 300000000u /* for the other runs of a place whose history is new */
#define ARENA_MOST (256u << 20)
#define REPAIRS_MOST 2 /* others may find the damage at the same time */

/* The runs that were here before their history was, as many as there is time for; whoever reads the history adds the rest. */
static int add_others(const struct sw__database *database, const char *place,
                      const sw_history_run *run, sw__arena *arena, sw_error_info *info)
{
    struct sw__place folders;
    struct sw__runs others = {.arena = arena};
    int result = sw__place_list(&folders, place, info);
    if (result != SW_OK) {
        return result;
    }
    result = sw__runs_add(&others, run);
    if (result == SW_OK) {
        result = sw__place_gather(&folders, place, &others, 1, GATHER_NS, NULL);
    }
    if (result == SW_OK && others.count > 1) {
        result =
            sw__database_write(database, others.run + 1, others.count - 1, false, info);
    }
    sw__runs_free(&others);
    sw__place_free(&folders);
    return result;
}

static int try_add(const char *place, const sw_history_run *run, sw__arena *arena,
                   sw_error_info *info)
{
    struct sw__database database;
    const struct sw__database_manner manner = {0};
    int result = sw__database_open(&database, place, &manner, info);
    if (result != SW_OK) {
        return result;
    }
    if (database.fresh) {
        result = add_others(&database, place, run, arena, info);
    }
    if (result == SW_OK) {
        result = sw__database_write(&database, run, 1, true, info);
    }
    sw__database_close(&database);
    return result;
}

static int try_replace(const char *place, const struct sw__runs *runs,
                       sw_error_info *info)
{
    struct sw__database database;
    const struct sw__database_manner manner = {0};
    int result = sw__database_open(&database, place, &manner, info);
    if (result == SW_OK) {
        result = sw__database_write(&database, runs->run, runs->count, true, info);
        sw__database_close(&database);
    }
    return result;
}

/* What is done so that a run comes into its history. Invariant: `file` is the file that the last try began with. */
struct tries {
    const char *place;
    uint64_t until; /* when waiting ends */
    int repairs;
    struct sw__database_file file;
    char moved[256]; /* the new name of a damaged file, or empty */
};

static struct tries tries_begin(const char *place)
{
    return (struct tries){.place = place,
                          .until = sw__os_now_ns() + TRIES_NS,
                          .file = sw__database_file(place)};
}

/* Whether what failed may be tried again, after waiting for others or moving a damaged file aside. */
static bool try_again(struct tries *tries, int *result, sw_error_info *why)
{
    if (*result == SW_ECORRUPT && tries->repairs++ < REPAIRS_MOST) {
        *result =
            sw__database_set_aside(tries->place, tries->moved, sizeof tries->moved, why);
        tries->file = sw__database_file(tries->place);
        return *result == SW_OK;
    }
    /* Somebody else has moved it, or has made it. */
    const struct sw__database_file now = sw__database_file(tries->place);
    const bool other =
        now.device != tries->file.device || now.number != tries->file.number;
    tries->file = now;
    const bool moved = other && (*result == SW_EOPEN || *result == SW_EWRITE);
    if ((moved || *result == SW_ESTATE) && sw__os_now_ns() < tries->until) {
        sw__os_sleep_ns(PAUSE_NS);
        return true;
    }
    return false;
}

/* Hands the sentence of a failure to the caller, or that about a file that had to be made anew. */
static void tell(sw_error_info *info, const sw_error_info *why, int result,
                 const struct tries *tries)
{
    if (!info) {
        return;
    }
    *info = result == SW_OK ? (sw_error_info){0} : *why;
    if (result == SW_OK && tries->moved[0]) {
        snprintf(info->message, sizeof info->message,
                 "%.200s/" SW_HISTORY_FILE
                 " was damaged; it was moved to %.100s and made "
                 "anew from the run directories",
                 tries->place, tries->moved);
    }
}

int sw_history_add(const char *directory, sw_error_info *info)
{
    char place[PATH_MAX] = "";
    char name[NAME_MAX + 1];
    sw_history_run run;
    sw_error_info why = {0};
    struct sw__os_guard guard;
    struct tries tries = {0};
    sw__os_guard_begin(&guard);
    sw__arena *arena = sw__arena_create(ARENA_MOST);
    int result =
        arena ? sw__place_of(directory, place, sizeof place, name, sizeof name, &why)
              : sw_error_set(&why, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    if (result == SW_OK) {
        result = sw__run_read(&run, place, name, arena, &why);
    }
    if (result == SW_EDISABLED) {
        sw_error_set(&why, result, "%.300s is not to be in a history", directory);
    }
    if (result == SW_OK) {
        tries = tries_begin(place);
        do {
            result = try_add(place, &run, arena, &why);
        } while (result != SW_OK && try_again(&tries, &result, &why));
    }
    sw__arena_free(arena);
    sw__os_guard_end(&guard, true);
    tell(info, &why, result, &tries);
    return result;
}

int sw_history_rebuild(const char *folder, size_t *runs, sw_error_info *info)
{
    sw_error_info why = {0};
    struct sw__os_guard guard;
    struct sw__place place = {0};
    struct sw__runs found = {.arena = sw__arena_create(0)};
    struct tries tries = {0};
    sw__os_guard_begin(&guard);
    int result = found.arena
                     ? sw__place_check(folder, &why)
                     : sw_error_set(&why, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    if (result == SW_OK) {
        result = sw__place_list(&place, folder, &why);
    }
    if (result == SW_OK) {
        result = sw__place_gather(&place, folder, &found, 0, 0, NULL);
    }
    if (result == SW_OK && found.count > 0) {
        tries = tries_begin(folder);
        do {
            result = try_replace(folder, &found, &why);
        } while (result != SW_OK && try_again(&tries, &result, &why));
    }
    if (runs) {
        *runs = result == SW_OK ? found.count : 0;
    }
    sw__runs_free(&found);
    sw__place_free(&place);
    sw__arena_free(found.arena);
    sw__os_guard_end(&guard, true);
    tell(info, &why, result, &tries);
    return result;
}

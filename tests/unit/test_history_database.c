/* history.db: many writers, damage, other versions, other programs, folders in which nothing can be written. */
#include "history_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "history/database.h"
#include "history/run_files.h"

static struct sw__database open_database(const struct place *place,
                                         struct sw__database_manner manner, int expected)
{
    struct sw__database database;
    sw_error_info info = {0};
    const int result = sw__database_open(&database, place->path, &manner, &info);
    if (result != expected) {
        fail_msg("%d: %s", result, info.message);
    }
    return database;
}

static void run_sql(const struct place *place, const char *sql)
{
    const struct sw__sqlite *call = sw__sqlite(NULL);
    sqlite3 *handle;
    assert_int_equal(call->open_v2(in(place, "history.db"), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                     SQLITE_OK);
    assert_int_equal(call->exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    call->close_v2(handle);
}

static size_t count_runs(const struct place *place)
{
    sw_history *history = read_history(place, NULL);
    const size_t count = sw_history_count(history);
    sw_history_free(history);
    return count;
}

/* Files of the place whose names begin so, without those that belong to another. */
static size_t count_files(const struct place *place, const char *prefix)
{
    DIR *stream = opendir(place->path);
    const struct dirent *entry;
    size_t count = 0;
    while ((entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        count += strncmp(name, prefix, strlen(prefix)) == 0 && !strstr(name, "-wal") &&
                 !strstr(name, "-shm");
    }
    closedir(stream);
    return count;
}

static void read_journal(const struct place *place, const char *vfs, char *out,
                         size_t size)
{
    struct sw__database database =
        open_database(place, (struct sw__database_manner){.vfs = vfs}, SW_OK);
    sqlite3_stmt *row;
    const struct sw__sqlite *call = database.call;
    assert_int_equal(
        call->prepare_v2(database.handle, "PRAGMA journal_mode", -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(call->step(row), SQLITE_ROW);
    snprintf(out, size, "%s", (const char *)call->column_text(row, 0));
    call->finalize(row);
    sw__database_close(&database);
}

static void round_trip(void **state)
{
    (void)state;
    struct place place = place_new();
    const sw_history_pair pairs[] = {{"torch", "2.\"1\xc3\xa9", NAN}, {"x", NULL, 0.1}};
    sw_history_run run;
    sw__run_unknown(&run);
    run.directory = "b";
    run.started_s = 1794773392.091444;
    run.name = "a 'quoted'; DROP TABLE runs; --";
    run.exit_code = 3;
    run.exit_signal = 0;
    run.complete = 0;
    run.dirty = 1;
    run.workers = 0;
    run.batch_size = INT64_MAX;
    run.steps = 0;
    run.step_p50_ms = 0.1 + 0.2;
    run.frameworks = (sw_history_pairs){pairs, 2};
    run.config = (sw_history_pairs){pairs, 0};
    sw_history_run unknown;
    sw__run_unknown(&unknown);
    unknown.directory = "a";
    struct sw__database database =
        open_database(&place, (struct sw__database_manner){0}, SW_OK);
    assert_true(database.fresh);
    assert_int_equal(sw__database_write(&database, &run, 1, true, NULL), SW_OK);
    assert_int_equal(sw__database_write(&database, &unknown, 1, true, NULL), SW_OK);
    run.exit_code = 4; /* once as something that is there, once in its place */
    assert_int_equal(sw__database_write(&database, &run, 1, false, NULL), SW_OK);
    struct sw__runs runs = {.arena = sw__arena_create(0)};
    assert_int_equal(sw__database_read(&database, &runs, NULL), SW_OK);
    assert_int_equal(runs.count, 2);
    const sw_history_run *found = &runs.run[0];
    assert_string_equal(found->name, run.name);
    assert_true(fabs(found->started_s - run.started_s) < 1e-6);
    assert_int_equal(found->exit_code, 3);
    assert_int_equal(found->exit_signal, 0);
    assert_int_equal(found->complete, 0);
    assert_int_equal(found->dirty, 1);
    assert_int_equal(found->workers, 0);
    assert_int_equal(found->batch_size, INT64_MAX);
    assert_int_equal(found->steps, 0);
    assert_true(found->step_p50_ms == run.step_p50_ms);
    assert_int_equal(found->frameworks.count, 2);
    assert_string_equal(found->frameworks.pair[0].text, pairs[0].text);
    assert_true(found->frameworks.pair[1].number == 0.1);
    assert_non_null(found->config.pair); /* known to be empty */
    assert_int_equal(found->config.count, 0);
    found = &runs.run[1];
    assert_string_equal(found->directory, "a");
    assert_null(found->name);
    assert_true(isnan(found->started_s) && isnan(found->duration_s));
    assert_true(found->steps == SW_UNKNOWN && found->workers == -1);
    assert_true(found->exit_code == -1 && found->exit_signal == -1 && found->dirty == -1);
    assert_null(found->config.pair);
    run.exit_code = 5;
    assert_int_equal(sw__database_write(&database, &run, 1, true, NULL), SW_OK);
    assert_int_equal(sw__database_forget(&database, "a", NULL), SW_OK);
    runs.count = 0;
    assert_int_equal(sw__database_read(&database, &runs, NULL), SW_OK);
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs.run[0].exit_code, 5);
    sw__database_close(&database);
    sw__arena_free(runs.arena);
    sw__runs_free(&runs);
    struct stat status;
    assert_int_equal(stat(in(&place, "history.db"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    place_free(&place);
}

/* Values of other types than ours: whoever wrote them, they are not known. */
static void strange_values(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){0});
    add(&place, "a");
    run_sql(
        &place,
        "UPDATE runs SET name = x'00ff', steps = 'many', workers = -5, exit_code = 1e30,"
        "step_p50_ms = 'x', frameworks = '{\"a\": [', config = '[]',"
        "started_utc = 5, shares = '{\"a\": {\"b\": 1}, \"c\": 2}', complete = "
        "99999999999");
    sw_history *history = read_history(&place, NULL);
    const sw_history_run *run = sw_history_get(history, 0);
    assert_null(run->name);
    assert_true(run->steps == SW_UNKNOWN && isnan(run->step_p50_ms) &&
                isnan(run->started_s));
    assert_true(run->exit_code == -1 && run->complete == -1);
    assert_null(run->frameworks.pair);
    assert_null(run->config.pair);
    assert_int_equal(run->shares.count, 1);
    sw_history_free(history);
    place_free(&place);
}

#define WRITERS 16
#define RUNS_EACH 4

static void many_writers(void **state)
{
    (void)state;
    struct place place = place_new();
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        for (int k = 0; k < RUNS_EACH; k++) {
            char name[32];
            snprintf(name, sizeof name, "w%02d-%d", i, k);
            write_run(&place, name, (struct made){.started_s = i * 10 + k + 1});
        }
    }
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char byte;
            close(gate[1]);
            if (read(gate[0], &byte, 1) != 0) { /* all at once */
                _exit(2);
            }
            for (int k = 0; k < RUNS_EACH; k++) {
                char name[32];
                snprintf(name, sizeof name, "w%02d-%d", i, k);
                sw_error_info info = {0};
                if (sw_history_add(in(&place, name), &info) != SW_OK) {
                    print_error("%s: %s\n", name, info.message);
                    _exit(1);
                }
            }
            _exit(0);
        }
    }
    close(gate[1]);
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    close(gate[0]);
    /* In the database itself, and not only found in the folder. */
    struct sw__database database =
        open_database(&place, (struct sw__database_manner){.read_only = true}, SW_OK);
    int64_t rows = 0;
    assert_int_equal(
        sw__database_number(&database, "SELECT count(*) FROM runs", &rows, NULL), SW_OK);
    assert_int_equal(rows, WRITERS * RUNS_EACH);
    sw__database_close(&database);
    place_free(&place);
}

static void journals(void **state)
{
    (void)state;
    char mode[16];
    struct place place = place_new();
    write_run(&place, "a", (struct made){0});
    add(&place, "a");
    read_journal(&place, NULL, mode, sizeof mode);
    assert_string_equal(mode, "wal");
    /* Where processes have no memory in common, the log is given up, and what was written stays. */
    read_journal(&place, "unix-dotfile", mode, sizeof mode);
    assert_string_equal(mode, "delete");
    assert_int_equal(count_runs(&place), 1);
    assert_int_equal(count_files(&place, "history.db."), 0);
    place_free(&place);
    /* The same for a new one. */
    place = place_new();
    read_journal(&place, "unix-dotfile", mode, sizeof mode);
    assert_string_equal(mode, "delete");
    place_free(&place);
}

/* --- damage --- */

static void overwrite(const char *path, long offset, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    fwrite(bytes, 1, length, file);
    fclose(file);
}

enum damage { GARBAGE, ZEROS, CUT, INNER_PAGE, BAD_SCHEMA, DAMAGES };

static void damage(const struct place *place, enum damage how)
{
    char page[4096];
    const char *path = in(place, "history.db");
    memset(page, 0xa5, sizeof page);
    switch (how) {
    case GARBAGE:
        write_bytes(path, page, sizeof page);
        break;
    case ZEROS:
        memset(page, 0, sizeof page);
        write_bytes(path, page, sizeof page);
        break;
    case CUT:
        assert_int_equal(truncate(path, 4096), 0);
        break;
    case INNER_PAGE:
        overwrite(path, 4096, page, sizeof page);
        break;
    case BAD_SCHEMA:
        overwrite(path, 100, page, 900);
        break;
    case DAMAGES:
        break;
    }
}

static void damaged_files(void **state)
{
    (void)state;
    for (int how = 0; how < DAMAGES; how++) {
        for (int reading = 0; reading < 2; reading++) {
            struct place place = place_new();
            sw_error_info info = {0};
            for (int i = 0; i < 20; i++) {
                char name[16];
                snprintf(name, sizeof name, "r%02d", i);
                write_run(&place, name, (struct made){.started_s = i + 1});
            }
            add(&place, "r00");
            assert_int_equal(count_runs(&place), 20);
            damage(&place, (enum damage)how);
            if (reading) {
                sw_history *history = read_history(&place, NULL);
                assert_int_equal(sw_history_count(history), 20);
                assert_true(
                    has_note(history, "was damaged; it was moved to history.db.dam"));
                sw_history_free(history);
            } else {
                assert_int_equal(sw_history_add(in(&place, "r00"), &info), SW_OK);
                assert_non_null(strstr(info.message, "was damaged"));
            }
            assert_int_equal(count_files(&place, "history.db.damaged-"), 1);
            sw_history *history = read_history(&place, NULL);
            assert_int_equal(sw_history_count(history), 20);
            assert_null(sw_history_note(history, 0));
            sw_history_free(history);
            place_free(&place);
        }
    }
}

/* A file that was lost, or is empty, is made anew without a word. */
static void lost_files(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){.started_s = 1});
    write_run(&place, "b", (struct made){.started_s = 2});
    add(&place, "a");
    assert_int_equal(unlink(in(&place, "history.db")), 0);
    add(&place, "b");
    struct sw__database database =
        open_database(&place, (struct sw__database_manner){.read_only = true}, SW_OK);
    int64_t rows = 0;
    sw__database_number(&database, "SELECT count(*) FROM runs", &rows, NULL);
    assert_int_equal(rows, 2); /* a run that begins a history adds the others */
    sw__database_close(&database);
    write_text(in(&place, "history.db"), "");
    sw_history *history = read_history(&place, NULL);
    assert_int_equal(sw_history_count(history), 2);
    assert_null(sw_history_note(history, 0));
    sw_history_free(history);
    place_free(&place);
}

static void damage_met_by_many(void **state)
{
    (void)state;
    struct place place = place_new();
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%02d", i);
        write_run(&place, name, (struct made){.started_s = i + 1});
    }
    add(&place, "r00");
    damage(&place, GARBAGE);
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char name[16];
            snprintf(name, sizeof name, "r%02d", i);
            _exit(sw_history_add(in(&place, name), NULL) != SW_OK);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(&place, "history.db.damaged-"), 1);
    assert_int_equal(count_runs(&place), WRITERS);
    place_free(&place);
}

/* --- other versions, other programs --- */

static void newer_version(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_error_info info = {0};
    write_run(&place, "a", (struct made){.started_s = 1});
    add(&place, "a");
    run_sql(&place, "ALTER TABLE runs ADD COLUMN later TEXT; PRAGMA user_version = 99");
    write_run(&place, "b", (struct made){.started_s = 2});
    assert_int_equal(sw_history_add(in(&place, "b"), &info), SW_EVERSION);
    assert_non_null(strstr(info.message, "later version"));
    sw_history *history = read_history(&place, NULL);
    assert_int_equal(sw_history_count(history), 2);
    assert_true(has_note(history, "later version of stepwatch"));
    sw_history_free(history);
    assert_int_equal(sw_history_rebuild(place.path, NULL, &info), SW_EVERSION);
    place_free(&place);
}

static void migration(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "not used, for version 1 is there",
        "ALTER TABLE runs ADD COLUMN later TEXT",
        "UPDATE runs SET later = name || '!'",
    };
    static const char *const broken[] = {
        "", "", "", "CREATE TABLE extra (x); INSERT INTO nowhere VALUES (1)"};
    struct place place = place_new();
    write_run(&place, "a", (struct made){0});
    add(&place, "a");
    struct sw__database database = open_database(
        &place, (struct sw__database_manner){.migration = steps, .version = 3}, SW_OK);
    int64_t value = 0;
    assert_int_equal(
        sw__database_number(&database, "SELECT count(*) FROM runs WHERE later = 'train!'",
                            &value, NULL),
        SW_OK);
    assert_int_equal(value, 1);
    sw__database_number(&database, "PRAGMA user_version", &value, NULL);
    assert_int_equal(value, 3);
    sw__database_close(&database);
    /* One that fails changes nothing. */
    open_database(&place, (struct sw__database_manner){.migration = broken, .version = 4},
                  SW_ESYS);
    database = open_database(
        &place, (struct sw__database_manner){.migration = steps, .version = 3}, SW_OK);
    sw__database_number(&database, "PRAGMA user_version", &value, NULL);
    assert_int_equal(value, 3);
    sw__database_number(&database,
                        "SELECT count(*) FROM sqlite_master WHERE name = 'extra'", &value,
                        NULL);
    assert_int_equal(value, 0);
    sw__database_close(&database);
    place_free(&place);
}

static void other_programs(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_error_info info = {0};
    sw_history *history;
    write_run(&place, "a", (struct made){0});
    run_sql(&place, "CREATE TABLE visits (url TEXT); INSERT INTO visits VALUES ('x')");
    assert_int_equal(sw_history_add(in(&place, "a"), &info), SW_EFORMAT);
    assert_non_null(strstr(info.message, "belongs to another program"));
    assert_int_equal(sw_history_read(&history, place.path, NULL, &info), SW_EFORMAT);
    assert_int_equal(sw_history_rebuild(place.path, NULL, &info), SW_EFORMAT);
    run_sql(&place, "INSERT INTO visits VALUES ('it is as it was')");
    assert_int_equal(count_files(&place, "history.db."), 0);
    assert_int_equal(unlink(in(&place, "history.db")), 0);
    /* A link could lead anywhere. */
    assert_int_equal(symlink("/tmp/elsewhere.db", in(&place, "history.db")), 0);
    assert_int_equal(sw_history_add(in(&place, "a"), &info), SW_EFORMAT);
    assert_int_equal(access("/tmp/elsewhere.db", F_OK), -1);
    place_free(&place);
}

/* --- folders --- */

static void places(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_history *history;
    sw_error_info info = {0};
    assert_int_equal(count_runs(&place), 0);
    assert_int_equal(count_files(&place, "history.db"), 0); /* looking leaves nothing */
    assert_int_equal(sw_history_read(&history, in(&place, "no"), NULL, &info), SW_EOPEN);
    write_text(in(&place, "letter.txt"), "hello");
    assert_int_equal(sw_history_read(&history, place.path, NULL, &info), SW_EFORMAT);
    assert_non_null(strstr(info.message, "holds no runs"));
    assert_int_equal(sw_history_read(&history, in(&place, "letter.txt"), NULL, &info),
                     SW_EFORMAT);
    write_run(&place, "a", (struct made){0});
    assert_int_equal(sw_history_read(&history, in(&place, "a"), NULL, &info), SW_EFORMAT);
    assert_non_null(strstr(info.message, "is a run itself"));
    assert_int_equal(count_runs(&place), 1); /* beside other things */
    assert_int_equal(sw_history_add(in(&place, "no"), &info), SW_EOPEN);
    assert_int_equal(sw_history_add("/", &info), SW_EINVAL);
    place_free(&place);
}

static void gone_and_renamed(void **state)
{
    (void)state;
    struct place place = place_new();
    char command[300];
    size_t runs = 0;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        write_run(&place, name, (struct made){.started_s = i + 1});
        add(&place, name);
    }
    snprintf(command, sizeof command, "rm -r %s && mv %s %s", in(&place, "r0"),
             in(&place, "r1"), in(&place, "renamed"));
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) {
        sw_history *history = read_history(&place, NULL);
        assert_int_equal(sw_history_count(history), 3);
        assert_string_equal(sw_history_get(history, 1)->directory, "renamed");
        assert_false(sw_history_get(history, 1)->gone);
        assert_string_equal(sw_history_get(history, 2)->directory, "r0");
        assert_true(sw_history_get(history, 2)->gone);
        sw_history_free(history);
        /* Reading everything again keeps what cannot be read again. */
        assert_int_equal(sw_history_rebuild(place.path, &runs, NULL), SW_OK);
        assert_int_equal(runs, 2);
    }
    place_free(&place);
}

static void rebuilt(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){.p50_ms = 10});
    add(&place, "a");
    write_run(&place, "a", (struct made){.p50_ms = 20});
    sw_history *history = read_history(&place, NULL);
    assert_true(sw_history_get(history, 0)->step_p50_ms == 10);
    sw_history_free(history);
    assert_int_equal(sw_history_rebuild(place.path, NULL, NULL), SW_OK);
    history = read_history(&place, NULL);
    assert_true(sw_history_get(history, 0)->step_p50_ms == 20);
    sw_history_free(history);
    place_free(&place);
}

/* Runs `call` as somebody who may not write. */
static void as_nobody(const struct place *place, void (*call)(const struct place *))
{
    assert_int_equal(chmod(place->path, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) {
            _exit(77);
        }
        call(place);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(place->path, 0755), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(status, 0);
}

static void read_without_writing(const struct place *place)
{
    sw_error_info info = {0};
    sw_history *history = NULL;
    const int added = sw_history_add(in(place, "b"), &info);
    if (added != SW_EWRITE && added != SW_EOPEN) {
        _exit(1);
    }
    if (!strstr(info.message, "history.db")) {
        _exit(2);
    }
    if (sw_history_read(&history, place->path, NULL, &info) != SW_OK ||
        sw_history_count(history) != 2 || !has_note(history, "history.db")) {
        _exit(3);
    }
    sw_history_free(history);
}

static void read_only_folder(void **state)
{
    (void)state;
    struct place place = place_new();
    char command[200];
    write_run(&place, "a", (struct made){.started_s = 1});
    write_run(&place, "b", (struct made){.started_s = 2});
    snprintf(command, sizeof command, "chmod -R a+rX %s", place.path);
    assert_int_equal(system(command), 0);
    as_nobody(&place, read_without_writing); /* without a database */
    add(&place, "a");
    assert_int_equal(chmod(in(&place, "history.db"), 0444), 0);
    as_nobody(&place, read_without_writing); /* with one */
    damage(&place, GARBAGE);
    as_nobody(&place, read_without_writing); /* with a damaged one */
    assert_int_equal(count_files(&place, "history.db"), 1);
    place_free(&place);
}

/* A limit on the size of files is an error, and no death by SIGXFSZ. */
static void file_size_limit(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){0});
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {2048, 2048};
        sw_error_info info = {0};
        setrlimit(RLIMIT_FSIZE, &limit);
        const int result = sw_history_add(in(&place, "a"), &info);
        _exit(result == SW_OK || !strstr(info.message, "history.db"));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    add(&place, "a"); /* and nothing is broken by it */
    place_free(&place);
}

static void locked(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_error_info info = {0};
    write_run(&place, "a", (struct made){.started_s = 1});
    add(&place, "a");
    struct sw__database other =
        open_database(&place, (struct sw__database_manner){0}, SW_OK);
    assert_int_equal(sw__database_run(&other, "BEGIN IMMEDIATE", "locked", NULL), SW_OK);
    write_run(&place, "b", (struct made){.started_s = 2});
    assert_int_equal(sw_history_add(in(&place, "b"), &info), SW_ESTATE);
    assert_non_null(strstr(info.message, "is locked by another process"));
    sw__database_close(&other);
    add(&place, "b");
    assert_int_equal(count_runs(&place), 2);
    place_free(&place);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(strange_values),
        cmocka_unit_test(many_writers),
        cmocka_unit_test(journals),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(lost_files),
        cmocka_unit_test(damage_met_by_many),
        cmocka_unit_test(newer_version),
        cmocka_unit_test(migration),
        cmocka_unit_test(other_programs),
        cmocka_unit_test(places),
        cmocka_unit_test(gone_and_renamed),
        cmocka_unit_test(rebuilt),
        cmocka_unit_test(read_only_folder),
        cmocka_unit_test(file_size_limit),
        cmocka_unit_test(locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

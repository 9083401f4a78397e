/* Files, folders and descriptors that are taken away, truncated, forbidden or somebody else's. */
#include "crash.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The only file of a folder that ends so. */
static bool only_file(const char *folder, const char *suffix, char *path, size_t size)
{
    char **paths;
    size_t count = list_files(folder, suffix, &paths);
    if (count == 1) {
        snprintf(path, size, "%s", paths[0]);
    }
    free_files(paths, count);
    CHECK_EQ(count, 1);
    return count == 1;
}

static bool home_file(const char *folder, char *path, size_t size)
{
    return only_file(folder, ".stepwatch", path, size);
}

static bool hot_file(char *path, size_t size)
{
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/stepwatch-%u", crash_hot, (unsigned)geteuid());
    return only_file(folder, ".hot", path, size);
}

/* What a victim that was killed has left in memory must not meet the next one. */
static void clear_hot(void)
{
    char folder[300];
    char **paths;
    snprintf(folder, sizeof(folder), "%s/stepwatch-%u", crash_hot, (unsigned)geteuid());
    size_t count = list_files(folder, ".hot", &paths);
    for (size_t i = 0; i < count; i++) {
        (void)unlink(paths[i]);
    }
    free_files(paths, count);
}

/* stderr has one line of ours, or nothing. */
static void check_at_most_one_line(const struct run *run)
{
    check_said(run, run->err_text[0] != 0);
}

/* Of a file that has yet to grow: three seconds, on a machine where the helper waits for a core. */
enum { MOST_LOOKS = 100 };

/* Somebody truncates the home file while it is written. What it held is lost, the rest is not, and names and
 * statistics come again. */
static void home_truncated(void)
{
    static const off_t sizes[] = {0, 10000, 1 << 20};
    static const char *const policies[] = {"stream", "ring", "auto", "drop"};
    struct run plain = {0};
    run_plain(&plain, "count", "100000", NULL);
    for (unsigned i = 0; i < 12; i++) {
        char policy[64], out[300], path[600];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i % 4]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, NULL};
        struct run run = {.env = env, .out = out};
        struct tally tally;
        run_start(&run, "count", "100000", NULL);
        CHECK(run_ready(&run));
        struct stat before = {0};
        bool cut = false;
        if (home_file(out, path, sizeof(path))) {
            /* Once the helper has written what was full by now: nobody can account for a file that is cut
             * between two writes and is long again after the second. */
            unsigned looks = 0;
            for (off_t size = -1;
                 size != before.st_size ||
                 (i % 4 == 0 && size <= sizes[i / 4] && looks < MOST_LOOKS);
                 looks++) {
                size = before.st_size;
                crash_sleep_us(30000);
                (void)stat(path, &before);
            }
            cut = before.st_size > sizes[i / 4];
            if (cut) {
                CHECK_EQ(truncate(path, sizes[i / 4]), 0);
            }
        }
        run_go(&run);
        run_finish(&run);
        check_same(&run, &plain);
        check_at_most_one_line(&run);
        tally_read(&tally, out);
        CHECK_EQ(tally.result, 0);
        CHECK_EQ(tally.files, 1);
        CHECK_EQ(tally.counted, tally.present);
        CHECK_EQ(tally.nameless, 0);
        CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
        CHECK_EQ(tally.calls, run_done(&run));
        if (i % 4 == 0) {
            CHECK(cut); /* Policy stream writes what is full at once. */
            check_said(&run, true);
            CHECK(tally.present > 0);
        }
        CHECK_EQ(hot_files(), 0);
        if (crash_failures()) {
            fprintf(stderr,
                    "  policy %s, cut to %lld: present %llu, dropped %llu, "
                    "overwritten %llu; %s",
                    policies[i % 4], (long long)sizes[i / 4],
                    (unsigned long long)tally.present, (unsigned long long)tally.dropped,
                    (unsigned long long)tally.overwritten, run.err_text);
        }
        run_free(&run);
    }
    run_free(&plain);
}

/* A line, or nothing at all is missing: what was cut off may have been empty. */
static void check_said_or_whole(const struct run *run, const struct tally *tally)
{
    check_at_most_one_line(run);
    if (!run->err_text[0]) {
        check_whole(tally, run_done(run));
        CHECK_EQ(tally->calls, run_done(run));
    }
}

/* The mapped file shrinks under the recorder: the program gets no SIGBUS, and a trace remains. */
static void hot_truncated(void)
{
    static const char *const policies[] = {"stream", "ring", "auto", "drop"};
    struct run plain = {0};
    run_plain(&plain, "bus", "none", NULL);
    for (unsigned i = 0; i < 12; i++) {
        static const off_t sizes[] = {0, 4096, 200000};
        char policy[64], out[300], path[600];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i % 4]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, NULL};
        struct run run = {.env = env, .out = out};
        struct tally tally;
        run_start(&run, "bus", "none", NULL);
        CHECK(run_ready(&run));
        if (hot_file(path, sizeof(path))) {
            CHECK_EQ(truncate(path, sizes[i / 4]), 0);
        }
        run_go(&run);
        run_finish(&run);
        check_same(&run, &plain);
        tally_read(&tally, out);
        if (sizes[i / 4] < 300000) {
            check_said(&run, true);
        }
        check_said_or_whole(&run, &tally);
        CHECK_EQ(tally.result, 0);
        CHECK_EQ(tally.files, 1);
        CHECK_EQ(tally.closed, 1);
        CHECK_EQ(tally.counted, tally.present);
        CHECK_EQ(hot_files(), 0);
        char *text = report_json(out);
        free(text);
        run_free(&run);
        clear_hot();
    }
    run_free(&plain);
}

/* The program's own faults go where they went before. */
static void own_handler_gets_own_faults(void)
{
    struct run plain = {0};
    run_plain(&plain, "bus", "own", crash_dir, NULL);
    for (unsigned i = 0; i < 2; i++) {
        char out[300], path[600];
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        struct run run = {.out = out};
        struct tally tally;
        run_start(&run, "bus", "own", crash_dir, NULL);
        CHECK(run_ready(&run));
        if (i == 1 && hot_file(path, sizeof(path))) {
            CHECK_EQ(truncate(path, 200000), 0);
        }
        run_go(&run);
        run_finish(&run);
        check_same(&run, &plain);
        tally_read(&tally, out);
        CHECK_EQ(tally.files, 1);
        if (i == 0) {
            check_said(&run, false);
        }
        check_said_or_whole(&run, &tally);
        run_free(&run);
    }
    run_free(&plain);
}

static void own_faults_kill_by_default(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "bus", "default", crash_dir, NULL);
    CHECK_EQ(plain.status, SIGBUS);
    run_whole(&run, "bus", "default", crash_dir, NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.killed, 1);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
    CHECK_EQ(fold_all(NULL), 1);
    run_free(&plain);
    run_free(&run);
}

/* A run directory in which nothing can be made: the program runs unrecorded. */
static void cannot_record(const char *out)
{
    struct run plain = {0}, run = {.out = out};
    run_plain(&plain, "count", "1000", NULL);
    run_whole(&run, "count", "1000", NULL);
    check_same(&run, &plain);
    check_said(&run, true);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

static void folder_is_read_only(void)
{
    char out[300];
    need_mounts();
    snprintf(out, sizeof(out), "%s/frozen", crash_dir);
    if (mkdir(out, 0700) || mount(out, out, NULL, MS_BIND, NULL) ||
        mount(NULL, out, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL)) {
        crash_skip("a folder cannot be mounted read-only here");
    }
    cannot_record(out);
    strcat(out, "/below/it");
    cannot_record(out);
}

static void folder_cannot_be_made(void)
{
    cannot_record("/proc/stepwatch/run");
}

static void folder_is_a_file(void)
{
    char out[300];
    snprintf(out, sizeof(out), "%s/occupied", crash_dir);
    FILE *file = fopen(out, "w");
    CHECK(file && fputs("mine\n", file) >= 0 && fclose(file) == 0);
    cannot_record(out);
    struct stat facts;
    CHECK(stat(out, &facts) == 0 && facts.st_size == 5);
}

/* The folder is deleted while recording. */
static void folder_deleted(void)
{
    static const char *const policies[] = {"stream", "ring", "auto", "drop"};
    struct run plain = {0};
    run_plain(&plain, "count", "60000", NULL);
    for (unsigned i = 0; i < 4; i++) {
        char policy[64], out[300], path[600];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, NULL};
        struct run run = {.env = env, .out = out};
        struct stat facts;
        run_start(&run, "count", "60000", NULL);
        CHECK(run_ready(&run));
        if (home_file(out, path, sizeof(path))) {
            CHECK_EQ(unlink(path), 0);
            CHECK_EQ(rmdir(out), 0);
        }
        run_go(&run);
        run_finish(&run);
        check_same(&run, &plain);
        check_said(&run, true);
        CHECK(stat(out, &facts) != 0);
        CHECK_EQ(hot_files(), 0);
        run_free(&run);
    }
    run_free(&plain);
}

/* In the child, whose pid the victim will have: a link where its trace would be. */
static void plant_link(void *arg)
{
    char path[300], target[300];
    const char *slash = strrchr(crash_victim, '/');
    snprintf(target, sizeof(target), "%s/target", crash_dir);
    snprintf(path, sizeof(path), "%s/%s-%ld.stepwatch", (const char *)arg,
             slash ? slash + 1 : crash_victim, (long)getpid());
    if (symlink(target, path)) {
        _exit(96);
    }
}

static void name_is_a_link(void)
{
    char out[300], target[300];
    struct stat facts;
    snprintf(out, sizeof(out), "%s/run", crash_dir);
    snprintf(target, sizeof(target), "%s/target", crash_dir);
    for (unsigned i = 0; i < 2; i++) {
        /* The link leads nowhere, then to a file of somebody's. */
        struct run plain = {0};
        struct run run = {.out = out, .prepare = plant_link, .arg = out};
        (void)mkdir(out, 0700);
        if (i == 1) {
            FILE *file = fopen(target, "w");
            CHECK(file && fputs("mine\n", file) >= 0 && fclose(file) == 0);
        }
        run_plain(&plain, "count", "1000", NULL);
        run_whole(&run, "count", "1000", NULL);
        check_same(&run, &plain);
        if (i == 0) {
            CHECK(stat(target, &facts) != 0);
        } else {
            CHECK(stat(target, &facts) == 0 && facts.st_size == 5);
        }
        char **paths;
        size_t count = list_files(out, ".stepwatch", &paths);
        unsigned plain_files = 0;
        for (size_t j = 0; j < count; j++) {
            if (lstat(paths[j], &facts) == 0 && S_ISREG(facts.st_mode)) {
                struct tally tally;
                tally_read(&tally, paths[j]);
                check_whole(&tally, run_done(&run));
                plain_files++;
            }
            (void)unlink(paths[j]);
        }
        /* Another name was found, or a line says that it was not recorded. */
        check_said(&run, plain_files == 0);
        free_files(paths, count);
        run_free(&plain);
        run_free(&run);
    }
}

/* The private folder in the shared one is a trap: a link, or open to others. It is not used. */
static void memory_folder_is_a_trap(void)
{
    char own[300], trap[300];
    snprintf(own, sizeof(own), "%s/stepwatch-%u", crash_hot, (unsigned)geteuid());
    snprintf(trap, sizeof(trap), "%s/trap", crash_dir);
    for (unsigned i = 0; i < 2; i++) {
        struct run run = {0};
        char **paths;
        if (i == 0) {
            CHECK(mkdir(trap, 0700) == 0 && symlink(trap, own) == 0);
        } else {
            CHECK(unlink(own) == 0 && mkdir(own, 0700) == 0 && chmod(own, 0777) == 0);
        }
        run_start(&run, "count", "1000", NULL);
        CHECK(run_ready(&run));
        size_t count = list_files(own, ".hot", &paths);
        CHECK_EQ(count, 0);
        free_files(paths, count);
        run_go(&run);
        run_finish(&run);
        check_said(&run, false);
        CHECK_EQ(run_done(&run), 2000);
        run_free(&run);
    }
}

static void no_umask(void *arg)
{
    (void)arg;
    umask(0);
}

static void check_mode(const char *path, mode_t mode)
{
    struct stat facts = {0};
    CHECK_EQ(stat(path, &facts), 0);
    if ((facts.st_mode & 07777) != mode) {
        crash_fail(__FILE__, __LINE__, "%s has mode %o", path, facts.st_mode & 07777);
    }
}

static void files_are_private(void)
{
    char out[300], folder[300], path[600];
    snprintf(out, sizeof(out), "%s/a/b/run", crash_dir);
    struct run run = {.out = out, .prepare = no_umask};
    run_start(&run, "count", "1000", NULL);
    CHECK(run_ready(&run));
    for (unsigned i = 0; i < 3; i++) {
        static const char *const folders[] = {"a", "a/b", "a/b/run"};
        snprintf(folder, sizeof(folder), "%s/%s", crash_dir, folders[i]);
        check_mode(folder, 0700);
    }
    if (home_file(out, path, sizeof(path))) {
        check_mode(path, 0600);
    }
    if (hot_file(path, sizeof(path))) {
        check_mode(path, 0600);
    }
    snprintf(folder, sizeof(folder), "%s/stepwatch-%u", crash_hot, (unsigned)geteuid());
    check_mode(folder, 0700);
    run_go(&run);
    run_finish(&run);
    run_free(&run);
}

/* Runs the victim that takes over the numbers of our descriptors. The helper looks at a number right before it writes to
 * it, yet may be interrupted between the two, and the number change hands meanwhile: that is once in some hundred runs on a
 * busy machine, and never three times in a row, while a helper that does not look writes into the victim's files each time. */
static void run_taking_numbers(struct run *run, const char *const *env, char out[300],
                               const char *policy)
{
    for (unsigned i = 0; i < 3; i++) {
        snprintf(out, 300, "%s/run-%s-%u", crash_dir, policy, i);
        *run = (struct run){.env = env, .out = out};
        run_whole(run, "files", "close", crash_dir, NULL);
        if (i == 2 || atomic_load(&run->page->facts[0]) == 1) {
            return;
        }
        run_free(run);
    }
}

/* The program closes all descriptors and opens files of its own: not one of our bytes gets into them, and they
 * are open until the end. */
static void descriptors_closed(void)
{
    static const char *const policies[] = {"stream", "ring", "auto", "drop"};
    struct run plain = {0};
    if (CRASH_TSAN) {
        crash_skip("the sanitizer calls it a race, which it is");
    }
    run_plain(&plain, "files", "close", crash_dir, NULL);
    for (unsigned i = 0; i < 4; i++) {
        char policy[64], out[300];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        const char *const env[] = {policy, NULL};
        struct run run;
        struct tally tally;
        run_taking_numbers(&run, env, out, policies[i]);
        check_same(&run, &plain);
        CHECK_EQ(atomic_load(&run.page->facts[0]), 1);
        CHECK_EQ(atomic_load(&run.page->facts[2]), 0); /* the number that was touched */
        /* The page, and at least two of ours. */
        CHECK(atomic_load(&run.page->facts[1]) >= 3);
        for (unsigned j = 0; j < atomic_load(&run.page->facts[1]); j++) {
            char path[300];
            struct stat facts = {0};
            snprintf(path, sizeof(path), "%s/own-%u", crash_dir, j);
            CHECK_EQ(stat(path, &facts), 0);
            CHECK_EQ(facts.st_size, 5);
            CHECK(facts.st_blocks <= 8);
        }
        tally_read(&tally, out);
        CHECK_EQ(tally.result, 0);
        CHECK_EQ(tally.counted, tally.present);
        /* The file is opened again, so there need be no loss. */
        check_said_or_whole(&run, &tally);
        run_free(&run);
    }
    run_free(&plain);
}

static void no_descriptors_left(void)
{
    struct run plain = {0}, run = {0};
    run_plain(&plain, "files", "no-descriptors", NULL);
    run_whole(&run, "files", "no-descriptors", NULL);
    check_same(&run, &plain);
    check_said(&run, true);
    CHECK_EQ(atomic_load(&run.page->facts[0]), 0);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

static void no_descriptors_left_later(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "files", "no-descriptors-later", NULL);
    run_whole(&run, "files", "no-descriptors-later", NULL);
    check_same(&run, &plain);
    tally_read(&tally, NULL);
    check_said(&run, tally.dropped != 0);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.steps, run_steps(&run));
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(home_truncated),
        CASE(hot_truncated),
        CASE(own_handler_gets_own_faults),
        CASE(own_faults_kill_by_default),
        CASE(folder_is_read_only),
        CASE(folder_cannot_be_made),
        CASE(folder_is_a_file),
        CASE(folder_deleted),
        CASE(name_is_a_link),
        CASE(memory_folder_is_a_trap),
        CASE(files_are_private),
        CASE(descriptors_closed),
        CASE(no_descriptors_left),
        CASE(no_descriptors_left_later),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
